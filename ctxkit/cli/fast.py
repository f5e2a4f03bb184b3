"""Read a plain command line from the generated table, without importing Typer.

It answers only what it is sure of, exactly as Typer would, and returns None for all else: help, errors, bundled short
options, environment defaults. A property test holds both lanes to the same answer.
"""

from __future__ import annotations

from ctxkit.cli._table import TABLE
from ctxkit.cli.values import PARSERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def parse(argv: list[str], environ: Iterable[str]) -> tuple[str, dict[str, object]] | None:
    """Return the command's name and its arguments, or None where only Typer can say what argv means.

    `environ` are the names of the environment variables: those that set defaults of this command are left to Typer.
    """
    name = argv[0] if argv else ""
    words = 1
    if name not in TABLE:
        name, words = " ".join(argv[:2]), 2
    if name not in TABLE:
        return None
    options, operands, required, exclusive, takes_a_command = TABLE[name]
    prefix = "CTX_" + name.upper().replace(" ", "_").replace("-", "_") + "_"
    if any(variable.startswith((prefix, "_CTX_COMPLETE")) for variable in environ):
        return None
    found: dict[str, object] = {}
    rest: list[str] = []
    at = words
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "--":
            rest += argv[at:]
            break
        if word[:1] != "-" or word == "-":
            rest.append(word)
            if takes_a_command:
                rest += argv[at:]
                break
            continue
        option, equals, value = word.partition("=")
        if option not in options or (equals and not word.startswith("--")):
            return None
        destination, kind, repeats = options[option]
        if kind == "flag":
            if equals:
                return None
            found[destination] = True
            continue
        if not equals:
            if at == len(argv) or (argv[at][:1] == "-" and argv[at] != "-"):
                return None
            value = argv[at]
            at += 1
        try:
            read = _read(kind, value)
        except ValueError:
            return None
        if repeats:
            found.setdefault(destination, []).append(read)  # type: ignore[attr-defined]
        else:
            found[destination] = read
    if any(destination not in found for destination in required):
        return None
    if any(sum(destination in found for destination in group) > 1 for group in exclusive):
        return None
    return _with_operands(name, found, rest, operands)


def _read(kind: object, value: str) -> object:
    """Read one value; a ValueError leaves the command line to Typer."""
    if not value:
        raise ValueError
    if kind == "text":
        return value
    if isinstance(kind, str):
        return PARSERS[kind](value)
    assert isinstance(kind, tuple)
    if kind[0] == "int":
        if not (value.isascii() and value.isdecimal()) or len(value) > 18:
            raise ValueError
        number, least, most = int(value), kind[1], kind[2]
        if (least is not None and number < least) or (most is not None and number > most):
            raise ValueError
        return number
    if value not in kind[1]:
        raise ValueError
    return value


def _with_operands(
    name: str, found: dict[str, object], rest: list[str], operands: tuple[tuple[str, bool, bool], ...]
) -> tuple[str, dict[str, object]] | None:
    for destination, required, many in operands:
        if not rest:
            if required:
                return None
            continue
        if many:
            found[destination] = rest
            rest = []
        else:
            found[destination], rest = rest[0], rest[1:]
        if "" in rest or found[destination] in ("", [""]):
            return None
    return None if rest else (name, found)
