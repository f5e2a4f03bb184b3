"""ctx template: list reusable prompts, put arguments and variables into one."""

from __future__ import annotations

from ctxkit import folders, process, template
from ctxkit.clean import to_utf8
from ctxkit.errors import InputError, UsageError
from ctxkit.found import Found
from ctxkit.markup import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    from ctxkit.cli.options import AgentDir, Annotated, Argument, Arguments, Cwd, Json, Quiet, Result, Variables
    from ctxkit.template import Template


def list(cwd: Cwd = None, agent_dir: AgentDir = None, json: Json = False, quiet: Quiet = False) -> Result:
    """List the templates that apply, by name and description.

    Templates are the Markdown files in .pi/prompts of the working directory and in prompts of the agent's folder; of
    two with one name the first counts.
    """
    found = discover(folders.working_folder(cwd), agent_dir)
    if json:
        return _listed(found)
    labels = [visible(f"{each.name} {each.argument_hint}".rstrip()) for each in found]
    width = max(map(len, labels), default=0)
    rows = zip(labels, (visible(each.description.strip()) for each in found), strict=True)
    process.write(to_utf8("".join(f"{label:{width}}  {description}\n" for label, description in rows)))
    return 0


def expand(
    name: Annotated[str, Argument(metavar="NAME", help="A template's name, its file, or '-' for a slash command.")],
    arguments: Arguments = None,
    var: Variables = None,
    cwd: Cwd = None,
    agent_dir: AgentDir = None,
    quiet: Quiet = False,
) -> Result:
    """Print a template with arguments and variables put in.

    NAME is the name of a template, also with a slash before it, or the path of a file. $1 is the first ARG, $@ and
    $ARGUMENTS are all of them, ${@:2} those from the second on, ${@:2:1} one of those, ${1:-text} the first or else a
    text. Missing ones are empty; a backslash before a placeholder makes it text.

    A template whose metadata has a list 'variables' also knows {{name}}, {{#if name}}...{{else}}...{{/if}},
    {{#unless name}}...{{/unless}} and {{#each name}}...{{this}}...{{/each}}. Each variable is given with --var, or has
    a default; one that is neither is an error. A backslash before {{ makes it text. No value is expanded again.

    With '-' the ARGs, or else standard input, are a slash command as a user types it: /NAME and its arguments, quoted
    where they hold blanks, and KEY=VALUE for variables. Standard input is read to its end, since it is one command.
    Text that is no such command is printed as it is.
    """
    base = folders.working_folder(cwd)
    values = _assigned(var or ())
    if name == "-":
        text = _expanded_command(" ".join(arguments) if arguments else _read_stdin(), base, agent_dir, values)
    else:
        text = template.expand(_find(name, base, agent_dir), arguments or [], values)
    process.write(to_utf8(text if text.endswith("\n") else f"{text}\n"))
    return 0


def discover(base: str, agent_dir: str | None) -> Sequence[Template]:
    """Find the templates that apply in a folder, and warn of what is wrong with others."""
    agent = folders.agent_folder(agent_dir, "PI_CODING_AGENT_DIR", "~/.pi/agent", base)
    found, said = template.find([f"{base}/.pi/prompts", f"{agent}/prompts"], folders.DISK)
    for each in said:
        process.warn(str(each))
    return found


def _find(name: str, base: str, agent_dir: str | None) -> Template:
    """Return the template of that name, or else the one in the file of that name."""
    plain = name.removeprefix("/")
    if "/" not in plain:
        for each in discover(base, agent_dir):
            if each.name == plain:
                return each
    path = folders.absolute(name, base)
    if folders.look(path).kind == "missing":
        raise InputError(f"no template is named {name!r}", hint="'ctx template list' names those that apply")
    source = process.open_source(path)
    found, findings = template.read(Found(name, "file", data=b"".join(source.chunks())))
    source.close()
    for finding in findings:
        process.warn(str(finding))
    return found


def _expanded_command(text: str, base: str, agent_dir: str | None, values: dict[str, Any]) -> str:
    command = template.split_command(text)
    if command is None:
        return text
    name, rest = command
    wanted = next((each for each in discover(base, agent_dir) if each.name == name), None)
    if wanted is None:
        process.warn(f"no template is named {name!r}")
        return text
    arguments, assigned = template.split_arguments(rest, [each.name for each in wanted.variables or ()])
    return template.expand(wanted, arguments, {**assigned, **values})


def _assigned(words: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"--var {word!r} is not KEY=VALUE")
        values.setdefault(key, []).append(value)
    return values


def _read_stdin() -> str:
    (name,) = process.operands(None)
    source = process.open_source(name)
    return b"".join(source.chunks()).decode("utf-8", "replace").removesuffix("\n")


def _listed(found: Sequence[Template]) -> Generator[dict[str, Any], None, int]:
    yield {"schema": 1, "templates": [_described(each) for each in found]}
    return 0


def _described(found: Template) -> dict[str, Any]:
    variables = [
        {"name": each.name, "default": each.default, "description": each.description} for each in found.variables or ()
    ]
    return {
        "name": found.name,
        "description": found.description,
        "argumentHint": found.argument_hint,
        "path": found.path,
        "variables": variables,
    }
