"""The Typer lane: help, errors and unusual spellings. A command is imported and built when it is named.

Typer signatures are the only declaration of the command line; all else (table, man pages, completions) is generated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ctxkit import process
from ctxkit.cli import commands, options
from ctxkit.cli._table import SUMMARIES
from ctxkit.errors import UsageError

SETTINGS = {"help_option_names": ["-h", "--help"]}


def run(argv: list[str]) -> int:
    """Run a command line and return its exit code. Raises UsageError with Typer's words."""
    try:
        group = get_command(app)
        # Not group.main(argv): that would take the signals and broken pipes that are ours to handle.
        with group.make_context("ctx", list(argv)) as called:
            group.invoke(called)
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "ctx"
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        if message.startswith("Usage:"):  # no command at all: the help, but as an error
            process.say(message)
            return UsageError.exit_code
        process.begin(path)
        message = message[:1].lower() + message[1:].rstrip(".")
        raise UsageError(message, f"see '{path} --help'") from None
    return 0


def declared(name: str) -> Callable[..., Any]:
    """Return the function behind `ctx NAME`, with the names in its annotations resolvable."""
    function = commands.load(name)
    names = vars(import_module(function.__module__))
    for shared in options.__all__:
        names.setdefault(shared, getattr(options, shared))
    return function


def build(name: str) -> TyperCommand:
    """Return the Typer command behind `ctx NAME`."""
    function = declared(name)

    @wraps(function)
    def call(**arguments: Any) -> None:
        raise typer.Exit(commands.run(name, arguments))

    class Command(TyperCommand):
        def get_help_option(self, ctx: Any) -> Any:
            return _printed_by_us(super().get_help_option(ctx))

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            rest: list[str] = super().parse_args(ctx, args)
            for group in commands.exclusive(name):
                _settle(ctx, group)
            return rest

    settings = {**SETTINGS, "allow_interspersed_args": not commands.takes_a_command(name)}
    solo = typer.Typer(add_completion=False, rich_markup_mode=None)
    solo.command(name.rpartition(" ")[2], cls=Command, context_settings=settings)(call)
    command = get_command(solo)
    assert isinstance(command, TyperCommand)
    for parameter in command.params:
        parameter.show_envvar = False  # type: ignore[attr-defined]  # the man page says it once for all
        if parameter.opts[0].startswith("-") and parameter.name != "help":
            parameter.envvar = variable(name, max(parameter.opts, key=len))
    return command


def _printed_by_us(option: Any) -> Any:
    """Let `--help` write as all else does: a full disk or a closed descriptor is an error."""

    def show(context: Any, parameter: Any, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            process.write(f"{context.get_help()}\n".encode())
            context.exit()

    if option is not None:
        option.callback = show
    return option


def variable(name: str, option: str) -> str:
    """Return the environment variable that sets the default of an option of `ctx NAME`."""
    return f"CTX_{name}_{option.lstrip('-')}".upper().replace(" ", "_").replace("-", "_")


def _settle(context: Any, group: tuple[str, ...]) -> None:
    """Allow one option of a group; one that was typed beats one that the environment sets."""
    sources = {name: context.get_parameter_source(name).name for name in group}
    typed = [name for name in group if sources[name] == "COMMANDLINE"]
    if len(typed) > 1:
        names = [parameter.opts[0] for parameter in context.command.params if parameter.name in typed]
        process.begin(context.command_path)
        raise UsageError(f"{' and '.join(names)} do not go together")
    for name in group:
        if typed and name not in typed:
            context.params[name] = next(p.default for p in context.command.params if p.name == name)


class Commands(TyperGroup):
    """A group whose commands are built when they are named."""

    prefix = ""  # of the names in the table: "" or "tree "

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        inside = [name.removeprefix(self.prefix) for name in commands.COMMANDS if name.startswith(self.prefix)]
        # Typer takes its "Did you mean" from here.
        self.commands: dict[str, Any] = dict.fromkeys(name.partition(" ")[0] for name in inside)

    def get_help_option(self, ctx: Any) -> Any:
        return _printed_by_us(super().get_help_option(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            return None
        name = self.prefix + cmd_name
        return build(name) if name in commands.COMMANDS else _group(name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, SUMMARIES[self.prefix + name]) for name in self.commands]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _group(name: str) -> TyperGroup:
    """Return the group behind `ctx NAME`, whose help is the docstring of its module."""
    inside = type("Subcommands", (Commands,), {"prefix": f"{name} "})
    solo = typer.Typer(cls=inside, add_completion=False, rich_markup_mode=None, no_args_is_help=True)
    summary = SUMMARIES[name]

    def group() -> None:
        pass

    group.__doc__ = summary
    solo.callback(context_settings=SETTINGS)(group)
    command = get_command(solo)
    assert isinstance(command, TyperGroup)
    return command


app = typer.Typer(
    cls=Commands, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True
)


def _version(wanted: bool) -> None:
    if wanted:
        raise typer.Exit(commands.version())


@app.callback(context_settings=SETTINGS)
def ctx(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Coreutils for LLM context: filters that decide what a model gets to see.

    Each reads text or a session file on standard input or by name, writes text or JSON, and works in a pipe, in a
    script and when an agent calls it.
    """
