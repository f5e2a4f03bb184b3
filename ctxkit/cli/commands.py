"""The table of commands, how one is loaded, and how what it returns is rendered."""

from __future__ import annotations

from importlib import import_module

from ctxkit import __version__, process
from ctxkit.clean import to_utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from ctxkit.cli.options import Result

# In the order of the help. `ctx tree show` is the function `show` of cli/tree.py; `ctx run` is `command` of cli/run.py.
COMMANDS = (
    "truncate",
    "run",
    "tokens",
    "prompt build",
    "prompt files",
    "skills list",
    "skills show",
    "skills check",
    "template list",
    "template expand",
    "tree show",
    "tree lca",
    "tree path",
    "tree branches",
    "tree abandoned",
    "tree goto",
    "tree fork",
    "tree append",
    "tree label",
    "context",
    "budget",
    "fit",
    "session info",
    "session check",
    "session repair",
)


def load(name: str) -> Callable[..., Result]:
    """Return the function behind `ctx NAME`."""
    module, _, function = name.partition(" ")
    loaded: Callable[..., Result] = getattr(import_module(f"ctxkit.cli.{module}"), function or "command")
    return loaded


def exclusive(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the groups of options of `ctx NAME` of which only one may be given."""
    return getattr(import_module(f"ctxkit.cli.{name.partition(' ')[0]}"), "EXCLUSIVE", ())


def takes_a_command(name: str) -> bool:
    """Say whether the operands of `ctx NAME` are a command line of their own, whose options are not ours."""
    return bool(getattr(import_module(f"ctxkit.cli.{name.partition(' ')[0]}"), "TAKES_A_COMMAND", False))


def run(name: str, arguments: dict[str, object]) -> int:
    """Call a command and render its result: JSON values, one a line, or nothing. Return its exit code."""
    process.begin(f"ctx {name}", quiet=bool(arguments.get("quiet")))
    result = load(name)(**arguments)
    return result if isinstance(result, int) else _print_json(result)


def version() -> int:
    """Print the name of the command, the name of the package, and the version."""
    process.write(f"ctx (ctxkit) {__version__}\n".encode())
    return 0


def _print_json(values: Generator[dict[str, Any], None, int]) -> int:
    while True:
        try:
            value = next(values)
        except StopIteration as end:
            return int(end.value or 0)
        import json

        line = json.dumps(value, ensure_ascii=False, allow_nan=False)
        try:
            process.write(to_utf8(line) + b"\n")
        except BaseException as error:
            values.throw(error)  # let the command clean up
            raise
