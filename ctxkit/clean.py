"""Make bytes from programs fit to read: invalid UTF-8, ANSI escapes, carriage-return progress bars.

The two cleaners are streams: feed them chunks, print what they return, and call `flush` at the end.
Nothing here needs `re`: the filters that use it start in the time of bare Python.
"""

LONGEST_SCREEN_LINE = 1 << 16  # bytes without a CR; a longer line is no progress bar, and memory stays bounded
LONGEST_ESCAPES = 1 << 12  # characters; a longer run of escapes between two characters is no colour
ESC = b"\x1b"
CSI_PARAMETERS = bytes(range(0x20, 0x40))
INTERMEDIATES = bytes(range(0x20, 0x30))  # of sequences such as ESC ( B, which designates a character set
KINDS = {ord("["): "csi", ord("]"): "osc", **dict.fromkeys(b"PX^_", "string")}  # by the byte after ESC


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


def character_across(data: bytes, at: int) -> tuple[int, int]:
    """Return where the character begins and ends that a cut at `at` would part; (at, at) if it parts none.

    An invalid byte sequence that becomes one U+FFFD counts as one character.
    """
    at = max(0, min(at, len(data)))
    for start in range(at - 1, max(-1, at - 4), -1):
        byte = data[start]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            end = start + _character_size(data[start : start + 4])
            return (start, end) if end > at else (at, at)
    return at, at


def _character_size(data: bytes) -> int:
    """Return the size of the character at the beginning of data, which is a lead byte."""
    size = 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
    try:
        data[:size].decode()
    except UnicodeDecodeError as error:
        return error.end
    return size


class AnsiStripper:
    """Remove terminal escape sequences: CSI, OSC (the label of a hyperlink stays), DCS and relatives, single ones.

    A sequence cut off by the end of the input is dropped whole. A line end ends any sequence, so lines stay lines.
    """

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state = ""  # the sequence that the last chunk ended in: a kind, "escape", "osc escape", "string escape"

    def feed(self, data: bytes) -> bytes:
        """Return the visible part of data."""
        if not self._state and ESC not in data:
            return data
        first, *pieces = data.split(ESC)
        out = [self._visible(first)]
        for piece in pieces:
            in_string = self._state.removesuffix(" escape")
            self._state = f"{in_string} escape" if in_string in ("osc", "string") else "escape"
            out.append(self._visible(piece))
        return b"".join(out)

    def flush(self) -> bytes:
        """End the input; a sequence that was begun is dropped."""
        self._state = ""
        return b""

    def _visible(self, piece: bytes) -> bytes:
        """Return what is visible of a piece without an ESC."""
        if not piece or not self._state:
            return piece
        state, self._state = self._state, ""
        if state == "escape":
            state = KINDS.get(piece[0], "single")
            if state != "single":
                piece = piece[1:]
        elif state.endswith(" escape"):
            if piece.startswith(b"\\"):  # ESC \ ends the string
                return piece[1:]
            state = state.removesuffix(" escape")  # an escape inside the string (tmux pass-through)
        if state in ("csi", "single"):
            parameters, final = (CSI_PARAMETERS, 0x40) if state == "csi" else (INTERMEDIATES, 0x30)
            text = piece.lstrip(parameters)
            if text:
                return text[1:] if final <= text[0] <= 0x7E else text
        else:
            end = piece.find(b"\n")
            bell = piece.find(b"\x07", 0, end if end >= 0 else len(piece)) if state == "osc" else -1
            if bell >= 0:
                return piece[bell + 1 :]
            if end >= 0:
                return piece[end:]
        self._state = state
        return b""


class CarriageReturns:
    """Show each line as a terminal would after its carriage returns: later text overwrites earlier text.

    CRLF is left alone. A character takes one column; `ESC [ K` erases, other escapes take no column and stay before
    the character that follows. A line longer than LONGEST_SCREEN_LINE goes through as it is up to there.
    """

    __slots__ = ("_chunks", "_escapes", "_screen", "_size")

    def __init__(self) -> None:
        # The columns of the open line, each a character with the escapes before it, "" if erased; None before its CR.
        self._screen: list[str] | None = None
        self._escapes = ""  # before the next character
        self._chunks: list[bytes] = []  # the open segment: after the last CR or LF
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """Return the lines that data completes, collapsed."""
        if b"\r" not in data and not self._ends_in_cr() and (self._screen is None or b"\n" not in data):
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
        segments = line.removesuffix(b"\r").split(b"\r")
        if self._screen is None and len(segments) == 1:
            return segments[0] + crlf
        for segment in segments:
            self._overwrite(segment)
        screen = self._screen or []
        while screen and not screen[-1]:
            screen.pop()
        shown = "".join([cell or " " for cell in screen]) + self._escapes
        self._screen, self._escapes = None, ""
        return shown.encode("utf-8", "surrogateescape") + crlf

    def _overwrite(self, segment: bytes) -> None:
        if self._screen is None:
            self._screen = []
        screen = self._screen
        text = segment.decode("utf-8", "surrogateescape")
        column = at = 0
        while at < len(text):
            end = text.find("\x1b", at)
            if end < 0:
                end = len(text)
            if end > at:
                screen[column : column + end - at] = text[at:end]
                screen[column] = self._escapes + screen[column]
                self._escapes = ""
                column += end - at
            if end < len(text):
                at, end = end, _end_of_escape(text, end)
                self._escape(text[at:end], screen, column)
            at = end

    def _escape(self, escape: str, screen: list[str], column: int) -> None:
        if escape in ("\x1b[K", "\x1b[0K", "\x1b[2K"):
            del screen[column:]
        if escape in ("\x1b[1K", "\x1b[2K"):
            erased = min(column + 1, len(screen))
            screen[:erased] = [""] * erased
        if not (escape.startswith("\x1b[") and escape.endswith("K")):
            # the same escape again makes the earlier one void, so bars do not pile up their colours
            self._escapes = self._escapes.replace(escape, "") + escape
            if len(self._escapes) > LONGEST_ESCAPES:
                self._escapes = ""


def _end_of_escape(text: str, at: int) -> int:
    """Return where the escape sequence ends that begins at `at`."""
    kind = text[at + 1 : at + 2]
    if kind and kind in "]PX^_":  # a string, up to BEL or ESC \\
        escape = text.find("\x1b", at + 2)
        bell = text.find("\x07", at + 2, escape if escape >= 0 else len(text))
        if bell >= 0:
            return bell + 1
        if escape < 0:
            return len(text)
        return escape + 2 if text[escape + 1 : escape + 2] == "\\" else escape
    end, last = (at + 2, "?") if kind == "[" else (at + 1, "/")  # CSI parameters; "ESC ( B"
    while end < len(text) and " " <= text[end] <= last:
        end += 1
    return min(end + 1, len(text))
