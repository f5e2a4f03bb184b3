"""What is left out so that a context fits: what is worth least, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxkit import context, fit
from ctxkit.agents import pi
from ctxkit.check import check
from ctxkit.entry import Message
from ctxkit.errors import StateError
from ctxkit.session import Session


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


def stale_after(earlier: dict[str, Any], later: dict[str, Any], shown: Message) -> bool:
    """Say whether a read gives way before an older result, because of a later one."""
    messages = [call("0", path="z"), result("0"), call("1", **earlier), result("1"), call("2", **later), shown]
    return chosen(messages, excess=1) == ["1"]


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
    ("later", "stale"),
    [
        (result("2"), True),
        (result("2", "x " * 90 + "\n[5 more lines in file. Use offset=9 to continue.]"), False),
        (result("2", isError=True), False),
        (result("2", "x " * 90 + "\n[Showing lines 1-9 of 99. Use offset=10 to continue.]"), False),
        (result("2", "[Line 1 is 60.0KB, exceeds 50.0KB limit. Use bash: sed -n '1p' a | head -c 51200]"), False),
        (result("2", "[Output truncated - 900 tokens]"), False),
        (result("2", fit.LEFT_OUT + "the result of read(a), 900 tokens.]"), False),
        (result("2", details={"truncation": {"truncated": True}}), False),
        (result("2", details={"truncation": {"truncated": False}}), True),
    ],
)
def test_a_read_that_failed_or_was_cut_supersedes_nothing(later: Message, stale: bool) -> None:
    assert stale_after({"path": "a"}, {"path": "a"}, later) is stale


@pytest.mark.parametrize(
    ("earlier", "later", "stale"),
    [
        ({"offset": 10, "limit": 5}, {}, True),
        ({"offset": 10, "limit": 5}, {"offset": 8, "limit": 7}, True),
        ({"offset": 10, "limit": 5}, {"offset": 8, "limit": 6}, False),
        ({"offset": 10, "limit": 5}, {"offset": 11, "limit": 50}, False),
        ({"offset": 10.0, "limit": None}, {"offset": 1}, True),
        ({}, {"offset": 10, "limit": 5}, False),
        ({}, {"offset": 0}, True),
        ({}, {"offset": "10"}, False),
        ({"offset": "10"}, {}, True),
        ({}, {"offset": True}, False),
        ({"limit": 1}, {"limit": 0}, True),
        ({}, {"pages": "1-2"}, False),
        ({"path": "b"}, {}, False),
    ],
)
def test_a_wider_range_covers_a_narrower_one(earlier: dict[str, Any], later: dict[str, Any], stale: bool) -> None:
    assert stale_after({"path": "a", **earlier}, {"path": "a", **later}, result("2")) is stale


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=12))
def test_ranges_cover_what_any_of_them_covers(spans: list[tuple[int, int]]) -> None:
    ranges = fit.Ranges()
    plain: list[tuple[int, int]] = []
    for first, length in spans:
        last = first + length - 1
        covered = any(begin <= first and last <= end for begin, end in plain)
        assert ranges.cover(first, last) is covered
        if not covered:
            ranges.add(first, last)
            plain.append((first, last))


def test_the_last_lines_of_what_a_limit_asked_for_are_no_cut() -> None:
    later = result("2", "x " * 90 + "\n[5 more lines in file. Use offset=16 to continue.]")
    assert stale_after({"path": "a", "offset": 3, "limit": 2}, {"path": "a", "limit": 15}, later)


def test_a_read_that_was_replaced_supersedes_nothing() -> None:
    assert chosen(READS, excess=1, untouched={"3"}) == ["1"], "only because it is the oldest"
    reasons = [edit.reason for edit in fit.choose(READS, [0, 100] * 3, 1, words, keep_recent=0, untouched={"3"})]
    assert reasons == ["an old result"]


def test_a_result_belongs_to_the_last_call_of_its_id() -> None:
    """Some agents count their calls anew in every answer."""
    messages = []
    for number, path in enumerate("ab"):
        block = {"type": "toolCall", "id": "call_0", "name": "read", "arguments": {"path": path}}
        messages.append(Message({"role": "assistant", "content": [block]}, f"c{number}"))
        messages.append(Message({**result("0").value, "toolCallId": "call_0"}, f"r{number}"))
    first, second = fit.choose(messages, [0, 100, 0, 100], 10**9, words, keep_recent=0)
    assert (first.reason, second.reason) == ("an old result", "an old result")
    assert "read(a)" in first.note
    assert "read(b)" in second.note


def test_policies() -> None:
    big, small = "x " * 300, "x " * 90
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
    assert chosen(READS, untouched={"1"}) == ["2", "3"]
    assert chosen(READS, protected={"read"}) == []
    assert chosen(READS, keep_recent=200) == ["1"]
    assert chosen([call("1"), result("1", "x " * 49)]) == [], "too small to be worth a note"
    assert chosen(READS, excess=0) == []


def test_a_message_with_any_of_the_newest_tokens_stays() -> None:
    assert chosen(READS, keep_recent=1) == ["1", "2"]
    assert chosen(READS, keep_recent=101) == ["1"]
    assert chosen(READS, keep_recent=301) == []


def test_an_answer_with_anything_but_prose_stays() -> None:
    thinking = {"type": "thinking", "thinking": "x " * 100}
    unknown = {"type": "audio", "data": "x"}
    for blocks, gives_way in (
        ([thinking], True),
        ([*said("", "x").blocks, thinking], True),
        ([thinking, unknown], False),
    ):
        messages = [Message({"role": "assistant", "content": blocks}, "1")]
        assert bool(fit.choose(messages, [100], 1, words, keep_recent=0)) is gives_way


@pytest.mark.parametrize(
    ("text", "notable"),
    [
        ("collected\n3 passed in 0.1s", True),
        ("ok\n\nCommand exited with code 2", True),
        ("Traceback (most recent call last)", True),
        ("ValueError: no", True),
        ("src/a.c:3:5: error: expected ;", True),
        ("error[E0308]: mismatched types", True),
        ("test result: ok. 4 passed", True),
        ("    raise ValueError(what)", False),
        ("Command exited with code 0", False),
        ("it passed by and failed to stop", False),
    ],
)
def test_what_shows_errors_or_tests(text: str, notable: bool) -> None:
    (edit,) = fit.choose([call("1", "bash"), result("1", text, "bash")], [0, 200], 1, words, keep_recent=0)
    assert (edit.reason == "an old result that shows errors or tests") is notable


def test_a_note_is_one_line_that_ends_where_it_ends() -> None:
    hostile = call("1", "b]a\nsh", command="a]\n\u2028\x1b[31m" + "x" * 300)
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    shown = Message({"role": "toolResult", "toolCallId": "c-1", "toolName": "b]a\nsh", "content": [image, image]}, "1")
    (edit,) = fit.choose([hostile, shown], [0, 2400], 1, words, keep_recent=0)
    assert edit.note.isprintable()
    assert edit.note.index("]") == len(edit.note) - 1 or edit.note.count("]") == 1
    assert edit.note.startswith("[Left out to fit the window: the result of b)a sh(a) ?[31mxxx")
    assert " with 2 images, 2400 tokens. To see it: ctx tree path SESSION 1 --json | tail -n 1]" in edit.note


@pytest.mark.parametrize("id", ["a\nb", "a\ud800", ""])
def test_what_no_edit_can_name_stays(id: str) -> None:
    assert fit.choose([said(id, "x " * 500)], [500], 1, words, keep_recent=0) == []


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
def test_any_messages(messages: list[Message], excess: int, keep_recent: int, policy: str) -> None:
    sizes = [sum(words(block.get("text", "")) for block in message.blocks) for message in messages]
    edits = fit.choose(messages, sizes, excess, words, policy=policy, keep_recent=keep_recent)
    assert edits == fit.choose(messages, sizes, excess, words, policy=policy, keep_recent=keep_recent)
    saved = [edit.before - edit.after for edit in edits]
    assert all(saving >= fit.FLOOR for saving in saved)
    assert not saved or sum(saved) - max(saved) < excess, "no more than is needed"
    for edit in edits:
        message = messages[edit.place]
        assert message.role == "toolResult" or (message.role == "assistant" and not message.calls)
        assert sum(sizes[edit.place + 1 :]) >= keep_recent
        assert "\n" not in edit.note
    assert len({edit.place for edit in edits}) == len(edits)


# -- sessions --------------------------------------------------------------------------------------------------------

PADDING = "x " * 100


def turn(number: int, calls: list[str], size: int, prose: str, usage: int) -> list[dict[str, Any]]:
    """Return the messages of a turn: a question, a batch of calls with results, an answer."""
    ids = [f"k{index}" for index in range(len(calls))]  # the same in every turn
    blocks = [
        {"type": "toolCall", "id": id, "name": "read", "arguments": {"path": path}}
        for id, path in zip(ids, calls, strict=True)
    ]
    results = [
        {"role": "toolResult", "toolCallId": id, "toolName": "read", "content": [{"type": "text", "text": "y " * size}]}
        for id in ids
    ]
    answer: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": prose}], "stopReason": "stop"}
    if usage:
        answer["usage"] = {"input": usage, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": usage}
    asking = [{"role": "assistant", "content": blocks, "stopReason": "toolUse"}] if blocks else []
    return [{"role": "user", "content": f"question {number}"}, *asking, *results, answer]


def session_of(messages: list[dict[str, Any]], summary_at: int) -> bytes:
    """Write messages as a session, with a compaction somewhere."""
    head: dict[str, Any] = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z"}
    values, last = [head], None
    for number, message in enumerate(messages):
        if number == summary_at and last is not None:
            made = {"type": "compaction", "summary": "before", "firstKeptEntryId": values[1]["id"], "tokensBefore": 9}
            values.append({"id": "cccc0000", "parentId": last, "timestamp": head["timestamp"], **made})
            last = "cccc0000"
        id = f"{number:08x}"
        base = {"type": "message", "id": id, "parentId": last, "timestamp": head["timestamp"]}
        values.append({**base, "message": message})
        last = id
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def fitted(session: Session, leaf: str | None, data: bytes, plan: fit.Plan) -> bytes:
    """Append the edits of a plan, checked."""
    numbers = iter(range(10**6))

    def new_id(taken: Collection[str]) -> str:
        return next(id for id in (f"e{number:07x}" for number in numbers) if id not in taken)

    made = list(fit.edit_entries(session, leaf, plan.edits, new_id=new_id, now=0))
    longer = data + b"".join(json.dumps(entry.value).encode() + b"\n" for entry in made)
    if made:
        fit.check_session(context.build_context(session, leaf), leaf, pi.load(longer), made, plan, words)
    return longer


TURN = st.builds(
    turn,
    st.integers(0, 9),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
    st.sampled_from([3, 90, 400]),
    st.sampled_from(["ok", PADDING, PADDING * 3]),
    st.sampled_from([0, 0, 300, 3000]),
)


@given(
    st.lists(TURN, min_size=1, max_size=6),
    st.integers(-20, 110),
    st.integers(0, 500),
    st.sampled_from(["tool-results", "oldest", "importance"]),
    st.integers(0, 20),
    st.integers(0, 30),
)
def test_any_history_is_made_to_fit_or_refused(
    turns: list[list[dict[str, Any]]], share: int, keep_recent: int, policy: str, summary_at: int, leaf_at: int
) -> None:
    messages = [message for one in turns for message in one]
    data = session_of(messages, summary_at)
    session = pi.load(data)
    ids = list(session)
    leaf = ids[min(leaf_at, len(ids) - 1)]
    options: dict[str, Any] = {"policy": policy, "keep_recent": keep_recent}
    built = context.build_context(session, leaf)
    most = fit.plan(built, 0, words, **options)
    target = max(0, most.after + (most.before - most.after) * share // 100)
    plan = fit.plan(built, target, words, **options)
    assert plan == fit.plan(built, target, words, **options)
    assert (plan.status == fit.TOO_LARGE) == (plan.before > target and most.after > target)
    if plan.status != fit.FITTED:
        return
    assert plan.after <= target < plan.before
    longer = fitted(session, leaf, data, plan)
    tree = pi.load(longer)
    if all(answered for _, answered in fit.calls_and_results(built.messages)):  # else the branch ends within a batch
        assert check(tree) == check(session)
    assert context.build_context(tree, leaf) == built
    again = context.build_context(tree, tree.leaf)
    assert fit.plan(again, target, words, **options).status == fit.FITS, "it fits, as ctx budget has it"
    assert again.messages == fit.apply(built.messages, plan.edits)
    further = fit.plan(again, 0, words, untouched=fit.replaced(tree, tree.leaf), **options)
    assert {edit.place for edit in further.edits}.isdisjoint({edit.place for edit in plan.edits})


def test_what_was_reported_counts_if_it_is_more_and_what_is_counted_if_that_is() -> None:
    for reported, before in ((3000, 3000), (350, 421)):
        data = session_of([*turn(0, ["a"], 400, "ok", 0), *turn(1, [], 0, "z " * 15, reported)], -1)
        built = context.build_context(session := pi.load(data), session.leaf)
        plan = fit.plan(built, before - 300, words, keep_recent=0)
        assert (plan.status, plan.before) == (fit.FITTED, before)
        assert plan.after == before - plan.edits[0].saved
    assert fit.plan(built, 350, words).status == fit.FITS, "as ctx budget has it"


def test_saving_too_little_is_refused() -> None:
    data = session_of(turn(0, ["a"], 400, PADDING, 0), -1)
    built = context.build_context(session := pi.load(data), session.leaf)
    plan = fit.plan(built, 400, words, keep_recent=0, min_saving=450)
    assert (plan.status, plan.refused) == (fit.SAVES_LITTLE, True)
    assert [built.messages[place].role for place in plan.largest()] == ["assistant", "user", "assistant"]
    assert fit.plan(built, 400, words, keep_recent=0, min_saving=300).status == fit.FITTED


def test_edits_that_do_other_than_planned_are_refused() -> None:
    data = session_of(turn(0, ["a"], 400, PADDING, 0), -1)
    built = context.build_context(session := pi.load(data), session.leaf)
    plan = fit.plan(built, 400, words, keep_recent=0)
    after = fit.apply(built.messages, plan.edits)
    fit.check_edits(built.messages, after, plan, words)
    for wrong, why in (
        (built.messages, "something else"),
        (after[:-1], "something else"),
        ([*after[:2], *after[3:]], "something else"),
    ):
        with pytest.raises(StateError, match=why):
            fit.check_edits(built.messages, wrong, plan, words)
    with pytest.raises(StateError, match="would not fit"):
        fit.check_edits(built.messages, after, plan._replace(target=10), words)


def test_edits_that_would_not_be_the_leaf_are_refused() -> None:
    data = session_of(turn(0, ["a"], 400, PADDING, 0), -1)
    built = context.build_context(session := pi.load(data), session.leaf)
    plan = fit.plan(built, 400, words, keep_recent=0)
    made = list(fit.edit_entries(session, session.leaf, plan.edits, new_id=lambda _: "e0000001", now=0))
    with pytest.raises(StateError, match="more than their own branch"):
        fit.check_session(built, session.leaf, session, made, plan, words)
