"""Trees of files for tests, and ctx run in them as a user would run it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"


def golden(name: str) -> dict[str, Any]:
    """Return the recorded results of Pi 1.6.0 in a file."""
    loaded: dict[str, Any] = json.loads((GOLDEN / name).read_text("utf-8"))
    return loaded


def plant(root: Path, files: Mapping[str, str | bytes], links: Mapping[str, str] | None = None) -> Path:
    """Make files and links below a folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    for name, target in (links or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    return root


class Ran(NamedTuple):
    """What a command printed and returned."""

    code: int
    out: str
    err: str


def ctx(*words: str | Path, cwd: Path, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Ran:
    """Run ctx in a folder to its end, by default with a home that does not exist; what is text is returned as text."""
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": "/nowhere", "LC_ALL": "C.UTF-8", **(env or {})}
    command = [sys.executable, "-m", "ctxkit", *map(str, words)]
    done = subprocess.run(
        command, cwd=cwd, env=environ, input=(stdin or "").encode(), capture_output=True, timeout=60, check=False
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def git(*words: str | Path, cwd: Path) -> None:
    """Run git with nobody's settings."""
    environ = {
        "PATH": "/usr/bin:/bin", "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip
    subprocess.run(["git", *map(str, words)], cwd=cwd, env=environ, check=True, capture_output=True)
