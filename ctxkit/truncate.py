"""Cut a stream of lines to limits, from its head, its tail or both ends, and say truthfully what was left out.

Bytes come in chunks and are never held beyond the limits, whatever the length of the input or of a line. Lines end at
LF only; a final LF is no line but is a byte (Pi §5.2). What fits comes out byte for byte; of what does not fit, whole
lines are kept, and the kept text is valid UTF-8.
"""

from __future__ import annotations

from ctxkit.clean import AnsiStripper, CarriageReturns, to_utf8
from ctxkit.ends import LF, Back, Front, Part, Totals
from ctxkit.width import LineShortener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxkit.tokenlimit import TokenLimit

MAX_LINES = 2000
MAX_BYTES = 50 * 1024


def truncate_head(
    text: str | bytes | Iterable[bytes],
    *,
    max_lines: int | None = MAX_LINES,
    max_bytes: int | None = MAX_BYTES,
    max_tokens: TokenLimit | None = None,
    width: int | None = None,
    offset: int = 1,
    whole_lines: bool = False,
    final_newline: bool = True,
) -> Truncation:
    """Keep the beginning of text: whole lines within both limits.

    None is no limit; `load_token_limit` makes a `max_tokens`. `width` first shortens longer lines, `offset` is the
    1-based line to begin with. A first line over the limit is kept in part, or not at all with `whole_lines`. With
    `final_newline=False` the newline that ends a cut text is neither kept nor counted.
    `whole_lines=True, final_newline=False` is Pi's truncateHead (Pi §5.4).
    """
    return _at_once(
        text, Truncator("head", max_lines, max_bytes, width, offset, whole_lines, final_newline, max_tokens=max_tokens)
    )


def truncate_tail(
    text: str | bytes | Iterable[bytes],
    *,
    max_lines: int | None = MAX_LINES,
    max_bytes: int | None = MAX_BYTES,
    max_tokens: TokenLimit | None = None,
    width: int | None = None,
    offset: int = 1,
    whole_lines: bool = False,
    final_newline: bool = True,
) -> Truncation:
    """Keep the end of text: whole lines within both limits.

    The options are those of `truncate_head`. A last line over the byte limit is kept in part: its end.
    `final_newline=False` is Pi's truncateTail (Pi §5.5).
    """
    return _at_once(
        text, Truncator("tail", max_lines, max_bytes, width, offset, whole_lines, final_newline, max_tokens=max_tokens)
    )


def truncate_middle(
    text: str | bytes | Iterable[bytes],
    *,
    max_lines: int | None = MAX_LINES,
    max_bytes: int | None = MAX_BYTES,
    max_tokens: TokenLimit | None = None,
    width: int | None = None,
    offset: int = 1,
    whole_lines: bool = False,
) -> Truncation:
    """Keep both ends of text, half of each limit for either, and one marker line where lines were left out."""
    return _at_once(text, Truncator("middle", max_lines, max_bytes, width, offset, whole_lines, max_tokens=max_tokens))


def _at_once(text: str | bytes | Iterable[bytes], cutter: Truncator) -> Truncation:
    if isinstance(text, str):
        text = to_utf8(text)
    printed = [cutter.feed(chunk) for chunk in ((text,) if isinstance(text, bytes) else text)]
    result = cutter.finish()
    result.text = b"".join([*printed, result.text])
    return result


def format_size(size: int) -> str:
    """Write a size as Pi does: bytes, or one decimal of KB or MB; ties go up (Pi §5.7)."""
    if size < 1024:
        return f"{size}B"
    unit, name = (1024, "KB") if size < 1 << 20 else (1 << 20, "MB")
    tenths = (size * 20 + unit) // (2 * unit)
    return f"{tenths // 10}.{tenths % 10}{name}"


class Truncation:
    """What was kept of an input, and the truth about the rest.

    `text` is what is still to be printed after what `Truncator.feed` returned: all of it, from the functions above.
    Sizes are in bytes; `first_line` and `last_line` are 0 where no line was kept.
    """

    __slots__ = (
        "finished",
        "first_line_exceeds_limit",
        "last_line_partial",
        "left_out",
        "max_bytes",
        "max_lines",
        "max_tokens",
        "output_bytes",
        "output_lines",
        "parts",
        "showing",
        "text",
        "total_bytes",
        "total_lines",
        "truncated",
        "truncated_by",
        "width",
    )

    text: bytes
    parts: list[Part]  # what was kept: none, one run, or the two ends
    truncated: bool
    truncated_by: str | None  # "lines", "bytes", "tokens" or "width"
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    last_line_partial: bool
    first_line_exceeds_limit: bool
    max_lines: int | None
    max_bytes: int | None
    max_tokens: int | None
    left_out: tuple[int, int] | None  # lines and bytes left out of the middle
    showing: str  # the words of the notice on what was kept
    width: int | None  # the width, if it shortened some line
    finished: bool  # False if the input had more to say: a signal, --early-exit

    @property
    def content(self) -> str:
        """The text as a string; invalid bytes become U+FFFD."""
        return self.text.decode("utf-8", "replace")

    @property
    def first_line(self) -> int:
        """The number of the first line kept."""
        return self.parts[0].first if self.parts else 0

    @property
    def last_line(self) -> int:
        """The number of the last line kept."""
        return self.parts[-1].last if self.parts else 0

    def notice(self, saved_as: str | None) -> str:
        """Return the line that says what was cut, without its newline; empty if there is nothing to say.

        `saved_as` names the file that has the full output, None if there is none (COMMANDS "ctx truncate").
        """
        parts = [self.showing] if self.showing else []
        if self.width is not None:
            parts.append(f"Some lines shortened to {self.width} characters")
        if self.truncated:
            parts.append("Full output not saved" if saved_as is None else f"Full output: {saved_as}")
        if not self.finished:
            parts.append("Input not finished")
        return f"[{'. '.join(parts)}]" if parts else ""

    def as_json(self, saved_as: str | None) -> dict[str, object]:
        """Return the result under the keys of `ctx truncate --json`."""
        return {
            "schema": 1,
            "content": self.content,
            "truncated": self.truncated,
            "truncatedBy": self.truncated_by,
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.output_lines,
            "outputBytes": self.output_bytes,
            "firstLine": self.first_line,
            "lastLine": self.last_line,
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": self.max_lines,
            "maxBytes": self.max_bytes,
            "maxTokens": self.max_tokens,
            "leftOut": None if self.left_out is None else {"lines": self.left_out[0], "bytes": self.left_out[1]},
            "inputFinished": self.finished,
            "fullOutputPath": saved_as if self.truncated else None,
            "notice": self.notice(saved_as) or None,
        }


class Truncator:
    """Cut one stream: `feed` it chunks and print what that returns, then print the text of `finish`.

    `keep` is "head", "tail" or "middle". `strip_ansi` and `collapse_cr` clean the text before anything is measured.
    """

    __slots__ = (
        "_asked_bytes",
        "_back",
        "_cleaners",
        "_emitted",
        "_final_newline",
        "_front",
        "_input",
        "_keep",
        "_max_bytes",
        "_max_lines",
        "_offset",
        "_over_tokens",
        "_shortener",
        "_skip",
        "_text",
        "_tokens",
        "_whole_lines",
    )

    def __init__(
        self,
        keep: str = "tail",
        max_lines: int | None = MAX_LINES,
        max_bytes: int | None = MAX_BYTES,
        width: int | None = None,
        offset: int = 1,
        whole_lines: bool = False,
        final_newline: bool = True,
        strip_ansi: bool = False,
        collapse_cr: bool = False,
        max_tokens: TokenLimit | None = None,
    ) -> None:
        max_lines, max_bytes = _not_negative(max_lines), _not_negative(max_bytes)
        self._tokens, self._over_tokens = max_tokens, False
        self._asked_bytes = max_bytes
        if max_tokens is not None and (max_bytes is None or max_bytes > max_tokens.most_bytes):
            max_bytes = max_tokens.most_bytes  # more than that cannot be kept, so no more need be held
        unlimited = max_lines is None and max_bytes is None and final_newline
        self._keep = "all" if unlimited else keep
        self._max_lines, self._max_bytes = max_lines, max_bytes
        self._whole_lines, self._final_newline = whole_lines, final_newline
        self._offset = self._skip = max(0, offset - 1)  # lines before the first one wanted
        self._cleaners: list[CarriageReturns | AnsiStripper] = []
        if collapse_cr:
            self._cleaners.append(CarriageReturns())
        if strip_ansi:
            self._cleaners.append(AnsiStripper())
        self._shortener = LineShortener(max(0, width)) if width is not None else None
        self._input = Totals()  # of the raw input
        changed = self._cleaners or self._offset or self._shortener
        self._text = Totals() if changed else self._input  # of what the limits apply to
        self._front: Front | None = None
        self._back: Back | None = None
        if self._keep == "head":
            self._front = Front(max_lines, max_bytes, whole_lines, final_newline, max_tokens)
        if self._keep == "middle":
            share = None if max_tokens is None else max_tokens.halves()[0]
            self._front = Front(_half(max_lines), _half(max_bytes), whole_lines, final_newline, share)
        if self._keep in ("tail", "middle"):
            self._back = Back(max_lines, max_bytes, whole_lines, final_newline)
        self._emitted = 0  # bytes that feed() has returned

    @property
    def cut(self) -> bool:
        """Whether it is certain that not all of the input will be printed as it is."""
        return self._over_lines or self._over_bytes or self._over_tokens or self._shortened

    @property
    def settled(self) -> bool:
        """Whether more input can change nothing but the totals."""
        return self._keep == "head" and self._front is not None and self._front.full

    def feed(self, chunk: bytes) -> bytes:
        """Take the next piece of the input; return what can be printed already."""
        self._input.add(chunk)
        for cleaner in self._cleaners:
            chunk = cleaner.feed(chunk)
        return self._from_offset(chunk)

    def finish(self, *, finished: bool = True) -> Truncation:
        """End the input and return the result; `finished=False` if the input had more to say."""
        printed = []
        for number, cleaner in enumerate(self._cleaners):
            chunk = cleaner.flush()
            for later in self._cleaners[number + 1 :]:
                chunk = later.feed(chunk)
            printed.append(self._from_offset(chunk))
        if self._shortener:
            printed.append(self._select(self._shortener.flush()))
        if self._tokens is not None and not self._over_lines and not self._over_bytes:
            self._over_tokens = not self._tokens.fits(self._whole())
        result = self._result()
        result.finished = finished
        result.showing = self._showing(result) if result.truncated and result.truncated_by != "width" else ""
        result.text = b"".join([*printed, result.text])
        return result

    @property
    def _over_lines(self) -> bool:
        return self._max_lines is not None and self._text.lines > self._max_lines

    @property
    def _over_bytes(self) -> bool:
        return self._max_bytes is not None and self._text.bytes > self._max_bytes

    @property
    def _shortened(self) -> bool:
        return self._shortener is not None and self._shortener.shortened

    @property
    def _last(self) -> int:
        """The number of the last line so far."""
        return self._offset + self._text.lines

    def _from_offset(self, chunk: bytes) -> bytes:
        if self._skip:
            newlines = len(chunk) - len(chunk.replace(LF, b""))
            if newlines < self._skip:
                self._skip -= newlines
                return b""
            end = 0
            while self._skip:
                end = chunk.find(LF, end) + 1
                self._skip -= 1
            chunk = chunk[end:]
        return self._select(self._shortener.feed(chunk) if self._shortener else chunk)

    def _select(self, chunk: bytes) -> bytes:
        if not chunk:
            return b""
        if self._text is not self._input:
            self._text.add(chunk)
        if self._back:
            self._back.feed(chunk)
        if not self._front:
            return b"" if self._back else chunk
        if self._front.chosen:
            return b""
        printed = self._front.feed(chunk)
        if self._front.full and self.cut:
            printed += self._front.choose()
        self._emitted += len(printed)
        return printed

    def _result(self) -> Truncation:
        front, back = self._front, self._back
        first, last = self._offset + 1, self._last
        result = Truncation()
        result.truncated = self.cut
        result.left_out = None
        result.text = b""
        if self._keep == "all" or not result.truncated:
            result.text = self._whole()
            result.parts = [Part(first, last, self._text.bytes)] if last >= first else []
        elif front and not back:
            result.text = b"" if front.chosen else front.choose()
            result.parts = front.parts(first)
        elif back and (not front or (back.fits() and not self._over_tokens)):
            text, lines, partial, _ = back.choose(self._max_lines, self._max_bytes, self._tokens)
            result.text = text[self._emitted :]
            result.parts = [Part(last - lines + 1, last, len(text), partial)] if lines else []
        elif front and back:
            self._join_ends(result, front, back)
        result.output_bytes = sum(part.size for part in result.parts)
        result.output_lines = sum(part.lines for part in result.parts)
        if len(result.parts) == 2 and result.parts[0].last == result.parts[1].first:
            result.output_lines -= 1  # both ends of one line
        result.total_lines, result.total_bytes = self._input.lines, self._input.bytes
        result.max_lines, result.max_bytes = self._max_lines, self._asked_bytes
        result.max_tokens = None if self._tokens is None else self._tokens.limit
        result.width = self._shortener.width if self._shortener and self._shortened else None
        result.last_line_partial = bool(result.parts) and result.parts[-1].partial
        result.first_line_exceeds_limit = result.truncated and self._first_line_exceeds()
        result.truncated_by = self._reason(result) if result.truncated else None
        return result

    def _whole(self) -> bytes:
        """Return what was not yet printed of an input that is within the limits."""
        return self._back.all()[self._emitted :] if self._back else self._front.rest() if self._front else b""

    def _join_ends(self, result: Truncation, front: Front, back: Back) -> None:
        """Put the head, a marker line and the tail of a middle cut together."""
        rest = b"" if front.chosen else front.choose()
        max_lines = None if self._max_lines is None else self._max_lines - self._max_lines // 2
        max_bytes = None if self._max_bytes is None else self._max_bytes - self._max_bytes // 2
        tokens = None if self._tokens is None else self._tokens.halves()[1]
        tail, lines, partial, taken = back.choose(max_lines, max_bytes, tokens)
        heads = front.parts(self._offset + 1)
        tails = [Part(self._last - lines + 1, self._last, len(tail), partial)] if lines else []
        result.parts = heads + tails
        whole = sum(part.lines for part in result.parts if not part.partial)
        left_lines, left_bytes = self._text.lines - whole, self._text.bytes - front.taken - taken
        result.left_out = left_lines, left_bytes
        number = f"{left_lines} {'line' if left_lines == 1 else 'lines'}"
        if any(part.partial and part.size for part in result.parts):
            what = f"{format_size(left_bytes)} of {number}"  # not the whole of them
        else:
            what = f"{number} ({format_size(left_bytes)})"
        before = LF if heads and heads[0].partial else b""
        result.text = b"".join((rest, before, f"[... {what} left out ...]".encode(), LF, tail))

    def _first_line_exceeds(self) -> bool:
        if self._front is None or self._max_bytes is None:
            return False
        return self._first_line_size() > self._max_bytes or (self._back is None and self._front.too_long)

    def _first_line_size(self) -> int:
        return self._text.first_line + (self._final_newline and self._text.first_line_ends)

    def _last_line_size(self) -> int:
        return self._text.last_line + (self._final_newline and self._text.last_line_ends)

    def _reason(self, result: Truncation) -> str:
        """Name the limit that was hit; where lines and bytes were at once, lines, as Pi does."""
        ends = [end for end in (self._front, self._back) if end]
        bounded = self._max_bytes != self._asked_bytes and self._over_bytes
        if self._over_tokens or bounded or any(end.by_tokens for end in ends):
            return "tokens"
        partial = any(part.partial for part in result.parts)
        if result.output_lines == self._text.lines and not partial:
            return "bytes" if self._over_bytes else "width"  # bytes: only the final newline is over the limit
        if self._keep == "head" and result.first_line_exceeds_limit:
            return "bytes"
        return "lines" if self._over_lines and result.output_lines == self._max_lines and not partial else "bytes"

    def _showing(self, result: Truncation) -> str:
        """Say which lines are shown, of how many, and which limit cut them."""
        total = f"{self._last}" if result.finished or not self.settled else f"more than {result.last_line}"
        limit = ""
        if result.truncated_by == "bytes" and self._max_bytes is not None:
            limit = f" ({format_size(self._max_bytes)} limit)"
        elif result.truncated_by == "tokens":
            limit = f" ({result.max_tokens} token limit)"
        parts = [part for part in result.parts if part.size or not part.partial]
        if not parts:
            return self._too_long(result) or f"Showing none of {total} {'line' if total == '1' else 'lines'}{limit}"
        if len(parts) == 1 and parts[0].partial:
            from_front = self._front is not None and self._front.partial and self._front.size > 0
            size = self._first_line_size() if from_front else self._last_line_size()
            shown = f"Showing {'first' if from_front else 'last'} {format_size(parts[0].size)} of line {parts[0].first}"
            # a line that grew when it was mended may be smaller than what is shown of it
            return f"{shown} (line is {format_size(size)})" if result.finished and size > parts[0].size else shown
        words = []
        for part, side in zip(parts, ("first", "last"), strict=False):
            if part.partial:
                words.append(f"{side} {format_size(part.size)} of line {part.first}")
            else:
                words.append(f"{'' if words and words[0][0] == 'l' else 'lines '}{part.first}-{part.last}")
        return f"Showing {' and '.join(words)} of {total}{limit}"

    def _too_long(self, result: Truncation) -> str:
        """Say that the line at the end that was wanted is too long to be kept whole, if that is so."""
        number, size = self._last, self._last_line_size()
        if self._front:
            number, size = self._offset + 1, self._first_line_size()
        if self._whole_lines and result.truncated_by == "tokens" and result.max_tokens:
            return f"Line {number} exceeds {result.max_tokens} token limit"
        if not self._whole_lines or not self._max_bytes or size <= self._max_bytes or result.truncated_by != "bytes":
            return ""
        is_size = f" is {format_size(size)}," if result.finished else ""
        return f"Line {number}{is_size} exceeds {format_size(self._max_bytes)} limit"


def _not_negative(limit: int | None) -> int | None:
    return None if limit is None else max(0, limit)


def _half(limit: int | None) -> int | None:
    """Return the share of the head in a middle cut; the tail gets the odd one."""
    return None if limit is None else limit // 2
