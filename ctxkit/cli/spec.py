"""Read the Typer declarations as plain values: the one input of every generator.

Only signatures, annotations and docstrings are read, never Typer's command objects, whose attributes change from
release to release.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args, get_origin

from typer.utils import get_params_from_function

from ctxkit.cli import commands
from ctxkit.cli.app import declared
from ctxkit.cli.values import PARSERS


class Param(NamedTuple):
    """An option, or an operand if it has no flags."""

    dest: str
    flags: tuple[str, ...]
    metavar: str
    help: str
    kind: Any  # "flag", "text", the name of a parser, ("int", least, most) or ("choice", values)
    default: str  # as the help shows it, "" if it does not
    repeats: bool
    required: bool


class Command(NamedTuple):
    """A command: its name after `ctx`, its one-line summary, its description and its parameters."""

    name: str
    summary: str
    text: str
    params: tuple[Param, ...]
    exclusive: tuple[tuple[str, ...], ...]
    takes_a_command: bool

    @property
    def options(self) -> tuple[Param, ...]:
        """The parameters with flags."""
        return tuple(param for param in self.params if param.flags)

    @property
    def operands(self) -> tuple[Param, ...]:
        """The parameters without flags, in their order."""
        return tuple(param for param in self.params if not param.flags)


def all_commands() -> list[Command]:
    """Return every command, in the order of the table."""
    return [_command(name) for name in commands.COMMANDS]


def group_summary(name: str) -> str:
    """Return the summary of a group of commands: the first line of its module, after `ctx NAME: `."""
    doc = import_module(f"ctxkit.cli.{name}").__doc__ or ""
    line = doc.partition("\n")[0].partition(": ")[2]
    return line[:1].upper() + line[1:]


def _command(name: str) -> Command:
    function = declared(name)
    summary, _, text = (inspect.getdoc(function) or "").partition("\n\n")
    params = tuple(_param(meta) for meta in get_params_from_function(function).values())
    return Command(name, summary, text, params, commands.exclusive(name), commands.takes_a_command(name))


def _param(meta: Any) -> Param:
    info = meta.default  # typer.models.OptionInfo or ArgumentInfo
    flags = tuple(info.param_decls or ()) if type(info).__name__ == "OptionInfo" else ()
    annotation = meta.annotation
    default = info.default
    shown = "" if default in (None, False, ...) or info.show_default is False else str(default)
    return Param(
        dest=meta.name,
        flags=flags,
        metavar=info.metavar or meta.name.upper(),
        help=info.help or "",
        kind=_kind(annotation, info),
        default=shown,
        repeats="list" in str(annotation),
        required=default is ...,
    )


def _kind(annotation: Any, info: Any) -> Any:
    if info.parser is not None:
        if info.parser.__name__ not in PARSERS:
            raise TypeError(f"the parser {info.parser.__name__} is not in values.PARSERS")
        return info.parser.__name__
    alternatives = [part for part in get_args(annotation) if part is not type(None)] or [annotation]
    if get_origin(annotation) is Literal:
        return ("choice", get_args(annotation))
    if get_origin(alternatives[0]) is Literal:
        return ("choice", get_args(alternatives[0]))
    plain = alternatives[0]
    if plain is bool:
        return "flag"
    if plain is int:
        return ("int", info.min, info.max)
    if plain is str or get_args(plain) == (str,):
        return "text"
    raise TypeError(f"no lane knows the type {annotation}")
