"""Messages as the requests of the providers: OpenAI's chat completions and responses, Anthropic's messages.

What each provider demands holds by construction: every call has one result, right after it; parallel calls stay
together; there are no empty texts; a user speaks first; ids and names are spelled as the providers allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ctxkit.entry import Message, dumps, text_of

NO_RESULT = "No result provided"  # Pi §4
NO_OUTPUT = "(no output)"
BEGINNING = "[The beginning of this conversation is not in the history.]"
IMAGE_TYPES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
LONGEST_NAME = 64  # characters of a tool name, OpenAI and Anthropic
LONGEST_ID = 40  # characters of a call's id, OpenAI's chat completions
_FOREIGN = re.compile("[^a-zA-Z0-9_-]")


class Call(NamedTuple):
    """A tool call and its result; an id that is unique in the request."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: Message | None


class Turn(NamedTuple):
    """What one side says before the other does: blocks of text, images and thinking; then calls, with their results.

    `role` is `user`, `assistant` or `system`.
    """

    role: str
    blocks: list[dict[str, Any]]
    calls: list[Call]
    native: bool = False  # an answer of Anthropic's own, whose signed thinking it takes back


def turns(messages: Sequence[Message]) -> list[Turn]:
    """Pair calls with results and leave out what says nothing; the messages are those of `as_three_roles`.

    A result goes to the last call before it that has its id and none yet; a second one is left out; one without a call
    becomes text of the user, so that it is not lost. System messages are replayed into one, which comes first.
    """
    results, orphans = _pair(messages)
    taken: set[str] = set()
    found: list[Turn] = []
    prompt = _system_prompt(messages)
    if prompt.strip():
        found.append(Turn("system", [{"type": "text", "text": prompt}], []))
    for place, message in enumerate(messages):
        if message.role == "system":
            continue
        if message.role == "assistant":
            calls = [
                Call(
                    _unique(call.get("id"), "call", taken),
                    _spelled(call.get("name"), "tool"),
                    call["arguments"] if isinstance(call.get("arguments"), dict) else {},
                    results.get((place, number)),
                )
                for number, call in enumerate(message.calls)
            ]
            native = "anthropic" in str(message.value.get("api"))
            turn = Turn("assistant", _blocks(message), calls, native)
        elif message.role == "toolResult":
            if place not in orphans:
                continue
            name = message.value.get("toolName")
            lead = f"[The result of a call of {name} that is no longer in the history]"
            turn = Turn("user", [{"type": "text", "text": lead}, *_blocks(message)], [])
        else:
            turn = Turn(message.role, _blocks(message), [])
        if turn.blocks or turn.calls:
            found.append(turn)
    first = next((turn for turn in found if turn.role != "system"), None)
    if first is not None and first.role == "assistant":
        found.insert(found.index(first), Turn("user", [{"type": "text", "text": BEGINNING}], []))
    return found


def for_chat_completions(messages: Sequence[Message]) -> dict[str, Any]:
    """Return the messages of a request to OpenAI's chat completions.

    Results cannot hold images there: these follow in a message of the user.
    """
    out: list[dict[str, Any]] = []
    for turn in turns(messages):
        if turn.role != "assistant":
            out.append({"role": turn.role, "content": _chat_content(turn.blocks, turn.role)})
            continue
        text = _joined(turn.blocks)
        if not text and not turn.calls:
            continue  # nothing but thinking
        said: dict[str, Any] = {"role": "assistant", "content": text or None}
        if turn.calls:
            said["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": dumps(call.arguments)},
                }
                for call in turn.calls
            ]
        out.append(said)
        images: list[dict[str, Any]] = []
        for call in turn.calls:
            out.append({"role": "tool", "tool_call_id": call.id, "content": _result_text(call)})
            shown = _images(call)
            if shown:
                images += [{"type": "text", "text": f"Images of the result of {call.name}:"}, *map(_chat_image, shown)]
        if images:
            out.append({"role": "user", "content": images})
    return {"messages": out}


def for_responses(messages: Sequence[Message]) -> dict[str, Any]:
    """Return the input of a request to OpenAI's responses."""
    out: list[dict[str, Any]] = []
    for turn in turns(messages):
        if turn.role == "assistant":
            if text := _joined(turn.blocks):
                out.append({"role": "assistant", "content": text})
            for call in turn.calls:
                arguments = dumps(call.arguments)
                out.append({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
            out += [
                {"type": "function_call_output", "call_id": call.id, "output": _responses_output(call)}
                for call in turn.calls
            ]
        elif turn.role == "system":
            out.append({"role": "system", "content": _joined(turn.blocks)})
        else:
            out.append({"role": "user", "content": [_responses_block(block) for block in turn.blocks]})
    return {"input": out}


def for_anthropic(messages: Sequence[Message]) -> dict[str, Any]:
    """Return system prompt and messages of a request to Anthropic: the sides take turns, results come first in one."""
    system: list[str] = []
    out: list[dict[str, Any]] = []

    def say(role: str, blocks: Iterable[dict[str, Any]]) -> None:
        added = list(blocks)
        if not added:
            return
        if out and out[-1]["role"] == role and not _ends_in_calls(out[-1]):
            out[-1]["content"] += added
        else:
            out.append({"role": role, "content": added})

    for turn in turns(messages):
        if turn.role == "system":
            system.append(_joined(turn.blocks))
        elif turn.role == "user":
            say("user", map(_anthropic_block, turn.blocks))
        else:
            used = [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in turn.calls
            ]
            say("assistant", [*_anthropic_answer(turn), *used])
            say("user", map(_anthropic_result, turn.calls))
    request: dict[str, Any] = {"system": "\n\n".join(system)} if system else {}
    return {**request, "messages": out}


def _pair(messages: Sequence[Message]) -> tuple[dict[tuple[int, int], Message], set[int]]:
    """Return the result of each call, by the places of both in the messages, and the places of results without one."""
    waiting: dict[object, tuple[int, int]] = {}  # the last call of an id
    results: dict[tuple[int, int], Message] = {}
    orphans: set[int] = set()
    for place, message in enumerate(messages):
        for number, call in enumerate(message.calls):
            waiting[str(call.get("id"))] = place, number
        if message.role == "toolResult":
            key = waiting.get(str(message.value.get("toolCallId")))
            if key is None:
                orphans.add(place)
            else:
                results.setdefault(key, message)
    return results, orphans


def _system_prompt(messages: Iterable[Message]) -> str:
    """Replay the system messages into one prompt: their contents, and the sections in force (Pi §2)."""
    texts: list[str] = []
    sections: dict[str, str] = {}
    for message in messages:
        if message.role != "system":
            continue
        texts += [text_of(block) for block in message.blocks]
        changes = message.value.get("sections")
        for name, text in changes.items() if isinstance(changes, dict) else ():
            if isinstance(text, str):
                sections[name] = text
            else:
                sections.pop(name, None)
    return "\n\n".join(text for text in (*texts, *sections.values()) if text.strip())


def _unique(text: object, otherwise: str, taken: set[str]) -> str:
    """Spell an id as providers allow, unlike all that are taken."""
    base = made = _spelled(text, otherwise)[:LONGEST_ID]
    number = 2
    while made in taken:
        end = f"_{number}"
        made = base[: LONGEST_ID - len(end)] + end
        number += 1
    taken.add(made)
    return made


def _spelled(text: object, otherwise: str) -> str:
    return _FOREIGN.sub("_", text)[:LONGEST_NAME] or otherwise if isinstance(text, str) else otherwise


def _blocks(message: Message) -> list[dict[str, Any]]:
    """Return the blocks of a message that have something in them which a provider takes."""
    return [block for block in message.blocks if _says(block, thinks=message.role == "assistant")]


def _says(block: dict[str, Any], *, thinks: bool) -> bool:
    kind = block.get("type")
    if kind == "text":
        return bool(text_of(block).strip())
    if kind == "image":
        return isinstance(block.get("data"), str) and bool(block["data"])
    return thinks and kind == "thinking" and isinstance(block.get("thinkingSignature"), str)


def _joined(blocks: Iterable[dict[str, Any]]) -> str:
    return "\n".join(text_of(block) for block in blocks if block.get("type") == "text")


def _result_blocks(call: Call) -> list[dict[str, Any]]:
    return [] if call.result is None else _blocks(call.result)


def _result_text(call: Call) -> str:
    if call.result is None:
        return NO_RESULT
    return _joined(_result_blocks(call)) or NO_OUTPUT


def _images(call: Call) -> list[dict[str, Any]]:
    return [block for block in _result_blocks(call) if block.get("type") == "image"]


def _media_type(block: dict[str, Any]) -> str:
    kind = block.get("mimeType")
    return kind if isinstance(kind, str) and kind else "application/octet-stream"


def _shown(block: dict[str, Any]) -> bool:
    return block.get("type") == "image" and _media_type(block) in IMAGE_TYPES


def _plain(block: dict[str, Any]) -> str:
    """Return the text of a block; an image that no provider takes is named."""
    return f"[image: {_media_type(block)}]" if block.get("type") == "image" else text_of(block)


def _data_url(block: dict[str, Any]) -> str:
    return f"data:{_media_type(block)};base64,{block['data']}"


def _chat_content(blocks: list[dict[str, Any]], role: str) -> str | list[dict[str, Any]]:
    if role == "system" or not any(map(_shown, blocks)):
        return "\n".join(map(_plain, blocks))
    return [_chat_image(block) for block in blocks]


def _chat_image(block: dict[str, Any]) -> dict[str, Any]:
    if _shown(block):
        return {"type": "image_url", "image_url": {"url": _data_url(block)}}
    return {"type": "text", "text": _plain(block)}


def _responses_block(block: dict[str, Any]) -> dict[str, Any]:
    if _shown(block):
        return {"type": "input_image", "image_url": _data_url(block), "detail": "auto"}
    return {"type": "input_text", "text": _plain(block)}


def _responses_output(call: Call) -> str | list[dict[str, Any]]:
    blocks = _result_blocks(call)
    return [_responses_block(block) for block in blocks] if _images(call) else _result_text(call)


def _anthropic_block(block: dict[str, Any]) -> dict[str, Any]:
    if _shown(block):
        source = {"type": "base64", "media_type": _media_type(block), "data": block["data"]}
        return {"type": "image", "source": source}
    return {"type": "text", "text": _plain(block)}


def _anthropic_answer(turn: Turn) -> Iterator[dict[str, Any]]:
    for block in turn.blocks:
        if block.get("type") != "thinking":
            yield _anthropic_block(block)
        elif turn.native:
            signature = block["thinkingSignature"]
            if block.get("redacted"):
                yield {"type": "redacted_thinking", "data": signature}
            else:
                yield {"type": "thinking", "thinking": block.get("thinking") or "", "signature": signature}


def _anthropic_result(call: Call) -> dict[str, Any]:
    blocks = [_anthropic_block(block) for block in _result_blocks(call)] if call.result is not None else []
    content = blocks or [{"type": "text", "text": _result_text(call)}]
    failed = call.result is None or call.result.value.get("isError") is True
    result = {"type": "tool_result", "tool_use_id": call.id, "content": content}
    return {**result, "is_error": True} if failed else result


def _ends_in_calls(message: dict[str, Any]) -> bool:
    return bool(message["content"][-1]["type"] == "tool_use")
