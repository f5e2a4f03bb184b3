"""What `ctx truncate` and `ctx run` share: pour chunks through a Truncator, print what is kept, save what is cut."""

from __future__ import annotations

import ctxkit
from ctxkit import process
from ctxkit.errors import OutputError, UsageError
from ctxkit.spill import Spill
from ctxkit.truncate import Truncator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ctxkit.process import Interrupts, Source
    from ctxkit.truncate import Truncation


class Cutting:
    """The options that say how to cut, where to save the full text and where to say so."""

    __slots__ = (
        "collapse_cr",
        "early_exit",
        "json",
        "keep",
        "max_bytes",
        "max_lines",
        "max_tokens",
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
        max_tokens: int | None,
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
        self.max_tokens = None if max_tokens is None else ctxkit.load_token_limit(max_tokens)
        self.offset, self.whole_lines = offset, whole_lines
        self.notice, self.json = notice, json
        self.spill, self.spill_dir = spill, spill_dir
        self.strip_ansi, self.collapse_cr = strip_ansi, collapse_cr
        self.early_exit = early_exit
        if early_exit and not head:
            raise UsageError("--early-exit needs --head: the end of an input is not known before its end")
        if self.names_a_file and (spill_dir is not None or early_exit):
            raise UsageError(f"--spill FILE and {'--early-exit' if early_exit else '--spill-dir'} do not go together")
        if spill == "-":
            raise UsageError("--spill needs the name of a file, not '-'")

    @property
    def names_a_file(self) -> bool:
        """Whether the full text goes to a file that the user named."""
        return self.spill not in ("auto", "never")

    @property
    def end_suffices(self) -> bool:
        """Whether nothing but the last bytes of the input shows in the result."""
        changed = self.collapse_cr or self.strip_ansi or self.width is not None or self.offset > 1
        changed = changed or self.max_tokens is not None
        told = self.json or self.notice != "none"
        return self.keep == "tail" and self.max_bytes is not None and not changed and not told


class Poured:
    """What came of one input: the result, where its full text is, and how the printed text ends."""

    __slots__ = ("_ends_line", "_nothing", "_spill", "path", "result")

    def __init__(
        self, result: Truncation, path: str | None, spill: Spill | None, *, nothing: bool, ends_line: bool
    ) -> None:
        self.result = result
        self.path = path  # of the full text
        self._spill = spill
        self._nothing = nothing  # nothing was printed
        self._ends_line = ends_line  # the last byte printed is a newline

    @property
    def notice(self) -> str:
        """What there is to say about the cut."""
        return self.result.notice(self.path and process.shown(self.path))

    def as_json(self) -> dict[str, Any]:
        """Return the result under its JSON keys; a path that is no text is quoted for a shell."""
        found = self.result.as_json(self.path and process.shown(self.path))
        if found["fullOutputPath"] is not None and self.path is not None and is_text(self.path):
            found["fullOutputPath"] = self.path
        return found

    def paragraph(self, line: str) -> None:
        """Print a line of ours after one blank line."""
        gap = "" if self._nothing else "\n" if self._ends_line else "\n\n"
        process.write(f"{gap}{line}\n".encode("utf-8", "replace"))
        self._nothing, self._ends_line = False, True

    def forget(self) -> None:
        """Remove the file that was made for the full text: nobody will be told its name."""
        if self._spill is not None:
            self._spill.discard()


def pour(cutting: Cutting, chunks: Iterable[bytes], interrupts: Interrupts, source: Source | None = None) -> Poured:
    """Cut the chunks, print what is kept (with `--json`: leave it in the result), save the rest; give the notice.

    Without a `source` the chunks are all there is to come, even after a signal.
    """
    cutter = Truncator(
        cutting.keep,
        cutting.max_lines,
        cutting.max_bytes,
        cutting.width,
        cutting.offset,
        cutting.whole_lines,
        strip_ansi=cutting.strip_ansi,
        collapse_cr=cutting.collapse_cr,
        max_tokens=cutting.max_tokens,
    )
    spill = _spill(cutting, source)
    if spill is None and source is not None and cutting.end_suffices:
        source.skip_to_last(cutting.max_bytes or 0)
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
                process.write(text)
                nothing, ends_line = False, text.endswith(b"\n")
            if cutting.early_exit and cutter.settled:
                stopped = True
                break
        result = cutter.finish(finished=not stopped and (source is None or not interrupts.caught))
        path = source.path if source is not None else None
        if spill is not None:
            path = spill.close(needed=result.truncated)
        if cutting.json:
            result.text = b"".join([*printed, result.text])
        elif result.text:
            process.write(result.text)
            nothing, ends_line = False, result.text.endswith(b"\n")
        poured = Poured(result, path, spill, nothing=nothing, ends_line=ends_line)
        if cutting.notice != "none" and not cutting.json and (notice := poured.notice):
            if cutting.notice == "stderr":
                process.say(notice)
            else:
                poured.paragraph(notice)
    except BaseException as error:
        if spill is not None and cutting.names_a_file and isinstance(error, BrokenPipeError | OutputError):
            for chunk in chunks:  # the user wants it all, although nobody reads the rest
                spill.feed(chunk, needed=True)
            spill.close(needed=True)
        elif spill is not None and not (isinstance(error, process.Killed) and cutter.cut):
            spill.discard()  # nobody was told its name
        raise
    return poured


def _spill(cutting: Cutting, source: Source | None) -> Spill | None:
    if cutting.names_a_file:
        if source is not None and source.same_as(cutting.spill):
            raise UsageError(f"--spill {process.shown(cutting.spill)} would overwrite the input")
        return Spill(path=cutting.spill)
    in_a_file = source is not None and source.path is not None
    if in_a_file or cutting.spill == "never" or cutting.early_exit:
        return None
    return Spill(cutting.spill_dir)


def is_text(path: str) -> bool:
    """Say whether a path can be written as UTF-8."""
    return not any("\udc80" <= character <= "\udcff" for character in path)
