"""`ctx context` against Pi's own load and build in Node.js, process start included in both.

python tests/bench/context.py PREFIX SESSION NODE FOLDER
    PREFIX is an ordinary installation of ctx, FOLDER one that has Pi 1.6.0 in its node_modules
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 7
BUILD = """
import { SessionManager } from "@earendil-works/pi-coding-agent";
console.log(JSON.stringify(SessionManager.open(process.argv[2]).buildSessionContext().messages.length));
"""


def seconds(argv: list[str]) -> float:
    """Run a command; return its wall time."""
    began = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def main(prefix: str, session: str, node: str, folder: str) -> None:
    """Print both times and their ratio."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        script, copy = Path(name) / "build.mjs", Path(name) / "session.jsonl"
        script.write_text(BUILD, "utf-8")
        best = {"ctx": 9e9, "Pi": 9e9}
        for _ in range(ROUNDS):
            copy.write_bytes(Path(session).read_bytes())  # Pi rewrites an old session when it opens it
            best["ctx"] = min(best["ctx"], seconds([f"{prefix}/bin/ctx", "context", "-q", str(copy)]))
            best["Pi"] = min(best["Pi"], seconds([node, str(script), str(copy)]))
    for label, took in best.items():
        print(f"{label:4} {took:7.3f} s {took / best['Pi']:6.2f} x")


if __name__ == "__main__":
    main(*sys.argv[1:5])
