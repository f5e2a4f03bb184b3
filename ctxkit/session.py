"""The tree of a session: paths, branches, labels, where the talk stands; and the entries that change it.

Works on ids, parents, types and offsets; what an entry says is fetched when asked for. Everything is iterative and
ends, whatever the file holds. Knows nothing of files and agents: entries come in as values, new ones go out as values.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from heapq import nlargest
from typing import Any, NamedTuple

from ctxkit.entry import Entry, Finding, entry_of, iso
from ctxkit.errors import InputError, UsageError

Node = tuple[str | None, str | None, str, int, int]  # id, parent id, type, line, start
Fetch = Callable[[Node, int], Entry]  # a node and the offset of its end -> the entry

GOTO = "ctx:goto"  # the customType of an entry that only says where to go on
ASIDE = "ctx:set-aside"  # the customType of what was a message until `repair` took it out of the history
_TALK = frozenset({"branch_summary", "compaction", "custom_message", "message"})


class Label(NamedTuple):
    """A label in force: its text, and the time it was given."""

    text: str
    timestamp: str


class Session:
    """A session as a forest of entries, each named by its id.

    Where an id occurs twice the later entry counts and the earlier is no part of the tree (Pi §1.5). An entry whose
    parent is not in the file is a root, or with `bridge` a child of the entry before it in the file. Of the entries of
    a cycle the first in the file is taken as a root. All of this is in `findings`.
    Children are in file order, for times in session files do not always rise (formats §0).
    """

    __slots__ = (
        "_children",
        "_depths",
        "_fetch",
        "_findings",
        "_held",
        "_ids",
        "_labels",
        "_lines",
        "_parents",
        "_places",
        "_size",
        "_starts",
        "_types",
        "appendable",
        "leaf",
    )

    _held: list[Entry] | None
    _fetch: Fetch | None
    _findings: list[Finding]
    _ids: list[str | None]  # by place: the position of a piece in the file; None for what is no part of the tree
    _types: list[str]
    _lines: array[int]
    _starts: array[int]
    _parents: array[int]  # places; -1: none
    _places: dict[str, int]
    _size: int
    _children: tuple[array[int], array[int]] | None
    _depths: array[int] | None
    _labels: dict[str, Label] | None

    appendable: bool
    """False when Pi gives the entries other ids as it opens the file (version 1): a new entry has no parent to name."""

    leaf: str | None
    """The id the talk goes on from: the last entry of the tree; None before the first entry.

    A `leaf` record at the end names it instead. A `custom` entry at the end that hangs beside the last message, not
    below it, is what another process left there (S06): it is passed over, with the finding `leaf-beside`.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        findings: list[Finding] | None = None,
        bridge: bool = False,
        appendable: bool = True,
    ) -> None:
        self._held = []
        self._fetch = None
        self._size = 0
        self.appendable = appendable
        self._grow(self._hold(entries), findings, bridge)

    @classmethod
    def over(
        cls,
        nodes: Iterable[Node],
        fetch: Fetch,
        size: int,
        *,
        findings: list[Finding] | None = None,
        bridge: bool = False,
    ) -> Session:
        """Make a session that holds no contents: nodes of all the pieces of a file of `size` bytes, in order.

        `fetch` is asked for the entry of a node. `findings` may grow as entries are fetched.
        """
        session = cls.__new__(cls)
        session._held = None
        session._fetch = fetch
        session._size = size
        session.appendable = True
        session._grow(nodes, findings, bridge)
        return session

    # -- the entries -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Count the entries of the tree."""
        return len(self._places)

    def __contains__(self, id: object) -> bool:
        """Tell whether an id, whole, is in the tree."""
        return id in self._places

    def __iter__(self) -> Iterator[str]:
        """Give the ids of the tree in file order."""
        return iter(self._places)

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with the file and the tree so far, by line, each once."""
        return sorted(set(self._findings))

    @property
    def header(self) -> Entry | None:
        """The first header of the file."""
        return self._at(self._types.index("session")) if "session" in self._types else None

    def find(self, text: str) -> str:
        """Give the id that is `text` or the only one to begin with it. Raises InputError with close matches."""
        if text in self._places:
            return text
        begun = [id for id in self._places if id.startswith(text)] if text else []
        if len(begun) == 1:
            return begun[0]
        if begun:
            raise InputError(f"{len(begun)} ids begin with {text!r}", hint=f"it could be {_some(begun)}")
        near = nlargest(3, self._places, key=lambda id: _likeness(id, text))
        close = [id for id in near if _likeness(id, text) > 0.5]
        raise InputError(f"no entry {text!r}", hint=f"did you mean {_some(close)}?" if close else "")

    def entry(self, id: str) -> Entry:
        """Fetch one entry."""
        return self._at(self._places[id])

    def entries(self, ids: Iterable[str]) -> Iterator[Entry]:
        """Fetch entries in the order of the ids."""
        return (self._at(self._places[id]) for id in ids)

    def everything(self) -> Iterator[Entry]:
        """Fetch all there is in the file, in order: headers, foreign lines and damage too (`Entry.id` may be None)."""
        return (self._at(place) for place in range(len(self._ids)))

    def type_of(self, id: str) -> str:
        """Give the type of an entry without fetching it."""
        return self._types[self._places[id]]

    def line_of(self, id: str) -> int:
        """Give the 1-based line an entry begins on."""
        return self._lines[self._places[id]]

    # -- the tree ----------------------------------------------------------------------------------------------------

    def parent(self, id: str) -> str | None:
        """Give the parent of an entry in the tree, None for a root."""
        return self._name(self._parents[self._places[id]])

    def children(self, id: str) -> list[str]:
        """Give the children of an entry, in file order."""
        first, following = self._links()
        return self._named(_chain(following, first[self._places[id]]))

    def roots(self) -> list[str]:
        """Give the entries without a parent, in file order."""
        return [id for place, id in enumerate(self._ids) if id is not None and self._parents[place] < 0]

    def leaves(self) -> list[str]:
        """Give the entries without children, in file order."""
        first, _ = self._links()
        return [id for place, id in enumerate(self._ids) if id is not None and first[place] < 0]

    def path(self, id: str | None) -> list[str]:
        """Give the ids from a root down to an entry; none for None (Pi §3.1)."""
        return [] if id is None else self._named(self._trail(id))[::-1]

    def depth(self, id: str) -> int:
        """Count the entries on the path to an entry; a root has 1. Counted once for all entries."""
        if self._depths is None:
            self._depths = array("q", bytes(8 * len(self._ids)))
            for place in range(len(self._ids)):
                trail: list[int] = []
                while place >= 0 and not self._depths[place]:
                    trail.append(place)
                    place = self._parents[place]
                depth = self._depths[place] if place >= 0 else 0
                for step in reversed(trail):
                    depth += 1
                    self._depths[step] = depth
        return self._depths[self._places[id]]

    def lca(self, a: str, b: str) -> str | None:
        """Give the deepest entry on both paths; None when they lie in different trees."""
        on_path = set(self._trail(a))
        return self._name(next((place for place in self._trail(b) if place in on_path), -1))

    def abandoned(self, old: str | None, new: str | None) -> list[str]:
        """Give the entries of the path to `old` that are not on the path to `new`, oldest first (Pi §8)."""
        if old is None:
            return []
        kept = set() if new is None else set(self._trail(new))
        left: list[int] = []
        for place in self._trail(old):
            if place in kept:
                break
            left.append(place)
        return self._named(left)[::-1]

    def walk(self) -> Iterator[tuple[str, int]]:
        """Give each entry, parents first and branch by branch, with the number of forks above it."""
        first, following = self._links()
        todo = [(place, 0) for place, id in enumerate(self._ids) if id is not None and self._parents[place] < 0]
        todo.reverse()
        while todo:
            place, forks = todo.pop()
            yield self._ids[place], forks  # type: ignore[misc]
            below = list(_chain(following, first[place]))
            forks += len(below) > 1
            todo += ((child, forks) for child in reversed(below))

    # -- what has been said about it ---------------------------------------------------------------------------------

    @property
    def labels(self) -> dict[str, Label]:
        """The labels in force by the id they are on: the last one given counts, an empty one clears (Pi §1.5)."""
        if self._labels is None:
            self._labels = {}
            for entry in self._of_type("label"):
                target, text = entry.value.get("targetId"), entry.value.get("label")
                if not isinstance(target, str):
                    continue
                if isinstance(text, str) and text:
                    self._labels[target] = Label(text, entry.timestamp)
                else:
                    self._labels.pop(target, None)
        return self._labels

    @property
    def name(self) -> str | None:
        """The name of the session: the last one given, on one line; None when it was cleared or never given."""
        name: object = None
        for entry in self._of_type("session_info"):
            name = entry.value.get("name")
        if not isinstance(name, str):
            return None
        return " ".join(part for part in name.replace("\r", "\n").split("\n") if part).strip() or None

    # -- inside ------------------------------------------------------------------------------------------------------

    def _hold(self, entries: Iterable[Entry]) -> Iterator[Node]:
        held = self._held
        assert held is not None
        for entry in entries:
            held.append(entry)
            yield (entry.id, entry.parent_id, entry.type, entry.line, entry.start)

    def _grow(self, nodes: Iterable[Node], findings: list[Finding] | None, bridge: bool) -> None:
        self._findings = [] if findings is None else findings
        self._ids, self._types, self._places = [], [], {}
        self._lines, self._starts, self._parents = array("q"), array("q"), array("q")
        self._children = self._depths = self._labels = None
        places = self._places
        add_id, add_type = self._ids.append, self._types.append
        add_line, add_start, add_parent = self._lines.append, self._starts.append, self._parents.append
        unknown: dict[int, str] = {}
        again: list[int] = []
        selfish = False
        for place, (id, parent, kind, line, start) in enumerate(nodes):
            add_id(id)
            add_type(kind)
            add_line(line)
            add_start(start)
            above = -1
            if id is not None:
                if id in places:
                    again.append(places[id])
                places[id] = place
                if parent is not None:
                    above = places.get(parent, -1)
                    if above < 0:
                        unknown[place] = parent
                    elif above == place:
                        selfish = True
            add_parent(above)
        if again:
            self._hide(again, unknown)
        if self._resolve(unknown, bridge) or again or selfish:
            self._cut_cycles()
        self.leaf = self._find_leaf()

    def _hide(self, again: list[int], unknown: dict[int, str]) -> None:
        """Take entries whose id came again out of the tree; their children go to the later entry."""
        moved: dict[int, int] = {}
        for place in again:
            id = self._ids[place]
            assert id is not None
            moved[place] = later = self._places[id]
            unknown.pop(place, None)
            self._note(later, "duplicate-id", f"the id {id} is also in line {self._lines[place]}; this entry counts")
            self._parents[place] = -1
        for place in moved:
            self._ids[place] = None
        for place, parent in enumerate(self._parents):
            if parent in moved:
                self._parents[place] = moved[parent]

    def _resolve(self, unknown: dict[int, str], bridge: bool) -> bool:
        """Link entries whose parent was not there yet; tell whether a link now points forward."""
        forward = False
        for place, parent in unknown.items():
            above = self._places.get(parent, -1)
            if above < 0:
                self._note(place, "missing-parent", f"the parent {parent} of {self._ids[place]} is not in the file")
                if bridge:
                    above = place - 1
                    while above >= 0 and self._ids[above] is None:
                        above -= 1
            self._parents[place] = above
            forward = forward or above >= 0
        return forward

    def _cut_cycles(self) -> None:
        parents = self._parents
        state = bytearray(len(parents))  # 0: not seen, 1: on this walk, 2: done
        for place in range(len(parents)):
            trail: list[int] = []
            while place >= 0 and not state[place]:
                state[place] = 1
                trail.append(place)
                place = parents[place]
            if place >= 0 and state[place] == 1:
                cycle = trail[trail.index(place) :]
                root = min(cycle)
                parents[root] = -1
                if len(cycle) == 1:
                    self._note(root, "self-parent", f"{self._ids[root]} is its own parent; it is taken as a root")
                else:
                    what = f"{len(cycle)} entries are each other's ancestors; {self._ids[root]} is taken as a root"
                    self._note(root, "cycle", what)
            for step in trail:
                state[step] = 2

    def _find_leaf(self) -> str | None:
        last = self._before(len(self._ids))
        if last < 0:
            return None
        if self._types[last] == "leaf":
            value = self._at(last).value
            target = value.get("targetId", value.get("entry_id", self._ids[last]))
            if target is None:
                return None
            if isinstance(target, str) and target in self._places:
                return target
            self._note(last, "leaf-target", f"the leaf record names {target!r}, which is not in the file")
        elif self._types[last] == "custom":
            beside = self._beside(last)
            if beside >= 0:
                found = self._ids[self._before(beside)]
                self._note(last, "leaf-beside", f"this entry hangs beside the last message; the leaf is {found}")
                return found
        return self._ids[last]

    def _beside(self, last: int) -> int:
        """Find the first of the `custom` entries at the end that hang beside the last message; -1 if they do not."""
        talk = last
        while talk >= 0 and (self._ids[talk] is None or self._types[talk] not in _TALK):
            talk -= 1
        place = last
        while place > talk >= 0 and self._types[place] == "custom":
            if self._at(place).value.get("customType") in (GOTO, ASIDE):
                return -1
            if self._parents[place] == self._parents[talk]:
                return place
            place = self._parents[place]
        return -1

    def _before(self, place: int) -> int:
        place -= 1
        while place >= 0 and self._ids[place] is None:
            place -= 1
        return place

    def _at(self, place: int) -> Entry:
        if self._held is not None:
            return self._held[place]
        assert self._fetch is not None
        parent = self._name(self._parents[place])
        node = (self._ids[place], parent, self._types[place], self._lines[place], self._starts[place])
        return self._fetch(node, self._starts[place + 1] if place + 1 < len(self._starts) else self._size)

    def _of_type(self, kind: str) -> Iterator[Entry]:
        return (self._at(place) for place, type in enumerate(self._types) if type == kind)

    def _trail(self, id: str) -> Iterator[int]:
        place = self._places[id]
        while place >= 0:
            yield place
            place = self._parents[place]

    def _links(self) -> tuple[array[int], array[int]]:
        """The first child of each place and the next sibling, made once."""
        if self._children is None:
            first, following = array("q", [-1]) * len(self._ids), array("q", [-1]) * len(self._ids)
            for place in range(len(self._ids) - 1, -1, -1):
                parent = self._parents[place]
                if parent >= 0:
                    following[place] = first[parent]
                    first[parent] = place
            self._children = first, following
        return self._children

    def _name(self, place: int) -> str | None:
        return self._ids[place] if place >= 0 else None

    def _named(self, places: Iterable[int]) -> list[str]:
        ids = self._ids
        return [ids[place] for place in places]  # type: ignore[misc]

    def _note(self, place: int, code: str, what: str) -> None:
        self._findings.append(Finding(self._lines[place], code, what))


def _chain(following: array[int], place: int) -> Iterator[int]:
    while place >= 0:
        yield place
        place = following[place]


def _likeness(a: str, b: str) -> float:
    """Rate two ids by the ends they share: a mistyped id differs in one place."""
    shared = 0
    for mine, theirs in zip(a, b, strict=False):
        if mine != theirs:
            break
        shared += 1
    for mine, theirs in zip(reversed(a[shared:]), reversed(b[shared:]), strict=False):
        if mine != theirs:
            break
        shared += 1
    return shared / max(len(a), len(b))


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:3]) + (" ..." if len(ids) > 3 else "")


# -- new entries -----------------------------------------------------------------------------------------------------


def goto_entry(session: Session, id: str | None, *, new_id: Callable[[], str], now: int) -> Entry:
    """Make an entry after which the talk goes on from `id`; None: from before the first entry.

    Pi takes the last entry of a file for the leaf, so a `custom` entry, which gives the model nothing, is hung below
    the target. `now` is in Unix milliseconds, here and below.
    """
    return _new(session, "custom", id, {"customType": GOTO, "data": {"targetId": id}}, new_id, now)


def label_entry(session: Session, target: str, text: str, *, new_id: Callable[[], str], now: int) -> Entry:
    """Make an entry that labels `target`; an empty text clears its label."""
    fields = {"targetId": target, **({"label": text} if text else {})}
    return _new(session, "label", session.leaf, fields, new_id, now)


def message_entry(
    session: Session, parent: str | None, role: str, text: str, *, new_id: Callable[[], str], now: int
) -> Entry:
    """Make an entry with a message of role `user`, `assistant` or `system`, with all the fields Pi expects (Pi §2).

    An assistant message names the model that the path to `parent` is on. Raises UsageError for another role.
    """
    message: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}]}
    if role == "system":
        message["content"] = text
    elif role == "assistant":
        cost = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), 0)
        usage = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "totalTokens"), 0)
        provider, model = _model(session, parent)
        message |= {"api": "unknown", "provider": provider, "model": model}
        message |= {"usage": {**usage, "cost": cost}, "stopReason": "stop"}
    elif role != "user":
        raise UsageError(f"no message of role {role!r} can be appended", "roles: user, assistant, system")
    message["timestamp"] = now
    return _new(session, "message", parent, {"message": message}, new_id, now)


def fork(
    session: Session, leaf: str, *, session_id: str, source: str, new_id: Callable[[], str], now: int
) -> Iterator[Entry]:
    """Make a new session of the path to `leaf`: its header, its entries, and the labels in force on them (Pi §1.8).

    Label entries are taken out and the chain is linked around them; a `firstKeptEntryId` that named one goes to the
    entry after it. The labels come at the end with their own times. `source`, the file forked from, becomes
    `parentSession`. Entries that need no change keep their bytes.
    """
    old = session.header
    header: dict[str, Any] = {"type": "session", "version": 3, "id": session_id, "timestamp": iso(now)}
    if old is not None and "cwd" in old.value:
        header["cwd"] = old.value["cwd"]
    if source:
        header["parentSession"] = source
    yield entry_of(header)._replace(id=None)
    path = session.path(leaf)
    moved: dict[str, str] = {}
    following = ""
    for id in reversed(path):
        if session.type_of(id) == "label":
            moved[id] = following
        else:
            following = id
    kept = [id for id in path if id not in moved]
    last: str | None = None
    for entry in session.entries(kept):
        value = entry.value
        if value.get("parentId") != last or "parentId" not in value:
            value = {**value, "parentId": last}
        first = value.get("firstKeptEntryId")
        if isinstance(first, str) and first in moved:
            value = {**value, "firstKeptEntryId": moved[first]}
        if value is not entry.value:
            entry = entry._replace(value=value, parent_id=last, raw=b"")
        yield entry._replace(start=-1)  # it has no place in the new file yet
        last = entry.id
    made: set[str] = set()
    inside = set(kept)
    for target, label in session.labels.items():
        if target in inside:
            id = _unused(session, new_id, made)
            made.add(id)
            fields = {"type": "label", "id": id, "parentId": last, "timestamp": label.timestamp}
            yield entry_of({**fields, "targetId": target, "label": label.text})
            last = id


def _new(
    session: Session, kind: str, parent: str | None, fields: dict[str, Any], new_id: Callable[[], str], now: int
) -> Entry:
    id = _unused(session, new_id, set())
    return entry_of({"type": kind, "id": id, "parentId": parent, "timestamp": iso(now), **fields})


def _unused(session: Session, new_id: Callable[[], str], made: set[str]) -> str:
    for _ in range(100):
        id = new_id()
        if id not in session and id not in made:
            return id
    raise ValueError("new_id gives ids that are taken")


def _model(session: Session, leaf: str | None) -> tuple[str, str]:
    """Find the provider and model a path is on, from its end up (Pi §3.2)."""
    for id in reversed(session.path(leaf)):
        if session.type_of(id) in ("message", "model_change"):
            entry = session.entry(id)
            found = entry.message if entry.type == "message" else entry.value
            name = found.get("model" if entry.type == "message" else "modelId")
            provider = found.get("provider")
            if isinstance(name, str) and isinstance(provider, str):
                return provider, name
    return "unknown", "unknown"
