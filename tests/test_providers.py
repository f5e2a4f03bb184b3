"""Requests hold what the providers demand, checked by their own published types and by rules written here anew."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import MessageParam
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from ctxkit import context, providers
from ctxkit.agents import pi
from ctxkit.entry import Message
from ctxkit.errors import InputError

GOLDEN = Path(__file__).parent / "golden"
REAL = Path(__file__).parents[2] / "shared" / "sessions" / "pi"
CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
RESPONSES: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])
ANTHROPIC: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_chat(request: dict[str, Any]) -> None:
    messages = request["messages"]
    CHAT.validate_python(messages)
    said = [message for message in messages if message["role"] != "system"]
    assert not said or said[0]["role"] == "user"
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert open_calls.pop(0) == message["tool_call_id"]
            assert message["content"].strip()
            continue
        assert open_calls == [], "every call is answered before anything else is said"
        if message["role"] == "assistant":
            assert message["content"] or message.get("tool_calls")
            for call in message.get("tool_calls", ()):
                assert NAME.fullmatch(call["id"])
                assert len(call["id"]) <= 40
                assert NAME.fullmatch(call["function"]["name"])
                assert call["id"] not in seen
                seen.add(call["id"])
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                open_calls.append(call["id"])
        elif isinstance(message["content"], list):
            assert message["content"]
            assert all(part["type"] != "text" or part["text"].strip() for part in message["content"])
        else:
            assert message["content"].strip()
    assert open_calls == []


def check_responses(request: dict[str, Any]) -> None:
    items = request["input"]
    RESPONSES.validate_python(items)
    said = [item for item in items if item.get("role") != "system"]
    assert not said or said[0].get("role") == "user"
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert calls == outputs
    assert len(set(calls)) == len(calls)


def check_anthropic(request: dict[str, Any]) -> None:
    messages = request["messages"]
    ANTHROPIC.validate_python(messages)
    assert not messages or messages[0]["role"] == "user"
    assert "system" not in request or request["system"].strip()
    for before, after in itertools.pairwise(messages):
        assert before["role"] != after["role"]
    for place, message in enumerate(messages):
        used = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        following = messages[place + 1]["content"] if place + 1 < len(messages) else []
        given_back = [block["tool_use_id"] for block in following if block["type"] == "tool_result"]
        assert used == given_back
        assert len(set(used)) == len(used)
        assert all(NAME.fullmatch(id) for id in used)
        results = [block["type"] == "tool_result" for block in message["content"]]
        assert results == sorted(results, reverse=True), "results come first"
        for block in message["content"]:
            assert block["type"] != "text" or block["text"].strip()
            if block["type"] == "tool_result":
                assert block["content"]
                assert all(part["type"] != "text" or part["text"].strip() for part in block["content"])


def check_all(messages: Iterable[Message]) -> None:
    known = list(context.as_three_roles(messages))
    check_chat(providers.for_chat_completions(known))
    check_responses(providers.for_responses(known))
    check_anthropic(providers.for_anthropic(known))


SESSIONS = sorted(
    [*(GOLDEN / "sessions").glob("*.jsonl"), *(GOLDEN / "probe").glob("*.jsonl"), *GOLDEN.glob("pi160/*.jsonl")]
)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_leaf_of_every_golden_session(path: Path) -> None:
    try:
        session = pi.load(path.read_bytes())
    except InputError:
        pytest.skip("no session, on purpose")
    for leaf in (None, *session):
        check_all(context.build_context(session, leaf).messages)


@pytest.mark.skipif(not REAL.is_dir(), reason="the real sessions are not beside this checkout")
def test_real_sessions() -> None:
    for path in sorted(REAL.glob("*.jsonl")):
        session = pi.load(path.read_bytes())
        check_all(context.build_context(session, session.leaf).messages)


TEXT = st.sampled_from(["", " \n", "hi", "</summary>", "漢\ud83d"])
ID = st.sampled_from(["c1", "c2", "c1", "call|1", "x" * 80, "", "é"])
BLOCK = st.one_of(
    TEXT.map(lambda text: {"type": "text", "text": text}),
    st.sampled_from(["image/png", "image/bmp", ""]).map(
        lambda kind: {"type": "image", "data": "aGk=", "mimeType": kind}
    ),
    st.sampled_from([None, "sig"]).map(lambda sig: {"type": "thinking", "thinking": "hm", "thinkingSignature": sig}),
    st.just({"type": "unknown"}),
)
CALL = st.builds(
    lambda id, name, arguments: {"type": "toolCall", "id": id, "name": name, "arguments": arguments},
    ID,
    st.sampled_from(["read", "mcp.do it", ""]),
    st.sampled_from([{}, {"path": "a"}, None, "text"]),
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
    check_all([Message(value) for value in values])


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
