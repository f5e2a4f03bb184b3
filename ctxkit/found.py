"""What the core is told about a path, and what it has to say about one: the values between it and `folders`."""

from __future__ import annotations

from typing import NamedTuple

from ctxkit.markup import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, TypeAlias

    Kind: TypeAlias = Literal["file", "folder", "missing", "dangling", "special", "unreadable"]


class Found(NamedTuple):
    """What is at a path, links followed; `real` and `data` only where it was read."""

    path: str
    kind: Kind
    identity: tuple[int, int] | None = None  # device and inode; None where there is nothing
    why: str = ""  # it cannot be read
    real: str = ""  # the path without links
    data: bytes = b""


class Disk(NamedTuple):
    """How the core looks at files: it is handed these functions. None of them raises or waits."""

    look: Callable[[str], Found]  # what is at a path
    read: Callable[[str], Found]  # the same, with the bytes of a regular file
    names: Callable[[str], list[str]]  # what is in a folder, in order of bytes


class Finding(NamedTuple):
    """What a person should know about a file: prints as `path:line: what`."""

    path: str
    line: int | None
    what: str

    def as_json(self) -> dict[str, str | int | None]:
        """Return the finding as a JSON object."""
        return {"path": self.path, "line": self.line, "what": self.what}

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return visible(f"{place}: {self.what}")
