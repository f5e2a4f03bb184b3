"""`ctx fit` makes it fit by leaving out what is worth least, and loses nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell import User

from ctxkit import context, fit
from ctxkit.agents import pi
from ctxkit.check import check
from ctxkit.entry import Message

LONG = Path(__file__).parents[1] / "examples" / "long.jsonl"
REAL = Path(__file__).parents[2] / "shared" / "sessions" / "pi" / "linear-v3.jsonl"


def words(text: str) -> int:
    return len(text.split())


def said(id: str, text: str) -> Message:
    return Message({"role": "assistant", "content": [{"type": "text", "text": text}]}, id)


def call(id: str, name: str = "read", **arguments: Any) -> Message:
    block = {"type": "toolCall", "id": f"c-{id}", "name": name, "arguments": arguments}
    return Message({"role": "assistant", "content": [block]}, f"call-{id}")


def result(id: str, text: str = "x " * 100, name: str = "read", **more: Any) -> Message:
    content = [{"type": "text", "text": text}]
    return Message({"role": "toolResult", "toolCallId": f"c-{id}", "toolName": name, "content": content, **more}, id)


def user(text: str = "x " * 500) -> Message:
    return Message({"role": "user", "content": text}, "user")


def chosen(messages: list[Message], excess: int = 10**9, **options: Any) -> list[str]:
    """Return the entries that give way."""
    sizes = [sum(words(block.get("text", "")) for block in message.blocks) for message in messages]
    return [edit.entry_id for edit in fit.choose(messages, sizes, excess, words, **{"keep_recent": 0, **options})]


READS = [call("1", path="a"), result("1"), call("2", path="b"), result("2"), call("3", path="a"), result("3")]


def test_only_results_and_prose_give_way() -> None:
    system = Message({"role": "system", "content": "x " * 500}, "system")
    summary = Message({"role": "compactionSummary", "summary": "x " * 500}, "summary")
    prose_with_call = Message(
        {"role": "assistant", "content": [*said("", "x " * 500).blocks, *call("1").blocks]}, "both"
    )
    messages = [system, summary, user(), prose_with_call, result("1"), said("prose", "x " * 500), user()]
    assert chosen(messages) == ["1", "prose"]


def test_superseded_reads_go_first_then_the_oldest() -> None:
    assert chosen(READS, excess=1) == ["1"]
    assert chosen(READS, excess=100) == ["1", "2"]
    assert chosen([said("prose", "x " * 100), *READS], excess=1) == ["1"]


@pytest.mark.parametrize(
    ("first", "second", "stale"),
    [
        (call("1", path="a"), result("2"), True),
        (call("1", path="a"), result("2", isError=True), False),
        (call("1", path="a"), result("2", text="x " * 90 + "\n[Showing lines 1-9 of 99. Use offset=10]"), False),
    ],
)
def test_a_read_that_failed_or_was_cut_supersedes_nothing(first: Message, second: Message, stale: bool) -> None:
    messages = [call("0", path="z"), result("0"), first, result("1"), call("2", path="a"), second]
    assert (chosen(messages, excess=1) == ["1"]) is stale


@pytest.mark.parametrize(
    ("earlier", "later", "stale"),
    [
        ({"offset": 10, "limit": 5}, {}, True),
        ({"offset": 10, "limit": 5}, {"offset": 8, "limit": 7}, True),
        ({"offset": 10, "limit": 5}, {"offset": 11, "limit": 50}, False),
        ({}, {"offset": 10, "limit": 5}, False),
    ],
)
def test_a_wider_range_covers_a_narrower_one(earlier: dict[str, int], later: dict[str, int], stale: bool) -> None:
    messages = [call("0", path="z"), result("0"), call("1", "read", path="a", **earlier), result("1")]
    messages += [call("2", "read", path="a", **later), result("2")]
    assert (chosen(messages, excess=1) == ["1"]) is stale


def test_policies() -> None:
    big, small = "x " * 300, "x " * 60
    messages = [
        said("prose", big),
        call("1", "bash"),
        result("1", small, "bash"),
        call("2", "bash"),
        result("2", big, "bash"),
    ]
    messages += [call("3", "bash"), result("3", big + "1 failed", "bash")]
    assert chosen(messages, 1) == ["1"]
    assert chosen(messages, 1, policy="oldest") == ["prose"]
    assert chosen(messages, 1, policy="importance") == ["2"]
    assert chosen(messages, 290, policy="importance") == ["1", "2"]
    assert chosen(messages, 500, policy="importance") == ["1", "2", "3"]


def test_what_is_kept() -> None:
    assert chosen(READS, pinned={"1"}) == ["2", "3"]
    assert chosen(READS, protected={"read"}) == []
    assert chosen(READS, keep_recent=200) == ["1"]
    assert chosen([call("1"), result("1", "x " * 49)]) == [], "too small to be worth a note"
    assert chosen(READS, excess=0) == []


def test_what_was_left_out_already_stays() -> None:
    noted = result("1", fit.LEFT_OUT + "x " * 100 + "]")
    assert chosen([call("1", path="a"), noted]) == []


def test_break_even() -> None:
    assert fit.break_even(60_000, 40_000) == 6
    assert fit.break_even(150_000, 20_000) == 75
    assert fit.break_even(100, 0) == 0


MESSAGE = st.one_of(
    st.builds(user, st.sampled_from(["hi", "x " * 80])),
    st.builds(said, st.sampled_from(["p1", "p2"]), st.sampled_from(["ok", "y " * 120])),
    st.builds(call, st.sampled_from(["1", "2", "3"]), path=st.sampled_from(["a", "b"])),
    st.builds(result, st.sampled_from(["1", "2", "3"]), st.sampled_from(["", "z " * 90, "error " * 200])),
)


@given(
    st.lists(MESSAGE, max_size=15),
    st.integers(0, 800),
    st.integers(0, 400),
    st.sampled_from(["tool-results", "oldest", "importance"]),
)
def test_any_history(messages: list[Message], excess: int, keep_recent: int, policy: str) -> None:
    sizes = [sum(words(block.get("text", "")) for block in message.blocks) for message in messages]
    edits = fit.choose(messages, sizes, excess, words, policy=policy, keep_recent=keep_recent)
    assert edits == fit.choose(messages, sizes, excess, words, policy=policy, keep_recent=keep_recent)
    saved = [edit.before - edit.after for edit in edits]
    assert all(saving > 0 for saving in saved)
    assert not saved or sum(saved) - max(saved) < excess, "no more than is needed"
    for edit in edits:
        message = messages[edit.place]
        assert message.role == "toolResult" or (message.role == "assistant" and not message.calls)
        assert sum(sizes[edit.place :]) > keep_recent
        assert "\n" not in edit.note
    assert len({edit.place for edit in edits}) == len(edits)


def test_command_appends_edits_and_nothing_else(user: User) -> None:
    done = user.ctx("fit", str(LONG), "--window", "17000", "--keep-recent", "300")
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
    fitting = ["--window", "17000", "--keep-recent", "300", "-q"]
    assert user.ctx("fit", "s.jsonl", *fitting, "-o", "new.jsonl") == (b"", b"", 0)
    assert path.read_bytes() == LONG.read_bytes()
    assert user.ctx("fit", "s.jsonl", *fitting, "--in-place") == (b"", b"", 0)
    assert path.read_bytes().startswith(LONG.read_bytes())
    assert user.ctx("fit", "s.jsonl", *fitting).out == path.read_bytes(), "it fits now"
    request = json.loads(user.ctx("fit", str(LONG), *fitting, "--format", "anthropic").out)
    assert "Left out" in json.dumps(request["messages"][2])
    assert user.ctx("fit", "s.jsonl", *fitting, "-o", "./s.jsonl").code == 2


def test_command_says_what_it_did(user: User) -> None:
    done = user.ctx("fit", str(LONG), "--window", "17000", "--keep-recent", "300", "--json")
    report = json.loads(done.out)
    assert (report["status"], report["target"], report["tokensBefore"]) == ("fitted", 616, 771)
    assert report["tokensAfter"] <= 616
    assert report["firstBroken"] == {"message": 2, "entryId": "d0000003"}
    assert report["edits"][0]["reason"] == "superseded by a later read"
    assert b"771 -> " in done.err


def test_command_refuses_what_cannot_fit_and_what_saves_too_little(user: User) -> None:
    path = user.file("s.jsonl", LONG.read_bytes())
    done = user.ctx("fit", "s.jsonl", "--window", "16500", "--in-place")
    assert (done.code, done.out) == (1, b"")
    assert b"cannot be made to fit" in done.err
    little = ["--window", "17000", "--keep-recent", "300", "--min-saving", "500", "--in-place"]
    assert user.ctx("fit", "s.jsonl", *little).code == 1
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
