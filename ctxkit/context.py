"""What the model gets for a leaf: the path as messages, after compactions and context edits; and as plain text.

Path -> entries that count (Pi §3.3) -> messages (Pi §3.4) -> the three roles that a model knows (Pi §4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ctxkit.entry import Entry, Message, clean, disarm, in_order, millis, stringify, text_of
from ctxkit.session import Session

COMPACTION_BEFORE = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
)
COMPACTION_AFTER = "\n</summary>"
BRANCH_BEFORE = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
BRANCH_AFTER = "</summary>"
RESULT_UNITS = 2000  # UTF-16 units of a tool result that a serialised conversation keeps (Pi §7.7)
EDITABLE = frozenset({"user", "assistant", "toolResult", "custom"})


class Settings(NamedTuple):
    """What a path says about the model to be asked: None where it says nothing."""

    thinking_level: str
    provider: str | None
    model: str | None


class Context(NamedTuple):
    """The messages for a leaf, each with the entry it came from.

    `settled` is the index of the first message after the last compaction or context edit: usage that a provider
    reported before it speaks of a context that is no more (Pi §7.3).
    """

    messages: list[Message]
    settings: Settings
    settled: int


def build_context(session: Session, leaf: str | None) -> Context:
    """Build what the model gets for a leaf; None is the place before the first entry."""
    path = list(session.entries(session.path(leaf)))
    counted = entries_that_count(path)
    messages = list(project(counted))
    changed = {e.id for e in path if e.type in ("compaction", "context_edit")}
    positions = {entry.id: place for place, entry in enumerate(path)}
    last_change = max((positions[id] for id in changed), default=-1)
    settled = len(messages)
    while settled and positions[messages[settled - 1].entry_id] > last_change:
        settled -= 1
    return Context(messages, settings_of(path), settled)


def settings_of(path: Iterable[Entry]) -> Settings:
    """Return the thinking level and the model that a path ends with; compactions do not matter (Pi §3.2)."""
    level, provider, model = "off", None, None
    for entry in path:
        value = entry.value
        if entry.type == "thinking_level_change":
            level = _string(value.get("thinkingLevel")) or level
        elif entry.type == "model_change":
            provider, model = _string(value.get("provider")), _string(value.get("modelId"))
        elif entry.type == "message" and entry.message.get("role") == "assistant":
            message = entry.message
            if "provider" in message and "model" in message:
                provider, model = _string(message.get("provider")), _string(message.get("model"))
    return Settings(level, provider, model)


def entries_that_count(path: Sequence[Entry]) -> list[Entry]:
    """Return the entries of a path after its last compaction: that one, what it kept, and all that follows (Pi §3.3).

    What was kept begins at `firstKeptEntryId` and has no system messages. Where that id is not on the path before the
    compaction, nothing was kept.
    """
    at = next((place for place in range(len(path) - 1, -1, -1) if path[place].type == "compaction"), None)
    if at is None:
        return list(path)
    first = path[at].value.get("firstKeptEntryId")
    begin = next((place for place in range(at) if path[place].id == first), at)
    kept = [entry for entry in path[begin:at] if not _is_system(entry)]
    return [path[at], *kept, *path[at + 1 :]]


def project(entries: Sequence[Entry]) -> Iterator[Message]:
    """Turn entries into messages; of several edits of one entry the last counts (Pi §3.4)."""
    edits = {}
    for entry in entries:
        if entry.type == "context_edit" and isinstance(entry.value.get("targetId"), str):
            edits[entry.value["targetId"]] = entry.value.get("replacement")
    for place, entry in enumerate(entries):
        edited = entry.id in edits
        if edited and edits[entry.id] is None:
            continue
        for message in _messages_of(entry, first=place == 0):
            yield _edited(message, edits[entry.id]) if edited else message


def as_three_roles(messages: Iterable[Message]) -> Iterator[Message]:
    """Turn Pi's own roles into user messages; commands that were kept from the model are left out (Pi §4).

    Text that stands in `<summary>` tags cannot close them.
    """
    for message in messages:
        value = message.value
        if message.role in ("user", "assistant", "toolResult", "system"):
            yield message
        elif message.role == "bashExecution":
            if not value.get("excludeFromContext"):
                yield _user(message, [_text(_bash_text(value))])
        elif message.role == "custom":
            content = value.get("content")
            yield _user(message, [_text(content)] if isinstance(content, str) else content)
        elif message.role == "compactionSummary":
            summary = disarm(_string(value.get("summary")), "summary")
            yield _user(message, [_text(COMPACTION_BEFORE + summary + COMPACTION_AFTER)])
        elif message.role == "branchSummary":
            summary = disarm(_string(value.get("summary")), "summary")
            yield _user(message, [_text(BRANCH_BEFORE + summary + BRANCH_AFTER)])


def with_system(messages: Iterable[Message], prompt: str) -> list[Message]:
    """Return the messages under another system prompt: those of the session are left out."""
    return [Message({"role": "system", "content": prompt}), *(m for m in messages if m.role != "system")]


def serialize(messages: Iterable[Message]) -> str:
    """Write a conversation of the three roles as text, tool results cut to RESULT_UNITS (Pi §7.7).

    Thinking, images and system messages are left out; half a surrogate pair becomes U+FFFD.
    """
    parts: list[str] = []
    for message in messages:
        if message.role == "user":
            text = "".join(_texts(message))
            parts += [f"[User]: {text}"] if text else []
        elif message.role == "assistant":
            texts = _texts(message)
            parts += ["[Assistant]: " + "\n".join(texts)] if texts else []
            calls = "; ".join(_call_text(call) for call in message.calls)
            parts += [f"[Assistant tool calls]: {calls}"] if calls else []
        elif message.role == "toolResult":
            text = "".join(_texts(message))
            parts += [f"[Tool result]: {cut_result(text)}"] if text else []
    return clean("\n\n".join(parts))


def cut_result(text: str) -> str:
    """Cut the text of a tool result to RESULT_UNITS of UTF-16, and say how many more there were (Pi §7.7)."""
    if len(text) <= RESULT_UNITS // 2:
        return text
    units = text.encode("utf-16-le", "surrogatepass")
    length = len(units) // 2
    if length <= RESULT_UNITS:
        return text
    end = 2 * RESULT_UNITS
    if 0xD8 <= units[end - 1] <= 0xDB and 0xDC <= units[end + 1] <= 0xDF:
        end -= 2  # not between the halves of a character
    kept = units[:end].decode("utf-16-le", "surrogatepass")
    return f"{kept}\n\n[... {length - RESULT_UNITS} more characters truncated]"


def _messages_of(entry: Entry, *, first: bool) -> Iterator[Message]:
    value = entry.value
    if entry.type == "message":
        if "message" in value:
            yield Message(_with_content(entry.message), entry.id)
    elif entry.type == "custom_message":
        content = value.get("content")
        message = {
            "role": "custom",
            "customType": value.get("customType"),
            "content": [] if content is None else content,
            "display": value.get("display"),
        }
        if "details" in value:
            message["details"] = value["details"]
        yield Message({**message, "timestamp": millis(entry.timestamp)}, entry.id)
    elif entry.type == "branch_summary":
        if value.get("summary"):
            made = {"role": "branchSummary", "summary": value["summary"], "fromId": value.get("fromId")}
            yield Message({**made, "timestamp": millis(entry.timestamp)}, entry.id)
    elif entry.type == "compaction" and first:
        system = value.get("systemMessage")
        if isinstance(system, dict):
            yield Message(_with_content(system), entry.id)
        made = {
            "role": "compactionSummary",
            "summary": value.get("summary"),
            "tokensBefore": value.get("tokensBefore"),
        }
        yield Message({**made, "timestamp": millis(entry.timestamp)}, entry.id)


def _with_content(message: dict[str, Any]) -> dict[str, Any]:
    """Give a message whose content is null, in an old or hand-edited file, an empty one (Pi §2)."""
    role = message.get("role")
    if message.get("content") is None and role in ("user", "assistant", "toolResult", "system"):
        return {**message, "content": "" if role == "system" else []}
    return message


def _edited(message: Message, replacement: object) -> Message:
    content = replacement.get("content") if isinstance(replacement, dict) else None
    if message.role not in EDITABLE or content is None:
        return message
    if isinstance(content, str) and message.role in ("assistant", "toolResult"):
        content = [_text(content)]
    return message._replace(value={**message.value, "content": content})


def _is_system(entry: Entry) -> bool:
    return entry.type == "message" and entry.message.get("role") == "system"


def _user(message: Message, content: object) -> Message:
    return message._replace(value={"role": "user", "content": content, "timestamp": message.value.get("timestamp")})


def _bash_text(value: dict[str, Any]) -> str:
    output = _string(value.get("output"))
    text = f"Ran `{_string(value.get('command'))}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    code = value.get("exitCode")
    if value.get("cancelled"):
        text += "\n\n(command cancelled)"
    elif code is not None and code != 0:
        text += f"\n\nCommand exited with code {stringify(code)}"
    if value.get("truncated") and value.get("fullOutputPath"):
        text += f"\n\n[Output truncated. Full output: {value['fullOutputPath']}]"
    return text


def _texts(message: Message) -> list[str]:
    return [text_of(block) for block in message.blocks if block.get("type") == "text"]


def _call_text(call: dict[str, Any]) -> str:
    arguments = call.get("arguments")
    pairs = arguments.items() if isinstance(arguments, dict) else ()
    return f"{_string(call.get('name'))}({', '.join(f'{key}={stringify(value)}' for key, value in in_order(pairs))})"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
