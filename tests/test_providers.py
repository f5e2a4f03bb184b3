"""Requests hold what the providers demand, checked by their own published types and by rules written here anew."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import MessageParam
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter, ValidationError

from ctxkit import context, providers
from ctxkit.agents import pi
from ctxkit.entry import Message, clean, dumps, entry_of, text_of
from ctxkit.errors import InputError
from ctxkit.session import Session

GOLDEN = Path(__file__).parent / "golden"
REAL = Path(__file__).parents[2] / "shared" / "sessions" / "pi"
CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
RESPONSES: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])
ANTHROPIC: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
THOUGHTS = ("thinking", "redacted_thinking")


def drained(value: Any) -> Any:
    """Take everything out of what pydantic validates only when it is taken: `Iterable` in the providers' types."""
    if isinstance(value, dict):
        return {key: drained(member) for key, member in value.items()}
    return (
        [drained(member) for member in value] if not isinstance(value, str) and isinstance(value, Iterable) else value
    )


def check_type(adapter: TypeAdapter[Any], value: Any) -> None:
    """A value is of the type, has no members that the type has not, and can be sent as UTF-8."""
    assert drained(adapter.validate_python(value)) == value
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def test_the_types_are_looked_at_to_the_bottom() -> None:
    for block in ({"type": "bogus"}, {"type": "text"}, {"type": "text", "text": "x", "more": 1}):
        for adapter in (CHAT, RESPONSES, ANTHROPIC):
            with pytest.raises((ValidationError, AssertionError)):
                check_type(adapter, [{"role": "user", "content": [block]}])


def check_blocks(blocks: list[dict[str, Any]]) -> None:
    assert blocks
    assert all(block["text"].strip() for block in blocks if "text" in block)


def check_chat(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the arguments of each call with what answers it."""
    messages = request["messages"]
    check_type(CHAT, messages)
    said = [message for message in messages if message["role"] != "system"]
    assert not said or said[0]["role"] == "user"
    assert all(message["role"] != "system" for message in messages[1:])
    open_calls: list[tuple[str, str]] = []
    answered: list[tuple[str, str]] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            id, arguments = open_calls.pop(0)
            assert id == message["tool_call_id"]
            assert message["content"].strip()
            answered.append((arguments, message["content"]))
            continue
        assert open_calls == [], "every call is answered before anything else is said"
        if message["role"] == "assistant":
            assert message["content"] is None or message["content"].strip()
            assert message["content"] or message.get("tool_calls")
            for call in message.get("tool_calls", ()):
                assert NAME.fullmatch(call["id"])
                assert len(call["id"]) <= 40
                assert NAME.fullmatch(call["function"]["name"])
                assert call["id"] not in seen
                seen.add(call["id"])
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                open_calls.append((call["id"], call["function"]["arguments"]))
        elif isinstance(message["content"], list):
            check_blocks(message["content"])
        else:
            assert message["content"].strip()
    assert open_calls == []
    return answered


def check_responses(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the arguments of each call with what answers it."""
    items = request["input"]
    check_type(RESPONSES, items)
    said = [item for item in items if item.get("role") != "system"]
    assert not said or said[0].get("role") == "user"
    open_calls: dict[str, str] = {}
    answered: list[tuple[str, str]] = []
    seen: set[str] = set()
    before = ""
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            assert before != "function_call_output" or not open_calls, "a batch is whole"
            assert NAME.fullmatch(item["call_id"])
            assert NAME.fullmatch(item["name"])
            assert item["call_id"] not in seen
            seen.add(item["call_id"])
            assert isinstance(json.loads(item["arguments"]), dict)
            open_calls[item["call_id"]] = item["arguments"]
        elif kind == "function_call_output":
            output = item["output"]
            if isinstance(output, list):
                check_blocks(output)
                output = "\n".join(part["text"] for part in output if "text" in part)
            else:
                assert output.strip()
            answered.append((open_calls.pop(item["call_id"]), output))
        else:
            assert not open_calls, "every call is answered before anything else is said"
            if isinstance(item["content"], list):
                check_blocks(item["content"])
            else:
                assert item["content"].strip()
        before = kind
    assert not open_calls
    return answered


def check_anthropic(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the arguments of each call with what answers it."""
    messages = request["messages"]
    check_type(ANTHROPIC, messages)
    assert not messages or messages[0]["role"] == "user"
    assert "system" not in request or request["system"].strip()
    for before, after in itertools.pairwise(messages):
        assert before["role"] != after["role"]
    answered: list[tuple[str, str]] = []
    seen: set[str] = set()
    for place, message in enumerate(messages):
        check_blocks(message["content"])
        used = [block for block in message["content"] if block["type"] == "tool_use"]
        following = messages[place + 1]["content"] if place + 1 < len(messages) else []
        given_back = [block for block in following if block["type"] == "tool_result"]
        assert [block["id"] for block in used] == [block["tool_use_id"] for block in given_back]
        assert all(NAME.fullmatch(block["id"]) and NAME.fullmatch(block["name"]) for block in used)
        assert seen.isdisjoint(block["id"] for block in used)
        seen.update(block["id"] for block in used)
        kinds = [block["type"] for block in message["content"]]
        if message["role"] == "user":
            results = [kind == "tool_result" for kind in kinds]
            assert results == sorted(results, reverse=True), "results come first"
            assert {"tool_result", "text", "image"} >= set(kinds)
        else:
            assert {"tool_use", "text", *THOUGHTS} >= set(kinds)
            assert kinds[-1] not in THOUGHTS
            assert kinds[0] in THOUGHTS or not any(kind in THOUGHTS for kind in kinds)
        for call, block in zip(used, given_back, strict=True):
            check_blocks(block["content"])
            text = "\n".join(part["text"] for part in block["content"] if part["type"] == "text")
            answered.append((json.dumps(call["input"], ensure_ascii=False, separators=(",", ":")), text))
    if messages and messages[-1]["role"] == "assistant":
        assert messages[-1]["content"][-1]["text"] == messages[-1]["content"][-1]["text"].rstrip()
    return answered


def pairs(messages: list[Message]) -> Iterator[tuple[dict[str, Any], Message | None]]:
    """Pair each call with its result in the obvious way: look back from every result."""
    found: dict[tuple[int, int], Message] = {}
    for place, message in enumerate(messages):
        if message.role != "toolResult":
            continue
        for before in reversed(range(place)):
            same = [
                number
                for number, call in enumerate(messages[before].calls)
                if str(call["id"]) == str(message.value["toolCallId"])
            ]
            if same:
                waiting = [number for number in same if (before, number) not in found]
                if waiting:
                    found[before, waiting[0]] = message
                break
    for place, message in enumerate(messages):
        for number, call in enumerate(message.calls):
            yield call, found.get((place, number))


def check_all(messages: Iterable[Message], *, by_pairs: bool = False) -> None:
    known = list(context.as_three_roles(messages))
    chat = check_chat(providers.for_chat_completions(known))
    responses = check_responses(providers.for_responses(known))
    anthropic = check_anthropic(providers.for_anthropic(known))
    assert len(chat) == len(responses) == len(anthropic) == sum(len(message.calls) for message in known)
    if not by_pairs:
        return
    for (call, result), *three in zip(pairs(known), chat, responses, anthropic, strict=True):
        for arguments, text in three:
            if isinstance(call["arguments"], dict):
                assert arguments == dumps(call["arguments"])
            if result is None:
                assert text == "No result provided"
            else:
                for part in map(text_of, result.blocks):
                    assert not part.strip() or clean(part) in text


SESSIONS = sorted(
    [*(GOLDEN / "sessions").glob("*.jsonl"), *(GOLDEN / "probe").glob("*.jsonl"), *GOLDEN.glob("pi160/*.jsonl")]
)


NO_SESSIONS = {"empty.jsonl", "not-a-session.jsonl", "whitespace-only.jsonl"}


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_leaf_of_every_golden_session(path: Path) -> None:
    if path.name in NO_SESSIONS:
        with pytest.raises(InputError):
            pi.load(path.read_bytes())
        return
    session = pi.load(path.read_bytes())
    for leaf in (None, *session):
        check_all(context.build_context(session, leaf).messages, by_pairs=True)


@pytest.mark.skipif(not REAL.is_dir(), reason="the real sessions are not beside this checkout")
def test_real_sessions() -> None:
    for path in sorted(REAL.glob("*.jsonl")):
        session = pi.load(path.read_bytes())
        for leaf in session.leaves():
            check_all(context.build_context(session, leaf).messages, by_pairs=True)


TEXT = st.sampled_from(["", " \n", "hi", "</summary>", "漢\ud83d"])
ID = st.sampled_from(["c1", "c2", "c1", "call|1", "call|2", "x" * 80, "x" * 40, "c1_2", "", "é", "e\udc80", None])
BLOCK = st.one_of(
    TEXT.map(lambda text: {"type": "text", "text": text}),
    st.sampled_from(["image/png", "image/bmp", ""]).map(
        lambda kind: {"type": "image", "data": "aGk=", "mimeType": kind}
    ),
    st.builds(
        lambda sig, thought, hidden: {
            "type": "thinking",
            "thinking": thought,
            "thinkingSignature": sig,
            "redacted": hidden,
        },
        st.sampled_from([None, "sig", "sig", "", 1, "\ud83d"]),
        st.sampled_from(["hm", "", None, 3, "\ud83d"]),
        st.booleans(),
    ),
    st.sampled_from([{"type": "unknown"}, {"type": "image"}, {"type": "image", "data": "*", "mimeType": "image/png"}]),
)
CALL = st.builds(
    lambda id, name, arguments: {"type": "toolCall", "id": id, "name": name, "arguments": arguments},
    ID,
    st.sampled_from(["read", "mcp.do it", ""]),
    st.sampled_from([{}, {"path": "a"}, None, "text", {"path": ["\ud83d", {"\ud83d": [1e999]}]}]),
)
MESSAGE = st.one_of(
    st.builds(lambda content: {"role": "user", "content": content}, st.one_of(TEXT, st.lists(BLOCK, max_size=3))),
    st.builds(
        lambda content, api: {"role": "assistant", "content": content, "api": api},
        st.lists(st.one_of(BLOCK, CALL), max_size=4),
        st.sampled_from(["anthropic-messages", "openai-responses", None, 1, True]),
    ),
    st.builds(
        lambda id, content, bad: {
            "role": "toolResult", "toolCallId": id, "toolName": "read", "content": content, "isError": bad
        },
        ID,
        st.lists(BLOCK, max_size=2),
        st.booleans(),
    ),
    st.builds(lambda text: {"role": "system", "content": text, "sections": {"a": text}}, TEXT),
    st.builds(lambda text: {"role": "compactionSummary", "summary": text}, TEXT),
    st.just({"role": "bashExecution", "command": "ls", "output": ""}),
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(MESSAGE, max_size=10))
def test_any_history(values: list[dict[str, Any]]) -> None:
    check_all([Message(value) for value in values], by_pairs=True)


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            MESSAGE.map(lambda message: {"type": "message", "message": message}),
            MESSAGE.map(lambda message: {"type": "message", "message": message}),
            st.builds(
                lambda target, replacement: {
                    "type": "context_edit",
                    "targetId": f"e{target}",
                    "replacement": replacement,
                },
                st.integers(0, 11),
                st.one_of(st.none(), st.lists(BLOCK, max_size=2).map(lambda content: {"content": content}), TEXT),
            ),
            st.builds(
                lambda first, text: {"type": "compaction", "firstKeptEntryId": f"e{first}", "summary": text},
                st.integers(0, 11),
                TEXT,
            ),
            TEXT.map(lambda text: {"type": "branch_summary", "summary": text}),
            TEXT.map(lambda text: {"type": "custom_message", "content": text}),
        ),
        max_size=12,
    )
)
def test_any_session_with_edits_and_compactions(values: list[dict[str, Any]]) -> None:
    entries = [
        entry_of({**value, "id": f"e{place}", "parentId": f"e{place - 1}" if place else None, "timestamp": ""})
        for place, value in enumerate(values)
    ]
    session = Session(entries)
    check_all(context.build_context(session, session.leaf).messages, by_pairs=True)


def assistant(*calls: str) -> Message:
    return Message(
        {"role": "assistant", "content": [{"type": "toolCall", "id": id, "name": "t", "arguments": {}} for id in calls]}
    )


def result(id: str, text: str) -> Message:
    return Message(
        {"role": "toolResult", "toolCallId": id, "toolName": "t", "content": [{"type": "text", "text": text}]}
    )


def user(text: str) -> Message:
    return Message({"role": "user", "content": text})


def answers(messages: list[Message]) -> list[tuple[str, str]]:
    chat = providers.for_chat_completions(messages)["messages"]
    return [(m["tool_call_id"], m["content"]) for m in chat if m["role"] == "tool"]


def test_c03_parallel_results_stored_out_of_order_and_twice() -> None:
    history = [user("go"), assistant("a", "b"), result("b", "B"), result("a", "A"), result("a", "again")]
    assert answers(history) == [("a", "A"), ("b", "B")]


def test_c04_a_call_without_a_result_gets_one() -> None:
    assert answers([user("go"), assistant("a", "b"), result("a", "A"), user("stop")]) == [
        ("a", "A"),
        ("b", "No result provided"),
    ]


def test_c02_a_result_without_its_call_becomes_text() -> None:
    (message,) = providers.for_anthropic([result("gone", "the output")])["messages"]
    assert message["role"] == "user"
    assert message["content"][1]["text"] == "the output"


def test_parallel_calls_of_one_id_get_a_result_each() -> None:
    history = [user("go"), assistant("", ""), result("", "first"), result("", "second"), result("", "once more")]
    assert answers(history) == [("call", "first"), ("call_2", "second")]


def test_an_id_that_is_used_again_is_made_unique() -> None:
    history = [user("go"), assistant("a"), result("a", "first"), assistant("a"), result("a", "second")]
    assert answers(history) == [("a", "first"), ("a_2", "second")]


def test_images_of_results_follow_the_batch_in_chat_completions_and_stay_in_place_elsewhere() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    shown = Message({"role": "toolResult", "toolCallId": "a", "toolName": "t", "content": [image]})
    history = [user("go"), assistant("a", "b"), shown, result("b", "B")]
    chat = providers.for_chat_completions(history)["messages"]
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "tool", "user"]
    assert chat[4]["content"][1]["image_url"]["url"] == "data:image/png;base64,aGk="
    first = providers.for_anthropic(history)["messages"][2]["content"][0]
    assert first["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}


def test_signed_thinking_goes_back_to_its_own_provider_only() -> None:
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    said = [thought, {"type": "text", "text": "hi"}]
    own = Message({"role": "assistant", "content": said, "api": "anthropic-messages"})
    other = Message({"role": "assistant", "content": said, "api": "openai-responses"})
    blocks = providers.for_anthropic([user("go"), own])["messages"][1]["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "hm", "signature": "sig"}
    assert [b["type"] for b in providers.for_anthropic([user("go"), other])["messages"][1]["content"]] == ["text"]
    proxied = Message(
        {"role": "assistant", "content": said, "api": "anthropic-messages", "provider": "x", "model": "y"}
    )
    assert [b["type"] for b in providers.for_anthropic([user("go"), proxied])["messages"][1]["content"]] == ["text"]
    hidden = Message({"role": "assistant", "content": [{**thought, "redacted": True}, said[1]], "api": "anthropic"})
    blocks = providers.for_anthropic([user("go"), hidden])["messages"][1]["content"]
    assert blocks[0] == {"type": "redacted_thinking", "data": "sig"}


def test_thinking_is_never_last_and_comes_first() -> None:
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    text = {"type": "text", "text": "hi "}

    def kinds(*contents: list[dict[str, Any]]) -> list[str]:
        said = [Message({"role": "assistant", "content": content, "api": "anthropic-messages"}) for content in contents]
        (_, answer) = providers.for_anthropic([user("go"), *said])["messages"]
        assert answer["content"][-1]["text"] == "hi", "a last answer ends in no blanks"
        return [block["type"] for block in answer["content"]]

    assert kinds([thought], [text, thought], [thought, text]) == ["thinking", "text", "text"]
    assert kinds([thought, text], [thought, text]) == ["thinking", "text", "thinking", "text"]
    only = Message({"role": "assistant", "content": [thought], "api": "anthropic-messages"})
    for request in (providers.for_anthropic, providers.for_chat_completions, providers.for_responses):
        (messages,) = request([only, user("go")]).values()
        assert [message["role"] for message in messages] == ["user"], "nothing but thinking is nothing said"


def test_an_aborted_answer_stays_as_far_as_it_got() -> None:
    call = {"type": "toolCall", "id": "a", "name": "t", "arguments": {}}
    empty = Message({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "overloaded"})
    begun = Message({"role": "assistant", "content": [call], "stopReason": "aborted"})
    history = [user("go"), empty, begun, user("stop")]
    assert [m["role"] for m in providers.for_chat_completions(history)["messages"]] == [
        "user", "assistant", "tool", "user"
    ]  # fmt: skip
    assert answers(history) == [("a", "No result provided")]


def test_an_image_that_cannot_be_sent_is_named() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/bmp"}
    (message,) = providers.for_chat_completions([Message({"role": "user", "content": [image]})])["messages"]
    assert message["content"] == "[image: image/bmp]"
    (_, said) = providers.for_anthropic(
        [user("draw"), Message({"role": "assistant", "content": [{**image, "mimeType": "image/png"}]})]
    )["messages"]
    assert said["content"] == [{"type": "text", "text": "[image: image/png]"}]


def test_ids_of_responses_are_those_of_the_calls() -> None:
    history = [user("go"), assistant("call_1|fc_1", "call_2|fc_2"), result("call_2|fc_2", "B")]
    items = providers.for_responses(history)["input"]
    assert [item["call_id"] for item in items if "call_id" in item] == ["call_1", "call_2", "call_1", "call_2"]


def test_arguments_nested_deeper_than_python_recurses() -> None:
    nested: dict[str, Any] = {}
    for _ in range(100_000):
        nested = {"a": [nested]}
    call = {"type": "toolCall", "id": "a", "name": "t", "arguments": nested}
    history = [user("go"), Message({"role": "assistant", "content": [call]})]
    made = providers.for_anthropic(history)["messages"][1]["content"][0]["input"]
    depth = 0
    while made:
        made, depth = made["a"][0], depth + 1
    assert depth == 100_000
    text = providers.for_chat_completions(history)["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert text.count("{") == 100_001


def test_cost_grows_with_the_history_not_with_its_square() -> None:
    """Local models number the calls of each answer anew: every id is `call_0`."""

    def steps(count: int) -> int:
        history = [user("go"), *(m for _ in range(count) for m in (assistant("call_0"), result("call_0", "x")))]
        done = 0

        def step(*_: object) -> None:
            nonlocal done
            done += 1

        sys.setprofile(step)
        try:
            providers.for_anthropic(history)
        finally:
            sys.setprofile(None)
        return done

    assert steps(2000) < 11 * steps(200)
