"""The full text of something truncated: kept in memory while it is small, then in a private file.

Spills lie in `$XDG_STATE_HOME/ctxkit/spill` or where the user says. The folder is made for its owner alone, names
cannot be guessed, and old spills are removed when a new one is begun: after a week, or oldest first beyond 2 GB.
"""

from __future__ import annotations

import os
import time

from ctxkit import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HOLD = 1 << 20  # bytes of an input that may still fit, held before they go to disk
PREFIX = "ctx-"
SUFFIX = ".txt"
MAX_AGE = 7 * 86400  # seconds
MAX_TOTAL = 2 << 30  # bytes of all spills in one folder
MIN_AGE = 3600  # seconds; a younger spill is not removed for its size: somebody may be about to read it


class Spill:
    """The full text of an input that may be cut: in memory while it is small, then in a private file.

    A spill never breaks the filter: if it cannot be written, there is one warning and no path.
    """

    __slots__ = ("_fd", "_folder", "_held", "_size", "path")

    def __init__(self, folder: str | None = None, *, path: str | None = None) -> None:
        self.path: str | None = None  # the file, once there is one
        self._folder = folder or os.path.join(process.state_home(), "spill")
        self._held: list[bytes] | None = []  # None after a failure
        self._size = 0
        self._fd = -1
        if path is not None:
            self._try(lambda: self._create(path))

    def feed(self, data: bytes, *, needed: bool) -> None:
        """Add data; `needed` means that the input is known to be cut, so the file must be there from now on."""
        if self._held is None:
            return
        if self._fd >= 0:
            self._try(lambda: process.write_all(self._fd, data))
            return
        self._held.append(data)
        self._size += len(data)
        if needed or self._size > HOLD:
            self._try(self._open)

    def close(self, *, needed: bool) -> str | None:
        """End the input; return the path of the full text, None if it was not needed or could not be saved."""
        if needed and self._fd < 0 and self._held is not None:
            self._try(self._open)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        return self.path

    def discard(self) -> None:
        """Forget the text; the file, if one was begun, is removed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self.path is not None:
            _remove(self.path)
        self.path = None
        self._held = None

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            process.warn(f"the full output cannot be saved: {process.reason(error)}")
            self.discard()

    def _create(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self.path = os.path.abspath(path)

    def _open(self) -> None:
        _make_private(self._folder)
        _remove_old_spills(self._folder)
        path = os.path.join(os.path.abspath(self._folder), f"{PREFIX}{os.urandom(8).hex()}{SUFFIX}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self.path = path
        held, self._held = self._held or [], []
        for data in held:
            process.write_all(self._fd, data)


def _make_private(folder: str) -> None:
    """Make a folder that only its owner can enter; one that is there already is taken as it is."""
    if not os.path.isdir(folder):
        os.makedirs(os.path.dirname(folder) or ".", mode=0o700, exist_ok=True)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise


def _remove_old_spills(folder: str) -> None:
    """Remove spills over the age or, oldest first, over the total size; never a file that is not one of ours."""
    now, me = time.time(), os.getuid()
    spills = []
    for entry in os.scandir(folder):
        name = entry.name
        middle = name.removeprefix(PREFIX).removesuffix(SUFFIX)
        ours = name == f"{PREFIX}{middle}{SUFFIX}" and len(middle) == 16
        if not ours or not entry.is_file(follow_symlinks=False) or set(middle) - set("0123456789abcdef"):
            continue
        status = entry.stat(follow_symlinks=False)
        if status.st_uid == me:
            spills.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in spills)
    for modified, size, path in sorted(spills):
        age = now - modified
        if age > MAX_AGE or (total > MAX_TOTAL and age > MIN_AGE):
            _remove(path)
            total -= size


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
