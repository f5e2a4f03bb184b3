"""`truncate -t`: at most N tokens, whole lines, valid UTF-8, exact, whatever the direction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell import User

from ctxkit import Truncation, load_encoding, load_token_limit, truncate_head, truncate_middle, truncate_tail

ENCODING = load_encoding()
CUT = {"head": truncate_head, "tail": truncate_tail, "middle": truncate_middle}
LINES = "".join(f"line {number} of the log: 上下文 {number * 7919}\n" for number in range(400))


def tokens(text: bytes) -> int:
    return ENCODING.count(text.decode())


def kept(result: Truncation) -> bytes:
    """Return the text without the marker line of a middle cut, and the line end that it needs before it."""
    if result.left_out is None:
        return result.text
    head, _, tail = result.text.partition(b"[... ")
    if result.parts and result.parts[0].partial and head:
        head = head.removesuffix(b"\n")
    return head + tail.partition(b"\n")[2]


@pytest.mark.parametrize("side", CUT)
@pytest.mark.parametrize("limit", [0, 1, 5, 17, 100, 1000, 4000])
def test_at_most_the_limit_and_no_line_more_would_fit(side: str, limit: int) -> None:
    result = CUT[side](LINES, max_lines=None, max_bytes=None, max_tokens=load_token_limit(limit))
    text = kept(result)
    assert tokens(text) <= limit
    assert (result.truncated, result.truncated_by) == (True, "tokens")
    assert result.output_bytes == len(text)
    every = LINES.encode().splitlines(keepends=True)
    if side == "head" and result.parts and not result.parts[0].partial:
        assert text == b"".join(every[: result.last_line])
        assert tokens(b"".join(every[: result.last_line + 1])) > limit
    if side == "tail" and result.parts and not result.parts[0].partial:
        assert text == b"".join(every[result.first_line - 1 :])
        assert tokens(b"".join(every[result.first_line - 2 :])) > limit
    if limit == 100:
        assert not result.last_line_partial
        assert f"({limit} token limit)" in result.notice("f")


@pytest.mark.parametrize("side", CUT)
def test_what_fits_is_untouched(side: str) -> None:
    data = b"a\xff\r\n\0b"
    result = CUT[side](data, max_tokens=load_token_limit(100))
    assert (result.text, result.truncated, result.notice("f")) == (data, False, "")


def test_the_tighter_limit_names_the_reason() -> None:
    limit = load_token_limit(1000)
    assert truncate_tail(LINES, max_lines=3, max_tokens=limit).truncated_by == "lines"
    assert truncate_tail(LINES, max_bytes=100, max_tokens=limit).truncated_by == "bytes"
    assert truncate_tail(LINES, max_lines=300, max_tokens=limit).truncated_by == "tokens"
    assert truncate_tail(LINES, max_lines=3, max_bytes=None, max_tokens=limit).max_bytes is None


def test_a_long_line_is_kept_in_part_or_not_at_all() -> None:
    line = "漢字かな交じり文" * 1000
    limit = load_token_limit(10)
    tail = truncate_tail(line, max_tokens=limit)
    head = truncate_head(line, max_tokens=limit)
    assert line.endswith(tail.content)
    assert line.startswith(head.content)
    assert 0 < tokens(tail.text) <= 10
    assert 0 < tokens(head.text) <= 10
    assert tail.last_line_partial
    assert head.notice(None).startswith("[Showing first ")
    none = truncate_tail(line, max_tokens=limit, whole_lines=True)
    assert (none.text, none.notice(None)) == (b"", "[Line 1 exceeds 10 token limit. Full output not saved]")


@given(
    st.lists(st.text(st.sampled_from("ab \n漢é\x00😀"), max_size=12), max_size=30),
    st.integers(0, 40),
    st.sampled_from(list(CUT)),
    st.booleans(),
)
def test_any_text(pieces: list[str], limit: int, side: str, whole_lines: bool) -> None:
    data = "".join(pieces).encode()
    chunks = [piece.encode() for piece in pieces]
    options = {"max_lines": None, "max_bytes": None, "max_tokens": load_token_limit(limit), "whole_lines": whole_lines}
    result = CUT[side](iter(chunks), **options)  # type: ignore[arg-type]
    assert result.text == CUT[side](data, **options).text  # type: ignore[arg-type]
    if tokens(data) <= limit:
        assert (result.text, result.truncated) == (data, False)
        return
    assert result.truncated
    result.text.decode()
    if side == "middle":
        assert result.left_out is not None
        assert result.output_bytes + result.left_out[1] == len(data)
    else:
        assert tokens(result.text) <= limit
        assert data.startswith(result.text) if side == "head" else data.endswith(result.text)
        assert result.output_bytes == len(result.text)
    if whole_lines:
        assert not any(part.partial for part in result.parts)


def test_as_a_command(user: User) -> None:
    done = user.ctx("truncate", "-t", "4", "--spill", "never", input=b"one\ntwo\nthree\nfour\n")
    assert done.out == b"three\nfour\n\n[Showing lines 3-4 of 4 (4 token limit). Full output not saved]\n"
    assert (done.code, done.err) == (0, b"")
