"""Render commands as man pages (man(7) macros)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxkit.cli.app import variable
from ctxkit.cli.spec import Command, Param

EXIT_STATUS = (
    ("0", "Done, also when something was cut."),
    ("1", "The answer is no: a check found something, --exit-code and something was cut; or output cannot be written."),
    ("2", "The command line is wrong."),
    ("3", "An input could not be read, or is not what it should be."),
    ("4", "A summarizer or a plug-in failed."),
    ("5", "A file was changed meanwhile, or a lock is held."),
    ("128+n", "Ended by signal n."),
)


def overview(summaries: dict[str, str], version: str) -> str:
    """Return the page ctx(1)."""
    return _join(
        _title("ctx", version),
        [".SH NAME", "ctx \\- coreutils for LLM context"],
        [".SH SYNOPSIS", "\\fBctx\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIFILE\\fR]..."],
        [
            ".SH DESCRIPTION",
            _text(
                "Filters that decide what a model gets to see. Each reads text or a session file on standard input or "
                "by name and writes text or JSON. Data goes to standard output, everything else to standard error. "
                "Inputs are never changed unless asked, and nothing needs a network."
            ),
        ],
        [".SH COMMANDS"],
        [line for name, text in summaries.items() for line in (".TP", f"\\fBctx\\-{_text(name)}\\fR(1)", _text(text))],
        [".SH OPTIONS", ".TP", "\\fB\\-\\-version\\fR", "Print the version and exit."],
        [".TP", "\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "Print help and exit; also after a command."],
        [
            ".SH SIZES",
            _text(
                "Sizes are numbers with an optional unit: K, M, G are powers of 1024, kB, MB, GB powers of 1000. 0 is "
                "zero; 'none' is no limit."
            ),
        ],
        [".SH EXIT STATUS"],
        [line for code, text in EXIT_STATUS for line in (".TP", code, _text(text))],
        [".SH ENVIRONMENT"],
        [
            ".TP",
            "\\fBCTX_\\fICOMMAND\\fB_\\fIOPTION\\fR",
            _text(
                "The default of an option, named by its long name without dashes in front and with underscores "
                "inside: CTX_TRUNCATE_LINES=500. An option on the command line wins."
            ),
        ],
        [".TP", "\\fBXDG_STATE_HOME\\fR", _text("Saved full outputs are in its folder ctxkit/spill.")],
        [".TP", "\\fBCTX_DEBUG\\fR", "Show where an internal error came from."],
        [".SH SEE ALSO", ",\n".join(f".BR ctx\\-{_text(name)} (1)" for name in summaries).replace(",\n", "\n")],
    )


def page(name: str, summary: str, inside: list[Command], examples: str, version: str) -> str:
    """Return the page of a command, or of a group of commands."""
    group = inside[0].name != name
    lines = [
        *_title(f"ctx-{name}", version),
        ".SH NAME",
        f"ctx\\-{_text(name)} \\- {_text(_as_phrase(summary))}",
        ".SH SYNOPSIS",
    ]
    for number, command in enumerate(inside):
        lines += [".br"] * (number > 0) + [_synopsis(command)]
    lines.append(".SH COMMANDS" if group else ".SH DESCRIPTION")
    for command in inside:
        if group:
            lines += [f".SS ctx {_text(command.name)}", _text(command.summary)] + [".PP"] * bool(command.text)
        lines += _paragraphs(command.text or ("" if group else command.summary))
        if not group:
            lines.append(".SH OPTIONS")
        for param in (*command.operands, *command.options):
            lines += [".TP", _heading(param), _text(param.help) + _details(param)]
    lines += [".SH ENVIRONMENT", _environment(inside)]
    if examples:
        lines += [".SH EXAMPLES", *_examples(examples)]
    lines += [".SH EXIT STATUS", "See", ".BR ctx (1).", ".SH SEE ALSO", ".BR ctx (1)"]
    return _join(lines)


def _title(name: str, version: str) -> list[str]:
    return [f'.TH "{_text(name.upper())}" "1" "" "ctx {version}" "ctx manual"']


def _synopsis(command: Command) -> str:
    words = [f"\\fBctx {_text(command.name)}\\fR", "[\\fIOPTION\\fR]..."]
    if command.takes_a_command:
        words.append("[\\fB\\-\\-\\fR]")
    words += [f"\\fI{_text(param.metavar)}\\fR" for param in command.operands]
    return " ".join(words)


def _heading(param: Param) -> str:
    if not param.flags:
        return f"\\fI{_text(param.metavar)}\\fR"
    value = "" if param.kind == "flag" else f" \\fI{_text(param.metavar)}\\fR"
    return ", ".join(f"\\fB{_text(flag)}\\fR{value}" for flag in sorted(param.flags, key=len))


def _details(param: Param) -> str:
    details = []
    if isinstance(param.kind, tuple) and param.kind[0] == "choice":
        details.append("one of " + ", ".join(param.kind[1]))
    if param.default:
        details.append(f"default: {param.default}")
    if param.repeats and param.flags:
        details.append("may be given several times")
    return _text(f" ({'; '.join(details)})") if details else ""


def _environment(inside: list[Command]) -> str:
    """Name one variable, of the first option that has a value or of the first there is, as an example."""
    options = [(command, param) for command in inside for param in command.options]
    command, option = next((pair for pair in options if pair[1].kind != "flag"), options[0])
    example = variable(command.name, max(option.flags, key=len))
    return _text(f"The variable {example} and its like set defaults; see ctx(1).")


def _examples(markdown: str) -> Iterator[str]:
    """Render the prose and the console blocks of an example file."""
    code = False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            code = not code
            yield ".EX" if code else ".EE"
        elif code:
            yield _text(line) if line else "\\&"
        elif line.startswith("#"):
            continue
        elif line:
            yield _text(line)
        else:
            yield ".PP"


def _paragraphs(text: str) -> list[str]:
    return "\n.PP\n".join(_text(" ".join(part.split())) for part in text.split("\n\n")).split("\n") if text else []


def _as_phrase(summary: str) -> str:
    return summary[:1].lower() + summary[1:].rstrip(".")


def _text(text: str) -> str:
    """Escape text for roff: backslashes, dashes that must stay dashes, quotes, and dots at the start of a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti").replace('"', "\\(dq")
    return "\\&" + text if text[:1] in (".", "\\(aq") else text


def _join(*parts: list[str]) -> str:
    lines = [line for part in parts for line in part]
    # A paragraph mark next to a section head or another mark does nothing, and man --warnings says so.
    kept: list[str] = []
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else ".SH"
        if line == ".PP" and (
            after.startswith((".SH", ".PP", ".SS", ".TP")) or kept[-1].startswith((".SH", ".PP", ".SS"))
        ):
            continue
        kept.append(line)
    return "\n".join(kept) + "\n"
