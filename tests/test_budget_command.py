"""`ctx budget`: every number it prints adds up, and the rule that decides is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell import User

from ctxkit import budget, context, load_encoding
from ctxkit.agents import pi
from ctxkit.entry import Message

GOLDEN = Path(__file__).parent / "golden" / "sessions"
TALK = str(Path(__file__).parents[1] / "examples" / "talk.jsonl")
SESSIONS = sorted(GOLDEN.glob("*.jsonl"))


def report(user: User, *words: str) -> dict[str, Any]:
    done = user.ctx("budget", *words, "--json", "-q")
    assert done.code == 0, done.err
    answer: dict[str, Any] = json.loads(done.out)
    return answer


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_numbers_add_up_in_every_golden_session(user: User, path: Path) -> None:
    done = user.ctx("budget", str(path), "--json", "-q", "--window", "50000")
    if path.stem in ("empty", "whitespace-only", "not-a-session"):
        assert done.code == 3
        return
    answer = json.loads(done.out)
    assert answer["counted"] == sum(answer["kinds"].values())
    assert answer["kinds"].get("toolResult", 0) == sum(answer["tools"].values())
    assert answer["headroom"] == 50000 - 16384 - answer["tokens"]
    usage = answer["usage"]
    assert answer["tokens"] == (usage["tokens"] + usage["trailingTokens"] if usage else answer["counted"])
    assert user.ctx("budget", str(path), "-q").code == 0


def test_counts_are_exact(user: User) -> None:
    answer = report(user, TALK)
    session = pi.load(Path(TALK).read_bytes())
    encoding = load_encoding()
    texts = [
        block["text"]
        for message in context.build_context(session, session.leaf).messages
        for block in message.blocks
        if message.role == "user" and block["type"] == "text"
    ]
    assert answer["kinds"]["user"] == sum(map(encoding.count, texts))
    assert answer["encoding"] == "o200k_base"


def test_usage_counts_only_if_nothing_was_compacted_or_edited_since(user: User) -> None:
    assert report(user, TALK)["usage"] == {"tokens": 1300, "trailingTokens": 0, "entryId": "b0000005"}
    path = user.file("s.jsonl", Path(TALK).read_bytes())
    edit = {"type": "context_edit", "id": "e1", "parentId": "b0000005", "timestamp": "2026-03-01T09:01:00.000Z"}
    path.write_bytes(
        path.read_bytes() + json.dumps({**edit, "targetId": "a0000003", "replacement": None}).encode() + b"\n"
    )
    assert report(user, "s.jsonl")["usage"] is None
    assert report(user, "s.jsonl", "--leaf", "b0000005")["usage"] is not None
    text = user.ctx("budget", "s.jsonl").out.decode()
    assert "no usage of an answer is valid" in text


def test_window_of_the_session_of_a_model_or_given(user: User) -> None:
    assert report(user, TALK)["window"] == 1_000_000  # claude-opus-5, which the session is on
    assert report(user, TALK, "-m", "gpt-4")["window"] == 8192
    assert report(user, TALK, "-m", "gpt-4")["encoding"] == "cl100k_base"
    assert report(user, TALK, "--window", "5000", "--reserve", "0")["headroom"] == 3700
    unknown = report(user, str(GOLDEN / "linear.jsonl"))
    assert (unknown["window"], unknown["headroom"], unknown["turnsLeft"], unknown["mustCompact"]) == (None,) * 4
    done = user.ctx("budget", TALK, "-m", "no-such-model")
    assert (done.code, done.out) == (2, b"")
    assert user.ctx("budget", TALK, "-m", "gpt-4", "--window", "5").code == 2


def test_the_estimate_is_corrected_by_what_was_reported(user: User) -> None:
    plain = report(user, str(GOLDEN / "usage-in-tail.jsonl"), "-e", "estimate")
    assert plain["estimated"] is True
    corrected = report(user, TALK, "-e", "estimate")
    exact = report(user, TALK)
    assert corrected["counted"] > 1.5 * exact["counted"], "1300 were reported for what counts far less; twice at most"
    assert corrected["counted"] < 2.5 * exact["counted"]


def test_check_is_for_scripts(user: User) -> None:
    assert user.ctx("budget", TALK, "--window", str(1300 + 16384), "--check") == (b"", b"", 0), "equal is not over"
    assert user.ctx("budget", TALK, "--window", str(1299 + 16384), "--check") == (b"", b"", 1)
    done = user.ctx("budget", str(GOLDEN / "linear.jsonl"), "--check")
    assert (done.code, done.out) == (2, b"")
    assert b"--check needs a window" in done.err


def test_another_system_prompt_is_counted(user: User) -> None:
    user.file("system.md", b"You are terse.")
    assert report(user, TALK, "--system", "system.md")["kinds"]["system"] == load_encoding().count("You are terse.")


def test_largest_come_first_and_the_table_fits_the_terminal(user: User) -> None:
    largest = [entry["tokens"] for entry in report(user, TALK)["largest"]]
    assert largest == sorted(largest, reverse=True)
    text = user.ctx("budget", TALK).out.decode()
    assert max(map(len, text.split("\n"))) <= 80
    assert "█" not in text, "bars are for terminals"


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "toolResult", "system", "custom"]), st.integers(0, 99)))
)
def test_growth_is_the_mean_of_the_turns(history: list[tuple[str, int]]) -> None:
    messages = [Message({"role": role}) for role, _ in history]
    sizes = [size for _, size in history]
    turns: list[int] = []
    for role, size in history:
        if role in ("user", "custom"):
            turns.append(0)
        if turns and role != "system":
            turns[-1] += size
    growth = budget.growth(messages, sizes, 1000)
    mean = sum(turns) // len(turns) if turns else 0
    assert growth == (mean, 1000 // mean if mean else None)
