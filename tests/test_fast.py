"""Both lanes give the same answer: what the table lane accepts, Typer understands in exactly the same way."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxkit.cli import app, commands, fast, spec
from ctxkit.cli._table import TABLE
from ctxkit.errors import CtxError

EVERY = {command.name: command for command in spec.all_commands()}
NUMBERS = ["0", "1", "5", "007", "1_0", "+3", " 4", "٣", "5.0", "1e3", "-1", "99999999999999999999"]
VALUES = [*NUMBERS, "10K", "2kB", "1MB", "3G", "1k", "none", "None", "1.5s", "2m", ".", "ms", "1.", ".5s", "x", "a=b"]
WORDS = ["a.txt", "-", "--", "", " ", "é", "--help", "-h", "--version", "-5", "--no-such", "-qn", "-n5", "a b"]


def typer_says(name: str, argv: list[str]) -> dict[str, Any] | None:
    """Return the arguments that Typer would call the command with, None for help or an error."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            parsed = app.build(name).make_context(name, list(argv))
        except (Exception, SystemExit) as end:
            assert isinstance(end, CtxError | SystemExit) or "typer" in type(end).__module__, end
            return None
    return {key: list(value) if isinstance(value, tuple) else value for key, value in parsed.params.items()}


def check(name: str, argv: list[str]) -> bool:
    """Compare both lanes; return whether the fast one answered."""
    answer = fast.parse([*name.split(), *argv], ())
    if answer is None:
        return False
    got_name, found = answer
    assert got_name == name
    expected = typer_says(name, argv)
    assert expected is not None, f"the table lane accepts what Typer refuses: {argv}"
    defaults = {param.dest: _default(name, param) for param in EVERY[name].params}
    assert {**defaults, **found} == {key: _plain(value) for key, value in expected.items() if key in defaults}, argv
    return True


def _default(name: str, param: spec.Param) -> Any:
    import inspect

    return inspect.signature(commands.load(name)).parameters[param.dest].default


def _plain(value: Any) -> Any:
    return None if value == [] else value


@st.composite
def command_lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a command and words that often, but not always, make sense for it."""
    name = draw(st.sampled_from(list(EVERY)))
    flags = [flag for param in EVERY[name].options for flag in param.flags]
    choices = [
        value
        for param in EVERY[name].options
        if isinstance(param.kind, tuple) and param.kind[0] == "choice"
        for value in param.kind[1]
    ]
    with_value = st.tuples(st.sampled_from(flags), st.sampled_from(VALUES + choices))
    word = st.one_of(
        st.sampled_from(flags).map(lambda flag: [flag]),
        st.sampled_from(WORDS).map(lambda word: [word]),
        st.sampled_from(VALUES + choices).map(lambda value: [value]),
        with_value.map(list),
        with_value.map(lambda pair: ["=".join(pair)]),
        with_value.map(lambda pair: ["".join(pair)]),
    )
    return name, [part for parts in draw(st.lists(word, max_size=5)) for part in parts]


@settings(max_examples=1500)
@given(command_lines())
def test_lanes_agree(line: tuple[str, list[str]]) -> None:
    check(*line)


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_answered_by_the_table(name: str) -> None:
    """The comparison above is not empty: each option, with a good value, is taken by the fast lane."""
    good = {"limit": "10K", "duration": "1.5s", "text": "x", "flag": None}
    operands = ["a"] * sum(param.required for param in EVERY[name].operands)
    needed = [param for param in EVERY[name].options if param.required]
    for param in EVERY[name].options:
        rest = [word for other in needed if other is not param for word in (other.flags[0], "x")] + operands
        value = (
            good[param.kind] if isinstance(param.kind, str) else param.kind[1][0] if param.kind[0] == "choice" else "7"
        )
        for flag in param.flags:
            words = [flag] if value is None else [flag, value]
            assert check(name, [*words, *rest]), words
            if value is not None and flag.startswith("--"):
                assert check(name, [f"{flag}={value}", *rest])


def test_what_is_declined() -> None:
    decline = [
        [],
        ["--help"],
        ["nope"],
        ["truncate", "--help"],
        ["truncate", "-n5"],
        ["truncate", "-qn", "5"],
        ["truncate", "-n", "-5"],
        ["truncate", "-n"],
        ["truncate", "--lines="],
        ["truncate", "--head=1"],
        ["truncate", "--line", "5"],
        ["truncate", "--head", "--tail"],
        ["truncate", "--notice", "nowhere"],
        ["truncate", ""],
        ["run"],
        ["tree", "abandoned", "s.jsonl", "--from", "a"],
    ]
    assert [line for line in decline if fast.parse(line, ()) is not None] == []


def test_environment_defaults_are_left_to_typer() -> None:
    assert fast.parse(["truncate"], ["HOME", "CTX_RUN_LINES"]) is not None
    assert fast.parse(["truncate"], ["CTX_TRUNCATE_LINES"]) is None
    assert fast.parse(["truncate"], ["_CTX_COMPLETE"]) is None


def test_operands_after_a_double_dash_and_of_a_command() -> None:
    assert fast.parse(["truncate", "--", "-n"], ()) == ("truncate", {"files": ["-n"]})
    assert fast.parse(["run", "-q", "ls", "-q", "--", "x"], ()) == (
        "run",
        {"quiet": True, "words": ["ls", "-q", "--", "x"]},
    )
    assert fast.parse(["run", "--", "-q"], ()) == ("run", {"words": ["-q"]})


def test_every_command_takes_quiet() -> None:
    assert [name for name, (options, *_) in TABLE.items() if "--quiet" not in options] == []


def test_environment_default_and_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "CTX_TRUNCATE_HEAD", "1")
    monkeypatch.setitem(os.environ, "CTX_TRUNCATE_LINES", "7")
    assert typer_says("truncate", []) == {**(typer_says("truncate", ["--head"]) or {}), "lines": 7}
    typed = typer_says("truncate", ["--middle"])
    assert typed is not None
    assert (typed["head"], typed["middle"]) == (False, True)
