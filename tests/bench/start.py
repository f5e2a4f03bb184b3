"""Start-up: CPU time of `ctx` against `python -c pass` of the same interpreter, minimum of interleaved runs.

python tests/bench/start.py PREFIX      PREFIX is an ordinary (not editable) installation: PREFIX/bin/ctx
"""

from __future__ import annotations

import os
import sys

ROUNDS = 40


def cpu(argv: list[str]) -> float:
    """Run a command on empty input; return its user and system time in seconds."""
    null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=null)
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime


def main(prefix: str) -> None:
    """Print a table of ratios."""
    python, ctx = f"{prefix}/bin/python", f"{prefix}/bin/ctx"
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH"):
        os.environ.pop(name, None)
    cases = {
        "python -c pass": [python, "-c", "pass"],
        "ctx truncate": [ctx, "truncate"],
        "ctx --version": [ctx, "--version"],
        "ctx run true": [ctx, "run", "true"],
        "ctx truncate --help": [ctx, "truncate", "--help"],
    }
    best = dict.fromkeys(cases, 9.0)
    for _ in range(ROUNDS):
        for name, argv in cases.items():
            best[name] = min(best[name], cpu(argv))
    floor = best["python -c pass"]
    for name, seconds in best.items():
        print(f"{name:22} {seconds * 1000:7.1f} ms {seconds / floor:6.2f} x")


if __name__ == "__main__":
    main(sys.argv[1])
