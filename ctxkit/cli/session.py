"""ctx session: look at, check, mend."""

from __future__ import annotations

from ctxkit import process, treeview
from ctxkit.budget import measure_context
from ctxkit.check import check as check_session
from ctxkit.clean import to_utf8
from ctxkit.context import build_context
from ctxkit.entry import Finding, Message
from ctxkit.errors import InputError, UsageError
from ctxkit.files import replace, same_file
from ctxkit.repair import repair as repair_session
from ctxkit.sessionfile import SessionFile, open_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from ctxkit.cli.options import Annotated, Argument, Json, Option, Quiet, Result, SessionName
    from ctxkit.session import Session

FOUND = 1  # exit code
READS = frozenset({"read"})
CHANGES = frozenset({"write", "edit"})


def info(
    sessions: Annotated[list[str], Argument(metavar="SESSION...", show_default=False, help="Session files.")],
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Show what sessions are.

    For each its header, its entries by type, turns, leaf, name and model, the size of its context in tokens by Pi's
    rule, compactions, and the files that its tool calls read, wrote and edited, in the whole file.
    """

    def show(file: SessionFile) -> Generator[dict[str, Any], None, int]:
        facts = _facts(file)
        if json:
            yield facts
            return 0
        if len(sessions) > 1:
            process.write(b"" if file.name == sessions[0] else b"\n")
        for name, value in facts.items():
            if name != "schema":
                process.write(to_utf8(f"{name:12} {_plain(value)}".rstrip()) + b"\n")
        return 0

    return _each(sessions, show)


def check(
    sessions: Annotated[list[str], Argument(metavar="SESSION...", show_default=False, help="Session files.")],
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Check sessions, one line a finding.

    Finds bytes that hold no entry, lines glued or torn, missing parents and cycles, ids given twice, calls without a
    result and results without a call, compactions that keep what is not there, and what else keeps a history from
    being read or sent. Exit status is 1 if anything was found. Reads only.
    """

    def show(file: SessionFile) -> Generator[dict[str, Any], None, int]:
        found = check_session(file.session)
        for finding in found:
            if json:
                yield _finding(file, finding)
            else:
                process.write(_line(file, finding) + b"\n")
        return FOUND if found else 0

    return _each(sessions, show)


def repair(
    session: SessionName,
    output: Annotated[
        str, Option("--output", "-o", metavar="NEW", show_default=False, help="Write the mended session to NEW.")
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Write a mended copy of a session.

    The copy passes 'ctx session check', and nothing is invented in it: what holds no entry is left out, each entry
    gets a line and an id of its own, entries without a parent become roots, calls without a result get one that says
    so, and a result without a call is set aside, kept in the file but not in the history. Versions 1 and 2 become
    version 3, with the ids that ctx shows. What needs no change keeps its bytes. SESSION is never written to. What
    was done is said on standard error, or with --json on standard output.
    """
    if session != "-" and same_file(session, output):
        raise UsageError(f"{output} is the session itself")
    file = open_session(session)
    if not check_session(file.session) and _is_current(file.session):
        replace(output, [file.data[0 : len(file.data)]])
        return 0
    mended = repair_session(
        file.session,
        new_id=lambda: process.new_entry_id(()),
        session_id=process.new_session_id,
        now=process.now(),
    )
    replace(output, mended.lines)
    if json:
        return _findings(file, mended.done)
    if not quiet:
        for finding in mended.done:
            process.write_error(_line(file, finding) + b"\n")
    return 0


def _each(
    names: list[str], work: Callable[[SessionFile], Generator[dict[str, Any], None, int]]
) -> Generator[dict[str, Any], None, int]:
    """Do the work for every session, report those that cannot be read, and return the worst exit code."""
    worst = 0
    for name in names:
        try:
            code = yield from work(open_session(name))
            worst = max(worst, code)
        except InputError as error:
            process.report(error)
            worst = max(worst, error.exit_code)
    return worst


def _is_current(session: Session) -> bool:
    return session.header is not None and session.header.value.get("version") == 3


def _line(file: SessionFile, finding: Finding) -> bytes:
    return to_utf8(f"{process.shown(file.name)}:{finding.line}: {finding.code}: {treeview.one_line(finding.what)}")


def _finding(file: SessionFile, finding: Finding) -> dict[str, Any]:
    return {"schema": 1, "file": file.name, "line": finding.line, "code": finding.code, "what": finding.what}


def _findings(file: SessionFile, done: list[Finding]) -> Generator[dict[str, Any], None, int]:
    for finding in done:
        yield _finding(file, finding)
    return 0


def _facts(file: SessionFile) -> dict[str, Any]:
    tree = file.session
    header = tree.header.value if tree.header is not None else {}
    types: dict[str, int] = {}
    turns = 0
    files: dict[str, set[str]] = {"read": set(), "changed": set()}
    for id in tree:
        kind = tree.type_of(id)
        types[kind] = types.get(kind, 0) + 1
        if kind != "message":
            continue
        message = Message(tree.entry(id).message)
        turns += message.role == "user"
        for call in message.calls:
            arguments = call.get("arguments")
            path = arguments.get("path") if isinstance(arguments, dict) else None
            if isinstance(path, str) and path:
                name = call.get("name")
                files["read"] |= {path} if name in READS else set()
                files["changed"] |= {path} if name in CHANGES else set()
    built = build_context(tree, tree.leaf)
    size = measure_context([message.value for message in built.messages], since=built.settled)
    return {
        "schema": 1,
        "file": file.name,
        "id": header.get("id"),
        "version": header.get("version", 1) if header else None,
        "started": header.get("timestamp"),
        "cwd": header.get("cwd"),
        "parent": header.get("parentSession"),
        "name": tree.name,
        "leaf": tree.leaf,
        "model": "/".join(part for part in (built.settings.provider, built.settings.model) if part) or None,
        "tokens": size.tokens,
        "entries": len(tree),
        "types": dict(sorted(types.items())),
        "turns": turns,
        "branches": len(tree.leaves()),
        "compactions": types.get("compaction", 0),
        "filesRead": sorted(files["read"] - files["changed"]),
        "filesChanged": sorted(files["changed"]),
        "findings": len(tree.findings),
    }


def _plain(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items()) or "-"
    if isinstance(value, list):
        return treeview.one_line(", ".join(value)) or "-"
    return treeview.one_line(str(value))
