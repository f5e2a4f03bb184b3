"""Pi 1.6.0 itself opens what ctx wrote, with the same leaf and the same context.

Needs Node.js 22 or later (`node`, or the program that CTX_TEST_NODE names) and npm, which installs the real package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from shell import User

from ctxkit import context
from ctxkit.agents import pi

PACKAGE = "@earendil-works/pi-coding-agent@1.6.0"
GOLDEN = Path(__file__).parent / "golden"
TALK = Path(__file__).parents[1] / "examples" / "talk.jsonl"
ASK = """
import { SessionManager } from "@earendil-works/pi-coding-agent";
for (const path of process.argv.slice(2)) {
    const session = SessionManager.open(path);
    const { messages, model, thinkingLevel } = session.buildSessionContext();
    const path_ids = session.getBranch().map((entry) => entry.id);
    console.log(JSON.stringify({ leaf: session.getLeafId(), path: path_ids, messages, model, thinkingLevel }));
}
"""


def node() -> str:
    """Return a Node.js of version 22 or later, or skip the test."""
    found = os.environ.get("CTX_TEST_NODE") or shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not installed")
    version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
    if int(version.strip().lstrip("v").split(".")[0] or 0) < 22:
        pytest.skip(f"Pi 1.6.0 needs Node.js 22, this is {version.strip()}")
    return found


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Install Pi; return the command that opens sessions in it."""
    program = node()
    npm = shutil.which("npm") or pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("pi")
    install = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), PACKAGE]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"Pi cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    script = folder / "ask.mjs"
    script.write_text(ASK, "utf-8")
    return [program, str(script)]


def ask(asker: list[str], *paths: Path) -> list[dict[str, Any]]:
    done = subprocess.run([*asker, *map(str, paths)], capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(answer: dict[str, Any], path: Path) -> None:
    """Compare what Pi says of a session with what ctx says of it."""
    session = pi.load(path.read_bytes())
    built = context.build_context(session, session.leaf)
    assert answer["leaf"] == session.leaf
    assert answer["path"] == session.path(session.leaf)
    assert answer["messages"] == [message.value for message in built.messages]
    assert answer["thinkingLevel"] == built.settings.thinking_level


@pytest.mark.parametrize("source", [TALK, GOLDEN / "sessions/branches.jsonl", GOLDEN / "pi160/pi160_compactions.jsonl"])
def test_pi_agrees_on_what_was_appended(user: User, asker: list[str], source: Path) -> None:
    path = user.file("s.jsonl", source.read_bytes())
    session = pi.load(source.read_bytes())
    target = next(iter(session))
    steps = (
        ["goto", "s.jsonl", target],
        ["append", "s.jsonl", "--text", "Grüße 😀"],
        ["append", "s.jsonl", "--role", "assistant", "--text", "yes"],
        ["label", "s.jsonl", target, "here"],
        ["goto", "s.jsonl", session.leaf or target],
    )
    copies = []
    for number, words in enumerate(steps):
        assert user.ctx("tree", *words, "--in-place", "-q").code == 0
        copies.append(user.file(f"after-{number}.jsonl", path.read_bytes()))
    for answer, copy in zip(ask(asker, *copies), copies, strict=True):
        check(answer, copy)


def test_pi_agrees_on_a_fork(user: User, asker: list[str]) -> None:
    assert user.ctx("tree", "fork", str(TALK), "b0000005", "-o", "fork.jsonl").code == 0
    path = user.work / "fork.jsonl"
    (answer,) = ask(asker, path)
    check(answer, path)
    assert answer["path"][:9] == pi.load(TALK.read_bytes()).path("b0000005")


def test_pi_agrees_on_what_fit_left_out(user: User, asker: list[str]) -> None:
    path = user.file("s.jsonl", (TALK.parent / "long.jsonl").read_bytes())
    assert user.ctx("fit", "s.jsonl", "--window", "17000", "--keep-recent", "300", "--in-place", "-q").code == 0
    (answer,) = ask(asker, path)
    check(answer, path)
    assert "Left out to fit the window" in json.dumps(answer["messages"][2])
