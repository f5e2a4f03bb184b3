"""The edge: what is at a path, what is in a folder, and where the folders of a user are."""

from __future__ import annotations

import os
import stat

from ctxkit import process
from ctxkit.errors import InputError
from ctxkit.found import Disk, Found


def look(path: str) -> Found:
    """Return what is at a path."""
    try:
        status = os.stat(path)
    except PermissionError as error:
        return Found(path, "unreadable", why=process.reason(error))
    except OSError as error:
        return Found(path, "dangling" if os.path.islink(path) else "missing", why=process.reason(error))
    except ValueError:  # a NUL in the name
        return Found(path, "missing", why="not a file name")
    identity = (status.st_dev, status.st_ino)
    if stat.S_ISDIR(status.st_mode):
        return Found(path, "folder", identity, "a folder")
    if not stat.S_ISREG(status.st_mode):
        return Found(path, "special", identity, "not a regular file")
    return Found(path, "file", identity)


def read(path: str) -> Found:
    """Return what is at a path, with the bytes of a regular file. A FIFO is never opened, so nothing waits."""
    found = look(path)
    if found.kind != "file":
        return found
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return found._replace(real=os.path.realpath(path), data=file.read())
    except OSError as error:
        return found._replace(kind="unreadable", why=process.reason(error))


def names(folder: str) -> list[str]:
    """Return the names in a folder in order of their bytes; none if it is no folder or cannot be read."""
    try:
        return sorted(os.listdir(folder), key=os.fsencode)
    except OSError:
        return []


DISK = Disk(look, read, names)


def working_folder(given: str | None) -> str:
    """Return an absolute folder, links as they were written. Raises InputError if it is none."""
    try:
        path = os.path.abspath(given or os.getcwd())
    except OSError as error:
        raise InputError(process.reason(error), source="working directory") from None
    if not os.path.isdir(path):
        raise InputError("no such folder", source=given or path)
    return path


def absolute(path: str, base: str) -> str:
    """Return a path as a user wrote it, `~` and all, from a folder."""
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def home() -> str:
    """Return the folder of the user."""
    return os.path.expanduser("~")


def agent_folder(given: str | None, variable: str, default: str, base: str) -> str:
    """Return the folder where an agent keeps what is the user's: as given, by a variable, or by default."""
    return absolute(given or os.environ.get(variable, "") or default, base)
