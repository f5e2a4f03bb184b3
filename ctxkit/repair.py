"""Mend a session without inventing anything: the entries of a new file that `check` passes, and what was done.

What needs no change keeps its bytes. A message that cannot stay in the history is set aside: it becomes a `custom`
entry, which the model does not get, with the message in its data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ctxkit.check import Batch, follow
from ctxkit.entry import BOM, JUNK, Entry, Finding, dumps, entry_of, ignore, iso, values
from ctxkit.providers import NO_RESULT
from ctxkit.session import ASIDE, Session

WRITTEN_ANEW = {
    "lone-surrogate": "half a surrogate pair is written as U+FFFD",
    "invalid-utf-8": "bytes that are not UTF-8 are written as U+FFFD",
    "control-character": "control characters are escaped",
    "spread": "written on one line",
    "bad-parent": "its parent is written as the tree has it",
}


class Repair(NamedTuple):
    """The bytes of the new file, a line each, and what was done, by line of the old one."""

    lines: list[bytes]
    done: list[Finding]


def repair(session: Session, *, new_id: Callable[[], str], session_id: Callable[[], str], now: int) -> Repair:
    """Mend a session that has findings; version 1 and 2 become version 3. `now` is in Unix milliseconds."""
    mender = _Mender(session, new_id)
    entries = mender.distinct(mender.readable())
    header = mender.header(session_id, now)
    entries = [mender.mended(entry) for entry in entries]
    entries = mender.paired(entries)
    return Repair([_line(entry) for entry in (header, *entries)], sorted(set(mender.done)))


class _Mender:
    """Collects what was done while a session is mended, step by step."""

    __slots__ = ("_codes", "_new_id", "_session", "_taken", "done")

    def __init__(self, session: Session, new_id: Callable[[], str]) -> None:
        self._session = session
        self._new_id = new_id
        self._taken = set(session)
        self._codes: dict[int, list[str]] = {}  # findings by line
        self.done: list[Finding] = []

    def readable(self) -> list[Entry]:
        """Return what holds entries or lines of others; drop what holds no value, and headers."""
        pieces = list(self._session.everything())
        for finding in self._session.findings:  # complete only now that all was fetched
            self._codes.setdefault(finding.line, []).append(finding.code)
        kept = []
        for entry in pieces:
            if entry.value:
                kept += [entry] if entry.type != "session" else []
            elif entry.raw.strip():
                self._note(entry, "dropped", f"{len(entry.raw.strip())} bytes that hold no entry were left out")
        return kept

    def header(self, session_id: Callable[[], str], now: int) -> Entry:
        """Return the header: the first there is, made valid; or a new one."""
        headers = [entry for entry in self._session.everything() if entry.type == "session"]
        for entry in headers[1:]:
            self._note(entry, "second-header", "another header was left out")
        if not headers:
            self.done.append(Finding(1, "header", "a header was made: the session had none"))
            return entry_of({"type": "session", "version": 3, "id": session_id(), "timestamp": iso(now), "cwd": ""})
        first = headers[0]
        value = dict(first.value)
        if not isinstance(value.get("id"), str):
            value["id"] = session_id()
            self._note(first, "header", "it got an id")
        if value.get("version", 1) != 3:
            self._note(first, "version", f"version {dumps(value.get('version', 1))} is written as version 3")
            value["version"] = 3
        self._said_anew(first)
        return first if value == first.value and not self._anew(first) else first._replace(value=value, raw=b"")

    def distinct(self, entries: list[Entry]) -> list[Entry]:
        """Give entries an id of their own: the later of two counts, as it does in the tree."""
        last = {entry.id: place for place, entry in enumerate(entries) if entry.id is not None}
        kept = []
        for place, entry in enumerate(entries):
            id = entry.id
            if id is not None and last[id] != place:
                if entry.value == entries[last[id]].value:
                    self._note(entry, "duplicate-id", f"the same entry {id} is there again; this one was left out")
                    continue
                entry = self._named(entry, f"the id {id} was taken by a later entry")
            elif id is None and "parentId" in entry.value and entry.value.get("type"):
                entry = self._named(entry, "it had no id")
            kept.append(entry)
        return kept

    def mended(self, entry: Entry) -> Entry:
        """Mend what concerns one entry by itself: its link, its empty texts, what it refers to."""
        value = dict(entry.value)
        if entry.id in self._session and entry.id is not None:
            parent = self._session.parent(entry.id)
            if value.get("parentId") != parent:
                self._note(entry, "link", "it is a root now" if parent is None else f"its parent is now {parent}")
                value["parentId"] = parent
        elif entry.id is not None and value.get("parentId") not in self._session:
            value["parentId"] = None
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            full = [block for block in content if not _is_empty_text(block)]
            if len(full) < len(content):
                value["message"] = {**value["message"], "content": full}
                self._note(entry, "empty-block", "empty texts were left out")
        first = value.get("firstKeptEntryId")
        if entry.type == "compaction" and entry.id is not None and not self._keeps(entry.id, first):
            value["firstKeptEntryId"] = entry.id
            self._note(entry, "kept", "it keeps nothing, and says so now by its own id")
        if entry.type in ("context_edit", "label") and value.get("targetId") not in self._session:
            self._note(entry, "target-missing", "set aside: what it is about is not in the file")
            value = _aside(value)
        self._said_anew(entry)
        if value == entry.value and not self._anew(entry) and _stored(entry) == value:
            return entry
        changed = entry_of(value, line=entry.line)
        return changed if entry.id is not None else changed._replace(id=None)

    def paired(self, entries: list[Entry]) -> list[Entry]:
        """Give each call a result right after it, and set aside results that have no place."""
        by_id = {entry.id: entry for entry in entries if entry.id is not None}
        children: dict[str | None, list[str]] = {}
        for id, entry in by_id.items():
            children.setdefault(entry.parent_id if entry.parent_id in by_id else None, []).append(id)
        before: dict[str, list[Entry]] = {}  # results to be written before an entry
        after: dict[str, list[Entry]] = {}  # results to be written after the last entry of a branch
        todo: list[tuple[str, Batch]] = [(id, Batch()) for id in reversed(children.get(None, []))]
        while todo:
            id, batch = todo.pop()
            entry = by_id[id]
            following, strays = follow(entry, batch)
            missing = [call for code, call in strays if code == "call-without-result"]
            if missing:
                made = self._results(entry.parent_id, missing, by_id, batch)
                before[id] = made
                entry = entry_of({**entry.value, "parentId": made[-1].id}, line=entry.line)
            elif strays:
                self._note(entry, strays[0][0], "set aside: a result that has no call right before it")
                entry = entry_of(_aside(entry.value), line=entry.line)
            by_id[id] = entry
            if not children.get(id) and following.open:
                after[id] = self._results(id, [call for call, _ in following.open], by_id, following)
            todo += [(child, following) for child in reversed(children.get(id, []))]
        out: list[Entry] = []
        for entry in entries:
            if entry.id is None:
                out.append(entry)
                continue
            out += [*before.get(entry.id, []), by_id[entry.id], *after.get(entry.id, [])]
        return out

    def _results(self, parent: str | None, calls: list[str], by_id: dict[str, Entry], batch: Batch) -> list[Entry]:
        made: list[Entry] = []
        for call in calls:
            owner = by_id[dict(batch.open)[call]]
            blocks = owner.message.get("content")
            names = [b.get("name") for b in blocks if isinstance(b, dict) and str(b.get("id")) == call]  # type: ignore[union-attr]
            self._note(owner, "call-without-result", f"the call {call} got the result '{NO_RESULT}'")
            message = {
                "role": "toolResult",
                "toolCallId": call,
                "toolName": names[0] if names else "",
                "content": [{"type": "text", "text": NO_RESULT}],
                "isError": True,
                "timestamp": owner.message.get("timestamp"),
            }
            id = self._unused()
            base = {"type": "message", "id": id, "parentId": parent, "timestamp": owner.timestamp}
            made.append(entry_of({**base, "message": message}))
            parent = id
        return made

    def _keeps(self, id: str, first: object) -> bool:
        return isinstance(first, str) and first in self._session and self._session.lca(first, id) == first

    def _named(self, entry: Entry, why: str) -> Entry:
        id = self._unused()
        self._note(entry, "id", f"{why}; it is now {id}")
        return entry_of({**entry.value, "id": id}, line=entry.line)

    def _unused(self) -> str:
        while (made := self._new_id()) in self._taken:
            pass
        self._taken.add(made)
        return made

    def _anew(self, entry: Entry) -> list[str]:
        return [code for code in self._codes.get(entry.line, ()) if code in WRITTEN_ANEW]

    def _said_anew(self, entry: Entry) -> None:
        for code in self._anew(entry):
            self._note(entry, code, WRITTEN_ANEW[code])
        for code in set(self._codes.get(entry.line, ())) & {"bom", "glued", "no-final-newline", "late-header"}:
            self._note(entry, code, "each entry is on a line of its own, the header first")

    def _note(self, entry: Entry, code: str, what: str) -> None:
        self.done.append(Finding(entry.line, code, what))


def _stored(entry: Entry) -> object:
    """Return what the bytes of an entry say: another value if it is of an older version."""
    return next((piece.value for piece in values([entry.raw], ignore) if piece.value is not JUNK), None)


def _is_empty_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and block.get("text") == ""


def _aside(value: dict[str, Any]) -> dict[str, Any]:
    base = {key: value.get(key) for key in ("id", "parentId", "timestamp")}
    return {"type": "custom", **base, "customType": ASIDE, "data": value}


def _line(entry: Entry) -> bytes:
    """Return an entry as a line: its own bytes where it has any, else written anew."""
    if not entry.raw:
        return dumps(entry.value).encode() + b"\n"
    raw = entry.raw.removeprefix(BOM)
    return raw if raw.endswith(b"\n") else raw + b"\n"
