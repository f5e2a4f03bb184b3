"""The full text of something truncated: kept in memory while it is small, then in a private file.

Spills lie in `$XDG_STATE_HOME/ctxkit/spill` or where the user says. The folder is made for its owner alone, names
cannot be guessed, and old spills are removed when a new one is begun: after a week, or oldest first beyond 2 GB.
"""

from __future__ import annotations

import os
import stat
import time

from ctxkit import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HOLD = 1 << 20  # bytes of an input that may still fit, held before they go to disk
PREFIX = "ctx-"
SUFFIX = ".txt"
HEX = frozenset("0123456789abcdef")
MAX_AGE = 7 * 86400  # seconds
MAX_TOTAL = 2 << 30  # bytes of all spills in one folder
MIN_AGE = 3600  # seconds; a younger spill is not removed for its size: somebody may be about to read it


class Spill:
    """The full text of an input that may be cut: in memory while it is small, then in a private file.

    With `path` it goes to that file from the beginning. A spill never breaks the filter: if it cannot be written, there
    is one warning, once the text is known to be needed, and no path.
    """

    __slots__ = ("_failure", "_fd", "_folder", "_held", "_lasting", "_named", "_warned", "path")

    def __init__(self, folder: str | None = None, *, path: str | None = None) -> None:
        self.path: str | None = None  # the file, once there is one
        self._folder = folder
        self._named = path is not None
        self._lasting = True  # it is a regular file: what was written can be read again
        self._held = bytearray()
        self._failure: OSError | None = None
        self._warned = False
        self._fd = -1
        if path is not None:
            self._try(lambda: self._create(path))
            self._warn()

    def feed(self, data: bytes, *, needed: bool) -> None:
        """Add data; `needed` means that the input is known to be cut, so the file must be there from now on."""
        if self._failure is None:
            if self._fd >= 0:
                self._try(lambda: self._write(data))
            else:
                self._held += data
                if needed or len(self._held) > HOLD:
                    self._try(self._open)
        if needed or self._named:
            self._warn()

    def close(self, *, needed: bool) -> str | None:
        """End the input; return the path of the full text, None if it was not needed or could not be saved."""
        if not (needed or self._named):
            self.discard()
            return None
        if self._failure is None:
            if self._fd < 0:
                self._try(self._open)
            if self._fd >= 0:
                self._try(self._close)
        self._warn()
        return self.path if self._lasting else None

    def discard(self) -> None:
        """Forget the text. The file, if one was begun, is removed; one that the user named stays."""
        if self._fd >= 0:
            try:
                self._close()
            except OSError:
                pass
        if self.path is not None and not self._named:
            _remove(self.path)
        self.path = None
        self._held = bytearray()

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            self._failure = error
            self.discard()

    def _warn(self) -> None:
        if self._failure is not None and not self._warned:
            self._warned = True
            process.warn(f"the full output cannot be saved: {process.reason(self._failure)}")

    def _create(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._lasting = stat.S_ISREG(os.fstat(self._fd).st_mode)
        self.path = os.path.abspath(path)

    def _open(self) -> None:
        folder = os.path.abspath(self._folder or os.path.join(process.state_home(), "spill"))
        _make_private(folder)
        try:
            _remove_old_spills(folder)
        except OSError:  # somebody else removed them, too, or the folder cannot be listed
            pass
        path = os.path.join(folder, f"{PREFIX}{os.urandom(8).hex()}{SUFFIX}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self.path = path
        held, self._held = self._held, bytearray()
        self._write(held)

    def _write(self, data: bytes | bytearray) -> None:
        process.write_all(self._fd, data, end_on_signal=not self._lasting)

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)


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
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            middle = name.removeprefix(PREFIX).removesuffix(SUFFIX)
            ours = name == f"{PREFIX}{middle}{SUFFIX}" and len(middle) == 16 and not set(middle) - HEX
            if not ours or not entry.is_file(follow_symlinks=False):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # another ctx was faster
                continue
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
