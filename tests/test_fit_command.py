"""`ctx fit` makes it fit by leaving out what is worth least, and loses nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shell import User

from ctxkit import context
from ctxkit.agents import pi
from ctxkit.check import check

LONG = Path(__file__).parents[1] / "examples" / "long.jsonl"
TALK = LONG.parent / "talk.jsonl"
REAL = Path(__file__).parents[2] / "shared" / "sessions" / "pi" / "linear-v3.jsonl"
FITTING = ["--window", "17000", "--keep-recent", "300"]


def test_command_appends_edits_and_nothing_else(user: User) -> None:
    done = user.ctx("fit", str(LONG), *FITTING)
    assert done.code == 0
    before = LONG.read_bytes()
    assert done.out.startswith(before)
    (edit,) = [json.loads(line) for line in done.out[len(before) :].splitlines()]
    assert (edit["type"], edit["targetId"], edit["parentId"]) == ("context_edit", "d0000003", "d0000008")
    tree = pi.load(done.out)
    assert check(tree) == []
    assert context.build_context(tree, "d0000008") == context.build_context(pi.load(before), "d0000008")
    texts = [message.blocks[0].get("text", "") for message in context.build_context(tree, tree.leaf).messages]
    assert texts[2].startswith(
        "[Left out to fit the window: the result of read(src/price.py), 238 tokens. To see it: ctx"
    )


def test_command_in_place_output_and_format(user: User) -> None:
    path = user.file("s.jsonl", LONG.read_bytes())
    fitting = [*FITTING, "-q"]
    assert user.ctx("fit", "s.jsonl", *fitting, "-o", "new.jsonl") == (b"", b"", 0)
    assert path.read_bytes() == LONG.read_bytes()
    assert user.ctx("fit", "s.jsonl", *fitting, "--in-place") == (b"", b"", 0)
    assert path.read_bytes().startswith(LONG.read_bytes())
    assert user.ctx("fit", "s.jsonl", *fitting).out == path.read_bytes(), "it fits now"
    request = json.loads(user.ctx("fit", str(LONG), *fitting, "--format", "anthropic").out)
    assert "Left out" in json.dumps(request["messages"][2])
    assert user.ctx("fit", "s.jsonl", *fitting, "-o", "./s.jsonl").code == 2


def test_command_says_what_it_did(user: User) -> None:
    done = user.ctx("fit", str(LONG), *FITTING, "--json")
    report = json.loads(done.out)
    assert (report["status"], report["target"], report["tokensBefore"]) == ("fitted", 616, 771)
    assert report["tokensAfter"] <= 616
    assert report["firstBroken"] == {"message": 2, "entryId": "d0000003"}
    (edit,) = report["edits"]
    assert (edit["entryId"], edit["kind"], edit["tool"]) == ("d0000003", "toolResult", "read")
    assert edit["reason"] == "superseded by a later read"
    assert (report["encoding"], report["estimated"], report["why"]) == ("o200k_base", False, None)
    assert b"771 -> " in done.err


def test_command_refuses_what_cannot_fit_and_what_saves_too_little(user: User) -> None:
    path = user.file("s.jsonl", LONG.read_bytes())
    done = user.ctx("fit", "s.jsonl", "--window", "16500", "--in-place")
    assert (done.code, done.out) == (1, b"")
    assert b"cannot be made to fit" in done.err
    largest = [line.split()[0] for line in done.err.splitlines() if line.startswith(b"  ")]
    assert b"d0000001" in largest, "what the user said stays"
    little = [*FITTING, "--min-saving", "500", "--in-place"]
    done = user.ctx("fit", "s.jsonl", *little)
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith(b"196 tokens would be saved, fewer than 500: nothing was written\n")
    report = json.loads(user.ctx("fit", "s.jsonl", *little, "--json", "-q").out)
    assert (report["status"], report["why"]) == ("failed", "saves-little")
    assert (report["tokensAfter"], report["reachable"], report["edits"]) == (771, 575, [])
    assert (report["firstBroken"], report["breakEven"]) == (None, None)
    assert len(report["largest"]) == 5
    assert path.read_bytes() == LONG.read_bytes()
    assert user.ctx("fit", "s.jsonl").code == 2


def test_command_takes_what_was_reported_into_account(user: User) -> None:
    """A provider counted twice as much as we do; what goes is still only what we can count."""
    lines = LONG.read_bytes().splitlines()
    last = json.loads(lines[-1])
    last["message"]["usage"] = {"input": 1542, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1542}
    user.file("s.jsonl", b"\n".join([*lines[:-1], json.dumps(last).encode()]) + b"\n")
    report = json.loads(user.ctx("fit", "s.jsonl", "--window", "17600", "--keep-recent", "0", "--json").out)
    assert report["tokensBefore"] == 1542
    saved = sum(edit["before"] - edit["after"] for edit in report["edits"])
    assert report["tokensAfter"] == 1542 - saved <= 1216


@pytest.mark.skipif(not REAL.is_file(), reason="the real sessions are not beside this checkout")
def test_a_real_session(user: User) -> None:
    user.file("s.jsonl", REAL.read_bytes())
    before = json.loads(user.ctx("budget", "s.jsonl", "--json", "-q").out)["tokens"]
    window = str(before - 5000 + 16384)
    report = json.loads(user.ctx("fit", "s.jsonl", "--window", window, "--json", "--in-place", "-q").out)
    assert report["status"] == "fitted"
    tree = pi.load((user.work / "s.jsonl").read_bytes())
    assert {finding.code for finding in check(tree)} <= {f.code for f in check(pi.load(REAL.read_bytes()))}


@pytest.mark.parametrize("format", ["pi", "openai", "responses", "anthropic"])
def test_messages_are_those_of_the_session_that_would_be_written(user: User, format: str) -> None:
    session = user.ctx("fit", str(LONG), *FITTING, "-q").out
    expected = user.ctx("context", "-", "--format", format, "-q", input=session)
    assert user.ctx("fit", str(LONG), *FITTING, "-q", "--format", format) == expected
    assert user.ctx("fit", str(LONG), *FITTING, "-q", "--format", format, "--json").code == 2


def test_two_runs_give_the_same_edits(user: User) -> None:
    runs = [user.ctx("fit", str(LONG), *FITTING, "-q").out.splitlines()[-1] for _ in range(2)]
    first, second = (json.loads(line) for line in runs)
    assert [first[key] for key in ("targetId", "replacement")] == [second[key] for key in ("targetId", "replacement")]


def test_a_leaf_that_is_not_the_current_one(user: User) -> None:
    """The edits hang below it and make it the branch to go on with."""
    user.file("s.jsonl", LONG.read_bytes())
    words = ["--window", "16700", "--keep-recent", "0", "--leaf", "d0000005"]
    assert user.ctx("fit", "s.jsonl", *words, "--in-place", "-q").code == 0
    tree = pi.load((user.work / "s.jsonl").read_bytes())
    assert tree.leaf is not None
    assert "d0000005" in tree.path(tree.leaf)
    assert "d0000006" not in tree.path(tree.leaf)


def test_what_is_protected_or_pinned_stays(user: User) -> None:
    for words in (["--protect", "read"], ["--pin", "d0000003", "--pin", "d0000007"]):
        done = user.ctx("fit", str(LONG), "--window", "16950", "--keep-recent", "0", "--json", "-q", *words)
        assert [edit["entryId"] for edit in json.loads(done.out)["edits"]] == ["d0000005"]
    assert user.ctx("fit", str(LONG), *FITTING, "--pin", "nothing").code == 3


def test_a_session_of_version_1_gives_messages_but_is_not_appended_to(user: User) -> None:
    lines = [json.loads(line) for line in LONG.read_bytes().splitlines()]
    del lines[0]["version"]
    for line in lines[1:]:
        del line["id"], line["parentId"]
    user.file("old.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    done = user.ctx("fit", "old.jsonl", *FITTING, "--format", "pi", "-q")
    assert (done.code, b"Left out to fit" in done.out) == (0, True)
    assert user.ctx("fit", "old.jsonl", *FITTING).code == 5


def test_what_fits_passes_byte_for_byte(user: User) -> None:
    done = user.ctx("fit", "-", "--window", "100000", input=TALK.read_bytes())
    assert (done.code, done.out) == (0, TALK.read_bytes())
    assert done.err.startswith(b"unchanged: ")
    report = json.loads(user.ctx("fit", str(TALK), "-m", "gpt-5", "--json", "-q").out)
    assert (report["status"], report["edits"]) == ("unchanged", [])


def test_nothing_is_left_out_twice(user: User) -> None:
    """Not even when somebody else replaced it, by more than a note."""
    edit: dict[str, Any] = {
        "type": "context_edit",
        "id": "e0000001",
        "parentId": "d0000008",
        "timestamp": "2026-03-01T10:00:09.000Z",
    }
    edit |= {"targetId": "d0000003", "replacement": {"content": "word " * 150}}
    user.file("s.jsonl", LONG.read_bytes() + json.dumps(edit).encode() + b"\n")
    words = ["--window", "16950", "--keep-recent", "0", "--json", "-q"]
    report = json.loads(user.ctx("fit", "s.jsonl", *words).out)
    assert [edit["entryId"] for edit in report["edits"]] == ["d0000005"]
