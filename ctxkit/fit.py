"""Which contents to leave out so that a context fits: by a named policy, without a model, and nothing is lost.

Only results of tools and answers that are nothing but prose give way, each to a note of one line. What the user says,
the system prompt, calls, and the newest part are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ctxkit.entry import Message, text_of

FLOOR = 50  # tokens; what is smaller is not worth a note
KEEP_RECENT = 20_000  # tokens of the end that stay as they are (Pi §7.1)
CACHED, WRITTEN = 0.1, 1.25  # prices of a cached and of a newly cached token, as parts of a plain one
LEFT_OUT = "[Left out to fit the window: "
SUPERSEDED, RESULT, NOTABLE, PROSE = range(4)  # what a content is worth, the least first
REASONS = ("superseded by a later read", "an old result", "an old result that shows errors or tests", "old prose")
_NOTABLE = re.compile(r"\b(?:error|failed|failure|traceback|exception|passed)\b", re.IGNORECASE)
_CUT = re.compile(r"\[Showing lines \d+-\d+ of \d+")


class Edit(NamedTuple):
    """One content left out: where, what is put in its place, and the tokens before and after."""

    place: int  # among the messages
    entry_id: str
    note: str
    before: int
    after: int
    reason: str
    tool: str


class Candidate(NamedTuple):
    """A content that may give way."""

    place: int
    worth: int
    size: int
    what: str
    tool: str


def choose(
    messages: Sequence[Message],
    sizes: Sequence[int],
    excess: int,
    count: Callable[[str], int],
    *,
    policy: str = "tool-results",
    keep_recent: int = KEEP_RECENT,
    protected: Collection[str] = (),
    pinned: Collection[str] = (),
) -> list[Edit]:
    """Choose what to leave out, in this order, until `excess` tokens are saved; all that may go if it does not suffice.

    `sizes` are the tokens of each message. Policies: `tool-results` takes superseded reads, then other results, then
    prose, the oldest first; `oldest` goes by age alone; `importance` by what it is worth, and the largest first.
    """
    edits: list[Edit] = []
    saved = 0
    for candidate in _ordered(_candidates(messages, sizes, keep_recent, protected, pinned), policy):
        if saved >= excess:
            break
        id = messages[candidate.place].entry_id or ""
        where = f"To see it: ctx tree path SESSION {id} --json | tail -n 1"
        note = f"{LEFT_OUT}{candidate.what}, {candidate.size} tokens. {where}]"
        after = count(note)
        if candidate.size - after <= 0:
            continue
        reason = REASONS[candidate.worth]
        edits.append(Edit(candidate.place, id, note, candidate.size, after, reason, candidate.tool))
        saved += candidate.size - after
    return sorted(edits)


def break_even(tail: int, removed: int) -> int:
    """Return after how many further requests an edit has paid for the cache it breaks.

    `tail` are the tokens from the first edited message to the end, `removed` those that were saved.
    """
    if removed <= 0:
        return 0
    requests = 1 + ((tail - removed) * WRITTEN - tail * CACHED) / (removed * CACHED)
    return max(1, -int(-requests // 1))


def _candidates(
    messages: Sequence[Message],
    sizes: Sequence[int],
    keep_recent: int,
    protected: Collection[str],
    pinned: Collection[str],
) -> list[Candidate]:
    calls = {str(call.get("id")): call for message in messages for call in message.calls}
    stale = _superseded(messages, calls)
    found = []
    for index in range(_recent(sizes, keep_recent)):
        message, size = messages[index], sizes[index]
        if size < FLOOR or message.entry_id is None or message.entry_id in pinned:
            continue
        text = "".join(text_of(block) for block in message.blocks)
        if text.startswith(LEFT_OUT):
            continue
        if message.role == "toolResult":
            tool = str(message.value.get("toolName") or "")
            if tool in protected:
                continue
            notable = message.value.get("isError") is True or _NOTABLE.search(text) is not None
            worth = SUPERSEDED if index in stale else NOTABLE if notable else RESULT
            argument = _argument(calls.get(str(message.value.get("toolCallId"))))
            what = f"the result of {tool}({argument})"
            found.append(Candidate(index, worth, size, what, tool))
        elif message.role == "assistant" and not message.calls and text:
            found.append(Candidate(index, PROSE, size, "prose of the assistant", ""))
    return found


def _ordered(candidates: list[Candidate], policy: str) -> list[Candidate]:
    if policy == "oldest":
        return candidates
    if policy == "importance":
        return sorted(candidates, key=lambda one: (one.worth, -one.size, one.place))
    order = {SUPERSEDED: 0, RESULT: 1, NOTABLE: 1, PROSE: 2}
    return sorted(candidates, key=lambda one: (order[one.worth], one.place))


def _recent(sizes: Sequence[int], keep_recent: int) -> int:
    """Return the index at which the newest part begins, which stays as it is."""
    kept = 0
    for index in range(len(sizes) - 1, -1, -1):
        kept += sizes[index]
        if kept > keep_recent:
            return index + 1
    return 0


def _superseded(messages: Sequence[Message], calls: Mapping[str, Mapping[str, Any]]) -> set[int]:
    """Return the reads that a later one covers: of the same file, whole or as far, not failed and not cut."""
    stale: set[int] = set()
    later: dict[str, list[tuple[float, float]]] = {}
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        call = calls.get(str(message.value.get("toolCallId"))) if message.role == "toolResult" else None
        if call is None or call.get("name") != "read":
            continue
        arguments = call.get("arguments")
        path = arguments.get("path") if isinstance(arguments, dict) else None
        if not isinstance(path, str) or not isinstance(arguments, dict):
            continue
        first, last = _range(arguments)
        if any(begin <= first and last <= end for begin, end in later.get(path, ())):
            stale.add(index)
        text = "".join(text_of(block) for block in message.blocks)
        if message.value.get("isError") is not True and _CUT.search(text) is None and not text.startswith(LEFT_OUT):
            later.setdefault(path, []).append((first, last))
    return stale


def _range(arguments: Mapping[str, Any]) -> tuple[float, float]:
    offset, limit = arguments.get("offset"), arguments.get("limit")
    first = max(1, offset) if isinstance(offset, int) else 1
    return first, first + limit - 1 if isinstance(limit, int) else float("inf")


def _argument(call: Mapping[str, Any] | None) -> str:
    """Return the first text among the arguments of a call, short and on one line."""
    arguments = call.get("arguments") if call is not None else None
    values = arguments.values() if isinstance(arguments, dict) else ()
    text = next((value for value in values if isinstance(value, str)), "")
    return " ".join(text.split())[:60].replace("]", ")")
