"""ctx truncate: cut text to limits, honestly."""

from __future__ import annotations

from ctxkit import process
from ctxkit.cli.cutting import Cutting, pour
from ctxkit.errors import InputError, OutputError, UsageError
from ctxkit.process import Interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from ctxkit.cli.options import (
        Annotated,
        CollapseCr,
        Files,
        Head,
        Json,
        MaxBytes,
        MaxLines,
        MaxTokens,
        Middle,
        Notice,
        Offset,
        Option,
        Quiet,
        Result,
        SpillDir,
        SpillTo,
        StripAnsi,
        Tail,
        WholeLines,
        Width,
    )
    from ctxkit.process import Source

EXCLUSIVE = (("tail", "head", "middle"),)


def command(
    files: Files = None,
    tail: Tail = False,
    head: Head = False,
    middle: Middle = False,
    lines: MaxLines = 2000,
    bytes: MaxBytes = 51200,
    tokens: MaxTokens = None,
    line_width: Width = None,
    offset: Offset = 1,
    whole_lines: WholeLines = False,
    notice: Notice = "stdout",
    spill: SpillTo = "auto",
    spill_dir: SpillDir = None,
    strip_ansi: StripAnsi = False,
    cr: CollapseCr = False,
    early_exit: Annotated[
        bool, Option("--early-exit", help="With --head, stop reading as soon as the result is known.")
    ] = False,
    exit_code: Annotated[bool, Option("--exit-code", help="Exit with 1 if something was cut.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Cut text to limits, honestly.

    Input that fits within the limits passes through byte for byte. Of longer input the end is kept (with --head the
    beginning, with --middle both): whole lines, at most --lines of them and at most --bytes of text, whichever limit
    is hit first. A final newline is no line, but is a byte. A single line over the byte limit is kept in part.

    What was cut is said on a last line in brackets, with the numbers of the lines shown, the total, and the place
    where the full text is: the FILE itself, or else a private file into which the input was saved. These are removed
    after a week, or when they exceed 2 GB together, the oldest first. If saving fails, the notice says so.

    The input is read to its end, so the totals are true and the program before the pipe keeps its exit status; after
    SIGINT or SIGTERM what is held is printed. Nothing is held beyond the limits, except with --lines alone, which holds
    lines of any length. Several FILEs are cut one by one, each under a header.
    """
    cutting = Cutting(
        head=head,
        middle=middle,
        max_lines=lines,
        max_bytes=bytes,
        max_tokens=tokens,
        width=line_width,
        offset=offset,
        whole_lines=whole_lines,
        notice=notice,
        spill=spill,
        spill_dir=spill_dir,
        strip_ansi=strip_ansi,
        collapse_cr=cr,
        json=json,
        early_exit=early_exit,
    )
    names = process.operands(files)
    if cutting.names_a_file and len(names) > 1:
        raise UsageError("--spill FILE takes one input")
    several = len(names) > 1
    first = True

    def cut_one(source: Source) -> Generator[dict[str, Any], None, int]:
        nonlocal first
        with Interrupts(reader=not cutting.names_a_file) as interrupts:
            if several and not json:
                _header(source.name, first=first)
                first = False
            poured = pour(cutting, source.chunks(interrupts), interrupts, source)
            total = poured.result.total_lines
            if offset > max(1, total) and poured.result.finished:
                lines_there = f"{total} line{'' if total == 1 else 's'}"
                raise InputError(f"offset {offset} is beyond the end ({lines_there})", source=source.shown)
            if json:
                try:
                    yield {**poured.as_json(), **({"file": source.name} if several else {})}
                except (BrokenPipeError, OutputError):
                    poured.forget()
                    raise
        if interrupts.caught:
            process.die(interrupts.caught)
        return 1 if exit_code and poured.result.truncated else 0

    return process.each(names, cut_one)


def _header(name: str, *, first: bool) -> None:
    """Print a header as head and tail do."""
    process.write(f"{'' if first else chr(10)}==> {name} <==\n".encode("utf-8", "surrogateescape"))
