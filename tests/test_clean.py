"""Cleaning what programs print: escape sequences, progress bars, bytes that are no text."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxkit.clean import (
    LONGEST_SCREEN_LINE,
    AnsiStripper,
    CarriageReturns,
    character_across,
    mend_utf8,
    to_utf8,
    valid_utf8,
    whole_characters,
)

Cleaner = AnsiStripper | CarriageReturns


def clean(cleaner: Cleaner, chunks: list[bytes]) -> bytes:
    out = [cleaner.feed(chunk) for chunk in chunks]
    return b"".join([*out, cleaner.flush()])


def chunkings(data: bytes) -> list[list[bytes]]:
    """Return the data whole, in single bytes, and cut in two at every position."""
    halves = [[data[:at], data[at:]] for at in range(len(data) + 1)]
    return [[data], [data[at : at + 1] for at in range(len(data))], *halves]


# --- escape sequences -------------------------------------------------------------------------------------------------

ESCAPES = [
    # CSI: colours, cursor, modes
    (b"\x1b[31mred\x1b[0m", b"red"),
    (b"\x1b[1;38;2;10;20;30mx\x1b[m", b"x"),
    (b"\x1b[38:2::1:2:3mx", b"x"),
    (b"\x1b[2K\x1b[1Gx\x1b[?25l", b"x"),
    (b"\x1b[!p\x1b[ qx", b"x"),
    (b"\x1b[200~pasted\x1b[201~", b"pasted"),
    # OSC: titles, links with their label, either end
    (b"\x1b]0;title\x07text", b"text"),
    (b"\x1b]0;title\x1b\\text", b"text"),
    (b"\x1b]8;;http://x\x1b\\label\x1b]8;;\x1b\\!", b"label!"),
    (b"\x1b]8;;http://x\x07label\x1b]8;;\x07!", b"label!"),
    (b"\x1b]8;id=1;http://x\x07a\x1b]8;;\x07 \x1b]8;;http://y\x07b\x1b]8;;\x07", b"a b"),
    (b"\x1b]9;4;1;50\x07x", b"x"),
    ("\x1b]0;ü漢\x07ö".encode(), "ö".encode()),
    # DCS, SOS, PM, APC: a BEL does not end them
    (b"\x1bPq#0\x07;2\x1b\\x", b"x"),
    (b"\x1bXsos\x1b\\x", b"x"),
    (b"\x1b^pm\x1b\\x", b"x"),
    (b"\x1b_apc\x07\x1b\\x", b"x"),
    # an escape inside a string: tmux passes sequences through like this
    (b"\x1bPtmux;\x1b\x1b]0;t\x07\x1b\\x", b"x"),
    (b"\x1b]0;a\x1bb\x07x", b"x"),
    # character sets and single characters
    (b"\x1b(Bx\x1b)0y", b"xy"),
    (b"\x1b#8x\x1b%Gy", b"xy"),
    (b"\x1bcx\x1b7y\x1b8z\x1b=\x1b>", b"xyz"),
    (b"\x1bMx\x1bDy", b"xy"),
    (b"\x1b\\x", b"x"),
    # cut off by the end
    (b"x\x1b", b"x"),
    (b"x\x1b[", b"x"),
    (b"x\x1b[3", b"x"),
    (b"x\x1b(", b"x"),
    (b"x\x1b]0;title", b"x"),
    (b"x\x1b]0;title\x1b", b"x"),
    (b"x\x1bPdata", b"x"),
    # broken by a line end: lines stay lines
    (b"x\x1b\ny", b"x\ny"),
    (b"x\x1b[3\ny", b"x\ny"),
    (b"x\x1b(\ny", b"x\ny"),
    (b"x\x1b]0;title\ny", b"x\ny"),
    (b"x\x1b]0;t\x1b\ny", b"x\ny"),
    (b"x\x1bPdata\ny\x07z", b"x\ny\x07z"),
    (b"x\x1b]0;a\nb\x07c", b"x\nb\x07c"),
    # broken by what cannot be in it: that is text
    (b"\x1b[3\x01m", b"\x01m"),
    ("\x1b[3é".encode(), "é".encode()),
    ("\x1bé".encode(), "é".encode()),
    ("\x1b(é".encode(), "é".encode()),
    (b"\x1b[3\x1b[31mx", b"x"),
    (b"\x1b\x1b[31mx", b"x"),
    (b"\x1b\x1b\x1b", b""),
    # no escapes
    (b"", b""),
    (b"[31m\x07\x9b\r\n\0\xff", b"[31m\x07\x9b\r\n\0\xff"),
]


@pytest.mark.parametrize(("data", "shown"), ESCAPES)
def test_escapes_go_wherever_the_input_is_cut(data: bytes, shown: bytes) -> None:
    for chunks in chunkings(data):
        assert clean(AnsiStripper(), chunks) == shown


def test_text_before_an_open_sequence_is_printed_at_once() -> None:
    stripper = AnsiStripper()
    assert stripper.feed(b"ready\n\x1b[3") == b"ready\n"
    assert stripper.feed(b"1mgo") == b"go"


ESCAPE_PIECES = [
    b"\x1b",
    b"\x1b[",
    b"\x1b]",
    b"\x1bP",
    b"\\",
    b"\x07",
    b"\n",
    b"a",
    b"3",
    b"m",
    b"(",
    b";",
    b"\xff",
    b"\xc3\xa9",
]
escape_chunks = st.lists(st.lists(st.sampled_from(ESCAPE_PIECES), max_size=8).map(b"".join), max_size=5)


@settings(max_examples=500, deadline=None)
@given(st.one_of(escape_chunks, st.lists(st.binary(max_size=10), max_size=5)))
def test_any_input_loses_its_escapes_and_no_line(chunks: list[bytes]) -> None:
    data = b"".join(chunks)
    shown = clean(AnsiStripper(), chunks)
    assert shown == clean(AnsiStripper(), [data])
    assert b"\x1b" not in shown
    assert shown.count(b"\n") == data.count(b"\n")
    for line, before in zip(shown.split(b"\n"), data.split(b"\n"), strict=True):
        assert line == before if b"\x1b" not in before else len(line) < len(before)
        rest = iter(before)
        assert all(byte in rest for byte in line)  # what is left is in order, and nothing is new


def test_a_string_without_end_is_not_held() -> None:
    stripper = AnsiStripper()
    stripper.feed(b"\x1b]0;")
    chunk = b"x" * (1 << 16)
    tracemalloc.start()
    try:
        assert not any(stripper.feed(chunk) for _ in range(500))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 18
    assert stripper.feed(b"\x07shown") == b"shown"


# --- carriage returns -------------------------------------------------------------------------------------------------

E, G, R, OFF = b"\x1b[K", b"\x1b[32m", b"\x1b[31m", b"\x1b[0m"
BARS = [
    # later text overwrites earlier text
    (b" 10%\r 20%\r100%\n", b"100%\n"),
    (b"abcdef\rxy\n", b"xycdef\n"),
    (b"abcdef\rxy", b"xycdef"),
    (b"ab\rwxyz\n", b"wxyz\n"),
    (b"abc\r\rx\n", b"xbc\n"),
    (b"\rabc\n", b"abc\n"),
    (b"one\n 1%\r 2%\ntwo\n", b"one\n 2%\ntwo\n"),
    (b"abc\r   \r\n", b"   \r\n"),  # blanks are text
    # line ends are left alone
    (b"a\r\nb\r\n", b"a\r\nb\r\n"),
    (b"\r\n\r\n", b"\r\n\r\n"),
    (b"abc\r\r\n", b"abc\r\n"),
    (b"ab\rx\r\n", b"xb\r\n"),
    # a CR at the end of the input overwrites nothing
    (b"abc\r", b"abc"),
    (b"ab\rx\r", b"xb"),
    (b"\r", b""),
    (b"a\n\r", b"a\n"),
    # erasing
    (b"abcdef\rxy" + E + b"\n", b"xy\n"),
    (b"abcdef\r" + E + b"xy\n", b"xy\n"),
    (b"abcdef\r\x1b[0Kxy\n", b"xy\n"),
    (b"abcdef\x1b[2K\rxy\n", b"xy\n"),  # erased columns are no blanks at the end
    (b"abcdef\r\x1b[2Kxy\n", b"xy\n"),
    (b"abcdef\rab\x1b[2Kxy\n", b"  xy\n"),
    (b"abcdef\rab\x1b[1Kxy\n", b"  xyef\n"),
    (b"abcdef\r\x1b[1K\n", b" bcdef\n"),
    (b"abc" + E + b"\n", b"abc" + E + b"\n"),  # no CR, nothing to collapse
    # colours take no column, and do not pile up
    (G + b" 10%" + OFF + b"\r" + G + b" 20%" + OFF + b"\n", OFF + G + b" 20%" + OFF + b"\n"),
    ((G + b"50%" + OFF + b"\r") * 300 + G + b"51%" + OFF + b"\n", OFF + G + b"51%" + OFF + b"\n"),
    (b"ab" + R + b"cd\rx" + OFF + b"y\n", b"x" + OFF + b"y" + R + b"cd\n"),
    (b"abc\r" + OFF + b"\rxy\n", OFF + b"xyc\n"),
    (b"abcdef\r\x1b[1mxy\x1b(B\n", b"\x1b[1mxycdef\x1b(B\n"),
    (b"abc\r\x1b]9;4;1;50\x07xy\n", b"\x1b]9;4;1;50\x07xyc\n"),
    (b"abc\r\x1b]9;4;1;50\x1b\\xy\n", b"\x1b]9;4;1;50\x1b\\xyc\n"),
    (b"abc\r\x1b]0;open" + R + b"xy\n", b"\x1b]0;open" + R + b"xyc\n"),
    (b"abc\rx\x1b", b"xbc\x1b"),
    # characters, not bytes
    ("äöü\rx\n".encode(), "xöü\n".encode()),
    ("abc\r漢\n".encode(), "漢bc\n".encode()),
    (b"\xff\xfeab\rx\n", b"x\xfeab\n"),
    (b"abc\r\xff\n", b"\xffbc\n"),
    (b"a\xe6\xbc\rx\n", b"x\xe6\xbc\n"),
    (b"a\0b\rx\n", b"x\0b\n"),
    ("e\u0301\u2028\rx\n".encode(), "x\u0301\u2028\n".encode()),  # one column each, and only LF ends a line
    # nothing to do
    (b"", b""),
    (b"a\nb", b"a\nb"),
    (b"\xff" + G + b"x\n", b"\xff" + G + b"x\n"),
]


@pytest.mark.parametrize(("data", "shown"), BARS)
def test_bars_collapse_wherever_the_input_is_cut(data: bytes, shown: bytes) -> None:
    for chunks in chunkings(data) if len(data) < 100 else [[data], [bytes([byte]) for byte in data]]:
        assert clean(CarriageReturns(), chunks) == shown


BAR_PIECES = [
    b"\r",
    b"\r",
    b"\n",
    b"\r\n",
    b"a",
    b"bcd",
    b" ",
    b"\x1b",
    E,
    b"\x1b[2K",
    G,
    OFF,
    b"\xff",
    "漢".encode(),
    b"\xe2\x82",
]
bar_chunks = st.lists(st.lists(st.sampled_from(BAR_PIECES), max_size=8).map(b"".join), max_size=5)


@settings(max_examples=600, deadline=None)
@given(st.one_of(bar_chunks, st.lists(st.binary(max_size=10), max_size=5)))
def test_any_input_collapses_the_same_however_it_comes(chunks: list[bytes]) -> None:
    data = b"".join(chunks)
    shown = clean(CarriageReturns(), chunks)
    assert shown == clean(CarriageReturns(), [data]) == clean(CarriageReturns(), [bytes([byte]) for byte in data])
    assert b"\r" not in shown.replace(b"\r\n", b"")
    assert clean(CarriageReturns(), [shown]) == shown
    for line, before in zip(shown.split(b"\n"), data.split(b"\n"), strict=True):
        if b"\r" not in before.removesuffix(b"\r"):
            assert line.removesuffix(b"\r") == before.removesuffix(b"\r")
    if b"\r" not in data.replace(b"\r\n", b""):
        assert shown == data


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n\x1b", exclude_categories=["Cs"]), max_size=12), min_size=1)
)
def test_each_column_shows_what_was_written_there_last(segments: list[str]) -> None:
    columns = max(map(len, segments))
    shown = "".join([segment[at] for segment in segments if len(segment) > at][-1] for at in range(columns))
    assert clean(CarriageReturns(), ["\r".join(segments).encode()]) == shown.encode()


@pytest.mark.parametrize("chunk", [b"x" * (1 << 16), "漢".encode() * 21845, "é".encode() * 333])
@pytest.mark.parametrize("start", [b"", b"bar\r"])
def test_a_line_too_long_for_a_screen_passes_and_is_not_held(chunk: bytes, start: bytes) -> None:
    returns = CarriageReturns()
    size = len(returns.feed(start))
    count = (16 << 20) // len(chunk)
    tracemalloc.start()
    try:
        for _ in range(count):
            size += len(returns.feed(chunk))
        size += len(returns.flush())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size == count * len(chunk)
    assert peak < (20 << 20 if start else 1 << 20)  # as columns, a screen takes up to 80 bytes a character


@pytest.mark.parametrize("size", [LONGEST_SCREEN_LINE - 1, LONGEST_SCREEN_LINE, LONGEST_SCREEN_LINE + 1, 300_001])
@pytest.mark.parametrize("step", [4096, 4097, 1 << 20])
def test_a_long_line_without_cr_loses_nothing(size: int, step: int) -> None:
    line = ("aé漢😀" * size).encode()[:size]
    for end in (b"", b"\n", b"\r\n"):
        data = line + end
        assert clean(CarriageReturns(), [data[at : at + step] for at in range(0, len(data), step)]) == data


@pytest.mark.parametrize(
    "bar", [b"\r" + G + b"50%" + OFF, b"\r" + b"".join(b"\x1b[38;5;%dm" % n for n in range(256)), b"\r"]
)
def test_bars_without_end_are_not_held(bar: bytes) -> None:
    returns = CarriageReturns()
    chunk = bar * (16384 // len(bar))
    tracemalloc.start()
    try:
        assert not any(returns.feed(chunk) for _ in range(12))
        shown = returns.flush()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(shown) < 1 << 13
    assert peak < 1 << 20


# --- UTF-8 ------------------------------------------------------------------------------------------------------------

INVALID = [
    (b"a\xffb", "a\ufffdb"),
    (b"\x80\x80", "\ufffd\ufffd"),
    (b"\xe2\x82", "\ufffd"),  # the beginning of a character is one
    (b"\xe2\x82a", "\ufffda"),
    (b"\xf0\x9f\x98\xf0\x9f\x98\x80", "\ufffd😀"),
    (b"\xc0\xaf", "\ufffd\ufffd"),  # overlong
    (b"\xe0\x80\xaf", "\ufffd\ufffd\ufffd"),
    (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),  # a surrogate
    (b"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),  # beyond Unicode
    ("\ufffd".encode(), "\ufffd"),  # a real one
]
utf8_pieces = st.sampled_from(
    [data for data, _ in INVALID] + [b"a", "é".encode(), "क漢".encode(), "😀".encode(), b"\xf0\x80"]
)
byte_strings = st.one_of(
    st.lists(utf8_pieces, max_size=8).map(b"".join), st.binary(max_size=12), st.text(max_size=8).map(str.encode)
)


@pytest.mark.parametrize(("data", "text"), INVALID)
def test_each_invalid_sequence_becomes_one_replacement(data: bytes, text: str) -> None:
    assert mend_utf8(data).decode() == text
    assert valid_utf8(data) == (data.decode("utf-8", "ignore").encode() == data)


@given(byte_strings)
def test_mending_is_what_decoding_does(data: bytes) -> None:
    assert mend_utf8(data) == data.decode("utf-8", "replace").encode()
    assert valid_utf8(data) == (data.decode("utf-8", "ignore").encode() == data)
    if valid_utf8(data):
        assert mend_utf8(data) is data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("aé", "aé".encode()),
        ("a\ud83db", "a\ufffdb".encode()),
        ("\ude00\ud83d", "\ufffd\ufffd".encode()),
        ("\ud83d\ude00", "😀".encode()),  # a pair is the character that it stands for
    ],
)
def test_lone_surrogates_become_replacements(text: str, data: bytes) -> None:
    assert to_utf8(text) == data


@given(st.text(st.characters(categories=["Cs", "L", "So"])))
def test_to_utf8_loses_nothing_but_lone_surrogates(text: str) -> None:
    pairs = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert to_utf8(text).decode() == pairs


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"", 0),
        (b"abc", 3),
        ("aé".encode(), 3),
        (b"a\xc3", 1),
        (b"a\xe6\xbc", 1),
        (b"a\xe6", 1),
        (b"\xf0\x9f\x98", 0),
        ("😀".encode(), 4),
        (b"a\x80", 2),  # invalid, but complete
        (b"\x80\x80\x80\x80", 4),
        (b"a\xff", 1),  # 0xFF begins nothing, but that is seen when the next bytes have come
    ],
)
def test_whole_characters(data: bytes, size: int) -> None:
    assert whole_characters(data) == size


@given(byte_strings, byte_strings)
def test_a_stream_cut_at_whole_characters_decodes_in_pieces(data: bytes, more: bytes) -> None:
    size = whole_characters(data)
    assert len(data) - 3 <= size <= len(data)
    whole = data + more
    assert mend_utf8(whole[:size]) + mend_utf8(whole[size:]) == mend_utf8(whole)


@given(byte_strings)
def test_a_cut_parts_a_character_or_none(data: bytes) -> None:
    spans = []
    at = 0
    while at < len(data):
        end = next((at + size for size in range(1, 5) if valid_utf8(data[at : at + size])), 0)
        if not end or end > len(data):
            try:
                data[at:].decode()
            except UnicodeDecodeError as error:
                end = at + error.end
        spans.append((at, end))
        at = end
    for cut in range(-1, len(data) + 2):
        inside = [span for span in spans if span[0] < cut < span[1]]
        within = max(0, min(cut, len(data)))
        assert character_across(data, cut) == (inside[0] if inside else (within, within))
