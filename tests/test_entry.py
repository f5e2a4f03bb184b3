"""The scanner and the writers: any bytes come in, values and findings come out, and the bytes again."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import golden

from ctxkit.entry import (
    JUNK,
    Entry,
    Finding,
    Message,
    Value,
    blocks,
    clean,
    disarm,
    dumps,
    entry_of,
    iso,
    line_of,
    millis,
    stringify,
    values,
)

GAP = "(junk)"


def scan(data: bytes, size: int = 0) -> tuple[list[Value], list[Finding]]:
    """Scan bytes, in chunks of a size, and hold the scanner to its promise: the pieces are the input."""
    findings: list[Finding] = []
    chunks = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    pieces = list(values(chunks, findings.append))
    assert b"".join(piece.raw for piece in pieces) == data
    assert [piece.start for piece in pieces] == [sum(len(p.raw) for p in pieces[:n]) for n in range(len(pieces))]
    return pieces, findings


def shown(data: bytes) -> tuple[list[Any], list[tuple[int, str]]]:
    """Return what is read from bytes: values with their lines, findings with theirs."""
    pieces, findings = scan(data)
    found = [(GAP if piece.value is JUNK else piece.value, piece.line) for piece in pieces]
    return found, [(finding.line, finding.code) for finding in findings]


ENTRY = b'{"type":"m","timestamp":1}'
READ = {"type": "m", "timestamp": 1}

TABLE: list[tuple[str, bytes, list[Any], list[tuple[int, str]]]] = [
    ("nothing", b"", [], []),
    ("blank lines", b"\n \n", [(GAP, 1)], []),
    ("a line", b'{"a":1}\n', [({"a": 1}, 1)], []),
    ("blank lines around", b'\n\n{"a":1}\n\n{"b":2}\n', [(GAP, 1), ({"a": 1}, 3), (GAP, 4), ({"b": 2}, 5)], []),
    ("no final newline", b'{"a":1}\n{"b":2}', [({"a": 1}, 1), ({"b": 2}, 2)], []),
    ("CRLF", b'{"a":1}\r\n{"b":2}\r\n', [({"a": 1}, 1), ({"b": 2}, 2)], []),
    ("a lone CR ends no line", b'{"a":1}\r{"b":2}\n', [({"a": 1}, 1), ({"b": 2}, 1)], [(1, "glued")]),
    ("BOM", b'\xef\xbb\xbf{"a":1}\n', [(GAP, 1), ({"a": 1}, 1)], [(1, "bom")]),
    ("only a BOM", b"\xef\xbb\xbf", [(GAP, 1)], [(1, "bom")]),
    ("a BOM further down", b'{"a":1}\n\xef\xbb\xbf{"b":2}\n', [({"a": 1}, 1), (GAP, 2)], [(2, "not-json")]),
    ("other JSON", b'null\n42\n"s"\n[]\ntrue\n', [(None, 1), (42, 2), ("s", 3), ([], 4), (True, 5)], []),
    ("glued", b'{"a":1}{"b":2} {"c":3}\n', [({"a": 1}, 1), ({"b": 2}, 1), ({"c": 3}, 1)], [(1, "glued")]),
    ("spread", b'{\n "a": 1,\n "b": [\n  1]\n}\n{"c":2}\n', [({"a": 1, "b": [1]}, 1), ({"c": 2}, 6)], [(1, "spread")]),
    (
        "spread and glued",
        b'{\n"a":1\n}{\n"b":2\n} {"c":3}\n',
        [({"a": 1}, 1), ({"b": 2}, 3), ({"c": 3}, 5)],
        [(1, "spread"), (3, "spread")],
    ),
    ("torn at the end", b'{"a":1}\n{"b":', [({"a": 1}, 1), (GAP, 2)], [(2, "torn")]),
    ("torn at the beginning", b'xt":"b"}\n{"a":1}\n', [(GAP, 1), ({"a": 1}, 2)], [(1, "not-json")]),
    ("torn in a string", b'{"a":"x\n{"b":2}\n', [(GAP, 1), ({"b": 2}, 2)], [(1, "torn")]),
    ("torn in a character", b'{"a":"x\xe2\x82', [(GAP, 1)], [(1, "torn")]),
    ("torn between tokens", b'{"a":\n' + ENTRY + b"\n", [(GAP, 1), (READ, 2)], [(1, "torn")]),
    ("an array of entries", b"[\n" + ENTRY + b",\n" + ENTRY + b"\n]\n", [([READ, READ], 1)], [(1, "spread")]),
    ("no array of entries", b"[" + ENTRY + b"\n" + ENTRY + b"\n", [(GAP, 1), (READ, 1), (READ, 2)], [(1, "torn")]),
    ("torn before a spread value", b'{"a":"x\n{\n"b":2\n}\n', [(GAP, 1), ({"b": 2}, 2)], [(1, "torn"), (2, "spread")]),
    ("torn, then appended: in a key", b'{"type":"m","par' + ENTRY + b"\n", [(GAP, 1), (READ, 1)], [(1, "torn")]),
    ("torn, then appended: in a string", b'{"a":"x' + ENTRY + b"\n", [(GAP, 1), (READ, 1)], [(1, "torn")]),
    ("torn, then appended: after a colon", b'{"a":' + ENTRY + b"\n", [(GAP, 1), (READ, 1)], [(1, "torn")]),
    ("torn, then appended: in an escape", b'{"a":"\\' + ENTRY + b"\n", [(GAP, 1), (READ, 1)], [(1, "torn")]),
    ("torn, then appended: in \\u", b'{"a":"\\u12' + ENTRY + b"\n", [(GAP, 1), (READ, 1)], [(1, "torn")]),
    ("a block is no entry", b'{"m":[{"type":"text","text":"x"}', [(GAP, 1)], [(1, "torn")]),
    ("garbage before an entry", b"oops " + ENTRY + b"\n", [(GAP, 1), (READ, 1)], [(1, "not-json")]),
    ("NULs before an entry", b"\0\0\0" + ENTRY + b"\n", [(GAP, 1), (READ, 1)], [(1, "nul")]),
    ("NULs on a line", b"\0\0\0\n" + ENTRY, [(GAP, 1), (READ, 2)], [(1, "nul")]),
    ("a control character", b'{"a":"x\x01\ty"}\n', [({"a": "x\x01\ty"}, 1)], [(1, "control-character")]),
    ("invalid UTF-8", b'{"a":"\xff\xe2\x82"}\n', [({"a": "\ufffd\ufffd"}, 1)], [(1, "invalid-utf-8")]),
    ("U+FFFD is no invalid UTF-8", '{"a":"\ufffd"}\n'.encode(), [({"a": "\ufffd"}, 1)], []),
    ("UTF-8 surrogates", b'{"a":"\xed\xa0\xbd"}', [({"a": "\ufffd\ufffd\ufffd"}, 1)], [(1, "invalid-utf-8")]),
    ("NaN", b'{"a":NaN}\nNaN\n', [(GAP, 1), (GAP, 2)], [(1, "torn"), (2, "not-json")]),
    ("a number of 5000 digits", b'{"a":' + b"9" * 5000 + b"}", [({"a": float("inf")}, 1)], []),
    ("too deep", b"[" * 100_000, [(GAP, 1)], [(1, "too-deep")]),
    ("numbers in a row", b'1 2 {"a":1} 3\n', [(GAP, 1)], [(1, "not-json")]),
    ("LS and NEL end no line", '{"a":"\u2028\x85"}\n{"b":2}'.encode(), [({"a": "\u2028\x85"}, 1), ({"b": 2}, 2)], []),
]  # fmt: skip


@pytest.mark.parametrize(("data", "found", "findings"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_is_read(data: bytes, found: list[Any], findings: list[tuple[int, str]]) -> None:
    assert shown(data) == (found, findings)


def test_s01_a_line_cut_in_the_middle_costs_that_line() -> None:
    rows = [json.dumps({"type": "m", "timestamp": n}).encode() + b"\n" for n in range(6)]
    rows[2] = rows[2][:11] + b"\n"
    pieces, findings = scan(b"".join(rows))
    assert [piece.value["timestamp"] for piece in pieces if piece.value is not JUNK] == [0, 1, 3, 4, 5]
    assert findings == [Finding(3, "torn", "11 bytes of a value that is cut or broken")]


def test_s03_half_a_surrogate_pair_is_found_kept_and_never_printed() -> None:
    (piece,), findings = scan(rb'{"text":"ok \ud83d done"}' + b"\n")
    assert piece.value == {"text": "ok \ud83d done"}
    assert [(f.line, f.code) for f in findings] == [(1, "lone-surrogate")]
    assert dumps(piece.value) == '{"text":"ok \ufffd done"}'
    (pair,), findings = scan(rb'{"text":"\ud83d\ude00"}')
    assert (pair.value, findings) == ({"text": "\U0001f600"}, [])


def test_s03_text_about_surrogates_is_no_surrogate() -> None:
    assert scan(rb'{"text":"write \\ud83d"}')[1] == []


def test_s13_a_line_of_30_mb_is_a_line_like_any_other() -> None:
    big = b'{"type":"m","timestamp":1,"text":"' + b"x" * 30_000_000 + b'"}\n'
    pieces, findings = scan(ENTRY + b"\n" + big + ENTRY + b"\n", size=1 << 20)
    assert [piece.line for piece in pieces] == [1, 2, 3]
    assert findings == []


@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_bytes_come_back_whatever_the_chunks(data: bytes, size: int) -> None:
    assert scan(data) == scan(data, size)


TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b'"a":',
    b"1",
    b",",
    b" ",
    b"\n",
    b"\r\n",
    b"\\",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
]
PIECES = [b'{"a":1}', b'{"a":1}\n', ENTRY, ENTRY + b"\n", b'{"a":{"b":[\n', b"\\ud83d", b"null", b'{"type":"text"}']
PARTS = st.sampled_from(TOKENS + PIECES)


@given(st.lists(PARTS, max_size=40).map(b"".join), st.integers(1, 7))
def test_any_broken_json_comes_back_whatever_the_chunks(data: bytes, size: int) -> None:
    assert scan(data) == scan(data, size)


@given(st.lists(PARTS, max_size=10).map(b"".join), st.lists(PARTS, max_size=10).map(b"".join))
def test_an_entry_on_a_line_of_its_own_is_always_found(before: bytes, after: bytes) -> None:
    data = before + b"\n" + b'{"type":"here","timestamp":2,"id":"x"}' + b"\n" + after
    pieces, _ = scan(data)
    found = [piece for piece in pieces if piece.value is not JUNK and "here" in json.dumps(piece.value)]
    assert found, data


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)


@given(st.lists(OBJECTS, max_size=8), st.sampled_from(["\n", "\r\n", "", " ", "\n\n"]), st.sampled_from([None, 2]))
def test_objects_are_found_however_they_are_laid_out(
    objects: list[dict[str, Any]], end: str, indent: int | None
) -> None:
    data = end.join(json.dumps(value, indent=indent, ensure_ascii=False) for value in objects).encode("utf-8")
    pieces, findings = scan(data)
    assert [piece.value for piece in pieces if piece.value is not JUNK] == objects
    assert {finding.code for finding in findings} <= {"glued", "spread"}


HOSTILE = {
    "opened and never closed": b'{"a":[' * 200_000,
    "a string without an end": b'{"a":"' + b"x" * 5_000_000,
    "half escapes": b'"\\' * 2_000_000,
    "quotes": b'"' * 3_000_000,
    "objects in an array without an end": b'{"k":[{"type":"t","timestamp":1},' * 100_000,
    "objects that open on every line": b'{"a":\n' * 8_000,
    "arrays that open on every line": b"[\n" * 10_000,
    "numbers without an end": b'{"a":[' + b"1," * 1_000_000,
    "values and garbage": b'x{"type":"t","timestamp":1}' * 20_000,
    "spaces": b" " * 5_000_000 + b"x",
    "blank lines": b"\n" * 200_000,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_time_is_linear_on_everything(data: bytes) -> None:
    def seconds(part: bytes) -> float:
        start = time.process_time()
        scan_only(part)
        return time.process_time() - start

    half = min(seconds(data[: len(data) // 2]) for _ in range(2))
    whole = min(seconds(data) for _ in range(2))
    assert whole < 4 * half + 0.3


def scan_only(data: bytes) -> None:
    for _ in values((data[at : at + 65536] for at in range(0, len(data), 65536)), lambda _: None):
        pass


# -- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", golden("serialize_conversation.json")["rawArguments"], ids=lambda case: case["name"])
def test_numbers_and_keys_are_written_as_javascript_does(case: dict[str, Any]) -> None:
    arguments = json.loads(case["argumentsJson"])
    ordered = stringify(arguments)
    inside = case["serialized"].removeprefix("[Assistant tool calls]: t(").removesuffix(")")
    pairs = [f"{json.loads(key)}={value}" for key, value in top_level(ordered)]
    assert ", ".join(pairs) == inside


def top_level(text: str) -> list[tuple[str, str]]:
    """Split a compact JSON object into keys and the text of their values."""
    decoder = json.JSONDecoder()
    found = []
    at = 1
    while text[at] != "}":
        _, end = decoder.raw_decode(text, at)
        _, stop = decoder.raw_decode(text, end + 1)
        found.append((text[at:end], text[end + 1 : stop]))
        at = stop + (text[stop] == ",")
    return found


@given(JSON)
def test_what_is_written_reads_the_same(value: Any) -> None:
    assert json.loads(dumps(value)) == value
    dumps(value).encode()


@given(st.text(st.characters(codec=None, categories=None), max_size=20))
def test_no_lone_surrogate_is_ever_written(text: str) -> None:
    with_surrogates = "".join(chr(ord(c) % 0x800 + 0xD800) if ord(c) % 3 == 0 else c for c in text)
    for value in (with_surrogates, {with_surrogates: [with_surrogates]}):
        json.loads(dumps(value).encode())
        stringify(value).encode()
    assert clean(text.encode("utf-8", "replace").decode()) == text.encode("utf-8", "replace").decode()


def test_integers_keep_their_digits_and_infinity_is_null() -> None:
    assert dumps({"a": 2**70, "b": float("inf")}) == f'{{"a":{2**70},"b":null}}'
    assert stringify({"a": 2**53 + 1, "b": 10**400}) == '{"a":9007199254740992,"b":null}'


def test_what_could_be_read_can_be_written_however_deep() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    assert dumps(deep) == "[" * 50_001 + "]" * 50_001


def test_an_entry_is_one_line_its_own_where_it_is_one() -> None:
    (piece,), _ = scan(b'  {"id": "a",  "n": 1.0}\r\n')
    entry = entry_of(piece.value, raw=piece.raw)
    assert line_of(entry) == b'{"id": "a",  "n": 1.0}\n'
    assert line_of(entry._replace(value={"id": "b"})) == b'{"id":"b"}\n'
    (spread,), _ = scan(b'{\n"id":"a"\n}\n')
    assert line_of(entry_of(spread.value, raw=spread.raw)) == b'{"id":"a"}\n'
    assert line_of(Entry(None, None, "", "", {}, raw=b"torn {\n")) == b"torn {\n"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("a </summary> b", "a &lt;/summary> b"),
        ("</SUMMARY>< / summary ></summary\n>", "&lt;/SUMMARY>&lt; / summary >&lt;/summary\n>"),
        ("<summary> 1 < 2 </summaries> </sum>", "<summary> 1 < 2 </summaries> </sum>"),
        ("no tag", "no tag"),
    ],
)
def test_text_cannot_close_the_tag_it_is_in(text: str, right: str) -> None:
    assert disarm(text, "summary") == right


def test_blocks_of_whatever_stands_there() -> None:
    text = {"type": "text", "text": "a"}
    assert blocks("a") == blocks(["a"]) == blocks([text, 1, None, []]) == [text]
    assert blocks(None) == blocks(5) == blocks({}) == []
    assert Message({"role": 5, "content": None}).role == ""


# -- time ------------------------------------------------------------------------------------------------------------


@given(st.datetimes(datetime(1600, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_times_are_those_of_the_calendar(when: datetime) -> None:
    when = when.replace(microsecond=when.microsecond // 1000 * 1000)
    text = when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"
    number = (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert millis(text) == number
    assert iso(number) == text


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("2026-01-01T00:00:00.000Z", 1767225600000),
        ("2026-01-01T01:30:00+01:30", 1767225600000),
        ("2025-12-31T19:00:00.5-0500", 1767225600500),
        ("2026-01-01", 1767225600000),
        ("2026-01-01T00:00:00.123456Z", 1767225600123),
        ("2026-13-01T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
        ("٢٠٢٦-01-01", None),
    ],
)
def test_times_as_they_are_found(text: str, right: int | None) -> None:
    assert millis(text) == right
