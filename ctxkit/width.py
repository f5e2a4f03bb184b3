"""Shorten long lines at a character that a reader would call a whole one."""

from __future__ import annotations

SHORTENED = "... [truncated]"
LONGEST_GRAPHEME = 32  # code points; a longer pile of marks is cut anyway
ZWJ = "\u200d"
EXTENDERS = (  # combining marks, joiners, variation selectors, emoji modifiers, tags: first and last code point
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x0591, 0x05BD),
    (0x0610, 0x061A),
    (0x064B, 0x065F),
    (0x0900, 0x0903),
    (0x093A, 0x094F),
    (0x0E31, 0x0E31),
    (0x0E34, 0x0E3A),
    (0x0E47, 0x0E4E),
    (0x1160, 0x11FF),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x200C, 0x200D),
    (0x20D0, 0x20FF),
    (0x3099, 0x309A),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
    (0x1F3FB, 0x1F3FF),
    (0xE0020, 0xE007F),
    (0xE0100, 0xE01EF),
)


def truncate_line(text: str, width: int = 500, *, utf16: bool = False) -> str:
    """Shorten a line of more than `width` characters to `width` of them and `... [truncated]`.

    A character is a code point; the cut moves back where it would part what a reader sees as one (combining marks,
    joined emoji, flags). With `utf16`, widths are UTF-16 units and only surrogate pairs stay whole (Pi §5.6).
    """
    if utf16:
        units = text.encode("utf-16-le", "surrogatepass")
        if len(units) <= max(0, 2 * width):
            return text
        end = 2 * max(0, width)
        if end and 0xD8 <= units[end - 1] <= 0xDB and 0xDC <= units[end + 1] <= 0xDF:
            end -= 2
        return units[:end].decode("utf-16-le", "surrogatepass") + SHORTENED
    width = max(0, width)
    if len(text) <= width:
        return text
    return text[: _grapheme_start(text, width)] + SHORTENED


def _grapheme_start(text: str, at: int) -> int:
    """Return the last place not after `at` that parts no grapheme; `at` itself if that is too far back."""
    for start in range(at, max(-1, at - LONGEST_GRAPHEME), -1):
        if start == 0 or not _joined(text, start):
            return start
    return at


def _joined(text: str, at: int) -> bool:
    """Say whether the characters around `at` make one grapheme: a rule of thumb that needs no database."""
    after = ord(text[at])
    if after < 0x300:
        return False
    if text[at - 1] == ZWJ:
        return True
    if _is_regional(text[at]):  # two regional indicators make a flag
        run = at
        while run > 0 and _is_regional(text[run - 1]):
            run -= 1
        return (at - run) % 2 == 1
    return any(first <= after <= last for first, last in EXTENDERS)


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


class LineShortener:
    """Shorten the lines of a stream; `shortened` tells whether any was. A line is held until it ends or is too long."""

    __slots__ = ("_cap", "_dropping", "_ends_in_cr", "_open", "_size", "shortened", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.shortened = False
        self._cap = 4 * (width + LONGEST_GRAPHEME + 1)  # bytes that hold enough characters to know where to cut
        self._open: list[bytes] = []  # the open line so far
        self._size = 0
        self._dropping = False  # the open line is already shortened and printed
        self._ends_in_cr = False

    def feed(self, data: bytes) -> bytes:
        """Return the lines that data completes, shortened."""
        out = []
        if self._dropping:
            end = data.find(b"\n")
            if end < 0:
                self._ends_in_cr = data.endswith(b"\r") if data else self._ends_in_cr
                return b""
            if data[:end].endswith(b"\r") if end else self._ends_in_cr:
                out.append(b"\r")
            out.append(b"\n")
            data = data[end + 1 :]
            self._dropping = False
        end = data.rfind(b"\n") + 1
        if end:
            out.append(self._lines(b"".join(self._open) + data[:end]))
            self._open, self._size = [], 0
            data = data[end:]
        if data:
            self._open.append(data)
            self._size += len(data)
        if self._size > self._cap:
            line = b"".join(self._open)
            self._ends_in_cr = line.endswith(b"\r")
            out.append(self._shorten(line.removesuffix(b"\r")))
            self._open, self._size, self._dropping = [], 0, True
        return b"".join(out)

    def flush(self) -> bytes:
        """End the input and return its last, unterminated line."""
        line = b"".join(self._open)
        if self._dropping and self._ends_in_cr:
            line = b"\r"
        self._open, self._size, self._dropping = [], 0, False
        return self._line(line)

    def _lines(self, block: bytes) -> bytes:
        lines = block.split(b"\n")
        if len(max(lines, key=len)) <= self.width:
            return block
        return b"\n".join([line if len(line) <= self.width else self._line(line) for line in lines])

    def _line(self, line: bytes) -> bytes:
        """Shorten a complete line; a CR before the line end is part of the line end."""
        body = line.removesuffix(b"\r")
        return line if len(body) <= self.width else self._shorten(body) + line[len(body) :]

    def _shorten(self, line: bytes) -> bytes:
        text = line[: self._cap].decode("utf-8", "replace")
        if len(text) <= self.width:
            return line
        self.shortened = True
        return truncate_line(text, self.width).encode()
