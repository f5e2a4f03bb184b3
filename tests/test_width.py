"""Shortening lines: where the cut falls, and that a stream is shortened as its lines would be."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxkit.width import LONGEST_GRAPHEME, SHORTENED, LineShortener, truncate_line

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
FLAG = "🇫🇷"
THUMB = "👍🏽"
HEART = "❤\ufe0f"
KEYCAP = "1\ufe0f\u20e3"
SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
ACCENT = "e\u0301"
STACK = "a\u0300\u0316\u0334"
THAI = "ที่"
HINDI = "क्"
HANGUL = "\u1112\u1161\u11ab"
GRAPHEMES = [
    FAMILY,
    FLAG,
    "🇦🇿",
    "🇿🇦",
    THUMB,
    HEART,
    KEYCAP,
    SCOTLAND,
    ACCENT,
    STACK,
    THAI,
    HINDI,
    HANGUL,
    "x",
    "é",
    "漢",
    "😀",
]


@pytest.mark.parametrize(
    ("line", "width", "shown"),
    [
        ("", 0, ""),
        ("abc", 3, "abc"),
        ("abcd", 3, "abc" + SHORTENED),
        ("abc", 0, SHORTENED),
        ("abc", -1, SHORTENED),
        ("", -1, ""),
        ("漢字漢", 2, "漢字" + SHORTENED),
        ("😀😀", 1, "😀" + SHORTENED),  # a character, though two UTF-16 units
        ("a\rb", 2, "a\r" + SHORTENED),  # only LF ends a line
        ("a\0b", 2, "a\0" + SHORTENED),
        ("a\u2028b", 2, "a\u2028" + SHORTENED),
        *[(f"ab{grapheme}c", 2, "ab" + SHORTENED) for grapheme in GRAPHEMES],
        *[(f"ab{grapheme}c", 2 + len(grapheme), f"ab{grapheme}{SHORTENED}") for grapheme in GRAPHEMES],
        *[(f"ab{grapheme}", 1 + len(grapheme), "ab" + SHORTENED) for grapheme in GRAPHEMES],
        *[(f"ab{grapheme}", 2 + len(grapheme), f"ab{grapheme}") for grapheme in GRAPHEMES],
        (f"{FLAG}{FLAG}{FLAG}", 3, f"{FLAG}{SHORTENED}"),
        (f"{FLAG}{FLAG}{FLAG}", 4, f"{FLAG}{FLAG}{SHORTENED}"),
        (f"x{FLAG * 60}", 100, f"x{FLAG * 49}{SHORTENED}"),  # which two belong together depends on where the row began
        (f"x{FLAG * 60}", 101, f"x{FLAG * 50}{SHORTENED}"),
        (ACCENT, 1, SHORTENED),  # nothing of a character that does not fit
        ("e" + "\u0301" * 400, 300, "e" + "\u0301" * 299 + SHORTENED),  # a pile of marks is cut anyway
    ],
)
def test_truncate_line(line: str, width: int, shown: str) -> None:
    assert truncate_line(line, width) == shown


def test_default_width_is_500() -> None:
    assert truncate_line("a" * 500) == "a" * 500
    assert truncate_line("a" * 501) == "a" * 500 + SHORTENED


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(GRAPHEMES), max_size=40), st.integers(0, 60))
def test_no_grapheme_is_split_and_no_more_is_cut_than_need_be(graphemes: list[str], width: int) -> None:
    line = "".join(graphemes)
    fits: list[str] = []
    for grapheme in graphemes:
        if len("".join(fits)) + len(grapheme) > width:
            break
        fits.append(grapheme)
    assert truncate_line(line, width) == (line if len(line) <= width else "".join(fits) + SHORTENED)


def in_utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30), st.integers(-2, 30))
def test_widths_in_utf16_units_part_no_surrogate_pair(line: str, width: int) -> None:
    shown = truncate_line(line, width, utf16=True)
    if in_utf16(line) <= max(0, width):
        assert shown == line
        return
    kept = shown.removesuffix(SHORTENED)
    assert kept + SHORTENED == shown
    assert line.startswith(kept)
    assert width - 1 <= in_utf16(kept) <= width or width < 0 == in_utf16(kept)
    assert in_utf16(kept + line[len(kept)]) > width


# --- streams ----------------------------------------------------------------------------------------------------------


def shortened(data: bytes, width: int) -> bytes:
    """Shorten every line by itself: what is short enough stays byte for byte, and so does the line's end."""
    out = []
    for line in re.findall(rb"[^\n]*\n|[^\n]+", data):
        end = re.search(rb"\r?\n?\Z", line)
        assert end is not None
        body = line[: end.start()]
        text = body.decode("utf-8", "replace")
        out.append(body if len(text) <= width else truncate_line(text, width).encode())
        out.append(end.group())
    return b"".join(out)


def stream(chunks: list[bytes], width: int) -> tuple[bytes, bool]:
    shortener = LineShortener(width)
    out = [shortener.feed(chunk) for chunk in chunks]
    out.append(shortener.flush())
    return b"".join(out), shortener.shortened


LONG = b"x" * 300  # longer than is held
PIECES = [
    b"\n",
    b"\n",
    b"\r\n",
    b"\r",
    b"ab",
    b"\0",
    b"\xff",
    b"\xe2\x82",
    LONG,
    *[each.encode() for each in GRAPHEMES],
]
chunkings = st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join), max_size=8)


@settings(max_examples=600, deadline=None)
@given(chunkings, st.integers(0, 20))
def test_a_stream_is_shortened_as_its_lines_are(chunks: list[bytes], width: int) -> None:
    data = b"".join(chunks)
    wanted = shortened(data, width)
    for fed in (chunks, [data], [data[at : at + 1] for at in range(len(data))]):
        assert stream(fed, width) == (wanted, wanted != data)
    for line in wanted.split(b"\n"):
        assert len(line.removesuffix(b"\r").decode("utf-8", "replace")) <= width + len(SHORTENED)
    assert wanted.count(b"\n") == data.count(b"\n")


@pytest.mark.parametrize(
    ("chunks", "shown"),
    [
        ([b"abc\r\n"], b"abc\r\n"),  # a CR before the LF is no character of the line
        ([b"abcd\r\n"], b"abc... [truncated]\r\n"),
        ([LONG, b"y\r", b"\n"], b"xxx... [truncated]\r\n"),
        ([LONG + b"\r", b"", b"\nab\n"], b"xxx... [truncated]\r\nab\n"),
        ([LONG + b"\r", b"y\nab\n"], b"xxx... [truncated]\nab\n"),
        ([LONG + b"\r"], b"xxx... [truncated]\r"),
        ([b"abcd\r"], b"abc... [truncated]\r"),
        ([b"caf\xe9\n"], b"caf... [truncated]\n"),
        ([b"ca\xe9\n"], b"ca\xe9\n"),  # invalid bytes are a character, and stay as they are
        ([b"\xe9\xe9\xe9\xe9"], "\ufffd\ufffd\ufffd... [truncated]".encode()),
        ([b"\xe6", b"\xbc", b"\xa2\n"], "漢\n".encode()),
        ([], b""),
    ],
)
def test_line_ends_and_invalid_bytes(chunks: list[bytes], shown: bytes) -> None:
    assert stream(chunks, 3)[0] == shown


def test_a_line_is_printed_as_soon_as_it_is_known_to_be_too_long() -> None:
    shortener = LineShortener(3)
    assert shortener.feed(b"ab") == b""
    assert not shortener.shortened
    assert shortener.feed(LONG) == b"abx... [truncated]"
    assert shortener.shortened
    assert shortener.feed(LONG) == b""
    assert shortener.feed(b"\nok\nop") == b"\nok\n"
    assert shortener.flush() == b"op"


@pytest.mark.parametrize("chunk", [b"x" * (1 << 16), "漢".encode() * 1000, b"\xff" * 1000, b"e\xcc\x81"])
def test_a_line_without_end_is_not_held(chunk: bytes) -> None:
    width = 500
    shortener = LineShortener(width)
    tracemalloc.start()
    try:
        printed = [text for _ in range(100_000 if len(chunk) < 10 else 500) if (text := shortener.feed(chunk))]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [text[-len(SHORTENED) :] for text in printed] == [SHORTENED.encode()]
    assert peak < 1 << 19


def test_a_long_line_is_decoded_no_further_than_needed() -> None:
    line = b"x" * (32 << 20) + b"\n"
    shortener = LineShortener(10)
    tracemalloc.start()
    try:
        assert shortener.feed(line) == b"x" * 10 + SHORTENED.encode() + b"\n"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3.5 * len(line)  # copies of the bytes, but no text


def test_a_grapheme_is_looked_for_in_a_bounded_stretch() -> None:
    marks = "e" + "\u0301" * (LONGEST_GRAPHEME - 1)
    assert truncate_line(marks + "x", len(marks)) == marks + SHORTENED
    assert truncate_line(marks, len(marks) - 1) == SHORTENED
