"""What `ctx truncate` and `ctx run` share: pour chunks through a Truncator, print what is kept, save what is cut."""

from __future__ import annotations

from ctxkit import process
from ctxkit.errors import UsageError
from ctxkit.spill import Spill
from ctxkit.truncate import Truncator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxkit.process import Interrupts, Source
    from ctxkit.truncate import Truncation

ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "'": "\\'", "\\": "\\\\"}


class Cutting:
    """The options that say how to cut, where to save the full text and where to say so."""

    __slots__ = (
        "collapse_cr",
        "early_exit",
        "json",
        "keep",
        "max_bytes",
        "max_lines",
        "notice",
        "offset",
        "spill",
        "spill_dir",
        "strip_ansi",
        "whole_lines",
        "width",
    )

    def __init__(
        self,
        *,
        head: bool,
        middle: bool,
        max_lines: int | None,
        max_bytes: int | None,
        width: int | None,
        offset: int,
        whole_lines: bool,
        notice: str,
        spill: str,
        spill_dir: str | None,
        strip_ansi: bool,
        collapse_cr: bool,
        json: bool,
        early_exit: bool = False,
    ) -> None:
        self.keep = "head" if head else "middle" if middle else "tail"
        self.max_lines, self.max_bytes, self.width = max_lines, max_bytes, width
        self.offset, self.whole_lines = offset, whole_lines
        self.notice, self.json = notice, json
        self.spill, self.spill_dir = spill, spill_dir
        self.strip_ansi, self.collapse_cr = strip_ansi, collapse_cr
        self.early_exit = early_exit
        if early_exit and not head:
            raise UsageError("--early-exit needs --head: the end of an input is not known before its end")
        if self.names_a_file and (spill_dir is not None or early_exit):
            raise UsageError(f"--spill FILE and {'--early-exit' if early_exit else '--spill-dir'} do not go together")

    @property
    def names_a_file(self) -> bool:
        """Whether the full text goes to a file that the user named."""
        return self.spill not in ("auto", "never")

    @property
    def end_suffices(self) -> bool:
        """Whether nothing but the last bytes of the input shows in the result."""
        changed = self.collapse_cr or self.strip_ansi or self.width is not None or self.offset > 1
        told = self.json or self.notice != "none" or self.names_a_file
        return self.keep == "tail" and self.max_bytes is not None and not changed and not told


class Poured:
    """What came of one input: the result, where its full text is, and how the printed text ends."""

    __slots__ = ("ends_line", "nothing", "result", "saved_as")

    def __init__(self, result: Truncation, saved_as: str | None, nothing: bool, ends_line: bool) -> None:
        self.result = result
        self.saved_as = saved_as
        self.nothing = nothing  # nothing was printed
        self.ends_line = ends_line  # the last byte printed is a newline

    def paragraph(self, line: str) -> None:
        """Print a line of ours after one blank line."""
        gap = "" if self.nothing else "\n" if self.ends_line else "\n\n"
        process.write(f"{gap}{line}\n".encode("utf-8", "replace"))
        self.nothing, self.ends_line = False, True


def pour(cutting: Cutting, chunks: Iterable[bytes], interrupts: Interrupts, source: Source | None = None) -> Poured:
    """Cut the chunks, print what is kept (with `--json`: leave it in the result), save the rest; give the notice."""
    cutter = Truncator(
        cutting.keep,
        cutting.max_lines,
        cutting.max_bytes,
        cutting.width,
        cutting.offset,
        cutting.whole_lines,
        strip_ansi=cutting.strip_ansi,
        collapse_cr=cutting.collapse_cr,
    )
    path = source.path if source is not None else None
    spill = _spill(cutting, source)
    printed: list[bytes] = []
    nothing, ends_line, stopped = True, False, False
    try:
        for chunk in chunks:
            text = cutter.feed(chunk)
            if spill is not None:
                spill.feed(chunk, needed=cutter.cut)
            if text and cutting.json:
                printed.append(text)
            elif text:
                interrupts.writing = True
                process.write(text)
                interrupts.writing = False
                nothing, ends_line = False, text.endswith(b"\n")
            if cutting.early_exit and cutter.settled:
                stopped = True
                break
        result = cutter.finish(finished=not stopped and not interrupts.caught)
        if spill is not None:
            path = spill.close(needed=result.truncated or cutting.names_a_file)
    except BaseException:
        if spill is not None and not cutting.names_a_file:
            spill.discard()  # nobody was told its name
        raise
    if spill is not None and not result.truncated and not cutting.names_a_file:
        spill.discard()
    saved_as = None if path is None else _plain(path)
    if cutting.json:
        result.text = b"".join([*printed, result.text])
    else:
        process.write(result.text)
        if result.text:
            nothing, ends_line = False, result.text.endswith(b"\n")
    poured = Poured(result, saved_as, nothing, ends_line)
    notice = result.notice(saved_as)
    if notice and cutting.notice == "stderr":
        process.say(notice)
    elif notice and cutting.notice == "stdout" and not cutting.json:
        poured.paragraph(notice)
    return poured


def _spill(cutting: Cutting, source: Source | None) -> Spill | None:
    if cutting.names_a_file:
        if source is not None and source.path is not None and process.same_file(source.path, cutting.spill):
            raise UsageError(f"--spill {cutting.spill} would overwrite the input")
        return Spill(path=cutting.spill)
    in_a_file = source is not None and source.path is not None
    if in_a_file or cutting.spill == "never" or cutting.early_exit:
        return None
    return Spill(cutting.spill_dir)


def _plain(path: str) -> str:
    """Write a path on one line: one with control characters or bytes that are no text is quoted for a shell, $'...'."""
    if path.isprintable():
        return path
    quoted = []
    for character in path:
        if "\udc80" <= character <= "\udcff":
            quoted.append(f"\\x{ord(character) - 0xDC00:02x}")
        elif character in ESCAPES:
            quoted.append(ESCAPES[character])
        elif character.isprintable():
            quoted.append(character)
        else:
            quoted.extend(f"\\x{byte:02x}" for byte in character.encode("utf-8", "replace"))
    return f"$'{''.join(quoted)}'"
