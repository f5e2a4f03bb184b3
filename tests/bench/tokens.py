"""Counting tokens against tiktoken in the same run: whole processes, hostile megabytes, throughput by kind of text.

python tests/bench/tokens.py [MEGABYTES]      with an interpreter that has ctxkit and tiktoken; needs no network

tiktoken gets its vocabulary from a cache folder that is filled from the shipped one: its files, byte for byte.
"""

from __future__ import annotations

import base64
import json
import mmap
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ctxkit import tokens

DATA = Path(tokens.__file__).parent / "data"
CACHED = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
OURS = f"""
import mmap, os, sys
from ctxkit import tokens
def map_data(name):
    with open({str(DATA)!r} + "/" + name, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
counter = tokens.find_encoding(sys.argv[1], map_data).counter()
while data := os.read(0, 65536):
    counter.add(data)
print(counter.total())
"""
THEIRS = """
import sys, tiktoken
text = sys.stdin.buffer.read().decode("utf-8", "replace")
print(len(tiktoken.get_encoding(sys.argv[1]).encode_ordinary(text)))
"""


def map_data(name: str) -> mmap.mmap:
    """Map a file of the package's data."""
    with (DATA / name).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def logs(chance: random.Random) -> str:
    """Return a line of a log."""
    stamp = f"2026-11-{chance.randint(1, 28):02}T{chance.randint(0, 23):02}:00:13.{chance.randint(0, 999):03}Z"
    return f"{stamp} INFO worker-{chance.randint(0, 7)} id={chance.getrandbits(64):016x} took={chance.random():.2f}ms\n"


def entries(chance: random.Random) -> str:
    """Return a line of a session."""
    text = f"Let me look at file_{chance.randint(0, 999)}.py and fix the failing test."
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "message", "id": f"{chance.getrandbits(32):08x}", "message": message}) + "\n"


def mixed(size: int) -> str:
    """Return logs, JSON and the code of Python's own library in turn."""
    chance = random.Random(2)
    sources = sorted(Path(os.__file__).parent.glob("*.py"))
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append("".join(logs(chance) for _ in range(150)))
        parts.append("".join(entries(chance) for _ in range(100)))
        parts.append(chance.choice(sources).read_text("utf-8", "replace")[:30_000])
        length += sum(map(len, parts[-3:]))
    return "".join(parts)[:size]


def run(script: str, name: str, source: Path) -> tuple[float, str]:
    """Count a file in a process of its own; return its CPU time in seconds and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with source.open("rb") as file:
        done = subprocess.run([sys.executable, "-c", script, name], stdin=file, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, done.stdout.decode().strip() or "panic"


def processes(folder: Path, mix: str) -> None:
    """Print what whole processes take."""
    bare = min(run("pass", "", Path(os.devnull))[0] for _ in range(20))
    print(f"CPU time of a process, start included; python -c pass: {bare * 1000:.0f} ms")
    for name in CACHED:
        for size in (1_000, 10_000, 50_000, 1_000_000, len(mix)):
            source = folder / "mix"
            source.write_text(mix[:size], "utf-8")
            rounds = 10 if size < 100_000 else 2
            results = [(run(OURS, name, source), run(THEIRS, name, source)) for _ in range(rounds)]
            assert len({printed for pair in results for _, printed in pair}) == 1, "counts differ"
            ours = min(pair[0][0] for pair in results)
            theirs = min(pair[1][0] for pair in results)
            print(
                f"  {name:12} {size:>9} bytes: {ours * 1000:6.0f} ms = {ours / bare:5.1f} x bare"
                f" = {ours / theirs:5.2f} x tiktoken"
            )


def hostile(folder: Path, mix: str) -> None:
    """Print what a megabyte of each kind takes, against a megabyte of mixed text."""
    size = 1_000_000
    chance = random.Random(1)
    kinds: dict[str, str | bytes] = {
        "mixed": mix[:size],
        "one letter": "a" * size,
        "spaces": " " * size,
        "newlines": "\n" * size,
        "base64": base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
        "digits": "7" * size,
        "signs": "=" * size,
        "nul": "\0" * size,
        "one ideograph": "中" * (size // 3),
        "emoji": "😀" * (size // 4),
        "two cases": "aA" * (size // 2),
        "random bytes": chance.randbytes(size),
        "random letters": "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=size)),
        "random ideographs": "".join(chr(chance.randint(0x4E00, 0x9FA5)) for _ in range(size // 3)),
    }
    print("CPU time for a megabyte in o200k_base, against mixed text and against tiktoken")
    usual = 0.0
    for kind, text in kinds.items():
        source = folder / "kind"
        source.write_bytes(text if isinstance(text, bytes) else text.encode())
        ours, count = min(run(OURS, "o200k_base", source) for _ in range(2))
        theirs, peer = run(THEIRS, "o200k_base", source)
        assert peer in (count, "panic"), kind
        usual = usual or ours
        against = f"{ours / theirs:5.2f} x tiktoken" if peer == count else "tiktoken panics"
        print(f"  {kind:18} {ours * 1000:6.0f} ms = {ours / usual:5.2f} x mixed, {against}")


def throughput(mix: str) -> None:
    """Print the speed of the pure engine and of tiktoken, both warm."""
    print("warm, MB/s: pure engine, tiktoken; o200k_base")
    kinds = {
        "mixed": mix[:2_000_000],
        "prose": "The model reads all of it at every step, and pays for it. " * 20_000,
        "Chinese": "模型每走一步都要把全部历史重新读一遍，所以必须有人决定哪些内容留下。" * 6_000,
        "Russian": "На каждом шаге модель заново читает всю историю. " * 10_000,
    }
    encoding = tokens.find_encoding("o200k_base", map_data)
    assert isinstance(encoding, tokens.Exact)
    peer = tokens.load_tiktoken(encoding.vocabulary)
    for kind, text in kinds.items():
        megabytes = len(text.encode()) / 1e6
        began = time.process_time()
        blocks = [text[at : at + 65_536] for at in range(0, len(text), 65_536)]
        for block in blocks:
            encoding.vocabulary.count(block)
        between = time.process_time()
        for block in blocks:
            peer.encode_ordinary(block)
        ended = time.process_time()
        print(f"  {kind:10} {megabytes / (between - began):6.1f} {megabytes / (ended - between):6.1f}")


def main(megabytes: float) -> None:
    """Print the tables."""
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(name, None)
    mix = mixed(int(megabytes * 1_000_000))
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        os.environ["TIKTOKEN_CACHE_DIR"] = path
        for name, cached in CACHED.items():
            encoding = tokens.find_encoding(name, map_data)
            assert isinstance(encoding, tokens.Exact)
            lines = (b"%s %d\n" % (base64.b64encode(t), rank) for rank, t in enumerate(encoding.vocabulary.tokens()))
            (folder / cached).write_bytes(b"".join(lines))
        processes(folder, mix)
        hostile(folder, mix)
    throughput(mix)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
