"""Make bytes from programs fit to read: invalid UTF-8, ANSI escapes, carriage-return progress bars.

The three cleaners are streams: feed them chunks, print what they return, and call `flush` at the end.
Nothing here needs `re`: the filters that use it start in the time of bare Python.
"""

REPLACEMENT = "\ufffd".encode()
LONGEST_SCREEN_LINE = 1 << 20  # characters; a longer line is no progress bar, and memory stays bounded
ESC = 0x1B


def to_utf8(text: str) -> bytes:
    """Encode text; each lone surrogate becomes one U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def valid_utf8(data: bytes) -> bool:
    """Say whether data is complete, valid UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def mend_utf8(data: bytes) -> bytes:
    """Replace each invalid byte sequence by one U+FFFD, as WHATWG and `decode(errors="replace")` do."""
    return data if valid_utf8(data) else data.decode("utf-8", "replace").encode()


def whole_characters(data: bytes) -> int:
    """Return the length of data without a UTF-8 sequence that is cut off at its end."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if back < needed else len(data)
    return len(data)


def skip_continuation(data: bytes) -> bytes:
    """Drop the rest of a character that was cut off at the beginning (at most 3 bytes)."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


class AnsiStripper:
    """Remove terminal escape sequences: CSI, OSC (the label of a hyperlink stays), DCS and relatives, single ones.

    A sequence cut off by the end of the input is dropped whole. A line end ends any sequence, so lines stay lines.
    """

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state = ""  # where in a sequence the last chunk ended: "", "esc", "nf", "csi", "osc", "string"...

    def feed(self, data: bytes) -> bytes:
        """Return the visible part of data."""
        if not self._state and ESC not in data:
            return data
        out = []
        at = 0
        while at < len(data):
            if not self._state:
                escape = data.find(ESC, at)
                if escape < 0:
                    out.append(data[at:])
                    break
                out.append(data[at:escape])
                self._state = "esc"
                at = escape + 1
            elif self._state in ("osc", "string"):
                at = self._end_of_string(data, at)
            else:
                at = self._step(data[at], at)
        return b"".join(out)

    def flush(self) -> bytes:
        """End the input; a sequence that was begun is dropped."""
        self._state = ""
        return b""

    def _end_of_string(self, data: bytes, at: int) -> int:
        ends = [data.find(end, at) for end in (b"\x1b", b"\n", b"\x07" if self._state == "osc" else b"\n")]
        found = min((end for end in ends if end >= 0), default=len(data))
        if found == len(data):
            return found
        byte = data[found]
        if byte == ESC:
            self._state = "st in osc" if self._state == "osc" else "st in string"
            return found + 1
        self._state = ""
        return found if byte == 0x0A else found + 1

    def _step(self, byte: int, at: int) -> int:
        """Take one byte of a sequence; return where to go on (`at` itself where the byte is ordinary text)."""
        state, self._state = self._state, ""
        if state.startswith("st in "):
            if byte == 0x5C:  # ESC \ ends the string
                return at + 1
            self._state = state.removeprefix("st in ")  # an escape inside the string (tmux pass-through)
            return at
        if state == "csi":
            if 0x20 <= byte <= 0x3F:
                self._state = "csi"
                return at + 1
            return at + 1 if 0x40 <= byte <= 0x7E else at
        if 0x20 <= byte <= 0x2F:  # designate a character set and the like: ESC ( B
            self._state = "nf"
            return at + 1
        if state == "esc":
            self._state = "csi" if byte == 0x5B else "osc" if byte == 0x5D else "string" if byte in b"PX^_" else ""
        return at + 1 if 0x30 <= byte <= 0x7E else at


class CarriageReturns:
    """Show each line as a terminal would after its carriage returns: later text overwrites earlier text.

    CRLF is left alone. A character takes one column; `ESC [ K` erases, other escapes take no column. A line longer
    than LONGEST_SCREEN_LINE goes through as it is up to there.
    """

    __slots__ = ("_chunks", "_screen", "_size")

    def __init__(self) -> None:
        self._screen: list[str] | None = None  # the columns of the open line so far; None while no CR was in it
        self._chunks: list[bytes] = []  # the open segment: after the last CR or LF
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """Return the lines that data completes, collapsed."""
        if self._screen is None and b"\r" not in data and not self._ends_in_cr():
            end = data.rfind(b"\n") + 1
            if end:
                done = b"".join(self._chunks) + data[:end]
                self._chunks, self._size = [], 0
                return done + self._hold(data[end:])
            return self._hold(data)
        whole = b"".join(self._chunks) + data
        self._chunks, self._size = [], 0
        *lines, rest = whole.split(b"\n")
        out = [self._line(line) + b"\n" for line in lines]
        keep = b"\r" if rest.endswith(b"\r") else b""  # CRLF or an overwrite: the next byte tells
        *segments, last = rest.removesuffix(b"\r").split(b"\r")
        for segment in segments:
            self._overwrite(segment)
        return b"".join(out) + self._hold(last + keep)

    def flush(self) -> bytes:
        """End the input and return its last, unterminated line."""
        line = b"".join(self._chunks)
        self._chunks, self._size = [], 0
        return self._line(line.removesuffix(b"\r"))

    def _ends_in_cr(self) -> bool:
        return bool(self._chunks) and self._chunks[-1].endswith(b"\r")

    def _hold(self, segment: bytes) -> bytes:
        if segment:
            self._chunks.append(segment)
            self._size += len(segment)
        if self._size <= LONGEST_SCREEN_LINE or self._ends_in_cr():
            return b""
        line = b"".join(self._chunks)
        end = whole_characters(line)
        self._chunks, self._size = [line[end:]] if line[end:] else [], len(line) - end
        return self._line(line[:end])

    def _line(self, line: bytes) -> bytes:
        """Return a complete line, without its LF, as shown."""
        crlf = b"\r" if line.endswith(b"\r") else b""
        if self._screen is None and b"\r" not in line.rstrip(b"\r"):
            return line.rstrip(b"\r") + crlf
        for segment in line.rstrip(b"\r").split(b"\r"):
            self._overwrite(segment)
        shown = "".join(self._screen or ())
        self._screen = None
        return shown.encode("utf-8", "surrogateescape") + crlf

    def _overwrite(self, segment: bytes) -> None:
        screen = self._screen if self._screen is not None else []
        self._screen = screen
        text = segment.decode("utf-8", "surrogateescape")
        if "\x1b" not in text:
            screen[: len(text)] = text
            return
        column, prefix, at = 0, "", 0
        while at < len(text):
            if text[at] != "\x1b":
                screen[column : column + 1] = [prefix + text[at]]
                column, prefix, at = column + 1, "", at + 1
                continue
            end = _end_of_escape(text, at)
            escape, at = text[at:end], end
            if escape in ("\x1b[K", "\x1b[0K"):
                del screen[column:]
            elif escape == "\x1b[2K":
                screen[:column] = " " * min(column, len(screen))
                del screen[column:]
            else:
                prefix += escape
        if prefix:
            screen[column:column] = [prefix]


def _end_of_escape(text: str, at: int) -> int:
    if text[at + 1 : at + 2] != "[":
        return min(at + 2, len(text))
    end = at + 2
    while end < len(text) and " " <= text[end] <= "?":
        end += 1
    return min(end + 1, len(text))
