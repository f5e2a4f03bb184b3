"""The Typer lane by itself, through Typer's own runner, with standard streams that are no descriptors."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ctxkit import __version__
from ctxkit.cli import app, commands
from ctxkit.cli._table import SUMMARIES
from ctxkit.errors import UsageError


def invoke(*words: str, stdin: str = "") -> tuple[int, str]:
    """Run ctx in this process; return exit code and standard output."""
    done = CliRunner().invoke(app.app, list(words), input=stdin, catch_exceptions=False)
    return done.exit_code, done.stdout


def test_truncate() -> None:
    code, out = invoke("truncate", "-n2", "--spill=never", stdin="1\n2\n3\n")
    assert (code, out) == (0, "2\n3\n\n[Showing lines 2-3 of 3. Full output not saved]\n")
    assert invoke("truncate", "-n", "2", stdin="1\n2\n") == (0, "1\n2\n")


def test_unusual_spellings() -> None:
    """Bundled short options and a value that looks like an option are left to Typer, and mean the same."""
    assert invoke("truncate", "-qn1", "--notice=none", "--head", stdin="1\n2\n") == (0, "1\n")
    assert invoke("truncate", "--json", "-c", "1kB", stdin="a")[1].startswith('{"schema": 1, "content": "a"')


def test_exit_code_of_the_command() -> None:
    assert invoke("truncate", "-n1", "--exit-code", "--spill=never", "--notice=none", stdin="1\n2\n") == (1, "2\n")


def test_json_of_tokens() -> None:
    code, out = invoke("tokens", "--json", stdin="hello world\n")
    assert (code, json.loads(out)["tokens"]) == (0, 3)


def test_version_and_help() -> None:
    assert invoke("--version") == (0, f"ctx (ctxkit) {__version__}\n")
    code, out = invoke("--help")
    assert code == 0
    for name, summary in SUMMARIES.items():
        if " " not in name:
            assert name in out
            assert summary[:20] in out


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_help_of_every_command(name: str) -> None:
    code, out = invoke(*name.split(), "--help")
    assert code == 0
    assert out.startswith(f"Usage: root {name} [OPTIONS]") or f" {name} [OPTIONS]" in out.split("\n")[0]


def test_errors_are_ours() -> None:
    with pytest.raises(UsageError, match="--tail and --head do not go together"):
        invoke("truncate", "--head", "--tail")
    with pytest.raises(UsageError, match="no such command 'truncat'"):
        app.run(["truncat"])
