"""YAML as text: mappings, lists, and scalars as they are written, since YAML's types would change them.

It is read from the parser's events: nothing is constructed, so a tag or an alias from a stranger does nothing.
"""

from __future__ import annotations

import yaml

from ctxkit.frontmatter import NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxkit.frontmatter import Parts, Value

DEPTH = 32  # of lists within lists; more is no metadata

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotYaml(Exception):
    """Why a text is no YAML mapping, and in which line."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


def fields(block: str, first: int) -> Parts:
    """Return the mapping that a block of lines holds; `first` is the number of its first line. Raises NotYaml."""
    try:
        value, lines, quoted = _document(yaml.parse(block + "\n", Loader=LOADER), first)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark if error.context_mark is None else error.context_mark
        what = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        raise NotYaml(f"not YAML: {what}", first if mark is None else first + mark.line) from None
    except yaml.YAMLError as error:
        raise NotYaml(f"not YAML: {' '.join(str(error).split())}", first) from None
    if value is None:
        return {}, {}, frozenset()
    if not isinstance(value, dict):
        raise NotYaml("no 'key: value' lines", first)
    return value, lines, frozenset(quoted)


def _document(events: Iterator[yaml.Event], first: int) -> tuple[Value, dict[str, int], set[str]]:
    """Build the one document of a stream; the lines and quotes are those of its top level."""
    result: Value = None
    lines: dict[str, int] = {}
    quoted: set[str] = set()
    unfinished: list[tuple[list[Value] | dict[str, Value], list[str]]] = []  # each with the key that waits for a value
    documents = 0
    for event in events:
        line = first + event.start_mark.line if event.start_mark else first
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise NotYaml("more than one document", line)
        if isinstance(event, yaml.CollectionEndEvent):
            unfinished.pop()
        if not isinstance(event, yaml.NodeEvent):
            continue
        node = _node(event, line)
        parent, waiting = unfinished[-1] if unfinished else (None, [])
        if parent is None:
            result = node
        elif isinstance(parent, list):
            parent.append(node)
        elif waiting:
            key = waiting.pop()
            parent[key] = node
            if len(unfinished) == 1 and isinstance(event, yaml.ScalarEvent) and not event.implicit[0]:
                quoted.add(key)
        elif not isinstance(event, yaml.ScalarEvent):
            raise NotYaml("a key is not text", line)
        elif event.value in parent:
            raise NotYaml(f"the key {event.value!r} stands twice", line)
        else:
            waiting.append(event.value)
            if len(unfinished) == 1:
                lines[event.value] = line
        if isinstance(node, list | dict):
            if len(unfinished) == DEPTH:
                raise NotYaml("nested too deeply", line)
            unfinished.append((node, []))
    return result, lines, quoted


def _node(event: yaml.NodeEvent, line: int) -> Value:
    if isinstance(event, yaml.AliasEvent):
        raise NotYaml("aliases are not read", line)
    if isinstance(event, yaml.ScalarEvent):
        return None if event.implicit[0] and event.value in NULL else event.value
    return {} if isinstance(event, yaml.MappingStartEvent) else []
