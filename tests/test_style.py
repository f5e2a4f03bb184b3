"""The linter, the formatter and the type checker have nothing to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKS = {
    "lint": ["ruff", "check", "--quiet", "."],
    "format": ["ruff", "format", "--check", "--quiet", "."],
    "types": ["mypy", "--no-error-summary"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_clean(check: str) -> None:
    done = subprocess.run([sys.executable, "-m", *CHECKS[check]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_and_ci_run_the_same_command() -> None:
    """CI takes the command out of the README, so there must be exactly one such line."""
    lines = [line for line in (ROOT / "README.md").read_text("utf-8").split("\n") if line.startswith("python3 -m venv")]
    assert len(lines) == 2
    assert [line.endswith("pytest -q") for line in lines] == [False, True]
    assert 'grep "^python3 -m venv .*pytest" README.md' in (ROOT / ".ci/run").read_text("utf-8")
