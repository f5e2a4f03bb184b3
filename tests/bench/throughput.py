"""Throughput of `ctx truncate` against tail, head, cat, tee and wc, in the same run; and its peak memory.

python tests/bench/throughput.py PREFIX [GIGABYTES]      PREFIX is an ordinary installation: PREFIX/bin/ctx
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 3


def write_log(path: Path, size: int) -> None:
    """Write a log of about 65 bytes a line."""
    line = b"2026-11-30T12:00:00Z INFO worker[%04d] request served in 12 ms\n"
    block = b"".join(line % (number % 10_000) for number in range(16_000))
    with path.open("wb") as file:
        for _ in range(size // len(block) + 1):
            file.write(block)


def seconds(command: str) -> float:
    """Run a shell command; return its wall time."""
    began = time.perf_counter()
    subprocess.run(["bash", "-c", command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def peak(command: str) -> float:
    """Run a pipeline whose last program prints its own peak memory; return it in MB."""
    done = subprocess.run(["bash", "-c", command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return int(done.stderr.split()[-1]) / 1024


def main(prefix: str, gigabytes: float) -> None:
    """Print the tables."""
    os.environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = name
        log, ctx = folder / "big.log", f"{prefix}/bin/ctx"
        write_log(log, int(gigabytes * (1 << 30)))
        pipes = {
            "cat | tail -n 2000 | tail -c 51200": f"cat {log} | tail -n 2000 | tail -c 51200",
            "cat | ctx truncate --spill never": f"cat {log} | {ctx} truncate --spill never",
            "cat | ctx truncate --head --spill never": f"cat {log} | {ctx} truncate --head --spill never",
            "cat | cat": f"cat {log} | cat",
        }
        files = {
            "wc -l FILE": f"wc -l {log}",
            "ctx truncate FILE": f"{ctx} truncate {log}",
            "ctx truncate --notice none FILE": f"{ctx} truncate --notice none {log}",
            "tail -n 2000 FILE": f"tail -n 2000 {log}",
            "head -n 2000 FILE": f"head -n 2000 {log}",
        }
        spills = {
            "cat | tee COPY | tail": f"cat {log} | tee {folder}/copy | tail -n 2000; rm {folder}/copy",
            "cat | ctx truncate (spill)": f"cat {log} | {ctx} truncate; rm -r {folder}/ctxkit",
        }
        for group in (pipes, files, spills):
            best = dict.fromkeys(group, 1e9)
            for _ in range(ROUNDS):
                for label, command in group.items():
                    best[label] = min(best[label], seconds(command))
            first = next(iter(best.values()))
            for label, took in best.items():
                print(f"{label:42} {took:7.3f} s {took / first:6.2f} x")
            print()
        if shutil.which("/usr/bin/time"):
            measure = f"/usr/bin/time -f %M {ctx} truncate"
            print(f"{'peak memory, log':42} {peak(f'cat {log} | {measure}'):7.1f} MB")
            one_line = f"head -c {log.stat().st_size} /dev/zero | tr '\\0' x"
            print(f"{'peak memory, one line':42} {peak(f'{one_line} | {measure}'):7.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
