"""What is wrong with a session: its bytes, its tree, and the invariants that a history must hold to be sent to a model.

Reading and the tree report their own findings; here are the rest. One pass from the roots down, each invariant a
function of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ctxkit.entry import Entry, Finding, Message
from ctxkit.session import Session

SAYS = frozenset({"message", "custom_message", "branch_summary", "compaction"})  # what gives the model something


class Batch(NamedTuple):
    """The tool calls of the last answer on a path: still open, with the entry they are in; and already answered."""

    open: tuple[tuple[str, str], ...] = ()
    answered: tuple[str, ...] = ()


def check(session: Session) -> list[Finding]:
    """Return all findings, by line."""
    found: list[Finding] = []
    batches: dict[str, Batch] = {}

    def note(entry: Entry, code: str, what: str) -> None:
        found.append(Finding(entry.line, code, what))

    for id, _ in session.walk():
        entry = session.entry(id)
        above = session.parent(id)
        before = Batch() if above is None else batches[above]
        after, strays = follow(entry, before)
        for code, call in strays:
            if code == "call-without-result":
                owner = dict(before.open)[call]
                found.append(_unanswered(session, owner, call))
            else:
                note(entry, *_stray_result(session, entry, code, call))
        empty_blocks(entry, note)
        kept_on_path(session, entry, note)
        target_exists(session, entry, note)
        if session.children(id):
            batches[id] = after
        else:
            found += [_unanswered(session, owner, call) for call, owner in after.open]
    return sorted({*found, *session.findings})


def follow(entry: Entry, batch: Batch) -> tuple[Batch, list[tuple[str, str]]]:
    """Follow calls and results over one entry: the batch after it, and what does not fit, as (code, call id).

    Every result follows the answer that called, before anything else is said to the model; each call has one.
    """
    if entry.type not in SAYS or (entry.type == "branch_summary" and not entry.value.get("summary")):
        return batch, []
    message = Message(entry.message)
    if entry.type == "message" and message.role == "toolResult":
        call = str(message.value.get("toolCallId"))
        if call in dict(batch.open):
            rest = tuple(pair for pair in batch.open if pair[0] != call)
            return Batch(rest, (*batch.answered, call)), []
        return batch, [("duplicate-result" if call in batch.answered else "result-without-call", call)]
    missing = [("call-without-result", call) for call, _ in batch.open]
    calls = message.calls if entry.type == "message" else []
    return Batch(tuple({str(call.get("id")): entry.id or "" for call in calls}.items())), missing


def empty_blocks(entry: Entry, note: Callable[[Entry, str, str], None]) -> None:
    """Providers refuse texts that are empty."""
    content = entry.message.get("content") if entry.type == "message" else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text" and block.get("text") == "":
            note(entry, "empty-block", "an empty text, which providers refuse")
            return


def kept_on_path(session: Session, entry: Entry, note: Callable[[Entry, str, str], None]) -> None:
    """What a compaction keeps begins with an entry on its own path, or it keeps nothing, named by its own id."""
    if entry.type != "compaction" or entry.id is None:
        return
    first = entry.value.get("firstKeptEntryId")
    if not isinstance(first, str) or first not in session:
        note(entry, "kept-missing", f"the first entry that it keeps, {first}, is not in the file: nothing is kept")
    elif session.lca(first, entry.id) != first:
        note(entry, "kept-off-path", f"the first entry that it keeps, {first}, is not on its path: nothing is kept")


def target_exists(session: Session, entry: Entry, note: Callable[[Entry, str, str], None]) -> None:
    """An edit or a label is of an entry."""
    target = entry.value.get("targetId")
    if entry.type in ("context_edit", "label") and target not in session:
        note(entry, "target-missing", f"the entry it is about, {target}, is not in the file")


def _unanswered(session: Session, owner: str, call: str) -> Finding:
    return Finding(session.line_of(owner), "call-without-result", f"the call {call} has no result right after it")


def _stray_result(session: Session, entry: Entry, code: str, call: str) -> tuple[str, str]:
    if code == "duplicate-result":
        return code, f"another result of the call {call}"
    assert entry.id is not None
    for above in reversed(session.path(entry.id)[:-1]):
        calls = Message(session.entry(above).message).calls if session.type_of(above) == "message" else []
        if any(str(block.get("id")) == call for block in calls):
            return "torn-batch", f"the result of the call {call} comes after something else was said"
    return code, f"a result, but no call {call} before it"
