"""The little of Markdown that instruction files need: which lines are code, and which headings part a text."""

from __future__ import annotations

import re

_FENCE = re.compile(r"[ \t>]*(`{3,}(?=[^`]*$)|~{3,})(.*)")


def fenced(lines: list[str]) -> list[bool]:
    """Say of each line whether it belongs to a fenced block of code, fences included (CommonMark §4.5).

    A fence is closed by one of the same character that is at least as long; one that is never closed goes to the end.
    Fences in lists and quotes count, however deep they are indented.
    """
    inside = []
    fence = ""
    for line in lines:
        match = _FENCE.fullmatch(line)
        if not fence:
            inside.append(match is not None)
            fence = match[1] if match else ""
            continue
        inside.append(True)
        if match and match[1].startswith(fence) and not match[2].strip():
            fence = ""
    return inside


def without_code(text: str) -> list[str]:
    """Return the lines of a text with blanks in place of fenced blocks and code spans."""
    lines = text.split("\n")
    kept = ["" if code else line for line, code in zip(lines, fenced(lines), strict=True)]
    # A span may go on over lines, but not over a blank one.
    paragraphs = re.split(r"(\n[ \t]*(?=\n))", "\n".join(kept))
    return "".join(_CODE_SPAN.sub(_blank, paragraph) for paragraph in paragraphs).split("\n")


_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(?:.+?)(?<!`)\1(?!`)", re.DOTALL)


def _blank(match: re.Match[str]) -> str:
    return "\n".join("`" * len(line) for line in match[0].split("\n"))


class Section:
    """A heading with the text below it, up to the next heading; the text before the first has none."""

    __slots__ = ("heading", "key", "level", "lines")

    def __init__(self, level: int, key: str, heading: list[str]) -> None:
        self.level = level
        self.key = key  # the text of the heading, in one spelling
        self.heading = heading
        self.lines: list[str] = []


_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t](.*))?")


def sections(text: str) -> list[Section]:
    """Part a text at its headings, those with `#`; what looks like one inside a fence is code."""
    lines = text.split("\n")
    parts = [Section(0, "", [])]
    for line, code in zip(lines, fenced(lines), strict=True):
        match = None if code else _HEADING.fullmatch(line)
        if match:
            parts.append(Section(len(match[1]), _title(match[2] or ""), [line]))
        else:
            parts[-1].lines.append(line)
    return parts


def _title(text: str) -> str:
    """Return the text of a heading in one spelling, without the marks that may close it."""
    words = text.split()
    if words and not words[-1].strip("#"):
        words.pop()
    return " ".join(words).casefold()
