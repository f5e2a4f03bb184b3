"""Text from strangers inside our tags: escaped where it is a value, kept from closing its tag where it is prose."""

from __future__ import annotations

import re

# Tags that ctx writes around what others wrote. A document may speak of XML; it may not end or begin one of these.
TAGS = ("project_context", "project_instructions", "skills", "available_skills", "skill")

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def escape(text: str) -> str:
    """Escape a value: the five characters of XML, and control characters as numbers, so that it stays on its line."""
    escaped = re.sub("[&<>\"']", lambda match: _ESCAPES[match[0]], text)
    return _CONTROL.sub(lambda match: f"&#{ord(match[0])};", escaped)


def neutralise(text: str, *inside: str) -> str:
    """Return prose with `&lt;` for `<` where it would open or close one of our tags, or one that it stands inside."""
    names = "|".join((*TAGS, *inside))
    # At the end of a text, too, or what stands below it could make a tag of it.
    tag = rf"<(?=[\s\0]*(?:/[\s\0]*)?(?:(?:{names})(?![\w.:-])|\Z))"
    return re.sub(tag, "&lt;", text, flags=re.IGNORECASE)


def visible(text: str) -> str:
    """Return a path or a name on one line: control characters, which could also move a terminal's cursor, as \\x0a."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def one_line(text: str) -> str:
    """Return a path or a name as prose in a prompt: on one line, our tags neutralised."""
    return neutralise(visible(text))
