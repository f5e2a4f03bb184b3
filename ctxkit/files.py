"""Files that ctx writes: replaced atomically, or appended to under a lock if they are still what was read."""

from __future__ import annotations

import fcntl
import os
import time

from ctxkit import process
from ctxkit.errors import ChangedError, OutputError, StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LOCK_PATIENCE = 5.0  # seconds to wait for somebody else's lock
TAIL = 1 << 16  # bytes at the end of a file that are compared before it is appended to


class State:
    """What a file was when it was read: its identity, size, time of change and last bytes."""

    __slots__ = ("identity", "modified", "size", "tail")

    def __init__(self, fd: int) -> None:
        status = os.fstat(fd)
        self.identity = (status.st_dev, status.st_ino)
        self.size = status.st_size
        self.modified = status.st_mtime_ns
        self.tail = os.pread(fd, TAIL, max(0, status.st_size - TAIL))

    def same(self, other: State) -> bool:
        """Say whether nothing has happened between two looks at a file."""
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)


def same_file(path: str, other: str) -> bool:
    """Say whether two names lead to one file that exists."""
    try:
        return os.path.samestat(os.stat(path), os.stat(other))
    except OSError:
        return False


def append(path: str, data: bytes, seen: State) -> None:
    """Append data to a file that is still as it was seen, and see it safely on the disk.

    A last line without its newline gets one first. If the data does not fit on the disk, the file is as it was before.
    Raises ChangedError if the file has changed, StateError if it is locked, OutputError if it cannot be written.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        raise OutputError(f"{path}: {process.reason(error)}") from None
    try:
        _lock(fd, path)
        if not State(fd).same(seen):
            raise ChangedError(f"{path}: changed since it was read", "nothing was written; run the command again")
        if seen.tail and not seen.tail.endswith(b"\n"):
            data = b"\n" + data
        try:
            process.write_all(fd, data)
            os.fsync(fd)
        except OSError as error:
            os.ftruncate(fd, seen.size)
            raise OutputError(f"{path}: {process.reason(error)}") from None
    finally:
        os.close(fd)


def replace(path: str, chunks: Iterable[bytes]) -> None:
    """Write a file so that at any moment there is the old one or the whole new one, and see it safely on the disk.

    A link stays a link, and an existing file keeps its mode. Raises OutputError; then the old file is untouched.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    part = os.path.join(folder, f".{os.path.basename(target)}.{os.urandom(6).hex()}.part")
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise OutputError(f"{path}: {process.reason(error)}") from None
    try:
        try:
            if os.path.exists(target):
                os.fchmod(fd, os.stat(target).st_mode & 0o7777)
            for chunk in chunks:
                process.write_all(fd, chunk)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(part, target)
    except BaseException as error:
        os.unlink(part)
        if isinstance(error, OSError):
            raise OutputError(f"{path}: {process.reason(error)}") from None
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Make a rename last: some filesystems cannot sync a folder, and need not."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fsync(fd)
    except OSError:
        pass
    finally:
        os.close(fd)


def _lock(fd: int, path: str) -> None:
    """Lock a file for writing; it is unlocked when it is closed."""
    give_up = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise StateError(f"{path}: locked by another process", "nothing was written; try again") from None
            time.sleep(0.05)
