"""The options that several commands share, each spelled once, and the names that a signature needs.

Command modules import these only for type checkers: the names are put into them before Typer reads a signature (see
`app.declared`), so that the fast lane never imports Typer.
"""

from collections.abc import Callable, Generator
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from ctxkit.cli import values

__all__ = [
    "AgentDir",
    "Annotated",
    "Argument",
    "Arguments",
    "Bridge",
    "CollapseCr",
    "Cwd",
    "Files",
    "Head",
    "InPlace",
    "Json",
    "Layout",
    "Leaf",
    "Literal",
    "MaxBytes",
    "MaxLines",
    "MaxTokens",
    "MergeRule",
    "Middle",
    "ModelName",
    "Notice",
    "Offset",
    "Option",
    "ProfileName",
    "Quiet",
    "Reserve",
    "Result",
    "SessionName",
    "Skill",
    "SkillFormat",
    "SkillPaths",
    "SpillDir",
    "SpillTo",
    "StopAt",
    "StripAnsi",
    "SystemPrompt",
    "Tail",
    "Variables",
    "WholeLines",
    "Width",
    "WindowSize",
    "duration",
    "limit",
]

# What a command returns: an exit code, or JSON values with the exit code as the generator's return value.
Result = int | Generator[dict[str, Any], None, int]


def _parser(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise BadParameter(str(error)) from None

    parse.__name__ = read.__name__
    return parse


limit = _parser(values.limit)
duration = _parser(values.duration)

Files = Annotated[
    list[str] | None, Argument(metavar="[FILE]...", show_default=False, help="Read FILE; '-' is standard input.")
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print no warnings.")]
Json = Annotated[bool, Option("--json", help="Print the result as JSON, one object a line.")]
Tail = Annotated[bool, Option("--tail", help="Keep the end (the default).")]
Head = Annotated[bool, Option("--head", help="Keep the beginning.")]
Middle = Annotated[bool, Option("--middle", help="Keep both ends, with a marker line where lines were left out.")]
MaxLines = Annotated[
    int | None, Option("--lines", "-n", metavar="N", parser=limit, help="Keep at most N lines; 'none' is no limit.")
]
MaxBytes = Annotated[
    int | None,
    Option("--bytes", "-c", metavar="SIZE", parser=limit, help="Keep at most SIZE bytes: 800, 50K, 1MB, 'none'."),
]
MaxTokens = Annotated[
    int | None,
    Option(
        "--tokens",
        "-t",
        metavar="N",
        parser=limit,
        show_default=False,
        help="Keep at most N tokens (o200k_base, exact); reads a vocabulary, so it starts later.",
    ),
]
Width = Annotated[
    int | None,
    Option(
        "--line-width",
        "-w",
        metavar="N",
        parser=limit,
        show_default=False,
        help="First shorten each line of more than N characters to N and a mark.",
    ),
]
Offset = Annotated[int, Option("--offset", metavar="N", min=1, help="Begin with line N of the input.")]
WholeLines = Annotated[
    bool, Option("--whole-lines", help="Keep nothing, rather than a part, of a single line over the byte limit.")
]
Notice = Annotated[
    Literal["stdout", "stderr", "none"],
    Option("--notice", metavar="WHERE", help="Say what was cut on stdout, on stderr, or not at all: none."),
]
SpillTo = Annotated[
    str,
    Option(
        "--spill",
        metavar="WHERE",
        help="Save the full input in FILE; auto saves what is cut and not in a file already, never saves nothing.",
    ),
]
SpillDir = Annotated[
    str | None,
    Option("--spill-dir", metavar="DIR", show_default=False, help="Save it in DIR, not in the private default folder."),
]
StripAnsi = Annotated[bool, Option("--strip-ansi", help="Remove terminal escape sequences.")]
CollapseCr = Annotated[
    bool, Option("--cr", help="Show lines with carriage returns (progress bars) as a terminal would.")
]
Cwd = Annotated[
    str | None, Option("--cwd", metavar="DIR", show_default=False, help="Act as if in DIR, not the working directory.")
]
AgentDir = Annotated[
    str | None,
    Option(
        "--agent-dir",
        metavar="DIR",
        show_default=False,
        help="Take what is the user's from DIR, not from the agent's folder ($PI_CODING_AGENT_DIR, ~/.pi/agent).",
    ),
]
Skill = Annotated[
    list[str] | None,
    Option("--skill", metavar="PATH", show_default=False, help="A skill, or a folder of skills; it comes first."),
]
SkillPaths = Annotated[
    list[str] | None,
    Argument(metavar="[PATH]...", show_default=False, help="Check these, not all that would be found."),
]
Arguments = Annotated[
    list[str] | None, Argument(metavar="[ARG]...", show_default=False, help="The arguments, as words.")
]
SkillFormat = Annotated[
    Literal["table", "prompt", "json"],
    Option("--format", metavar="FORMAT", help="A table to read, the block for a system prompt, or JSON."),
]
Variables = Annotated[
    list[str] | None,
    Option("--var", metavar="KEY=VALUE", show_default=False, help="Give a variable; twice makes it a list of two."),
]
ProfileName = Annotated[
    Literal["pi", "claude", "codex", "omp"],
    Option("--profile", metavar="AGENT", help="Take the instruction files that AGENT would take."),
]
MergeRule = Annotated[
    Literal["append", "prepend", "replace", "smart"],
    Option(
        "--merge",
        metavar="RULE",
        help="The most specific file last, first, alone, or last with its sections in place of those of others.",
    ),
]
StopAt = Annotated[
    Literal["root", "git"] | None,
    Option(
        "--stop-at",
        metavar="TOP",
        show_default=False,
        help="Begin with the root of the file system or of the repository, not where AGENT does.",
    ),
]
Layout = Annotated[
    Literal["seed", "pi"], Option("--layout", metavar="LAYOUT", help="Prose, or the tagged sections of Pi 1.6.")
]
SessionName = Annotated[
    str, Argument(metavar="SESSION", show_default=False, help="A session file; '-' is standard input.")
]
Leaf = Annotated[
    str | None,
    Option("--leaf", metavar="ID", show_default=False, help="Take ID, not the current leaf, as where the talk stands."),
]
Bridge = Annotated[
    bool, Option("--bridge", help="Link an entry whose parent is missing to the entry before it in the file.")
]
InPlace = Annotated[bool, Option("--in-place", help="Append to SESSION, if nobody changed it meanwhile.")]
WindowSize = Annotated[
    int | None,
    Option("--window", metavar="N", min=1, show_default=False, help="The window of the model has N tokens."),
]
ModelName = Annotated[
    str | None,
    Option("--model", "-m", metavar="MODEL", show_default=False, help="Take window and encoding of MODEL."),
]
Reserve = Annotated[
    int, Option("--reserve", metavar="N", min=0, help="Keep N tokens of the window free for the answer.")
]
SystemPrompt = Annotated[
    str | None,
    Option(
        "--system",
        metavar="FILE",
        show_default=False,
        help="Take the system prompt from FILE, '-' is standard input, in place of that of the session.",
    ),
]
