"""Pi's session files, versions 1 to 3: recognise, read, index and write them (Pi §1).

Whatever the version on disk, entries come out in terms of version 3; the file itself is never rewritten. Reading is
lossless: `b"".join(write(read(chunks, note)))` is the input, damage included.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain, count
from typing import Any

from ctxkit.entry import (
    BLOCK,
    JUNK,
    Bytes,
    Entry,
    Finding,
    Note,
    Value,
    chunks,
    dumps,
    entry_of,
    ignore,
    line_of,
    values,
)
from ctxkit.errors import InputError
from ctxkit.session import Node, Session

KNOWN = frozenset(
    {
        "branch_summary",
        "compaction",
        "context_edit",
        "custom",
        "custom_message",
        "label",
        "leaf",
        "message",
        "model_change",
        "session_info",
        "thinking_level_change",
        "usage",
    }
)
_OLDEST = frozenset({"compaction", "message", "model_change", "thinking_level_change"})  # all that version 1 had
_LOOK_AHEAD = 10_000  # values; a file that has shown nothing of Pi by then is none of Pi's


def sniff(head: bytes) -> bool:
    """Tell whether the first bytes of a file look like a Pi session, a cut one or one of version 4 included.

    64 KiB are plenty. A header is a sure sign; without one, two thirds of the values must be entries of Pi.
    """
    seen = entries = 0
    for piece in values([head], ignore):
        value = piece.value
        if not isinstance(value, dict):
            continue
        if _is_header(value) or _is_newer(value):
            return True
        seen += 1
        entries += _is_entry(value)
        if seen == 25:
            break
    return 0 < 2 * seen <= 3 * entries


def read(source: Iterable[bytes], note: Note, *, name: str = "") -> Iterator[Entry]:
    """Read the entries of a session, in file order: the header, foreign lines and damaged bytes too, without an id.

    Entries of version 1 get ids from their line numbers, the same on every read, and form a straight line; their
    `firstKeptEntryIndex` counts physical lines (Pi §1.7, §14.2 fault 11). Memory: one entry, or for version 1 all of
    them. Damage is noted. Raises InputError (`name` is the file in its text) for what is no session and for version 4.
    """
    found = values(source, note)
    head, version = _look(found, name)
    pieces: Iterable[Value] = chain(head, found)
    if version < 2:
        pieces = _with_ids(list(pieces), note)
    seen: set[str] = set()
    yield from _entries(pieces, note, version, seen)
    _finish(seen, note)


def load(data: Bytes, *, name: str = "", bridge: bool = False) -> Session:
    """Open a session for its tree: one pass over the bytes, memory for ids and offsets, contents read when asked for.

    A line that begins as Pi writes entries, ends as an object and has no second `parentId` is taken by its first four
    fields; all other bytes are read as `read` reads them. So damage inside the content of such a line is found when
    the entry is asked for (it is added to `findings` then), not before. `data` must stay as it is while it is used.
    Version 1 is read whole. `bridge` as in `Session`. Raises InputError as `read` does.
    """
    findings: list[Finding] = []
    note = findings.append
    _, version = _look(values(chunks(data), ignore), name)
    if version < 2:
        entries = read(chunks(data), note, name=name)
        return Session(entries, findings=findings, bridge=bridge, appendable=False)

    def fetch(node: Node, stop: int) -> Entry:
        id, parent, kind, line, start = node
        raw = data[start:stop]
        if not kind:
            return Entry(None, None, "", "", {}, line, start, raw)
        piece, *_ = values([raw], note, line=line, start=start)
        if piece.value is JUNK:
            return Entry(id, parent, kind, "", {}, line, start, raw)
        return _entry(piece, ignore, version)._replace(raw=raw)

    return Session.over(_nodes(data, note, version), fetch, len(data), findings=findings, bridge=bridge)


def write(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Write entries as a session file.

    Entries that follow each other as they did when read are written as they were, byte for byte; any other begins on
    a line of its own, and one that is new or was changed is written as compact JSON with its line end.
    """
    end: int | None = 0  # where the bytes written last end in the file they were read from; None: on a fresh line
    open_line = False
    for entry in entries:
        if entry.raw and entry.start == end:
            yield entry.raw
            open_line = not entry.raw.endswith(b"\n")
        else:
            if open_line:
                yield b"\n"
            yield line_of(entry)
            open_line = False
        end = entry.start + len(entry.raw) if entry.raw else None


def upgrade(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Turn a session of version 1 or 2 into one of version 3, to be written to a new file (Pi §1.7).

    What holds no entry is left out; entries that need no change keep their bytes.
    """
    for entry in entries:
        if entry.type == "session":
            entry = entry._replace(value={**entry.value, "version": 3}, raw=b"")
        if entry.value:
            yield entry._replace(start=-1)


# -- what a value is -------------------------------------------------------------------------------------------------


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_header(value: dict[str, Any]) -> bool:
    """Tell a header of Pi from that of a look-alike: DeepSeek's has version 0 and `createdAt` (formats §2.4)."""
    version = _number(value.get("version", 1))
    return value.get("type") == "session" and "createdAt" not in value and (version is None or version >= 1)


def _is_newer(value: dict[str, Any]) -> bool:
    return value.get("kind") == "header" and (_number(value.get("version", value.get("v"))) or 0) >= 4


def _is_entry(value: dict[str, Any]) -> bool:
    """Tell an entry of Pi from a line of an agent that uses the same words."""
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in KNOWN or "uuid" in value or "payload" in value:
        return False
    if kind == "message":
        return isinstance(value.get("message"), dict)
    return "parentId" in value or isinstance(value.get("timestamp"), str)


def _look(pieces: Iterator[Value], name: str) -> tuple[list[Value], int]:
    """Read up to the first entry; return what was read and the version of what follows."""
    head: list[Value] = []
    version = 0
    for piece in pieces:
        head.append(piece)
        value = piece.value
        if not isinstance(value, dict):
            continue
        if _is_newer(value):
            raise InputError(
                "a Pi session of version 4 (`kind` records); ctx reads versions 1 to 3",
                source=name,
                line=piece.line,
                hint="only agent packages from 0.84 to 0.87 wrote version 4; export it from there",
            )
        if _is_header(value):
            if not version:
                stated = _number(value.get("version", 1))
                version = 3 if stated is None else int(min(stated, 99))
        elif _is_entry(value):
            # Entries without ids below a newer header: Pi forked an old file without migrating it (Pi §14.2 fault 17).
            bare = "id" not in value and "parentId" not in value and value["type"] in _OLDEST
            return head, 1 if bare else version or 3
        if len(head) > _LOOK_AHEAD:
            break
    if not version:
        what = "not a Pi session" if any(piece.value is not JUNK for piece in head) else "no session: no JSON in it"
        raise InputError(what if head else "an empty file, not a session", source=name)
    return head, version


def _entries(pieces: Iterable[Value], note: Note, version: int, seen: set[str]) -> Iterator[Entry]:
    """Make entries of a run of values; `seen` holds what the file has shown: a "header", an "entry"."""
    piece = None
    for piece in pieces:
        entry = _entry(piece, note, version)
        if entry.type == "session":
            _check_header(entry, note, version, seen)
            seen.add("header")
        elif entry.id is not None:
            seen.add("entry")
        yield entry
    if piece is not None and not piece.raw.endswith(b"\n"):  # true of the last run of a file only
        note(Finding(piece.line, "no-final-newline", "the last line has no line end"))


def _check_header(entry: Entry, note: Note, version: int, seen: set[str]) -> None:
    if "header" in seen:
        note(Finding(entry.line, "second-header", "another session header; it is ignored"))
        return
    if "entry" in seen:
        note(Finding(entry.line, "late-header", "entries before the session header; Pi refuses the file"))
    if not isinstance(entry.value.get("id"), str):
        note(Finding(entry.line, "header-id", "a session header without an id; Pi refuses the file"))
    stated = entry.value.get("version", 1)
    if version < 2 <= (_number(stated) or 3):
        what = f"version {dumps(stated)}, but entries without ids, as in version 1"
        note(Finding(entry.line, "old-body", what))
    elif _number(stated) not in (1, 2, 3):
        note(Finding(entry.line, "new-version", f"version {dumps(stated)}, read as version 3"))


def _finish(seen: set[str], note: Note) -> None:
    if "header" not in seen:
        note(Finding(1, "no-header", "no session header; Pi refuses the file"))


def _entry(piece: Value, note: Note, version: int) -> Entry:
    """Make an entry of a value; note what keeps it from being one. What is no part of the tree gets no id."""
    value, line, start, raw = piece
    if not isinstance(value, dict):
        if value is not JUNK:
            note(Finding(line, "not-an-object", "a JSON value that is no object"))
        return Entry(None, None, "", "", {}, line, start, raw)
    entry = entry_of(value, line=line, start=start, raw=raw)
    if entry.type == "session":
        return entry._replace(id=None, parent_id=None)
    if not entry.type:
        note(Finding(line, "no-type", "an object without a type"))
        return Entry(None, None, "", "", {}, line, start, raw)
    if entry.id is None:
        if value.get("id") is not None:
            note(Finding(line, "bad-id", "an id that is empty or no text"))
        elif entry.type in KNOWN:
            note(Finding(line, "no-id", f"a {entry.type} entry without an id"))
        return entry._replace(parent_id=None)
    if entry.type not in KNOWN and "parentId" not in value:
        return entry._replace(id=None)  # a foreign line; it must not become the leaf (S06)
    if entry.parent_id is None and value.get("parentId") not in (None, ""):
        note(Finding(line, "bad-parent", "a parentId that is no text"))
    if version < 3 and entry.message.get("role") == "hookMessage":
        entry = entry._replace(value={**value, "message": {**entry.message, "role": "custom"}})
    return entry


def _with_ids(pieces: list[Value], note: Note) -> Iterator[Value]:
    """Give each entry of version 1 that lacks an id one from its line, and the entry before it as parent (Pi §1.7)."""
    objects = [piece for piece in pieces if isinstance(piece.value, dict) and isinstance(piece.value.get("type"), str)]
    entries = [piece for piece in objects if piece.value["type"] != "session"]
    taken = {piece.value["id"] for piece in entries if _has_id(piece.value)}
    ids: list[str] = []
    for piece in entries:
        own = piece.value["id"] if _has_id(piece.value) else f"v1-{piece.line:06d}"
        for copy in count(2):
            if _has_id(piece.value) or own not in taken:
                break
            own = f"v1-{piece.line:06d}-{copy}"
        taken.add(own)
        ids.append(own)
    lines = [piece.line for piece in entries]
    header = next((piece.line for piece in objects if piece.value["type"] == "session"), 1)
    position = 0
    for piece in pieces:
        if position == len(entries) or piece is not entries[position]:
            yield piece
            continue
        value = dict(piece.value)
        first = {"type": value.pop("type"), "id": ids[position], "parentId": ids[position - 1] if position else None}
        value.pop("id", None)
        first["parentId"] = value.pop("parentId", first["parentId"])
        index = value.pop("firstKeptEntryIndex", None)
        if isinstance(index, int) and not isinstance(index, bool) and "firstKeptEntryId" not in value:
            # Lines, not entries that could be read: one torn line must not shift what later ones keep (fault 11).
            kept = bisect_left(lines, index + 1)
            if index + 1 > header and kept < len(lines):
                value["firstKeptEntryId"] = ids[kept]
                if lines[kept] != index + 1:
                    note(Finding(piece.line, "kept-line", f"no entry in line {index + 1}, the first kept one"))
        yield piece._replace(value={**first, **value})
        position += 1


def _has_id(value: dict[str, Any]) -> bool:
    return isinstance(value.get("id"), str) and value["id"] != ""


# -- the index -------------------------------------------------------------------------------------------------------

_PREFIX = re.compile(
    rb'\{"type":"(?!session")([^"\\]++)","id":"([^"\\]++)","parentId":(?:"([^"\\]++)"|null),"timestamp":"[^"\\]*+"[,}]'
)


_SECOND = b'"parentId":'  # the sign of a second entry in a line; inside a string the quotes are escaped
_CLOSE, _CR = b"}\r"


def _nodes(data: Bytes, note: Note, version: int) -> Iterator[Node]:
    """Yield a node for each line that shows what it is, and for each piece of the runs of other lines."""
    size = len(data)
    types: dict[bytes, str] = {}
    seen: set[str] = set()
    any_plain = False
    base, block, position, line = 0, data[0:BLOCK], 0, 1
    odd, odd_line = 0, 0  # where a run of other lines began; line 0: there is none
    while base + position < size:
        start = base + position
        end = block.find(b"\n", position)
        match = _PREFIX.match(block, position)
        stop = -1
        if end >= 0:
            plain = match is not None and (
                (block[end - 1] == _CLOSE or (block[end - 1] == _CR and block[end - 2] == _CLOSE))
                and block.find(_SECOND, match.end(), end) < 0
            )
        elif position and base + len(block) < size:
            base, block, position = start, data[start : start + BLOCK], 0
            continue
        else:
            stop, plain = _long_line(data, base + match.end() if match else start)
        if match is not None and plain:
            kind, own, parent = match.groups()
            try:
                name = types.get(kind) or types.setdefault(kind, kind.decode())
                node = (own.decode(), parent.decode() if parent else None, name, line, start)
            except UnicodeDecodeError:
                plain = False
            else:
                if odd_line:
                    yield from _run(data, odd, start, odd_line, note, version, seen)
                    odd_line = 0
                any_plain = True
                yield node
        else:
            plain = False
        if not plain and not odd_line:
            odd, odd_line = start, line
            if any_plain:
                seen.add("entry")
        line += 1
        if stop < 0:
            position = end + 1
        else:
            base, block, position = stop, data[stop : stop + BLOCK], 0
    if odd_line:
        yield from _run(data, odd, size, odd_line, note, version, seen)
    _finish(seen, note)


def _run(data: Bytes, start: int, stop: int, line: int, note: Note, version: int, seen: set[str]) -> Iterator[Node]:
    pieces = values(chunks(data, start, stop), note, line=line, start=start)
    for entry in _entries(pieces, note, version, seen):
        yield entry.id, entry.parent_id, entry.type, entry.line, entry.start


def _long_line(data: Bytes, begin: int) -> tuple[int, bool]:
    """Find where the line that goes on at `begin` ends, and tell whether it shows no second entry.

    Holds one block of it at a time. A line without its end is never taken for whole.
    """
    before = b""
    plain = True
    for position in range(begin, len(data), BLOCK):
        part = before + data[position : position + BLOCK]
        end = part.find(b"\n")
        plain = plain and part.find(_SECOND, 0, len(part) if end < 0 else end) < 0
        if end >= 0:
            return position - len(before) + end + 1, plain and part[:end].removesuffix(b"\r").endswith(b"}")
        before = part[1 - len(_SECOND) :]
    return len(data), False
