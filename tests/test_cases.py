"""Every transcript is run: the console blocks of README, examples/ and tests/cases/ print what they show.

A line `$ command` is run by bash, `> ` continues it, the lines below are its output, standard error included. The
blocks of a file share one folder, with the sessions of examples/ in it, and one shell. Spill names are random, so they
are shown as `ctx-0123456789abcdef`.
"""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "examples").glob("*.md")), *sorted((ROOT / "tests/cases").glob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(text: str) -> list[tuple[str, str]]:
    """Return the commands of a transcript and what each should print."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(text):
        assert block.startswith("$ "), f"a console block begins with a command: {block[:40]!r}"
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith("> ") and not found[-1][1]:
                found[-1] = (found[-1][0] + line[2:], "")
            else:
                found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def play(commands: list[str], folder: Path) -> list[str]:
    """Run the commands in one shell; return what each printed."""
    home = folder / "home"
    programs = folder / "bin"
    work = folder / "work"
    for made in (home, programs, work):
        made.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")  # where README has them
    for session in (ROOT / "examples").glob("*.jsonl"):
        shutil.copy(session, work)
    ctx = programs / "ctx"
    ctx.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ctxkit "$@"\n')
    ctx.chmod(0o755)
    (programs / "python3").symlink_to(sys.executable)
    environ = {
        "HOME": str(home),
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
    }
    mark = "printf '\\001'"
    body = "".join(f"{command}\n__status=$?; {mark}; (exit $__status)\n" for command in commands)
    done = subprocess.run(
        ["bash", "-c", body], cwd=work, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=120,
    )  # fmt: skip
    text = done.stdout.decode("utf-8", "replace").replace(str(home), "/home/you").replace(str(work), "/work")
    text = re.sub(r"ctx-[0-9a-f]{16}\.txt", "ctx-0123456789abcdef.txt", text)
    return text.split("\x01")[: len(commands)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_transcript(path: Path, tmp_path: Path) -> None:
    expected = steps(path.read_text("utf-8"))
    assert expected, "a transcript without a command tests nothing"
    printed = play([command for command, _ in expected], tmp_path)
    for (command, output), got in zip(expected, printed, strict=True):
        assert got.rstrip("\n") == output.rstrip("\n"), command


def test_python_in_the_readme() -> None:
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried > 0
    assert failed == 0


def test_every_command_has_examples() -> None:
    from ctxkit.cli.commands import COMMANDS

    names = {name.split()[0] for name in COMMANDS}
    assert {path.stem for path in FILES} >= names


def test_a_wrong_transcript_fails(tmp_path: Path) -> None:
    assert play(["echo 1", "false", "echo $?"], tmp_path) == ["1\n", "", "1\n"]
    assert steps("```console\n$ a\n> b\nc\n```\n") == [("a\nb\n", "c\n")]
