"""Session files: opened for their tree, whosever they are, and appended to when they are still what was read."""

from __future__ import annotations

import mmap
from collections.abc import Iterable

from ctxkit import files, process
from ctxkit.agents import pi
from ctxkit.entry import Bytes, Entry, dumps
from ctxkit.errors import InputError, StateError, UsageError
from ctxkit.session import Session

READ_WHOLE = 64 << 20  # bytes; a larger file is mapped, which is fast but ends the process if somebody cuts the file
FINDINGS_SHOWN = 3


class SessionFile:
    """A session and where it came from: its `name`, its bytes, and what the file was when it was read."""

    __slots__ = ("_path", "_state", "data", "name", "session")

    def __init__(self, name: str, data: Bytes, path: str | None, state: files.State | None, *, bridge: bool) -> None:
        self.name = name
        self.data = data
        self.session: Session = pi.load(data, name=name, bridge=bridge)
        self._path = path
        self._state = state

    def find(self, text: str) -> str:
        """Return the id of an entry from the id or the beginning of it. Raises InputError with close matches."""
        try:
            return self.session.find(text)
        except InputError as error:
            raise InputError(error.message, source=self.name, hint=error.hint) from None

    def leaf(self, text: str | None) -> str | None:
        """Return the leaf that was asked for, else the current one."""
        return self.session.leaf if text is None else self.find(text)

    def append(self, *entries: Entry) -> None:
        """Append entries to the file, all or none.

        Raises UsageError for standard input, StateError if the file was changed meanwhile or is of version 1, whose
        entries get their ids only when Pi rewrites the file.
        """
        if self._path is None or self._state is None:
            raise UsageError("--in-place needs a file, not standard input")
        self.check_appendable()
        files.append(self._path, b"".join(map(line, entries)), self._state)

    def appended(self, entries: Iterable[Entry]) -> bytes:
        """Return what the file would be with entries appended. Raises StateError for version 1, as `append` does."""
        self.check_appendable()
        before = self.data[0 : len(self.data)]
        gap = b"\n" if before and not before.endswith(b"\n") else b""
        return b"".join((before, gap, *map(line, entries)))

    def check_appendable(self) -> None:
        """Raise StateError for a session of version 1: its entries have no ids that a new one could name."""
        if not self.session.appendable:
            raise StateError(
                f"{self.name}: a session of version 1 cannot be appended to",
                "'ctx session repair -o NEW' writes it as version 3",
            )


def open_session(name: str, *, bridge: bool = False) -> SessionFile:
    """Open a session file; `-` is standard input. `bridge` links entries without a parent to the one before.

    Raises InputError for what cannot be read or is no session.
    """
    source = process.open_source(name)
    try:
        if not source.regular:
            return SessionFile(source.name, b"".join(source.chunks()), None, None, bridge=bridge)
        state = files.State(source.fd)
        data: Bytes
        if source.size > READ_WHOLE:
            data = mmap.mmap(source.fd, source.size, access=mmap.ACCESS_READ)
        else:
            data = b"".join(source.chunks())
        return SessionFile(source.name, data, source.path, state, bridge=bridge)
    finally:
        source.close()


def warn_of_findings(file: SessionFile) -> None:
    """Say on standard error what is wrong with a session: the first findings, and how many more there are."""
    found = file.session.findings
    for finding in found[:FINDINGS_SHOWN]:
        process.warn(f"{file.name}:{finding.line}: {finding.what}")
    if len(found) > FINDINGS_SHOWN:
        process.warn(f"{file.name}: {len(found) - FINDINGS_SHOWN} more; 'ctx session check' lists them all")


def line(entry: Entry) -> bytes:
    """Return a new entry as the line that is appended for it."""
    return dumps(entry.value).encode() + b"\n"
