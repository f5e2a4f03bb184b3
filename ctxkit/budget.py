"""How full the window is: what a message is made of, what that counts, and whether it must be compacted.

Pi's rules (reference: Pi 1.6.0): a quarter of the UTF-16 units of each message, rounded up, 1200 for an image; and what
the provider reported for the last answer, where that still holds, in place of the estimate of all before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctxkit.entry import Message, blocks, stringify, text_of
from ctxkit.tokens import count_utf16

RESERVE = 16_384  # tokens kept free for the answer
IMAGE_TOKENS = 1_200

SYSTEM, TOOLS, USER, TEXT, THINKING, CALL, RESULT, BASH, CUSTOM, SUMMARY, IMAGE = KINDS = (
    "system",
    "tools",
    "user",
    "text",
    "thinking",
    "toolCall",
    "toolResult",
    "bashExecution",
    "custom",
    "summary",
    "image",
)
STARTS_TURN = frozenset({"user", "bashExecution", "custom"})
_BY_ROLE = {"user": USER, "toolResult": RESULT, "custom": CUSTOM}


class Part(NamedTuple):
    """A piece of a message that takes room: its kind, one of `KINDS`, and its text; an image has none."""

    kind: str
    text: str


class ContextTokens(NamedTuple):
    """The size of a context: all tokens, those that a provider reported, and those estimated after that message.

    `last_usage` is the index of the message with the report, None where there is none.
    """

    tokens: int
    usage_tokens: int
    trailing_tokens: int
    last_usage: int | None


def parts(message: Mapping[str, Any]) -> Iterator[Part]:
    """Yield what takes room in a message, in its order; nothing for a role that is unknown.

    A call is its name and its arguments as JSON; ids, signatures and details are not counted.
    """
    role = message.get("role")
    if role == "assistant":
        for block in blocks(message.get("content")):
            kind = block.get("type")
            if kind == "text":
                yield Part(TEXT, text_of(block))
            elif kind == "thinking":
                yield Part(THINKING, _string(block.get("thinking")))
            elif kind == "toolCall":
                arguments = stringify(block["arguments"]) if "arguments" in block else ""
                yield Part(CALL, _string(block.get("name")) + arguments)
    elif role in _BY_ROLE:
        for block in blocks(message.get("content")):
            if block.get("type") == "text":
                yield Part(_BY_ROLE[role], text_of(block))
            elif block.get("type") == "image":
                yield Part(IMAGE, "")
    elif role == "bashExecution":
        yield Part(BASH, _string(message.get("command")) + _string(message.get("output")))
    elif role in ("branchSummary", "compactionSummary"):
        yield Part(SUMMARY, _string(message.get("summary")))
    elif role == "system":
        yield from (Part(SYSTEM, text_of(block)) for block in blocks(message.get("content")))
        sections = message.get("sections")
        if isinstance(sections, Mapping):
            yield from (Part(SYSTEM, _string(section)) for section in sections.values())
        if message.get("toolsAdded"):
            yield Part(TOOLS, stringify(message["toolsAdded"]))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def estimate_message(message: Mapping[str, Any]) -> int:
    """Return Pi's estimate for one message, in tokens."""
    units = sum(4 * IMAGE_TOKENS if kind == IMAGE else count_utf16(text) for kind, text in parts(message))
    return -(-units // 4)


def usage_tokens(usage: Mapping[str, Any]) -> int:
    """Return the size of the context that a usage report speaks of: its total, else the sum of what it lists."""
    total = _number(usage.get("totalTokens"))
    return total or sum(_number(usage.get(key)) for key in ("input", "output", "cacheRead", "cacheWrite"))


def _number(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) and 0 < value < float("inf") else 0


class Item(NamedTuple):
    """What one kind of content of one message takes: the entry it came from, the kind, the tool, the tokens."""

    entry_id: str | None
    kind: str
    tool: str  # of a call or a result, else ""
    tokens: int


class Growth(NamedTuple):
    """How fast a context grows: tokens of a turn on average, and how many more of these fit (None: nothing grows)."""

    per_turn: int
    turns_left: int | None


def weigh(messages: Iterable[Message], count: Callable[[str], int]) -> Iterator[Item]:
    """Yield what each message takes, by kind; an image takes IMAGE_TOKENS."""
    for message in messages:
        totals: dict[tuple[str, str], int] = {}
        for kind, text, tool in parts_with_tool(message.value):
            tokens = IMAGE_TOKENS if kind == IMAGE else count(text)
            totals[kind, tool] = totals.get((kind, tool), 0) + tokens
        for (kind, tool), tokens in totals.items():
            yield Item(message.entry_id, kind, tool, tokens)


def parts_with_tool(message: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of a message, each with the name of the tool that a call or a result belongs to."""
    calls = (block for block in blocks(message.get("content")) if block.get("type") == "toolCall")
    for kind, text in parts(message):
        if kind == CALL:
            yield kind, text, _string(next(calls).get("name"))
        else:
            yield kind, text, _string(message.get("toolName")) if message.get("role") == "toolResult" else ""


def growth(messages: Sequence[Message], tokens: Sequence[int], headroom: int) -> Growth:
    """Return how fast a context grows, from the turns in it; `tokens` are those of each message.

    A turn begins with what the user says or runs (DESIGN "Words"); what comes before the first one, and summaries,
    are no turn. `headroom` are the tokens left before the context must be compacted.
    """
    turns: list[int] = []
    for message, size in zip(messages, tokens, strict=True):
        if message.role in STARTS_TURN:
            turns.append(size)
        elif turns and message.role not in ("system", "compactionSummary", "branchSummary"):
            turns[-1] += size
    if not turns:
        return Growth(0, None)
    per_turn = sum(turns) // len(turns)
    return Growth(per_turn, None if per_turn == 0 else max(0, headroom // per_turn))


def find_last_usage(messages: Sequence[Mapping[str, Any]], *, since: int = 0) -> int | None:
    """Return the index of the last answer whose usage counts, not looking before `since`; None where there is none.

    Usage of an answer that was aborted or failed, or that reports nothing, does not count.
    """
    for index in range(len(messages) - 1, since - 1, -1):
        message = messages[index]
        usage = message.get("usage")
        if (
            message.get("role") == "assistant"
            and message.get("stopReason") not in ("aborted", "error")
            and isinstance(usage, Mapping)
            and usage_tokens(usage) > 0
        ):
            return index
    return None


def measure_context(
    messages: Sequence[Mapping[str, Any]],
    *,
    since: int = 0,
    estimate: Callable[[Mapping[str, Any]], int] = estimate_message,
) -> ContextTokens:
    """Return the size of a context: the last usage that counts, and the estimate of all messages after it.

    Usage before `since` does not count: what it speaks of was compacted or edited afterwards (Pi §7.3).
    """
    last = find_last_usage(messages, since=since)
    reported = 0 if last is None else usage_tokens(messages[last]["usage"])
    trailing = sum(map(estimate, messages[0 if last is None else last + 1 :]))
    return ContextTokens(reported + trailing, reported, trailing, last)


def must_compact(tokens: int, window: int, reserve: int = RESERVE) -> bool:
    """Tell whether a context leaves less than the reserve free in the window."""
    return tokens > window - reserve
