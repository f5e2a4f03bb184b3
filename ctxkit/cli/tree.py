"""ctx tree: the session is a tree."""

from __future__ import annotations

from ctxkit import process, treeview
from ctxkit import session as sessions
from ctxkit.budget import estimate_message
from ctxkit.clean import to_utf8
from ctxkit.entry import line_of
from ctxkit.errors import ChangedError, UsageError
from ctxkit.files import replace, same_file
from ctxkit.sessionfile import SessionFile, line, open_session, warn_of_findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from typing import Any, Literal

    from ctxkit.cli.options import (
        Annotated,
        Argument,
        Bridge,
        InPlace,
        Json,
        Leaf,
        Option,
        Quiet,
        Result,
        SessionName,
    )
    from ctxkit.entry import Entry

NO = 1  # the answer is no
ATTEMPTS = 100  # to append to a session that others append to, too


def show(
    session: SessionName,
    leaf: Leaf = None,
    filter: Annotated[
        Literal["default", "no-tools", "user-only", "labeled-only", "all"],
        Option("--filter", metavar="WHICH", help="Show these entries; default hides settings, names and labels."),
    ] = "default",
    format: Annotated[
        Literal["text", "json", "mermaid", "dot"],
        Option("--format", metavar="FORMAT", help="Print text, JSON Lines, a Mermaid flowchart or a Graphviz digraph."),
    ] = "text",
    bridge: Bridge = False,
    quiet: Quiet = False,
) -> Result:
    """Show a session as a tree.

    One line an entry: its id, who speaks, its label in brackets, its first words; branches are drawn only below
    forks, and lines are cut to the width of the terminal. A star marks the current leaf, or the nearest entry above
    it that is shown. The default filter hides settings, names, labels, edits and the notes of extensions.
    """
    file = _open(session, bridge=bridge)
    shown = treeview.rows(file.session, file.leaf(leaf), treeview.filters()[filter], settings=filter == "all")
    if format == "json":
        return _rows_as_json(shown)
    draw = {"mermaid": treeview.mermaid_lines, "dot": treeview.dot_lines}
    lines = draw[format](shown) if format in draw else treeview.text_lines(shown, process.terminal_width())
    _print(to_utf8(text) + b"\n" for text in lines)
    return 0


def lca(
    session: SessionName,
    a: Annotated[str, Argument(metavar="A", show_default=False, help="An entry: its id, or the beginning of it.")],
    b: Annotated[str, Argument(metavar="B", show_default=False, help="Another entry.")],
    json: Json = False,
    bridge: Bridge = False,
    quiet: Quiet = False,
) -> Result:
    """Print the entry where two paths part.

    This is the lowest common ancestor: the deepest entry on both paths. Exit status is 1, and nothing is printed, if
    the two lie in different trees.
    """
    file = _open(session, bridge=bridge)
    a, b = file.find(a), file.find(b)
    found = file.session.lca(a, b)
    if json:
        return _lca_as_json(file, found, a, b)
    if found is None:
        return NO
    process.write(to_utf8(found) + b"\n")
    return 0


def path(
    session: SessionName,
    id: Annotated[
        str | None, Argument(metavar="[ID]", show_default=False, help="An entry, in place of the current leaf.")
    ] = None,
    json: Json = False,
    bridge: Bridge = False,
    quiet: Quiet = False,
) -> Result:
    """Print the ids from the root to an entry.

    With --json the entries themselves, one a line, as ctx reads them: those of versions 1 and 2 as version 3.
    """
    file = _open(session, bridge=bridge)
    ids = file.session.path(file.leaf(id))
    if json:
        return _values(file.session.entries(ids))
    _print(to_utf8(id) + b"\n" for id in ids)
    return 0


def branches(session: SessionName, json: Json = False, bridge: Bridge = False, quiet: Quiet = False) -> Result:
    """List the leaves: where every branch ends.

    For each its id, the number of entries on its path, its time, Pi's estimate of the tokens on its path, and its
    first words; a star marks the current leaf.
    """
    file = _open(session, bridge=bridge)
    tree = file.session
    ends = list(tree.leaves())
    tokens = _tokens_on_paths(file)
    if json:
        return _branches_as_json(file, ends, tokens)
    for id in ends:
        entry = tree.entry(id)
        role, text = treeview.describe(entry)
        mark = "*" if id == tree.leaf else " "
        row = f"{mark} {id} {tree.depth(id):6} {entry.timestamp:24} {tokens[id]:8} {role}: {treeview.one_line(text)}"
        process.write(to_utf8(treeview.cut_to(row, process.terminal_width())) + b"\n")
    return 0


def abandoned(
    session: SessionName,
    old: Annotated[str, Option("--from", metavar="OLD", show_default=False, help="The leaf that is left.")],
    new: Annotated[str, Option("--to", metavar="NEW", show_default=False, help="The entry that is gone to.")],
    bridge: Bridge = False,
    quiet: Quiet = False,
) -> Result:
    """Print the entries of a branch that is left.

    These are the entries on the path to OLD below the lowest common ancestor, oldest first, one a line as JSON: none
    if NEW is on the same branch, all if the two lie in different trees.
    """
    file = _open(session, bridge=bridge)
    ids = file.session.abandoned(file.find(old), file.find(new))
    _print(map(line_of, file.session.entries(ids)))
    return 0


def goto(
    session: SessionName,
    id: Annotated[str, Argument(metavar="ID", show_default=False, help="The entry to continue from.")],
    in_place: InPlace = False,
    quiet: Quiet = False,
) -> Result:
    """Make an entry the place to continue from.

    Pi continues from the last entry of a file, so one that says nothing to the model is hung below ID. It is printed,
    or with --in-place appended.
    """
    return _add(
        session,
        lambda file: sessions.goto_entry(file.session, file.find(id), new_id=_new_id, now=process.now()),
        in_place=in_place,
    )


def fork(
    session: SessionName,
    id: Annotated[str, Argument(metavar="ID", show_default=False, help="The last entry of the new session.")],
    output: Annotated[
        str | None, Option("--output", "-o", metavar="NEW", show_default=False, help="Write to NEW, not to stdout.")
    ] = None,
    quiet: Quiet = False,
) -> Result:
    """Make a new session of the path to an entry.

    Labels go along, at the end; the header names SESSION as the parent. Entries that need no change keep their bytes.
    """
    file = _open(session)
    target = file.find(id)
    if output is not None and same_file(session, output):
        raise UsageError(f"{output} is the session itself")
    source = "" if session == "-" else process.absolute(session)
    entries = sessions.fork(
        file.session,
        target,
        session_id=process.new_session_id(),
        source=source,
        new_id=_new_id,
        now=process.now(),
    )
    lines = map(line_of, entries)
    if output is None:
        _print(lines)
    else:
        replace(output, lines)
    return 0


def append(
    session: SessionName,
    text: Annotated[str, Option("--text", metavar="TEXT", show_default=False, help="Its text; '-' is standard input.")],
    parent: Annotated[
        str | None,
        Option("--parent", metavar="ID", show_default=False, help="Hang it below ID, not below the current leaf."),
    ] = None,
    role: Annotated[
        Literal["user", "assistant", "system"], Option("--role", metavar="ROLE", help="Who speaks.")
    ] = "user",
    in_place: InPlace = False,
    quiet: Quiet = False,
) -> Result:
    """Add a message to a session.

    The new entry is printed, or with --in-place appended: under a lock, after checking that the file is what was
    read, and safely on the disk. A torn last line gets its line end first; nothing else is touched.
    """
    if text == "-" and session == "-":
        raise UsageError("standard input was named twice")
    if text == "-":
        text = process.read_text("-")

    def make(file: SessionFile) -> Entry:
        above = file.leaf(parent)
        return sessions.message_entry(file.session, above, role, text, new_id=_new_id, now=process.now())

    return _add(session, make, in_place=in_place)


def label(
    session: SessionName,
    id: Annotated[str, Argument(metavar="ID", show_default=False, help="The entry to label.")],
    text: Annotated[
        str, Argument(metavar="[LABEL]", show_default=False, help="The label; none clears the one there is.")
    ] = "",
    in_place: InPlace = False,
    quiet: Quiet = False,
) -> Result:
    """Label an entry, or clear its label.

    The new entry is printed, or with --in-place appended.
    """
    return _add(
        session,
        lambda file: sessions.label_entry(file.session, file.find(id), text, new_id=_new_id, now=process.now()),
        in_place=in_place,
    )


def _open(name: str, *, bridge: bool = False) -> SessionFile:
    file = open_session(name, bridge=bridge)
    warn_of_findings(file)
    return file


def _new_id() -> str:
    return process.new_entry_id(())


def _add(session: str, make: Callable[[SessionFile], Entry], *, in_place: bool) -> int:
    """Print a new entry, or append it; if somebody else wrote meanwhile, look at the session again."""
    for attempts_left in range(ATTEMPTS - 1, -1, -1):
        file = _open(session)
        entry = make(file)
        if not in_place:
            process.write(line(entry))
            return 0
        try:
            file.append(entry)
        except ChangedError:
            if not attempts_left:
                raise
        else:
            break
    return 0


def _print(lines: Iterable[bytes]) -> None:
    """Print lines in blocks, so that a million of them do not cost a million system calls."""
    block: list[bytes] = []
    size = 0
    for text in lines:
        block.append(text)
        size += len(text)
        if size >= process.READ_SIZE:
            process.write(b"".join(block))
            block, size = [], 0
    process.write(b"".join(block))


def _values(entries: Iterable[Entry]) -> Generator[dict[str, Any], None, int]:
    for entry in entries:
        yield entry.value
    return 0


def _rows_as_json(shown: Iterable[treeview.Row]) -> Generator[dict[str, Any], None, int]:
    for row in shown:
        yield {
            "schema": 1,
            "id": row.id,
            "parentId": row.parent_id,
            "type": row.type,
            "role": row.role,
            "text": row.text,
            "label": row.label,
            "leaf": row.is_leaf,
        }
    return 0


def _lca_as_json(file: SessionFile, found: str | None, a: str, b: str) -> Generator[dict[str, Any], None, int]:
    tree = file.session
    yield {
        "schema": 1,
        "lca": found,
        "a": a,
        "b": b,
        "pathA": tree.path(a),
        "pathB": tree.path(b),
        "depth": None if found is None else tree.depth(found),
        "abandoned": tree.abandoned(a, b),
    }
    return NO if found is None else 0


def _branches_as_json(
    file: SessionFile, ends: list[str], tokens: dict[str, int]
) -> Generator[dict[str, Any], None, int]:
    tree = file.session
    for id in ends:
        entry = tree.entry(id)
        role, text = treeview.describe(entry)
        yield {
            "schema": 1,
            "id": id,
            "depth": tree.depth(id),
            "timestamp": entry.timestamp,
            "tokens": tokens[id],
            "role": role,
            "text": treeview.one_line(text),
            "label": tree.labels[id].text if id in tree.labels else None,
            "leaf": id == tree.leaf,
        }
    return 0


def _tokens_on_paths(file: SessionFile) -> dict[str, int]:
    """Return Pi's estimate of all messages on the path to each entry."""
    tree = file.session
    totals: dict[str, int] = {}
    for id, _ in tree.walk():
        above = tree.parent(id)
        own = estimate_message(tree.entry(id).message) if tree.type_of(id) == "message" else 0
        totals[id] = own + (0 if above is None else totals[above])
    return totals
