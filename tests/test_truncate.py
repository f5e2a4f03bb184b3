"""Cutting: Pi's recorded results, a slow reference that is right at a glance, and the words of the notices."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxkit import ends, truncate_line
from ctxkit.clean import to_utf8
from ctxkit.truncate import (
    MAX_BYTES,
    MAX_LINES,
    Truncation,
    Truncator,
    format_size,
    truncate_head,
    truncate_middle,
    truncate_tail,
)

GOLDEN = Path(__file__).parent / "golden"


# --- the reference: the whole input as a list of lines, each a list of characters -------------------------------------


class Character(NamedTuple):
    """A character, or the longest run of bytes that could have begun one: what it was, and what is printed for it."""

    raw: bytes
    text: bytes


Line = list[Character]


class Expected(NamedTuple):
    text: bytes
    truncated_by: str | None
    parts: list[tuple[int, int, int, bool]]  # first line, last line, bytes, partial
    output_lines: int
    output_bytes: int
    left_out: tuple[int, int] | None = None


def characters(data: bytes) -> Line:
    found = []
    while data:
        for size in range(1, 5):
            try:
                text = data[:size].decode()
            except UnicodeDecodeError as error:
                text, end = "\ufffd", error.end
            else:
                end = size
                break
        found.append(Character(data[:end], text.encode()))
        data = data[end:]
    return found


def lines_of(data: bytes) -> list[bytes]:
    """Split after each LF."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def raw(line: Line) -> bytes:
    return b"".join(character.raw for character in line)


def text_of(lines: list[Line], final_newline: bool = True) -> bytes:
    text = b"".join(character.text for line in lines for character in line)
    return text if final_newline else text.removesuffix(b"\n")


def shortened(line: bytes, width: int) -> bytes:
    """Shorten a line; one that is short enough stays byte for byte. A CR before the line's end is part of that end."""
    end = re.search(rb"\r?\n?\Z", line)
    assert end is not None
    body, end_bytes = line[: end.start()], end.group()
    text = body.decode("utf-8", "replace")
    return line if len(text) <= width else truncate_line(text, width).encode() + end_bytes


def fitting(
    lines: list[Line], end: bool, max_lines: int | None, max_bytes: int | None, whole_lines: bool, final_newline: bool
) -> tuple[list[Line], bool]:
    """The first (last) whole lines within the limits; else as many characters of the first (last) line as fit."""

    def too_big(kept: list[Line]) -> bool:
        return max_bytes is not None and len(text_of(kept, final_newline)) > max_bytes

    def last(count: int) -> list[Line]:
        return lines[len(lines) - count :] if end else lines[:count]

    count = 0
    while count < len(lines) and count != max_lines and not too_big(last(count + 1)):
        count += 1
    if count or whole_lines or max_lines == 0 or not lines:
        return last(count), False
    part = last(1)[0]
    if not final_newline and part[-1].raw == b"\n":
        part = part[:-1]
    while too_big([part]):
        part = part[1:] if end else part[:-1]
    return [part], True


def reference(
    data: bytes,
    keep: str,
    max_lines: int | None,
    max_bytes: int | None,
    width: int | None = None,
    offset: int = 1,
    whole_lines: bool = False,
    final_newline: bool = True,
) -> Expected:
    raw_lines = lines_of(data)[offset - 1 :]
    text = b"".join(raw_lines)
    if width is not None:
        raw_lines = [shortened(line, width) for line in raw_lines]
    was_shortened = b"".join(raw_lines) != text
    text = b"".join(raw_lines)
    over_lines = max_lines is not None and len(raw_lines) > max_lines
    over_bytes = max_bytes is not None and len(text) > max_bytes
    last = offset - 1 + len(raw_lines)
    if not (over_lines or over_bytes or was_shortened):
        parts = [(offset, last, len(text), False)] if raw_lines else []
        return Expected(text, None, parts, len(raw_lines), len(text))
    lines = [characters(line) for line in raw_lines]
    if max_lines is None and max_bytes is None and final_newline:
        return Expected(text, "width", [(offset, last, len(text), False)], len(lines), len(text))
    everything = text_of(lines, final_newline)
    if not over_lines and (max_bytes is None or len(everything) <= max_bytes):
        why = "bytes" if over_bytes else "width"
        return Expected(everything, why, [(offset, last, len(everything), False)], len(lines), len(everything))

    def described(kept: list[Line], partial: bool, at_end: bool) -> list[tuple[int, int, int, bool]]:
        size = len(text_of(kept, final_newline))
        if not kept or (partial and not size and not at_end):
            return []
        return [
            (last - len(kept) + 1, last, size, partial) if at_end else (offset, offset + len(kept) - 1, size, partial)
        ]

    first_line_too_long = (
        max_bytes is not None and len(b"".join(raw_lines[:1]).removesuffix(b"" if final_newline else b"\n")) > max_bytes
    )
    if keep != "middle":
        kept, partial = fitting(lines, keep == "tail", max_lines, max_bytes, whole_lines, final_newline)
        output = text_of(kept, final_newline)
        parts = described(kept, partial, keep == "tail")
        left_out = None
    else:
        half_lines = None if max_lines is None else max_lines // 2
        half_bytes = None if max_bytes is None else max_bytes // 2
        front, front_partial = fitting(lines, False, half_lines, half_bytes, whole_lines, True)
        rest_lines = None if max_lines is None else max_lines - max_lines // 2
        rest_bytes = None if max_bytes is None else max_bytes - max_bytes // 2
        back, back_partial = fitting(lines, True, rest_lines, rest_bytes, whole_lines, True)
        parts = described(front, front_partial, False) + described(back, back_partial, True)
        whole = sum(b - a + 1 for a, b, _, is_part in parts if not is_part)
        left_lines = len(lines) - whole
        left_bytes = len(text) - sum(len(raw(line)) for line in front + back)
        left_out = (left_lines, left_bytes)
        size, number = format_size(left_bytes), f"{left_lines} {'line' if left_lines == 1 else 'lines'}"
        some_partial = any(is_part and size for _, _, size, is_part in parts)
        marker = f"[... {size} of {number} left out ...]" if some_partial else f"[... {number} ({size}) left out ...]"
        start = text_of(front) + (b"\n" if front_partial and text_of(front) else b"")
        output = start + marker.encode() + b"\n" + text_of(back)
    partial = any(part[3] for part in parts)
    shown = {number for a, b, _, _ in parts for number in range(a, b + 1)}
    by_lines = over_lines and len(shown) == max_lines and not partial
    if keep == "head" and first_line_too_long:
        by_lines = False  # Pi looks at the first line before it looks at the line limit
    return Expected(
        output, "lines" if by_lines else "bytes", parts, len(shown), sum(part[2] for part in parts), left_out
    )


def cut(data: bytes, sizes: list[int], **options: Any) -> Truncation:
    """Feed the data in chunks of these sizes, in turn; return the result with all that was printed as its text."""
    cutter = Truncator(**options)
    printed = []
    at, number = 0, 0
    while at < len(data):
        size = sizes[number % len(sizes)]
        printed.append(cutter.feed(data[at : at + size]))
        at, number = at + size, number + 1
    result = cutter.finish()
    result.text = b"".join([*printed, result.text])
    return result


PIECES = [
    b"\n",
    b"\n",
    b"\r\n",
    b"a",
    b"bc",
    b"d" * 30,
    b"\x00",
    b"\x1b[1m",
    "é".encode(),
    "क".encode(),
    "漢".encode(),
    "😀".encode(),
    "e\u0301".encode(),
    "\ufffd".encode(),
    b"\xff",
    b"\x80",
    b"\xe2\x82",
    b"\xf0\x9f\x98",
    b"\xed\xa0\x80",
    b"\xf0\x80\x80",
]
inputs = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join),
    st.lists(st.sampled_from(PIECES[:7]), max_size=40).map(b"".join),
    st.binary(max_size=40),
)
chunk_sizes = st.lists(st.integers(1, 12), min_size=1, max_size=5)
options = st.fixed_dictionaries(
    {
        "keep": st.sampled_from(["head", "tail", "middle"]),
        "max_lines": st.one_of(st.none(), st.integers(0, 8)),
        "max_bytes": st.one_of(st.none(), st.integers(0, 30)),
        "width": st.one_of(st.none(), st.none(), st.integers(0, 20)),
        "offset": st.one_of(st.just(1), st.integers(1, 6)),
        "whole_lines": st.booleans(),
    }
)


@settings(max_examples=1500, deadline=None)
@given(inputs, chunk_sizes, options, st.booleans())
def test_every_result_is_that_of_the_reference(
    data: bytes, sizes: list[int], options: dict[str, Any], final_newline: bool
) -> None:
    options["final_newline"] = final_newline or options["keep"] == "middle"  # Pi has no middle
    expected = reference(data, **options)
    for chunks, block in ((sizes, 1), (sizes, ends.BLOCK), ([1], 1), ([1], 5), ([len(data) or 1], 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ends, "BLOCK", block)  # or these inputs would be too small for anything to be dropped
            result = cut(data, chunks, **options)
        assert result.text == expected.text
        assert result.truncated_by == expected.truncated_by
        assert result.truncated == (expected.truncated_by is not None)
        assert [(part.first, part.last, part.size, part.partial) for part in result.parts] == expected.parts
        assert (result.output_lines, result.output_bytes) == (expected.output_lines, expected.output_bytes)
        assert result.left_out == expected.left_out
        assert result.total_lines == len(lines_of(data))
        assert result.total_bytes == len(data)


# --- Pi's recorded results --------------------------------------------------------------------------------------------


def golden(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text())


def recipe(steps: list[tuple[str, int]]) -> str:
    return "".join(text * count for text, count in steps)


def same_text(got: str, recorded: str | dict[str, Any]) -> bool:
    """Compare with a recorded string, which is a digest if it is long."""
    if isinstance(recorded, str):
        return got == recorded
    data = to_utf8(got)
    return (len(data), hashlib.sha256(data).hexdigest()) == (recorded["utf8Bytes"], recorded["sha256"])


def differences(result: Truncation, recorded: dict[str, Any]) -> dict[str, Any]:
    """Return our values where they are not those that were recorded."""
    ours = result.as_json(None)
    return {
        key: ours[key]
        for key, value in recorded.items()
        if not (same_text(result.content, value) if key == "content" else ours[key] == value)
    }


NEWLINE = (
    "only the final newline is over the byte limit, and no line is missing: Pi says that lines were cut (Pi 14.1.1)"
)
SURROGATE = "a lone surrogate cannot be written as UTF-8: it becomes U+FFFD, as it does when Pi's result is written"
HEAD_EXCEPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "single newline maxBytes 0": (NEWLINE, {"truncatedBy": "bytes"}),
    "only the final newline is over the byte limit": (NEWLINE, {"truncatedBy": "bytes"}),
    "only the final newline is over, two lines": (NEWLINE, {"truncatedBy": "bytes"}),
    "lone high surrogate, no cut": (SURROGATE, {"content": "a\ufffdb"}),
}
TAIL_EXCEPTIONS = HEAD_EXCEPTIONS


def cases(name: str, key: str) -> list[Any]:
    return [pytest.param(case, id=case.get("name")) for case in golden(name)[key]]


def check(case: dict[str, Any], result: Truncation, exceptions: dict[str, tuple[str, dict[str, Any]]]) -> None:
    reason, right = exceptions.get(case["name"], ("", {}))
    assert differences(result, case["result"]) == right, reason


def limits(case: dict[str, Any]) -> dict[str, Any]:
    names = {"maxLines": "max_lines", "maxBytes": "max_bytes"}
    return {names[key]: value for key, value in case["options"].items()}


@pytest.mark.parametrize("case", cases("truncate.json", "truncateHead"))
def test_head_is_that_of_pi(case: dict[str, Any]) -> None:
    result = truncate_head(recipe(case["input"]), whole_lines=True, final_newline=False, **limits(case))
    check(case, result, HEAD_EXCEPTIONS)


@pytest.mark.parametrize("case", cases("truncate.json", "truncateTail"))
def test_tail_is_that_of_pi(case: dict[str, Any]) -> None:
    result = truncate_tail(recipe(case["input"]), final_newline=False, **limits(case))
    check(case, result, TAIL_EXCEPTIONS)


@pytest.mark.parametrize("case", cases("truncate.json", "truncateLine"))
def test_line_is_that_of_pi(case: dict[str, Any]) -> None:
    line = recipe(case["input"])
    width = {} if case["maxChars"] is None else {"width": case["maxChars"]}
    got = truncate_line(line, utf16=True, **width)
    assert same_text(got, case["result"]["text"])
    assert (got != line) == case["result"]["wasTruncated"]


@pytest.mark.parametrize("case", golden("truncate.json")["formatSize"], ids=lambda case: str(case["bytes"]))
def test_size_is_written_as_pi_does(case: dict[str, Any]) -> None:
    assert format_size(case["bytes"]) == case["result"]


def test_every_exception_is_of_a_recorded_case() -> None:
    names = {case["name"] for key in ("truncateHead", "truncateTail") for case in golden("truncate.json")[key]}
    assert HEAD_EXCEPTIONS.keys() <= names
    assert ACCUMULATOR_EXCEPTIONS.keys() <= {case["name"] for case in golden("output_accumulator.json")["cases"]}


def test_defaults_are_those_of_pi() -> None:
    constants = golden("truncate.json")["constants"]
    assert constants["DEFAULT_MAX_LINES"] == MAX_LINES
    assert constants["DEFAULT_MAX_BYTES"] == MAX_BYTES
    assert truncate_line("a" * 600).startswith("a" * constants["GREP_MAX_LINE_LENGTH"] + "...")
    for result in (truncate_head(b""), truncate_tail(b""), truncate_middle(b""), Truncator().finish()):
        assert (result.max_lines, result.max_bytes) == (MAX_LINES, MAX_BYTES)


class PiDecoder:
    """What Pi does to the bytes of a command before it counts: invalid ones become U+FFFD, a BOM at the start goes."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._at_start = True

    def feed(self, data: bytes, final: bool = False) -> bytes:
        text = self._decode(data, final)
        if self._at_start and text:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        return text.encode()


KEPT_NEWLINE = "Pi keeps the final newline where its buffer dropped the head (Pi 14.1.4)"
ACCUMULATOR_EXCEPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "only final newline over byte limit": (NEWLINE, {"truncatedBy": "bytes"}),
    "tail trimmed inside a line (rolling buffer)": (KEPT_NEWLINE, {"content": "z", "outputBytes": 1}),
}


@pytest.mark.parametrize("case", cases("output_accumulator.json", "cases"))
def test_a_stream_is_cut_as_pi_cuts_the_output_of_a_command(case: dict[str, Any]) -> None:
    snapshots = []
    decoder = PiDecoder()
    chunks: list[bytes] = []

    def so_far(final: bool = False) -> Truncation:
        cutter = Truncator("tail", final_newline=False, **limits(case))
        printed = [cutter.feed(chunk) for chunk in [*chunks, *([decoder.feed(b"", True)] if final else [])]]
        assert not any(printed)
        return cutter.finish()

    for chunk in case["chunks"]:
        if "snap" in chunk:
            snapshots.append(so_far())
        else:
            chunks.append(
                decoder.feed(to_utf8(recipe(chunk["text"])) if "text" in chunk else bytes.fromhex(chunk["hex"]))
            )
    reason, right = ACCUMULATOR_EXCEPTIONS.get(case["name"], ("", {}))
    results = [*snapshots, so_far(final=True)]
    recorded = [*case["intermediate"], case["final"]]
    assert len(results) == len(recorded)
    for result, wanted in zip(results, recorded, strict=True):
        assert differences(result, wanted["truncation"]) == right, reason
        assert result.truncated == wanted["hasFullOutputFile"]
        open_line = wanted["lastLineBytes"]
        if result.last_line_partial and open_line:  # 0 after a final newline is wrong (Pi 14.1.2)
            assert f"(line is {format_size(open_line)})" in result.notice(None)


# --- promises, without the reference ----------------------------------------------------------------------------------


@settings(max_examples=600, deadline=None)
@given(inputs, chunk_sizes, options)
def test_what_fits_is_untouched_and_what_is_cut_is_valid_text_within_the_limits(
    data: bytes, sizes: list[int], options: dict[str, Any]
) -> None:
    options["width"], options["offset"] = None, 1
    max_lines, max_bytes = options["max_lines"], options["max_bytes"]
    result = cut(data, sizes, **options)
    assert result.total_lines == data.count(b"\n") + (
        data != b"" and not data.endswith(b"\n")
    )  # wc -l, and an open line
    fits = (max_lines is None or result.total_lines <= max_lines) and (max_bytes is None or len(data) <= max_bytes)
    assert result.truncated == (not fits)
    if fits:
        assert result.text == data
        assert result.notice(None) == ""
        return
    result.text.decode()
    assert max_lines is None or result.output_lines <= max_lines
    assert max_bytes is None or result.output_bytes <= max_bytes
    lines = lines_of(data)
    if result.left_out is None and result.parts and not result.parts[0].partial:
        kept = lines[result.first_line - 1 : result.last_line]
        assert result.text == b"".join(kept).decode("utf-8", "replace").encode()
        assert result.output_lines == len(kept)
    if not options["whole_lines"] and options["keep"] != "middle" and max_lines != 0 and max_bytes is not None:
        end = characters(data)[-1 if options["keep"] == "tail" else 0]
        assert bool(result.text) == (len(end.text) <= max_bytes)  # empty only if not one character fits


@settings(max_examples=400, deadline=None)
@given(inputs, options)
def test_every_number_of_a_notice_is_true(data: bytes, options: dict[str, Any]) -> None:
    options["width"] = None
    result = cut(data, [7], **options)
    if not result.truncated:
        return
    lines = [line.decode("utf-8", "replace").encode() for line in lines_of(data)]
    sizes = [len(line) for line in lines_of(data)]
    notice = result.notice("saved.log")
    assert notice.endswith(". Full output: saved.log]")
    shown = notice.removeprefix("[").removesuffix(". Full output: saved.log]")
    if too_long := re.fullmatch(r"Line (\d+) is (\d+)B, exceeds (\d+)B limit", shown):
        number, size, limit = map(int, too_long.groups())
        assert options["whole_lines"] and not result.parts
        assert number == (len(lines) if options["keep"] == "tail" else options["offset"])
        assert sizes[number - 1] == size > limit == options["max_bytes"]
        return
    if none := re.fullmatch(r"Showing none of (\d+) (lines?)(?: \((\d+)B limit\))?", shown):
        assert result.output_bytes == 0
        assert int(none[1]) == len(lines)
        assert (none[2] == "line") == (len(lines) == 1)
        assert none[3] is None or int(none[3]) == options["max_bytes"]
        return
    assert shown.startswith("Showing ")
    text = result.text
    if result.left_out:
        marker = re.search(rb"^\[\.\.\. .* left out \.\.\.\]\n", text, re.MULTILINE)
        assert marker is not None
        kept = [text[: marker.start()], text[marker.end() :]]
    else:
        kept = [text]
    kept = [piece for piece in kept if piece]
    words = re.findall(r"(first|last) (\d+)B of line (\d+)(?: \(line is (\d+)B\))?|(\d+)-(\d+)", shown)
    assert len(words) == len(kept)
    for (side, size, number, whole, first, last), piece in zip(words, kept, strict=True):
        if side == "first":
            assert lines[int(number) - 1].startswith(piece[: int(size)])
            assert piece[int(size) :] in (b"", b"\n")
        elif side == "last":
            assert lines[int(number) - 1].endswith(piece)
            assert len(piece) == int(size)
        else:
            assert b"".join(lines[int(first) - 1 : int(last)]) == piece
        if whole:
            assert int(whole) == sizes[int(number) - 1] > int(size)
    if total := re.search(r" of (\d+)(?: \((\d+)B limit\))?$", shown):
        assert int(total[1]) == len(lines) or " of line " in shown
        assert (total[2] is not None) == (result.truncated_by == "bytes")
        assert total[2] is None or int(total[2]) == options["max_bytes"]


LONG = 8 << 20


@pytest.mark.parametrize("chunk", [b"x" * (1 << 16), "漢".encode() * 21845, b"\xff" * (1 << 16), b"\x1b" * (1 << 16)])
@pytest.mark.parametrize(
    "options",
    [
        {"keep": "head"},
        {"keep": "tail"},
        {"keep": "middle"},
        {"keep": "tail", "final_newline": False},
        {"keep": "head", "final_newline": False},
        {"keep": "head", "whole_lines": True},
        {"keep": "tail", "whole_lines": True},
        {"keep": "tail", "max_lines": None},
        {"keep": "tail", "max_bytes": None, "width": 500},
        {"keep": "tail", "max_lines": None, "max_bytes": None},
        {"keep": "tail", "width": 500},
        {"keep": "tail", "offset": 2},
        {"keep": "tail", "strip_ansi": True, "collapse_cr": True},
    ],
    ids=lambda options: " ".join(f"{key}={value}" for key, value in options.items()),
)
def test_a_line_without_end_is_not_held(chunk: bytes, options: dict[str, Any]) -> None:
    cutter = Truncator(**options)
    tracemalloc.start()
    try:
        printed = sum(len(cutter.feed(chunk)) for _ in range(LONG // len(chunk)))
        result = cutter.finish()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.total_bytes == LONG // len(chunk) * len(chunk)
    assert peak < (16 if "strip_ansi" in options else 1) << 20  # splitting a chunk at each ESC takes 8 bytes a piece
    if options.get("max_bytes", MAX_BYTES) is not None:
        marker = len(b"\n[... 8.0MB of 1 line left out ...]\n") if options["keep"] == "middle" else 0
        assert printed + len(result.text) <= MAX_BYTES + marker


@pytest.mark.parametrize("keep", ["head", "tail", "middle"])
def test_lines_beyond_a_limit_of_lines_are_not_held(keep: str) -> None:
    cutter = Truncator(keep, max_lines=10, max_bytes=None)
    chunk = b"line\n" * 10_000
    tracemalloc.start()
    try:
        printed = b"".join([text for _ in range(400) if (text := cutter.feed(chunk))])
        result = cutter.finish()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (printed + result.text).count(b"line\n") == 10
    assert peak < 1 << 20


@pytest.mark.parametrize("keep", ["head", "tail", "middle"])
def test_bytes_that_come_one_by_one_are_not_held_one_by_one(keep: str) -> None:
    cutter = Truncator(keep)
    tracemalloc.start()
    try:
        for _ in range(120_000):
            cutter.feed(b"xy")
        cutter.finish()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


# --- what is said -----------------------------------------------------------------------------------------------------


def seq(last: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(1, last + 1))


def said(data: bytes, saved_as: str | None = "out.log", /, *, finished: bool = True, **options: Any) -> str:
    cutter = Truncator(**options)
    cutter.feed(data)
    return cutter.finish(finished=finished).notice(saved_as)


HEAD, TAIL, MIDDLE = {"keep": "head"}, {"keep": "tail"}, {"keep": "middle"}
SHORT = b"ab\ncd\nef\n"
X12 = b"abcdefghijk\n"
NOTICES: list[tuple[bytes, dict[str, Any], str]] = [
    # lines
    (seq(8500), TAIL, "[Showing lines 6501-8500 of 8500. Full output: out.log]"),
    (seq(8500), HEAD, "[Showing lines 1-2000 of 8500. Full output: out.log]"),
    (SHORT, TAIL | {"max_lines": 1}, "[Showing lines 3-3 of 3. Full output: out.log]"),
    (SHORT, HEAD | {"max_lines": 1, "offset": 2}, "[Showing lines 2-2 of 3. Full output: out.log]"),
    # bytes
    (b"%2047d\n" % 1 * 50, TAIL, "[Showing lines 26-50 of 50 (50.0KB limit). Full output: out.log]"),
    (b"%2047d\n" % 1 * 50, HEAD, "[Showing lines 1-25 of 50 (50.0KB limit). Full output: out.log]"),
    # part of a line
    (b"x" * 94500, TAIL, "[Showing last 50.0KB of line 1 (line is 92.3KB). Full output: out.log]"),
    (b"x" * 94500, HEAD, "[Showing first 50.0KB of line 1 (line is 92.3KB). Full output: out.log]"),
    (b"x" * 94500 + b"\n", TAIL, "[Showing last 50.0KB of line 1 (line is 92.3KB). Full output: out.log]"),
    (b"a\n" + b"x" * 30, TAIL | {"max_bytes": 8}, "[Showing last 8B of line 2 (line is 30B). Full output: out.log]"),
    (X12, HEAD | {"max_bytes": 11}, "[Showing first 11B of line 1 (line is 12B). Full output: out.log]"),
    (X12, TAIL | {"max_bytes": 11}, "[Showing last 11B of line 1 (line is 12B). Full output: out.log]"),
    # mended, a line may be longer than it was: its size would only confuse
    (b"\xff\xff\xff\n", HEAD | {"max_bytes": 8, "max_lines": 0}, "[Showing none of 1 line. Full output: out.log]"),
    (b"\xff" * 9, HEAD | {"max_bytes": 8}, "[Showing first 6B of line 1 (line is 9B). Full output: out.log]"),
    (
        b"\xff" * 6 + b"\na\n",
        HEAD | {"max_bytes": 8},
        "[Showing first 6B of line 1 (line is 7B). Full output: out.log]",
    ),
    (b"\xff\xff\n" * 2, HEAD | {"max_bytes": 4}, "[Showing first 3B of line 1. Full output: out.log]"),
    # whole lines
    (X12, HEAD | {"max_bytes": 10, "whole_lines": True}, "[Line 1 is 12B, exceeds 10B limit. Full output: out.log]"),
    (
        X12[:-1],
        HEAD | {"max_bytes": 10, "whole_lines": True},
        "[Line 1 is 11B, exceeds 10B limit. Full output: out.log]",
    ),
    (X12, HEAD | {"max_bytes": 11, "whole_lines": True}, "[Line 1 is 12B, exceeds 11B limit. Full output: out.log]"),
    (
        X12 * 2,
        TAIL | {"max_bytes": 10, "whole_lines": True},
        "[Line 2 is 12B, exceeds 10B limit. Full output: out.log]",
    ),
    (
        X12 * 3,
        HEAD | {"max_bytes": 10, "whole_lines": True, "offset": 2},
        "[Line 2 is 12B, exceeds 10B limit. Full output: out.log]",
    ),
    (
        b"\xff\xff\n" * 2,
        HEAD | {"max_bytes": 4, "whole_lines": True},
        "[Showing none of 2 lines (4B limit). Full output: out.log]",
    ),
    # nothing
    (SHORT, TAIL | {"max_lines": 0}, "[Showing none of 3 lines. Full output: out.log]"),
    (b"ab", HEAD | {"max_lines": 0}, "[Showing none of 1 line. Full output: out.log]"),
    (SHORT, TAIL | {"max_bytes": 0}, "[Showing none of 3 lines (0B limit). Full output: out.log]"),
    ("😀".encode(), TAIL | {"max_bytes": 3}, "[Showing none of 1 line (3B limit). Full output: out.log]"),
    ("😀".encode(), HEAD | {"max_bytes": 3}, "[Showing none of 1 line (3B limit). Full output: out.log]"),
    # both ends
    (seq(8500), MIDDLE, "[Showing lines 1-1000 and 7501-8500 of 8500. Full output: out.log]"),
    (SHORT, MIDDLE | {"max_lines": 1}, "[Showing lines 3-3 of 3. Full output: out.log]"),
    (SHORT, MIDDLE | {"max_bytes": 7}, "[Showing lines 1-1 and 3-3 of 3 (7B limit). Full output: out.log]"),
    (
        X12 + SHORT,
        MIDDLE | {"max_bytes": 10},
        "[Showing first 5B of line 1 and lines 4-4 of 4 (10B limit). Full output: out.log]",
    ),
    (
        SHORT + X12,
        MIDDLE | {"max_bytes": 10},
        "[Showing lines 1-1 and last 5B of line 4 of 4 (10B limit). Full output: out.log]",
    ),
    (
        X12,
        MIDDLE | {"max_bytes": 6},
        "[Showing first 3B of line 1 and last 3B of line 1 of 1 (6B limit). Full output: out.log]",
    ),
    (X12, MIDDLE | {"max_bytes": 1}, "[Showing last 1B of line 1 (line is 12B). Full output: out.log]"),
    (
        SHORT + X12,
        MIDDLE | {"max_bytes": 6, "max_lines": 1},
        "[Showing last 3B of line 4 (line is 12B). Full output: out.log]",
    ),
    # width
    (b"ab\n" + b"x" * 600, TAIL | {"width": 500}, "[Some lines shortened to 500 characters. Full output: out.log]"),
    (
        b"x" * 60 + b"\n" + SHORT,
        TAIL | {"width": 5, "max_lines": 2},
        "[Showing lines 3-4 of 4. Some lines shortened to 5 characters. Full output: out.log]",
    ),
    (
        b"x" * 60 + b"\n" + SHORT,
        HEAD | {"width": 5, "max_bytes": 24},
        "[Showing lines 1-2 of 4 (24B limit). Some lines shortened to 5 characters. Full output: out.log]",
    ),
    (b"x" * 60 + b"\n" + SHORT, TAIL | {"width": 60, "max_lines": 2}, "[Showing lines 3-4 of 4. Full output: out.log]"),
    (
        b"x" * 600,
        TAIL | {"width": 500, "max_lines": None, "max_bytes": None},
        "[Some lines shortened to 500 characters. Full output: out.log]",
    ),
    # escapes that print nothing are no last line
    (SHORT + b"\x1b[0m", TAIL | {"max_lines": 2, "strip_ansi": True}, "[Showing lines 2-3 of 3. Full output: out.log]"),
    # nothing was cut
    (SHORT, TAIL, ""),
    (SHORT, TAIL | {"max_lines": 3, "max_bytes": 9}, ""),
    (b"", TAIL | {"max_lines": 0, "max_bytes": 0}, ""),
]


@pytest.mark.parametrize(("data", "options", "notice"), NOTICES, ids=[notice[:60] for _, _, notice in NOTICES])
def test_notice(data: bytes, options: dict[str, Any], notice: str) -> None:
    assert said(data, **options) == notice


def test_notice_says_when_nothing_was_saved() -> None:
    assert said(SHORT, None, max_lines=2) == "[Showing lines 2-3 of 3. Full output not saved]"
    assert said(b"xxxxx", None, width=2) == "[Some lines shortened to 2 characters. Full output not saved]"
    assert said(SHORT, None) == ""


def test_notice_says_when_the_input_was_not_read_to_its_end() -> None:
    assert said(SHORT, finished=False) == "[Input not finished]"
    assert said(SHORT, finished=False, max_lines=2) == (
        "[Showing lines 2-3 of 3. Full output: out.log. Input not finished]"
    )
    assert said(b"abcdef", finished=False, max_bytes=2) == (
        "[Showing last 2B of line 1. Full output: out.log. Input not finished]"  # its size is not known
    )


def test_a_head_that_stops_early_claims_no_total() -> None:
    cutter = Truncator("head", max_lines=2)
    assert not cutter.settled
    cutter.feed(b"ab\ncd\n")
    assert not cutter.settled  # it may just fit
    cutter.feed(b"e")
    assert cutter.settled
    assert cutter.finish(finished=False).notice(None) == (
        "[Showing lines 1-2 of more than 2. Full output not saved. Input not finished]"
    )
    options = {"keep": "head", "max_bytes": 10, "finished": False}
    assert (
        said(b"x" * 11, None, **options) == "[Showing first 10B of line 1. Full output not saved. Input not finished]"
    )
    assert said(b"x" * 11, None, whole_lines=True, **options) == (
        "[Line 1 exceeds 10B limit. Full output not saved. Input not finished]"
    )


def test_a_head_is_settled_as_soon_as_it_is_known() -> None:
    for data in (b"abc", "ab漢".encode()[:4], b"a\nbc"):
        cutter = Truncator("head", max_bytes=2 if b"\n" not in data else 3)
        assert cutter.feed(data[:2]) == (b"a\n" if b"\n" in data else b"")
        assert not cutter.settled
    cutter = Truncator("head", max_bytes=2)
    cutter.feed(b"\xe2\x82")
    assert not cutter.settled
    cutter.feed(b"a")
    assert cutter.settled
    assert cutter.cut
    assert not Truncator("tail", max_lines=0).settled


@pytest.mark.parametrize(
    ("data", "options", "marker", "left_out"),
    [
        (seq(8500), {}, "[... 6500 lines (31.7KB) left out ...]", (6500, 32500)),
        (SHORT, {"max_lines": 2}, "[... 1 line (3B) left out ...]", (1, 3)),
        (SHORT, {"max_lines": 0}, "[... 3 lines (9B) left out ...]", (3, 9)),
        (X12, {"max_bytes": 6}, "[... 6B of 1 line left out ...]", (1, 6)),
        (X12 + SHORT, {"max_bytes": 10}, "[... 13B of 3 lines left out ...]", (3, 13)),
        (b"\xff" * 9, {"max_bytes": 6}, "[... 7B of 1 line left out ...]", (1, 7)),
        (X12, {"max_bytes": 6, "whole_lines": True}, "[... 1 line (12B) left out ...]", (1, 12)),
    ],
)
def test_marker_counts_what_is_left_out(
    data: bytes, options: dict[str, Any], marker: str, left_out: tuple[int, int]
) -> None:
    result = truncate_middle(data, **options)
    assert result.text.splitlines().count(marker.encode()) == 1
    assert result.left_out == left_out
    assert result.as_json(None)["leftOut"] == {"lines": left_out[0], "bytes": left_out[1]}


# --- situations that went wrong elsewhere -----------------------------------------------------------------------------


def test_t01_line_totals_are_those_of_wc_and_the_limit_itself_is_no_cut() -> None:
    result = truncate_tail(seq(4000), max_lines=2000)
    assert (result.total_lines, result.first_line, result.last_line) == (4000, 2001, 4000)
    assert result.text == b"".join(seq(4000).splitlines(keepends=True)[2000:])
    assert truncate_tail(seq(4000) + b"open").total_lines == 4001
    for truncate in (truncate_head, truncate_tail, truncate_middle):
        exact = truncate(seq(2000), max_lines=2000)
        assert (exact.truncated, exact.text) == (False, seq(2000))


@pytest.mark.parametrize(
    ("options", "why"), [({"max_lines": 2}, "lines"), ({"max_bytes": 4}, "bytes"), ({"width": 1}, "width")]
)
def test_t02_every_cut_says_where_the_rest_is(options: dict[str, Any], why: str) -> None:
    cutter = Truncator(**options)
    cutter.feed(SHORT)
    cut_before_the_end = cutter.cut
    result = cutter.finish()
    assert cut_before_the_end and result.truncated
    assert result.truncated_by == why
    assert "Full output: /there/it.log" in result.notice("/there/it.log")
    assert "Full output not saved" in result.notice(None)
    assert result.as_json("/there/it.log")["fullOutputPath"] == "/there/it.log"


def test_t03_both_limits_keep_the_same_side() -> None:
    build = b"%4095d\n" % 7 * 29 + b"ERROR: boom\n"
    sides: list[dict[str, Any]] = [{"max_lines": 5}, {"max_bytes": 10_000}, {"max_bytes": 5}]
    for options in sides:
        assert truncate_tail(build, **options).text.endswith(b"boom\n")
        assert build.startswith(truncate_head(build, **options).text)
        assert truncate_middle(build, **options).text.endswith(b"m\n")


def test_t04_a_first_chunk_over_the_limit_shows_its_beginning_at_once() -> None:
    cutter = Truncator("head", max_bytes=1024)
    assert cutter.feed(b"x" * 200_000) == b"x" * 1024
    result = cutter.finish()
    assert (result.text, result.output_bytes, result.last_line_partial) == (b"", 1024, True)
    assert truncate_head(b"x" * 200_000, max_bytes=1024, whole_lines=True).first_line_exceeds_limit


def test_t05_all_that_came_is_counted_whatever_is_kept() -> None:
    for keep in ("head", "tail", "middle"):
        result = cut(seq(400_000) + b"open", [1 << 16], keep=keep)
        assert (result.total_lines, result.total_bytes) == (400_001, 2_688_899)


def test_t06_limit_counts_bytes_not_characters() -> None:
    for truncate in (truncate_head, truncate_tail):
        result = truncate("漢" * 1000, max_bytes=1000)
        assert result.content == "漢" * 333
        assert result.output_bytes == 999
    assert "999B of line 1 (line is 2.9KB)" in truncate_tail("漢" * 1000, max_bytes=1000).notice(None)


def test_t07_no_character_is_parted_or_lost_at_a_byte_limit() -> None:
    assert truncate_head("hello漢字", max_bytes=8).content == "hello漢"
    assert truncate_head("hello漢字", max_bytes=10).content == "hello漢"
    assert truncate_tail("漢字hello", max_bytes=8).content == "字hello"
    assert truncate_tail("漢字hello", max_bytes=10).content == "字hello"
    assert truncate_head("ab\ufffdcd", max_bytes=5).content == "ab\ufffd"  # a real one stays
    assert truncate_head("ab\ufffdcd", max_bytes=4).content == "ab"  # and none is invented
    assert truncate_tail("ab\ufffdcd", max_bytes=5).content == "\ufffdcd"
    assert truncate_tail("ab\ufffdcd", max_bytes=4).content == "cd"
    assert truncate_head(b"\xff" * 20, max_bytes=10).content == "\ufffd" * 3
    assert truncate_tail(b"\xff" * 20, max_bytes=10).content == "\ufffd" * 3
    assert truncate_tail(b"\x80" * 20, max_bytes=3).content == "\ufffd"
    assert truncate_head(b"\xf0\x80\x80\x80", max_bytes=3).content == "\ufffd"


def test_t08_a_line_is_shortened_between_characters_and_equality_is_no_cut() -> None:
    line = "x" * 499 + "😀" * 3
    assert truncate_tail(line, width=500).content == "x" * 499 + "😀... [truncated]"
    assert truncate_line(line, 500, utf16=True) == "x" * 499 + "... [truncated]"
    family = "👨\u200d👩\u200d👧"
    assert truncate_tail("x" * 9 + family, width=10).content == "x" * 9 + "... [truncated]"
    assert not truncate_tail("é" * 500, width=500, max_bytes=1000, max_lines=1).truncated


def test_t09_a_progress_bar_is_bounded_and_collapses() -> None:
    bars = b"".join(b"\r %d%%|###| eta" % (number // 400) for number in range(1, 40_001)) + b"\ndone\n"
    assert len(truncate_tail(bars).text) <= MAX_BYTES
    assert cut(bars, [1 << 16], keep="tail", collapse_cr=True).text == b" 100%|###| eta\ndone\n"
    dos = b"a\r\nb\r\n" * 10
    result = cut(dos, [3], keep="tail", collapse_cr=True)
    assert (result.text, result.total_lines) == (dos, 20)


def test_t10_a_link_keeps_its_label_and_no_escape_is_printed_by_halves() -> None:
    for end in (b"\x1b\\", b"\x07"):
        link = b"see \x1b]8;;http://x" + end + b"label" + b"\x1b]8;;" + end + b"\n"
        assert cut(link, [1], keep="tail", strip_ansi=True).text == b"see label\n"
        for size in range(1, 12):
            assert b"\x1b" not in cut(link * 3, [5], keep="tail", strip_ansi=True, max_bytes=size).text
    result = cut(b"\x1b[31mred\x1b[", [4], keep="tail", strip_ansi=True)
    assert (result.text, result.total_bytes) == (b"red", 10)  # the totals are those of the raw input


def test_an_open_last_line_goes_through_both_cleaners() -> None:
    for size in range(1, 12):
        result = cut(b"50%\r\x1b[31m100%\x1b[0m", [size], keep="tail", collapse_cr=True, strip_ansi=True)
        assert result.text == b"100%"


def test_t11_nul_bytes_pass_and_json_stays_parseable() -> None:
    result = truncate_tail(b"a\0b\n")
    assert result.text == b"a\0b\n"
    assert json.loads(json.dumps(truncate_tail(b"a\0b\n\xff\x1b").as_json(None)))["content"] == "a\0b\n\ufffd\x1b"


def test_t20_one_endless_line_does_not_crowd_out_the_others() -> None:
    hits = [b"a.js:1: first", b"b.min.js:1: " + b"x" * 119_000, b"c.js:9: third"]
    shown = truncate_head(b"\n".join(hits), width=500).text.split(b"\n")
    assert (shown[0], shown[2]) == (hits[0], hits[2])
    assert shown[1] == hits[1][:500] + b"... [truncated]"


def test_t22_an_open_last_line_is_one_line_and_stays_open() -> None:
    assert truncate_tail(b"a\nb\nc\nd\ne", max_lines=2).text == b"d\ne"
    assert truncate_tail(b"a\nb\nc\nd\ne\n", max_lines=2).text == b"d\ne\n"
    assert truncate_head(b"a\nb\nc", max_lines=2).text == b"a\nb\n"


def test_t23_bytes_that_are_no_text_pass_and_are_mended_only_in_a_cut() -> None:
    latin = b"caf\xe9\n\xff\xfe\n"
    assert truncate_tail(latin).text == latin
    assert truncate_tail(latin, max_lines=1).text == "\ufffd\ufffd\n".encode()
    assert truncate_head(latin, max_lines=1).text == "caf\ufffd\n".encode()
    assert truncate_tail(latin).as_json(None)["content"] == "caf\ufffd\n\ufffd\ufffd\n"


# --- the library's own manners ----------------------------------------------------------------------------------------


def test_text_bytes_and_chunks_are_one_input() -> None:
    for truncate in (truncate_head, truncate_tail, truncate_middle):
        results = [
            truncate(data, max_lines=2)
            for data in ("é\nb\nc\n", "é\nb\nc\n".encode(), iter([b"\xc3", b"\xa9\nb\nc\n"]))
        ]
        assert len({result.text for result in results}) == 1


def test_limits_below_zero_keep_nothing_and_an_offset_below_one_skips_nothing() -> None:
    for truncate in (truncate_head, truncate_tail):
        assert truncate(SHORT, max_lines=-1).as_json(None) == truncate(SHORT, max_lines=0).as_json(None)
        assert truncate(SHORT, max_bytes=-1).as_json(None) == truncate(SHORT, max_bytes=0).as_json(None)
        assert truncate(SHORT, width=-1).text == truncate(SHORT, width=0).text
        assert truncate(SHORT, offset=0).text == truncate(SHORT, offset=-7).text == SHORT
        assert not truncate(b"", max_lines=-1).truncated


def test_without_limits_lines_go_through_as_they_come() -> None:
    cutter = Truncator("tail", max_lines=None, max_bytes=None, width=10)
    assert cutter.feed(b"caf\xe9\nab") == b"caf\xe9\n"  # no limit can cut this line, so nothing waits for the end
    assert cutter.feed(b"c\n") == b"abc\n"
    assert Truncator("middle", max_lines=None, max_bytes=None).feed(b"\xff") == b"\xff"


def test_a_head_prints_lines_as_they_come() -> None:
    cutter = Truncator("head")
    assert cutter.feed(b"one\ntw") == b"one\n"
    assert cutter.feed(b"o\nthree\n") == b"two\nthree\n"
    assert cutter.feed(b"\xff\n") == b""  # whether it must be mended depends on what comes
    assert cutter.finish().text == b"\xff\n"
