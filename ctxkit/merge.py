"""Merge rules: in which order instruction files go into a prompt, and which parts of farther ones give way."""

from __future__ import annotations

from ctxkit import markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from ctxkit.instructions import Instruction

    Rule: TypeAlias = Literal["append", "prepend", "replace", "smart"]


def merged(files: list[Instruction], rule: Rule) -> list[Instruction]:
    """Return the files, farthest first, in the order of the prompt; those that give way are no longer kept.

    append   the most specific last
    prepend  the most specific first
    replace  only the most specific
    smart    as append, but a section gives way to one with the same heading in a nearer file
    """
    if rule == "prepend":
        return files[::-1]
    if rule == "replace":
        last = max((number for number, file in enumerate(files) if file.kept), default=-1)
        return [
            file.without(f"replaced by {files[last].path}") if file.kept and number != last else file
            for number, file in enumerate(files)
        ]
    return _smart(files) if rule == "smart" else files


def _smart(files: list[Instruction]) -> list[Instruction]:
    """Go from the nearest file to the farthest, and leave out the sections whose heading a nearer one has."""
    result = []
    nearer: dict[tuple[int, str], str] = {}  # heading: the file it is in
    for file in reversed(files):
        if not file.kept:
            result.append(file)
            continue
        parts = markdown.sections(file.text)
        taken = [bool(part.level) and (part.level, part.key) in nearer for part in parts]
        text = "\n".join(_remaining(parts, taken))
        by = list(dict.fromkeys(nearer[part.level, part.key] for part, gone in zip(parts, taken, strict=True) if gone))
        for part in parts:
            if part.level:
                nearer.setdefault((part.level, part.key), file.path)
        if not by:
            result.append(file)
        elif text.strip():
            result.append(file._replace(text=text, reason=f"{file.reason}; sections replaced by {', '.join(by)}"))
        else:
            result.append(file.without(f"sections replaced by {', '.join(by)}"))
    return result[::-1]


def _remaining(parts: list[markdown.Section], taken: list[bool]) -> list[str]:
    """Return the lines of the parts that stay; the heading of one that goes stays above a part that stays below it."""
    lines: list[str] = []
    for number, part in enumerate(parts):
        if not taken[number]:
            lines += part.heading + part.lines
            continue
        for below, gone in zip(parts[number + 1 :], taken[number + 1 :], strict=True):
            if below.level <= part.level:
                break
            if not gone:
                lines += [*part.heading, ""]
                break
    return lines
