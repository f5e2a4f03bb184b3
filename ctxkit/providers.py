"""Messages as the requests of the providers: OpenAI's chat completions and responses, Anthropic's messages.

What each provider demands holds by construction: every call has one result, right after it; parallel calls stay
together; there are no empty texts; a user speaks first; ids and names are spelled as the providers allow; no text has
half a surrogate pair, which providers refuse.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, NamedTuple

from ctxkit.entry import Message, clean, dumps, text_of

NO_RESULT = "No result provided"  # Pi §4
NO_OUTPUT = "(no output)"
ONLY_IMAGES = "(only images, which follow)"
BEGINNING = "[The beginning of this conversation is not in the history.]"
IMAGE_TYPES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
LONGEST_NAME = 64  # characters of a tool name, OpenAI and Anthropic
LONGEST_ID = 40  # characters of a call's id, OpenAI's chat completions
_FOREIGN = re.compile("[^a-zA-Z0-9_-]")
_BASE64 = re.compile("[A-Za-z0-9+/]+={0,2}")
_THOUGHTS = ("redacted_thinking", "thinking")


class Call(NamedTuple):
    """A tool call and its result; an id that is unique in the request; what of the result can be sent."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: Message | None
    blocks: list[dict[str, Any]]


class Turn(NamedTuple):
    """What one side says before the other does: blocks of text, images and thinking; then calls, with their results.

    `role` is `user`, `assistant` or `system`. Texts are not empty, images are of a type that every provider takes, and
    thinking is what Anthropic signed and takes back.
    """

    role: str
    blocks: list[dict[str, Any]]
    calls: list[Call]


def turns(messages: Sequence[Message]) -> list[Turn]:
    """Pair calls with results and leave out what says nothing; the messages are those of `as_three_roles`.

    A result goes to the last answer before it that calls with its id, there to the first call without one; where all
    have theirs it is left out, as the same one again. One without a call becomes text of the user, so that it is not
    lost. Answers that were aborted stay as far as they got. System messages are replayed into one, which comes first.
    """
    results, orphans = _pair(messages)
    taken: dict[str, int] = {}
    found: list[Turn] = []
    prompt = _system_prompt(messages)
    if prompt.strip():
        found.append(Turn("system", [{"type": "text", "text": prompt}], []))
    for place, message in enumerate(messages):
        if message.role == "system":
            continue
        if message.role == "assistant":
            calls = [
                _call(_unique(call.get("id"), "call", taken), call, results.get((place, number)))
                for number, call in enumerate(message.calls)
            ]
            turn = Turn("assistant", _said(message, calls), calls)
        elif message.role == "toolResult":
            if place not in orphans:
                continue
            name = _spelled(message.value.get("toolName"), "tool")
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
            out.append({"role": turn.role, "content": _chat_content(turn.blocks)})
            continue
        said: dict[str, Any] = {"role": "assistant", "content": _joined(turn.blocks) or None}
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
                images += [{"type": "text", "text": f"Images of the result of {call.name}:"}, *map(_chat_block, shown)]
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
    """Return system prompt and messages of a request to Anthropic: the sides take turns, results come first in one.

    What the assistant says begins with its thinking, where there is any, and never ends with it. A last answer has no
    blanks at its end.
    """
    system: list[str] = []
    out: list[dict[str, Any]] = []

    def say(role: str, blocks: Iterable[dict[str, Any]]) -> None:
        added = list(blocks)
        if added and out and out[-1]["role"] == role:
            out[-1]["content"] += added
        elif added:
            out.append({"role": role, "content": added})

    for turn in turns(messages):
        if turn.role == "system":
            system.append(_joined(turn.blocks))
        elif turn.role == "user":
            say("user", map(_anthropic_block, turn.blocks))
        else:
            used = [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": _copy(call.arguments)}
                for call in turn.calls
            ]
            say("assistant", [*map(_anthropic_block, turn.blocks), *used])
            say("user", map(_anthropic_result, turn.calls))
    for message in out:
        content = message["content"]
        if content[0]["type"] not in _THOUGHTS:  # else the order of its provider stays
            content.sort(key=lambda block: block["type"] not in _THOUGHTS)
    if out and out[-1]["role"] == "assistant":
        last = out[-1]["content"][-1]
        last["text"] = last["text"].rstrip()
    request: dict[str, Any] = {"system": "\n\n".join(system)} if system else {}
    return {**request, "messages": out}


def _pair(messages: Sequence[Message]) -> tuple[dict[tuple[int, int], Message], set[int]]:
    """Return the result of each call, by the places of both in the messages, and the places of results without one."""
    waiting: dict[str, deque[tuple[int, int]]] = {}  # by id: calls without a result, of the last answer that has it
    results: dict[tuple[int, int], Message] = {}
    orphans: set[int] = set()
    for place, message in enumerate(messages):
        called: dict[str, deque[tuple[int, int]]] = {}
        for number, call in enumerate(message.calls):
            called.setdefault(str(call.get("id")), deque()).append((place, number))
        waiting |= called
        if message.role == "toolResult":
            open_calls = waiting.get(str(message.value.get("toolCallId")))
            if open_calls is None:
                orphans.add(place)
            elif open_calls:
                results[open_calls.popleft()] = message
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
    return clean("\n\n".join(text for text in (*texts, *sections.values()) if text.strip()))


def _unique(text: object, otherwise: str, taken: dict[str, int]) -> str:
    """Spell an id as providers allow, unlike all that are taken; `taken` says how many more were made of each.

    Of an id of OpenAI's responses, two with a bar between them, the first is the call's.
    """
    text = text.partition("|")[0] if isinstance(text, str) else text
    base = made = _spelled(text, otherwise)[:LONGEST_ID]
    more = taken.get(base, 0)
    while made in taken:
        more += 1
        end = f"_{more + 1}"
        made = base[: LONGEST_ID - len(end)] + end
    taken[base] = more
    taken.setdefault(made, 0)
    return made


def _spelled(text: object, otherwise: str) -> str:
    return _FOREIGN.sub("_", text)[:LONGEST_NAME] or otherwise if isinstance(text, str) else otherwise


def _call(id: str, call: dict[str, Any], result: Message | None) -> Call:
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):  # providers demand an object
        arguments = {} if arguments is None else {"arguments": arguments}
    return Call(id, _spelled(call.get("name"), "tool"), arguments, result, [] if result is None else _blocks(result))


def _said(message: Message, calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Return what an answer says before its calls; thinking that led to nothing is left out."""
    blocks = _blocks(message, thinks=_is_of_anthropic(message))
    while blocks and not calls and blocks[-1]["type"] == "thinking":
        blocks.pop()
    return blocks


def _is_of_anthropic(message: Message) -> bool:
    """Tell whether an answer is Anthropic's own; others that speak its protocol sign thinking in other ways."""
    api, provider, model = (message.value.get(key) for key in ("api", "provider", "model"))
    return "anthropic" in str(api) and (provider in (None, "anthropic") or "claude" in str(model))


def _blocks(message: Message, *, thinks: bool = False) -> list[dict[str, Any]]:
    """Return the blocks of a message that have something in them, fit to be sent."""
    found: list[dict[str, Any]] = []
    for block in message.blocks:
        kind = block.get("type")
        if kind == "text":
            text = clean(text_of(block))
            found += [{"type": "text", "text": text}] if text.strip() else []
        elif kind == "image":
            found.append(_image(block, shown=message.role != "assistant"))
        elif kind == "thinking" and thinks and isinstance(block.get("thinkingSignature"), str):
            found += [block] if block["thinkingSignature"] else []
    return found


def _image(block: dict[str, Any], *, shown: bool) -> dict[str, Any]:
    """Return an image; one that no provider takes, as from an assistant, is named in a text."""
    kind, data = block.get("mimeType"), block.get("data")
    if shown and isinstance(kind, str) and kind in IMAGE_TYPES and isinstance(data, str) and _BASE64.fullmatch(data):
        return block
    named = kind if isinstance(kind, str) and kind else "of no known type"
    return {"type": "text", "text": clean(f"[image: {named}]")}


def _joined(blocks: Iterable[dict[str, Any]]) -> str:
    return "\n".join(text_of(block) for block in blocks if block["type"] == "text")


def _result_text(call: Call) -> str:
    if call.result is None:
        return NO_RESULT
    return _joined(call.blocks) or (ONLY_IMAGES if _images(call) else NO_OUTPUT)


def _images(call: Call) -> list[dict[str, Any]]:
    return [block for block in call.blocks if block["type"] == "image"]


def _data_url(block: dict[str, Any]) -> str:
    return f"data:{block['mimeType']};base64,{block['data']}"


def _chat_content(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if all(block["type"] == "text" for block in blocks):
        return _joined(blocks)
    return [_chat_block(block) for block in blocks]


def _chat_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "image":
        return {"type": "image_url", "image_url": {"url": _data_url(block)}}
    return block


def _responses_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "image":
        return {"type": "input_image", "image_url": _data_url(block), "detail": "auto"}
    return {"type": "input_text", "text": block["text"]}


def _responses_output(call: Call) -> str | list[dict[str, Any]]:
    return [_responses_block(block) for block in call.blocks] if _images(call) else _result_text(call)


def _anthropic_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "image":
        source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
        return {"type": "image", "source": source}
    if block["type"] == "text":
        return block
    thought, signature = block.get("thinking"), clean(block["thinkingSignature"])
    if block.get("redacted"):
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": clean(thought) if isinstance(thought, str) else "", "signature": signature}


def _anthropic_result(call: Call) -> dict[str, Any]:
    content = [_anthropic_block(block) for block in call.blocks]
    failed = call.result is None or call.result.value.get("isError") is True
    result = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": content or [{"type": "text", "text": _result_text(call)}],
    }
    return {**result, "is_error": True} if failed else result


def _copy(arguments: dict[str, Any]) -> dict[str, Any]:
    """Copy arguments as `dumps` would write them: no half surrogate pairs, null for numbers that JSON has not."""
    made: dict[str, Any] = {}
    todo: list[tuple[Any, Any]] = [(arguments, made)]  # no recursion: arguments may be nested as deep as can be read
    while todo:
        old, new = todo.pop()
        for key, member in old.items() if isinstance(old, dict) else enumerate(old):
            kept: Any = member
            if isinstance(member, str):
                kept = clean(member)
            elif isinstance(member, float) and not isfinite(member):
                kept = None
            elif isinstance(member, (dict, list)):
                kept = type(member)()
                todo.append((member, kept))
            if isinstance(new, list):
                new.append(kept)
            else:
                new[clean(str(key))] = kept
    return made
