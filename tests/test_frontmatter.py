"""Metadata: read as Pi reads it, but no value loses its text, and no file is lost for a colon."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import golden

from ctxkit import frontmatter, yamltext
from ctxkit.frontmatter import decode, split

# What Pi 1.6.0 answers otherwise: input -> (reason, what is right here).
SOURCE_TEXT = "field report P15: a scalar keeps its source text"
NO_MAPPING = "a list or a text has no fields; Pi hands it on, and every key of it is missing"
DIFFERS: dict[str, tuple[str, dict[str, Any]]] = {
    "\ufeff---\na: 1\n---\nB": (SOURCE_TEXT, {"a": "1"}),
    "---\na: 1\n----\nB": (SOURCE_TEXT, {"a": "1"}),
    "---\na: 1\n--- trailing\nB": (SOURCE_TEXT, {"a": "1"}),
    "---\ra: 1\r---\rB": (SOURCE_TEXT, {"a": "1"}),
    "---\na: 1\n---": (SOURCE_TEXT, {"a": "1"}),
    "---\na: 1\n---\n\n\n  B  \n\n": (SOURCE_TEXT, {"a": "1"}),
    "----\na: 1\n---\nB": (SOURCE_TEXT, {"a": "1"}),
    "---\nyes: yes\nnull_v: ~\nnum: 007\ndate: 2026-01-02\n---\nB": (
        SOURCE_TEXT,
        {"yes": "yes", "null_v": None, "num": "007", "date": "2026-01-02"},
    ),
    "---\n- list\n---\nB": (NO_MAPPING, {}),
    "---\njust text\n---\nB": (NO_MAPPING, {}),
}
CASES = golden("frontmatter.json")["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["input"]))
def test_as_pi(case: dict[str, Any]) -> None:
    got = split(decode(case["input"].encode()))
    result = case["result"]
    if not result["ok"]:
        assert got.problem, "Pi refuses it, so it is read leniently and said to be"
        return
    assert got.body == result["value"]["body"]
    if case["input"] in DIFFERS:
        assert got.fields == DIFFERS[case["input"]][1] != result["value"]["frontmatter"]
    else:
        assert (got.fields, got.problem) == (result["value"]["frontmatter"], "")


def test_every_difference_is_a_case() -> None:
    assert {case["input"] for case in CASES} >= set(DIFFERS)


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ("description: Reviews code: fast", {"description": "Reviews code: fast"}),
        ("a: b: c\nname: x", {"a": "b: c", "name": "x"}),
        ("a: @x", {"a": "@x"}),
        ('a: "b" c: d', {"a": '"b" c: d'}),
        ("a: [x", {"a": []}),
        ("a: one: two\n  three\nb: 1", {"a": "one: two three", "b": "1"}),
        ("x: y: z\na: |\n  1\n  2\nb: >-\n  3\n  4", {"x": "y: z", "a": "1\n2", "b": "3 4"}),
        ("x: y: z\nitems:\n  - a\n  - b", {"x": "y: z", "items": []}),
        ("a: 'quoted: yes'\nb: c: d", {"a": "quoted: yes", "b": "c: d"}),
        ("a: 1\na: 2", {"a": "1"}),
        ("a: *nobody", {"a": "*nobody"}),
    ],
)
def test_what_is_not_yaml_is_read_leniently_and_said(block: str, fields: dict[str, Any]) -> None:
    got = split(f"---\n{block}\n---\nbody")
    assert (got.fields, got.body) == (fields, "body")
    assert got.problem


@pytest.mark.parametrize(
    ("block", "value"),
    [
        ("v: 123", "123"),
        ("v: yes", "yes"),
        ("v: 2026-01-02", "2026-01-02"),
        ("v: 1.10", "1.10"),
        ("v: 0x1F", "0x1F"),
        ("v: null", None),
        ("v:", None),
        ("v: [a, b]", ["a", "b"]),
        ("v:\n  k: w", {"k": "w"}),
        ("v: |\n  a\n  b", "a\nb\n"),
        ("v: >\n  a\n  b", "a b\n"),
        ("v: 'it''s'", "it's"),
        ('v: "a\\tb"', "a\tb"),
        ("v: a # comment", "a"),
        ("v: !!int 5", "5"),
        ("v: !!python/object/apply:os.system [id]", ["id"]),
    ],
)
def test_scalars_keep_their_text(block: str, value: object) -> None:
    got = split(f"---\n{block}\n---\n")
    assert (got.fields["v"], got.problem) == (value, "")


def test_only_a_plain_true_is_true() -> None:
    for text, answer in (("true", True), ("True", True), ("'true'", False), ('"true"', False), ("yes", False)):
        assert split(f"---\nflag: {text}\n---\n").is_true("flag") is answer, text
        assert split(f"---\nflag: {text}\nother: [1]\n---\n").is_true("flag") is answer, text


def test_lines_are_those_of_the_file() -> None:
    got = split("---\n# comment\nname: x\n\ndescription: y\n---\n\n\nbody")
    assert (got.lines, got.body_line) == ({"name": 3, "description": 5}, 9)
    assert split("---\nname: x\nbad: [a\n---\n").problem_line == 3
    assert split("---\nlist: [1]\nname: x\n---\n").lines == {"list": 2, "name": 3}


def test_byte_order_mark_crlf_and_end_right_after_the_mark() -> None:
    got = split(decode(b"\xef\xbb\xbf---\r\ndescription: a\r\n---"))
    assert (got.fields, got.body) == ({"description": "a"}, "")


@pytest.mark.parametrize("block", ["&a [*a]", "a: &x [1]\nb: [*x, *x]", "a: " + "[" * 5000, "a: " + "{" * 5000])
def test_what_would_grow_or_nest_without_end_is_refused(block: str) -> None:
    assert split(f"---\n{block}\n---\n").problem


@pytest.mark.parametrize(
    "line", ["a: x{}y", "a:{}", "{}a: x", "a: 'x{}y", "a: b: c{}y", "a{}b: c: d", "a: |{}\nx: y: z"]
)
def test_long_lines_take_no_time(line: str) -> None:
    start = time.process_time()
    split(f"---\n{line.format(' ' * 200_000)}\n---\nbody")
    assert time.process_time() - start < 5


KEYS = st.sampled_from(["name", "description", "a-b", "yes", "x_1", "null"])
VALUES = st.text(st.sampled_from(list("ab1 :#-?'\"[]{},&*!|>%@`~=.\\\té\u2028<")), max_size=12)
LINES = st.one_of(
    st.tuples(KEYS, VALUES).map(": ".join), st.tuples(KEYS, VALUES).map(lambda p: f"{p[0]}:  {p[1]} "), VALUES
)


@given(st.lists(LINES, max_size=5).map("\n".join))
def test_the_quick_reading_is_what_yaml_says(block: str) -> None:
    quick = frontmatter.scan(block, 2)
    if quick is not None:
        assert quick == yamltext.fields(block, 2)


@given(st.binary(max_size=60), st.text(st.sampled_from(list("-\nab: \t[]{}'\"|>&*!#\r")), max_size=60))
def test_nothing_crashes(data: bytes, text: str) -> None:
    for content in (data, b"---\n" + data + b"\n---\n", f"---\n{text}\n---\n{text}".encode()):
        got = split(decode(content))
        assert set(got.lines) == set(got.fields)
