"""The generated files are up to date, and the programs they are for accept them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctxkit.cli import commands, generate, spec

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "man").glob("*.1"))


def need(program: str) -> str:
    """Return the path of a program, or skip the test."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def test_nothing_is_stale() -> None:
    stale = [path for path, text in generate.artefacts() if (ROOT / path).read_text("utf-8") != text]
    assert stale == [], "run: python -m ctxkit.cli.generate"


def test_check_names_what_is_stale_and_fails(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(
        ROOT,
        copy,
        ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis", ".mypy_cache", ".ruff_cache", "golden", "data"),
    )
    page = copy / "man" / "ctx-run.1"
    page.write_text(page.read_text("utf-8").replace("timeout", "timeuot"), "utf-8")
    check = [sys.executable, "-m", "ctxkit.cli.generate", "--check"]
    done = subprocess.run(check, cwd=copy, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "man/ctx-run.1\n")
    subprocess.run(check[:-1], cwd=copy, capture_output=True, check=True)
    assert subprocess.run(check, cwd=copy, capture_output=True).returncode == 0


def test_no_page_is_left_over() -> None:
    names = {"ctx.1", *(f"ctx-{name.split()[0]}.1" for name in commands.COMMANDS)}
    assert {page.name for page in PAGES} == names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_renders_without_a_warning(page: Path) -> None:
    done = subprocess.run([need("man"), "--warnings", "-l", str(page)], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
    groups = {f"ctx-{name.split()[0]}.1" for name in commands.COMMANDS if " " in name}
    for section in ("NAME", "SYNOPSIS", "COMMANDS" if page.name in groups else "OPTIONS"):
        assert f"\n{section}\n" in done.stdout


@pytest.mark.parametrize("command", spec.all_commands(), ids=lambda command: command.name)
def test_page_names_every_option(command: spec.Command) -> None:
    page = (ROOT / "man" / f"ctx-{command.name.split()[0]}.1").read_text("utf-8")
    missing = [
        flag for p in command.options for flag in p.flags if f"\\fB{flag.replace('-', chr(92) + '-')}\\fR" not in page
    ]
    assert missing == []
    assert all(param.help.endswith(".") for param in command.params), "option help is a sentence"


@pytest.mark.parametrize(
    ("shell", "path"), [("bash", "completions/ctx.bash"), ("zsh", "completions/_ctx"), ("fish", "completions/ctx.fish")]
)
def test_shell_accepts_its_completion(shell: str, path: str) -> None:
    done = subprocess.run([need(shell), "-n", str(ROOT / path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def complete(*words: str, cwd: Path) -> set[str]:
    """Return what bash offers at the end of a command line."""
    line = " ".join(words)
    script = f"""
source {ROOT}/completions/ctx.bash
COMP_WORDS=({" ".join(f"'{word}'" for word in words)}) COMP_CWORD={len(words) - 1} COMP_LINE='{line}'
_ctx
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run([need("bash"), "-c", script], capture_output=True, text=True, cwd=cwd, check=True)
    assert done.stderr == ""
    return set(done.stdout.split("\n")) - {""}


def test_bash_completes(tmp_path: Path) -> None:
    (tmp_path / "two words.txt").touch()
    assert complete("ctx", "trunc", cwd=tmp_path) == {"truncate"}
    assert "run" in complete("ctx", "", cwd=tmp_path)
    assert complete("ctx", "truncate", "--sp", cwd=tmp_path) == {"--spill", "--spill-dir"}
    assert complete("ctx", "truncate", "--notice", "std", cwd=tmp_path) == {"stdout", "stderr"}
    assert complete("ctx", "truncate", "two", cwd=tmp_path) == {"two words.txt"}
    assert complete("ctx", "truncate", "--spill-dir", "t", cwd=tmp_path) == {"two words.txt"}
    assert complete("ctx", "truncate", "--lines", "", cwd=tmp_path) == set()
    assert "printf" in complete("ctx", "run", "print", cwd=tmp_path)
    assert complete("ctx", "skills", "l", cwd=tmp_path) == {"list"}
    assert complete("ctx", "skills", "list", "--fo", cwd=tmp_path) == {"--format"}
    assert complete("ctx", "skills", "list", "--format", "", cwd=tmp_path) == {"table", "prompt", "json"}


def test_fish_completes(tmp_path: Path) -> None:
    lines = ("ctx trunc", "ctx truncate --notice ", "ctx skills sh", "ctx skills list --format ")
    script = "; ".join([f"source {ROOT}/completions/ctx.fish", *(f"complete -C '{line}'" for line in lines)])
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([need("fish"), "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environ)
    offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert offered[0] == "truncate"
    assert {"stdout", "stderr", "none", "show", "table", "prompt", "json"} <= set(offered)


def test_zsh_completes(tmp_path: Path) -> None:
    """Zsh completes only in a terminal, so it gets one."""
    zsh = need("zsh")
    script = f"""
import os, pty, select, sys, time
pid, fd = pty.fork()
if not pid:
    os.execve({zsh!r}, ["zsh", "-f", "-i"], {{"HOME": {str(tmp_path)!r}, "PATH": "/usr/bin:/bin", "TERM": "dumb"}})
def until(text):
    seen, end = b"", time.time() + 20
    while text not in seen and time.time() < end:
        if select.select([fd], [], [], 0.2)[0]:
            seen += os.read(fd, 65536)
    return seen
os.write(fd, b"fpath=({ROOT}/completions $fpath); autoload -U compinit; compinit -u -d {tmp_path}/dump\\n")
os.write(fd, b"print rea''dy\\n")
until(b"ready")
os.write(fd, b"ctx trunc\\t")
print(until(b"ctx truncate").decode(errors="replace"))
os.write(fd, b"\\x03exit\\n")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert "ctx truncate" in done.stdout
