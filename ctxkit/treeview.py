"""A session's tree as people and programs look at it: one line an entry, Mermaid, Graphviz."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unicodedata import category, east_asian_width

from ctxkit.entry import Entry, Message, text_of
from ctxkit.session import Session

ELLIPSIS = "…"
LONGEST_GUIDE = 40  # columns
LONGEST = 400  # characters of an entry that are looked at for its first words

# What `--filter` leaves out (Pi §12, tree view filters).
SETTINGS = frozenset(
    {"context_edit", "custom", "label", "leaf", "model_change", "session_info", "thinking_level_change", "usage"}
)


class Row(NamedTuple):
    """An entry to be shown: who speaks in it, its first words, its label; is it the leaf?

    `parent_id` is the nearest entry above that is shown; `guide` is what is drawn before it, of the branches around it.
    """

    id: str
    parent_id: str | None
    type: str
    guide: str
    role: str
    text: str
    label: str | None
    is_leaf: bool


def rows(session: Session, leaf: str | None, keep: Callable[[Row], bool], *, settings: bool) -> Iterator[Row]:
    """Yield the entries to be shown, parents first and branch by branch.

    The mark of a leaf that is not shown goes to the nearest entry above it that is. With `settings`, a branch of
    nothing but settings is drawn as a branch.
    """
    marked = _nearest_shown(session, leaf, keep)
    # entry, nearest entry shown above, what is drawn before it, what is drawn before the entries below it
    todo: list[tuple[str, str | None, str, str]] = [(root, None, "", "") for root in reversed(session.roots())]
    while todo:
        id, above, guide, below = todo.pop()
        row = _row(session, session.entry(id), marked)._replace(parent_id=above, guide=guide)
        if keep(row):
            yield row
            above, guide = id, below
        children = session.children(id)
        branches = children
        if len(children) > 1 and not settings:
            branches = [child for child in children if _says_something(session, child)]
        inside = set(branches) if len(branches) > 1 else set()
        for child in reversed(children):
            if child in inside:
                last = child == branches[-1]
                lead, rest = ("└ ", "  ") if last else ("├ ", "│ ")
                todo.append((child, above, _joined(below, lead), _joined(below, rest)))
            else:
                todo.append((child, above, guide, below))


def _joined(guide: str, more: str) -> str:
    """Add to a guide; one that gets too long loses its beginning, and says so."""
    guide += more
    return guide if len(guide) <= LONGEST_GUIDE else "… " + guide[-(LONGEST_GUIDE - 2) :]


def _says_something(session: Session, id: str) -> bool:
    """Tell whether there is more than settings in a branch that begins with an entry."""
    todo = [id]
    while todo:
        id = todo.pop()
        if session.type_of(id) not in SETTINGS:
            return True
        todo += session.children(id)
    return False


def filters() -> dict[str, Callable[[Row], bool]]:
    """Return what each `--filter` keeps, by its name."""
    return {
        "default": lambda row: row.type not in SETTINGS,
        "no-tools": lambda row: row.type not in SETTINGS and row.role != "result",
        "user-only": lambda row: row.role == "user",
        "labeled-only": lambda row: row.label is not None,
        "all": lambda row: True,
    }


def describe(entry: Entry) -> tuple[str, str]:
    """Return who speaks in an entry, and its first words."""
    value = entry.value
    if entry.type == "message":
        return _describe_message(Message(entry.message))
    if entry.type == "compaction":
        return "compaction", f"{value.get('tokensBefore', '?')} tokens: {_string(value.get('summary'))}"
    if entry.type == "branch_summary":
        return "branch summary", _string(value.get("summary"))
    if entry.type == "custom_message":
        return _string(value.get("customType")) or "custom", _texts(Message(value))
    if entry.type == "model_change":
        return "model", f"{_string(value.get('provider'))}/{_string(value.get('modelId'))}"
    if entry.type == "thinking_level_change":
        return "thinking", _string(value.get("thinkingLevel"))
    if entry.type == "label":
        return "label", f"{_string(value.get('label')) or '(cleared)'} on {_string(value.get('targetId'))}"
    if entry.type == "session_info":
        return "name", _string(value.get("name"))
    if entry.type == "context_edit":
        what = "left out" if value.get("replacement") is None else "replaced"
        return "context edit", f"{_string(value.get('targetId'))} {what}"
    return entry.type, _string(value.get("customType"))


def one_line(text: str) -> str:
    """Return the first words of a text on one line, without control characters."""
    text = " ".join(text[:LONGEST].split())
    if text.isprintable():
        return text
    return "".join(letter for letter in text if category(letter)[0] != "C" or letter == "\u200d")


def cut_to(text: str, columns: int) -> str:
    """Cut a line to columns of a terminal; East Asian wide characters take two."""
    if text.isascii():
        return text if len(text) <= columns else text[: columns - 1].rstrip() + ELLIPSIS
    used = fits = 0
    for at, letter in enumerate(text):
        used += _columns(letter)
        if used > columns:
            return text[:fits].rstrip() + ELLIPSIS
        if used < columns:
            fits = at + 1
    return text


def _columns(letter: str) -> int:
    if letter < "\u0300":
        return 1
    if east_asian_width(letter) in "WF":
        return 2
    return 0 if category(letter) in ("Mn", "Me", "Cf") else 1


def text_lines(shown: Iterator[Row], columns: int) -> Iterator[str]:
    """Draw the tree: a star before the current leaf, branches below forks, cut to the width of the terminal."""
    for row in shown:
        label = f"[{one_line(row.label)}] " if row.label is not None else ""
        mark = "*" if row.is_leaf else " "
        yield cut_to(f"{mark} {row.guide}{row.id} {row.role}: {label}{row.text}".rstrip(), columns)


def mermaid_lines(shown: Iterator[Row]) -> Iterator[str]:
    """Draw the tree as a Mermaid flowchart."""
    yield "flowchart TD"
    numbers: dict[str, int] = {}
    for number, row in enumerate(shown):
        numbers[row.id] = number
        yield f'    n{number}["{_mermaid_text(_node_text(row))}"]'
        if row.parent_id is not None:
            yield f"    n{numbers[row.parent_id]} --> n{number}"
        if row.is_leaf:
            yield f"    style n{number} stroke-width:4px"


def dot_lines(shown: Iterator[Row]) -> Iterator[str]:
    """Draw the tree as a Graphviz digraph."""
    yield "digraph session {"
    yield "    node [shape=box];"
    numbers: dict[str, int] = {}
    for number, row in enumerate(shown):
        numbers[row.id] = number
        text = _node_text(row).replace("\\", "\\\\").replace('"', '\\"')
        yield f'    n{number} [label="{text}"{", penwidth=3" if row.is_leaf else ""}];'
        if row.parent_id is not None:
            yield f"    n{numbers[row.parent_id]} -> n{number};"
    yield "}"


def _row(session: Session, entry: Entry, marked: str | None) -> Row:
    assert entry.id is not None
    role, text = describe(entry)
    label = session.labels.get(entry.id)
    text, role = one_line(text), one_line(role)
    return Row(entry.id, None, entry.type, "", role, text, None if label is None else label.text, entry.id == marked)


def _nearest_shown(session: Session, leaf: str | None, keep: Callable[[Row], bool]) -> str | None:
    while leaf is not None and not keep(_row(session, session.entry(leaf), None)):
        leaf = session.parent(leaf)
    return leaf


def _describe_message(message: Message) -> tuple[str, str]:
    role, value = message.role, message.value
    if role == "assistant":
        calls = ", ".join(_call(block) for block in message.calls)
        text = _texts(message) or _string(value.get("errorMessage"))
        return "assistant", " ".join(part for part in (text, f"-> {calls}" if calls else "") if part)
    if role == "toolResult":
        failed = "failed: " if value.get("isError") is True else ""
        return "result", f"{_string(value.get('toolName'))}: {failed}{_texts(message)}"
    if role == "bashExecution":
        return "bash", _string(value.get("command"))
    if role == "custom":
        return _string(value.get("customType")) or "custom", _texts(message)
    return role or "message", _texts(message)


def _call(block: dict[str, Any]) -> str:
    """Write a tool call as its name and the first of its arguments that is a text."""
    arguments = block.get("arguments")
    values = arguments.values() if isinstance(arguments, dict) else ()
    first = next((value for value in values if isinstance(value, str)), "")
    return f"{_string(block.get('name'))}({one_line(first)[:60]})"


def _texts(message: Message) -> str:
    parts = ["(image)" if block.get("type") == "image" else text_of(block)[:LONGEST] for block in message.blocks]
    return " ".join(part for part in parts if part)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _node_text(row: Row) -> str:
    label = f"[{one_line(row.label)}] " if row.label is not None else ""
    return cut_to(f"{row.role}: {label}{row.text}", 60)


def _mermaid_text(text: str) -> str:
    """Escape text for a quoted Mermaid label: everything that it could take for markup becomes a numbered entity."""
    return "".join(letter if letter.isalnum() or letter in " .,:/-_()" else f"#{ord(letter)};" for letter in text)
