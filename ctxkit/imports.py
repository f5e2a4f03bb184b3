"""Imports: `@path` in an instruction file, as Claude Code reads it. The file it names is one more instruction file."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from ctxkit.found import Finding
from ctxkit.markdown import without_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxkit.found import Disk, Found

DEPTH = 5  # imports of imports
MARKS = 8  # of punctuation behind a path

_REFERENCE = re.compile(r"""(?:^|(?<=[ \t]))@(?:"([^"\n]+)"|((?:\\[ ]|[^\s"`\\@])(?:\\[ ]|[^\s`])*))""", re.MULTILINE)
_TRAILING = ".,;:!?)]}>'\"*_"
_LIKE_A_PATH = re.compile(r"(?:\.{0,2}|~)/.+|.+\.(?:md|markdown|mdc|txt)", re.IGNORECASE)


class Import(NamedTuple):
    """A file that another one imports."""

    file: Found
    importer: str
    line: int


def follow(file: Found, text: str, home: str, disk: Disk) -> Iterator[Import | Finding]:
    """Yield the files that a file imports, each followed by those that it imports itself.

    Only what exists as a regular file is an import: all else, like a decorator or an address, is text. A file on the
    chain of imports that leads to itself is a cycle; one that is imported in two places is yielded twice, but only
    looked into once.
    """
    return _follow(file, text, (file,), home, disk, {file.identity})


def _follow(
    file: Found, text: str, chain: tuple[Found, ...], home: str, disk: Disk, seen: set[tuple[int, int] | None]
) -> Iterator[Import | Finding]:
    for line, written in references(text):
        found = _resolve(written, file, home, disk)
        if found is None:
            if _LIKE_A_PATH.fullmatch(written.rstrip(_TRAILING)):
                yield Finding(file.path, line, f"imports {written!r}, which is no file")
            continue
        route = " -> ".join(each.path for each in (*chain, found))
        if found.identity in [each.identity for each in chain]:
            yield Finding(file.path, line, f"imports in a circle: {route}")
        elif len(chain) > DEPTH:
            yield Finding(file.path, line, f"imports more than {DEPTH} deep: {route}")
        elif b"\0" in found.data:
            yield Finding(file.path, line, f"imports {written!r}, which is no text")
        else:
            yield Import(found, file.path, line)
            if found.identity not in seen:
                seen.add(found.identity)
                content = found.data.decode("utf-8", "replace")
                yield from _follow(found, content, (*chain, found), home, disk, seen)


def references(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the spelling of what may be an import: `@` where a word begins, but not in code."""
    for number, line in enumerate(without_code(text.replace("\r\n", "\n")), 1):
        for match in _REFERENCE.finditer(line):
            yield number, match[1] or match[2].replace("\\ ", " ")


def _resolve(written: str, importer: Found, home: str, disk: Disk) -> Found | None:
    """Return the file that is meant: as it is written, or without an anchor, or without punctuation at its end."""
    spellings = [written]
    if "#" in written:
        spellings.append(written.partition("#")[0])
    bare = spellings[-1].rstrip(_TRAILING)
    spellings += [spellings[-1][:end] for end in range(len(spellings[-1]) - 1, len(bare) - 1, -1)][:MARKS]
    for spelling in filter(None, spellings):
        if spelling == "~" or spelling.startswith("~/"):
            spelling = f"{home}{spelling[1:]}"
        # Next to the real file, since what a linked file says is about its own folder.
        found = disk.look(posixpath.normpath(posixpath.join(posixpath.dirname(importer.real), spelling)))
        if found.kind == "file":
            found = disk.read(found.path)
            return found if found.kind == "file" else None
    return None
