"""An ordinary installation: what the wheel brings along, and that its start is light."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the checkout into a fresh environment, without a network and without its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    source = folder / "source"
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in files.stdout.decode().split("\0"):
        if name and not name.startswith("tests/") and (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input"]
    alone = ["--no-deps", "--no-index"]
    build = [*pip, "wheel", *alone, "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    install = [*pip, "--python", str(python), "install", *alone, "--find-links", str(folder), "ctxkit-cli"]
    for command in (build, install):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def test_the_command_works_without_its_dependencies(installed: Path) -> None:
    """The fast lane needs nothing but Python: neither Typer nor anything else is there."""
    done = subprocess.run([installed / "bin" / "ctx", "truncate", "-n", "1"], input=b"a\nb\n", capture_output=True,
                          env={"XDG_STATE_HOME": str(installed)})  # fmt: skip
    assert done.stdout.startswith(b"b\n\n[Showing lines 2-2 of 2. Full output: ")
    assert done.stderr == b""


def test_the_start_script_is_light(installed: Path) -> None:
    """pip before 24 wrote start scripts that import `re`."""
    script = (installed / "bin" / "ctx").read_text("utf-8")
    assert "import re" not in script
    assert "from ctxkit.__main__ import main" in script


def test_pages_and_completions_are_installed(installed: Path) -> None:
    share = installed / "share"
    for page in (ROOT / "man").glob("*.1"):
        assert (share / "man" / "man1" / page.name).read_bytes() == page.read_bytes()
    for source, target in {
        "ctx.bash": "bash-completion/completions/ctx",
        "_ctx": "zsh/site-functions/_ctx",
        "ctx.fish": "fish/vendor_completions.d/ctx.fish",
    }.items():
        assert (share / target).read_bytes() == (ROOT / "completions" / source).read_bytes()


def test_the_whole_package_is_installed(installed: Path) -> None:
    found = next((installed / "lib").glob("python*/site-packages/ctxkit"))
    expected = {path.relative_to(ROOT / "ctxkit") for path in (ROOT / "ctxkit").rglob("*") if path.is_file()}
    there = {path.relative_to(found) for path in found.rglob("*") if path.is_file()}
    ignore = {path for path in expected | there if "__pycache__" in path.parts}
    assert expected - ignore == there - ignore


def test_version_and_package_name(installed: Path) -> None:
    done = subprocess.run(
        [installed / "bin" / "ctx", "--version"], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.startswith("ctx (ctxkit) ")
