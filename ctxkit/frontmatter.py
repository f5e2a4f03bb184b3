"""Split the metadata between `---` lines from the text below: one reading for skills, templates and rules (Pi §10.3).

Plain `key: value` lines are read here; anything else is YAML; what is not even that is read leniently, key by key, and
`problem` says so. A scalar keeps its source text (`007`, `yes`, `2026-01-02`), since YAML's types would change it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Value: TypeAlias = "str | list[Value] | dict[str, Value] | None"
    Parts: TypeAlias = tuple[dict[str, Value], dict[str, int], frozenset[str]]  # fields, their lines, which are quoted

# What JavaScript's trim() and \s take for white space, which is what Pi's files were written for.
WHITE = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
NULL = ("", "~", "null", "Null", "NULL")

_PLAIN = re.compile(
    r"""([A-Za-z_][\w-]{0,99}):(?:[ ]+(?:"([^"\\]*)"|'([^']*)'|([^\s\-?:,\[\]{}#&*!|>'"%@`].*)))?""", re.A
)
_KEY = re.compile(r"([^\s:#\-][^:]*):(?:[ \t](.*))?")
_BLOCK_SCALAR = re.compile(r"([|>])[-+0-9]*")


class Frontmatter(NamedTuple):
    """The metadata of a file and the text below it."""

    fields: dict[str, Value]
    lines: dict[str, int]  # where each field stands, 1-based
    quoted: frozenset[str]  # the fields whose value is text by its quotes
    body: str
    body_line: int  # the line of the file where the body begins
    problem: str  # why the metadata is not YAML, "" if it is
    problem_line: int

    def text(self, key: str) -> str | None:
        """Return a field that is text; None if it is missing, null, or a list or mapping."""
        value = self.fields.get(key)
        return value if isinstance(value, str) else None

    def is_true(self, key: str) -> bool:
        """Say whether a field is the boolean true, not a text that spells it."""
        return self.fields.get(key) in ("true", "True", "TRUE") and key not in self.quoted


def decode(data: bytes) -> str:
    """Return the text of a file: invalid UTF-8 replaced, no byte order mark, every line ended by a newline alone."""
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def split(text: str) -> Frontmatter:
    """Split decoded text; without a closing mark all of it is the body."""
    end = text.find("\n---", 3) if text.startswith("---") else -1
    if end < 0:
        return Frontmatter({}, {}, frozenset(), text, 1, "", 1)
    block = text[4:end]
    rest = text[end + 4 :]
    body = rest.strip(WHITE)
    skipped = len(rest) - len(rest.lstrip(WHITE))
    line = text.count("\n", 0, end + 4 + skipped) + 1
    first = 1 if text[3:4] != "\n" else 2
    parts = scan(block, first)
    problem, problem_line = "", first
    if parts is None:
        from ctxkit import yamltext  # noqa: PLC0415 - takes longer to load than all else of a usual start

        try:
            parts = yamltext.fields(block, first)
        except yamltext.NotYaml as error:
            problem, problem_line = error.what, error.line
            parts = _lenient(block, first)
    fields, lines, quoted = parts
    return Frontmatter(fields, lines, quoted, body, line, problem, problem_line)


def scan(block: str, first: int) -> Parts | None:
    """Read lines that are all `key: value`, comments or blank, exactly as YAML would; None if one is not."""
    fields: dict[str, Value] = {}
    lines: dict[str, int] = {}
    quoted = set()
    for number, line in enumerate(block.split("\n"), first):
        if not line or (line[0] == "#" and line.isprintable()):
            continue
        match = _PLAIN.fullmatch(line.rstrip(" "))
        if match is None or not line.isprintable() or match[1] in fields:
            return None
        key, double, single, plain = match.groups()
        if plain is not None and (": " in plain or plain[-1] == ":" or " #" in plain):
            return None
        if double is not None or single is not None:
            quoted.add(key)
            fields[key] = double if double is not None else single
        else:
            fields[key] = None if plain in (None, *NULL) else plain
        lines[key] = number
    return fields, lines, frozenset(quoted)


def _lenient(block: str, first: int) -> Parts:
    """Read what looks like `key: value`, whatever the value holds; indented lines continue it, a list is no text."""
    fields: dict[str, Value] = {}
    lines: dict[str, int] = {}
    quoted = set()
    rows = block.split("\n")
    at = 0
    while at < len(rows):
        match = _KEY.fullmatch(rows[at].rstrip())
        number = first + at
        at += 1
        if match is None or rows[at - 1][:1] in (" ", "\t"):
            continue
        more = []
        while at < len(rows) and (not rows[at].strip() or rows[at][:1] in (" ", "\t")):
            more.append(rows[at].strip())
            at += 1
        key, value = match[1].strip().strip("\"'"), (match[2] or "").strip()
        if key in fields:
            continue
        lines[key] = number
        while more and not more[-1]:
            more.pop()
        scalar = _BLOCK_SCALAR.fullmatch(value)
        if scalar:
            fields[key] = ("\n" if scalar[1] == "|" else " ").join(more)
        elif value[:1] in ("[", "{") or (value in NULL and more):
            fields[key] = []
        elif len(value) > 1 and value[0] in "\"'" and value[-1] == value[0] and not more:
            fields[key] = value[1:-1]
            quoted.add(key)
        else:
            fields[key] = None if value in NULL else " ".join([value, *filter(None, more)])
    return fields, lines, frozenset(quoted)
