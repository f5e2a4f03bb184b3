"""ctx run: run a command, keep its exit status, print its output truncated."""

from __future__ import annotations

from ctxkit import process
from ctxkit.child import Child
from ctxkit.cli.cutting import Cutting, pour
from ctxkit.errors import OutputError
from ctxkit.process import Interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from ctxkit.cli.options import (
        Annotated,
        Argument,
        CollapseCr,
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
        duration,
    )

EXCLUSIVE = (("tail", "head", "middle"),)
TAKES_A_COMMAND = True
TIMED_OUT = 124  # as timeout(1)


def command(
    words: Annotated[list[str], Argument(metavar="COMMAND [ARG]...", help="The command and its arguments.")],
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
    timeout: Annotated[
        float | None,
        Option(
            "--timeout",
            metavar="DURATION",
            parser=duration,
            show_default=False,
            help="End the command and all it started after DURATION: 90, 1.5s, 2m.",
        ),
    ] = None,
    shell: Annotated[
        bool, Option("--shell", help="Let sh run the words, joined by blanks, as a command line.")
    ] = False,
    live: Annotated[bool, Option("--live", help="Copy the output to standard error as it comes.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Run a command, keep its exit status, print its output truncated.

    Standard output and standard error come through one pipe, in order, and are printed as 'ctx truncate' would print
    them; '(no output)' stands for none. After a blank line follows 'Command exited with code N' if N is not 0 (128 +
    the number of a signal that killed it), or 'Command timed out after N seconds' with exit status 124: the whole
    process group gets TERM, and after two seconds KILL. Exit status is the command's, 127 if it is not found, 126 if
    it cannot be run.

    Standard input is passed on. Processes that the command leaves in the background do not hold ctx up: after the
    command's end, output is read until it has been quiet for 0.2 seconds, for 2 seconds at most. SIGINT, SIGTERM and
    SIGHUP are passed on to the command; what it printed is printed. One that is still there two seconds after SIGTERM
    or SIGHUP is killed.
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
    )
    return _run(words, cutting, timeout, shell=shell, live=live)


def _run(
    words: list[str], cutting: Cutting, timeout: float | None, *, shell: bool, live: bool
) -> Generator[dict[str, Any], None, int]:
    with Interrupts(children=True, reader=not cutting.names_a_file) as interrupts:
        child = Child(["/bin/sh", "-c", " ".join(words)] if shell else words, timeout=timeout)
        output = child.output(interrupts)
        try:
            poured = pour(cutting, _copied(output) if live else output, interrupts)
        except (BrokenPipeError, OutputError):
            child.stop_listening(interrupts)
            raise
        except process.Killed as killed:
            child.send(killed.number)
            raise
        if cutting.json:
            try:
                yield {**poured.as_json(), "command": words, **_ending(child)}
            except (BrokenPipeError, OutputError):
                poured.forget()
                raise
        else:
            if not poured.result.total_bytes and not child.timed_out:
                poured.paragraph("(no output)")
            if child.timed_out:
                poured.paragraph(f"Command timed out after {timeout:g} seconds")
            elif child.exit_code:
                poured.paragraph(f"Command exited with code {child.exit_code}")
    if child.timed_out:
        return TIMED_OUT
    if interrupts.caught and interrupts.caught == child.signal:
        process.die(interrupts.caught)  # so that a script that runs us stops, too
    return child.exit_code


def _ending(child: Child) -> dict[str, Any]:
    return {
        "exitCode": child.exit_code,
        "signal": child.signal,
        "timedOut": child.timed_out,
        "durationMs": round(child.duration * 1000),
    }


def _copied(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        process.write_error(chunk)
        yield chunk
