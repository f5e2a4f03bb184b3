"""Reusable prompts: which there are, how a slash command is read, and how arguments and variables go into one (Pi §11).

Arguments stand for `$1`, `$@`, `${@:2}`, `${1:-default}` and so on in every template. Variables are those that its
metadata declares; then, and only then, `{{name}}`, `{{#if}}`, `{{#unless}}` and `{{#each}}` mean something. It all
happens in one pass over the text, so a value is never expanded again.
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from ctxkit import frontmatter
from ctxkit.errors import InputError, UsageError
from ctxkit.found import Finding
from ctxkit.frontmatter import WHITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from ctxkit.found import Disk, Found

    Node: TypeAlias = "str | Use | Block"
    Values: TypeAlias = Mapping[str, list[str]]  # a variable that is given several times is a list

_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_ASSIGNED = re.compile(f"({_NAME})=")

DESCRIPTION_LIMIT = 60  # of characters of a first line that stands for a description
DEPTH = 32  # of blocks within blocks


class Variable(NamedTuple):
    """A variable that a template declares."""

    name: str
    default: list[str] | None  # None: it must be given
    description: str
    line: int  # of the file, where the variables are declared


class Template(NamedTuple):
    """A prompt with places for arguments and variables."""

    name: str
    description: str
    argument_hint: str
    body: str
    path: str
    line: int  # of the file, where the body begins
    variables: tuple[Variable, ...] | None  # None: it declares none, and braces are text


# -- which there are -------------------------------------------------------------------------------------------------


def find(folders: list[str], disk: Disk) -> tuple[list[Template], list[Finding | InputError]]:
    """Find the templates of some folders, strongest first; of several with one name the first counts.

    Return also what is wrong with those that do not count, or with those that do.
    """
    by_name: dict[str, Template] = {}
    said: list[Finding | InputError] = []
    for folder in folders:
        for name in disk.names(folder):
            if not name.endswith(".md"):
                continue
            file = disk.read(posixpath.join(folder, name))
            if file.kind != "file":
                if file.kind != "folder":
                    said.append(Finding(file.path, None, f"template is not readable: {file.why}"))
                continue
            try:
                template, findings = read(file)
            except InputError as error:
                said.append(error)
                continue
            said += findings
            first = by_name.setdefault(template.name, template)
            if first is not template:
                said.append(Finding(file.path, None, f"name {template.name!r} is taken by {first.path}"))
    return list(by_name.values()), said


def read(file: Found) -> tuple[Template, list[Finding]]:
    """Read a template. Raises InputError for variables that are declared in no way that is known."""
    meta = frontmatter.split(frontmatter.decode(file.data))
    findings = []
    if meta.problem:
        findings.append(Finding(file.path, meta.problem_line, f"{meta.problem}; read as plain lines"))
    variables = None
    if "variables" in meta.fields:
        try:
            variables = tuple(_declared(meta.fields["variables"], meta.lines["variables"]))
        except ValueError as error:
            raise InputError(str(error), source=file.path, line=meta.lines["variables"]) from None
    description = meta.text("description")
    if description is None:
        first = next((line for line in meta.body.split("\n") if line.strip(WHITE)), "")
        description = first if len(first) <= DESCRIPTION_LIMIT else f"{first[:DESCRIPTION_LIMIT]}..."
    name = posixpath.basename(file.path).removesuffix(".md")
    hint = meta.text("argument-hint") or ""
    return Template(name, description, hint, meta.body, file.path, meta.body_line, variables), findings


def _declared(value: frontmatter.Value, line: int) -> Iterator[Variable]:
    """Read `variables:`: names, or `name: default`, or mappings with name, default, required and description."""
    if value is None:
        return
    if isinstance(value, dict):
        value = [{name: default} for name, default in value.items()]
    if not isinstance(value, list):
        raise ValueError("variables is not a list")
    seen = set()
    for each in value:
        if isinstance(each, str):
            variable = Variable(each, None, "", line)
        elif isinstance(each, dict) and isinstance(name := each.get("name"), str):
            default = _texts(name, each["default"]) if "default" in each else None
            if default is None and each.get("required") == "false":
                default = []
            about = each.get("description")
            variable = Variable(name, default, about if isinstance(about, str) else "", line)
        elif isinstance(each, dict) and len(each) == 1:
            ((name, default_value),) = each.items()
            variable = Variable(name, None if default_value is None else _texts(name, default_value), "", line)
        else:
            raise ValueError("a variable has no name")
        if not re.fullmatch(_NAME, variable.name) or variable.name in ("this", "else"):
            raise ValueError(f"{variable.name!r} is no name for a variable")
        if variable.name in seen:
            raise ValueError(f"variable {variable.name!r} is declared twice")
        seen.add(variable.name)
        yield variable


def _texts(name: str, value: frontmatter.Value) -> list[str]:
    if value is None:
        return []
    texts = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
    if isinstance(value, dict) or (isinstance(value, list) and len(texts) < len(value)):
        raise ValueError(f"the default of variable {name!r} is not text, nor a list of texts")
    return texts


# -- slash commands --------------------------------------------------------------------------------------------------


def split_command(text: str) -> tuple[str, str] | None:
    """Return the name in a slash command and the text of its arguments; None if it is none."""
    match = re.fullmatch(rf"/([^{WHITE}]+)(?:[{WHITE}]+(.*))?", text, re.DOTALL)
    return (match[1], match[2] or "") if match else None


def split_arguments(text: str, names: Sequence[str] = ()) -> tuple[list[str], dict[str, list[str]]]:
    """Split the arguments of a slash command at white space; `name=value` with one of the names is a variable.

    A quote opens only where an argument, or such a value, begins; inside, a backslash keeps a quote of that kind and
    two before the closing one are one. A quote that is never closed is text.
    """
    words: list[str] = []
    values: dict[str, list[str]] = {}
    at = 0
    while True:
        while at < len(text) and text[at] in WHITE:
            at += 1
        if at == len(text):
            return words, values
        assigned = _ASSIGNED.match(text, at)
        name = assigned[1] if assigned and assigned[1] in names else None
        if assigned and name is not None:
            at = assigned.end()
        word = ""
        if at < len(text) and text[at] in "\"'":
            quoted = re.compile(rf"{text[at]}((?:\\.|[^\\{text[at]}])*){text[at]}", re.DOTALL).match(text, at)
            if quoted:
                word, at = _unquoted(quoted[1], text[at]), quoted.end()
        begin = at
        while at < len(text) and text[at] not in WHITE:
            at += 1
        word += text[begin:at]
        if name is not None:
            values.setdefault(name, []).append(word)
        else:
            words.append(word)


def _unquoted(inside: str, quote: str) -> str:
    def last(match: re.Match[str]) -> str:
        slashes, kept = match[1], match[2]
        return "\\" * (len(slashes) // 2) + kept

    return re.sub(rf"(\\+)({quote}|\Z)", last, inside)


# -- expansion -------------------------------------------------------------------------------------------------------

_TAG = r"(?P<literal>\\\{\{) | (?P<margin>^[ \t]*)? \{\{ [ \t]* (?P<tag>[^{}\n]*?) [ \t]* \}\} | (?P<unclosed>\{\{)"
_END_OF_LINE = re.compile(r"[ \t]*(\n|\Z)")


def _pattern(default: str, tags: bool) -> re.Pattern[str]:
    argument = rf"""
    (?P<escaped>\\)? \$ (?:
        (?P<index>\d{{1,2}}) (?!\d) | (?P<all>@|ARGUMENTS)
      | \{{ (?:
            (?P<braced>\d{{1,9}}|@|ARGUMENTS) (?: :- (?P<default>{default}) )?
          | @:(?P<from>\d{{1,9}}) (?: :(?P<count>\d{{1,9}}) )?
        ) \}}
    )"""
    return re.compile(f"{argument} | {_TAG}" if tags else argument, re.VERBOSE | re.ASCII | re.MULTILINE)


# Each twice: behind the last brace of a text no default ends, and none must be looked for.
_ARGUMENTS = _pattern("[^}]*", tags=False), _pattern("(?!)", tags=False)
_ARGUMENTS_AND_TAGS = _pattern("[^}]*", tags=True), _pattern("(?!)", tags=True)


def _places(patterns: tuple[re.Pattern[str], re.Pattern[str]], body: str) -> Iterator[re.Match[str]]:
    """Yield the places in a text that stand for something else."""
    last = body.rfind("}") + 1
    yield from patterns[0].finditer(body, 0, last)
    yield from patterns[1].finditer(body, last)


def expand(template: Template, arguments: Sequence[str], values: Values) -> str:
    """Put arguments and variables into a template.

    Raises UsageError for a variable that it does not declare, InputError for one that is missing or a block that is
    not well formed.
    """
    if template.variables is None:
        if values:
            raise UsageError(f"{template.path}: the template declares no variables, so {_named(values)} means nothing")
        return _expand_arguments(template.body, arguments)
    return _expand_declared(template, arguments, values)


def _expand_arguments(body: str, arguments: Sequence[str]) -> str:
    parts = []
    at = 0
    for match in _places(_ARGUMENTS, body):
        parts += [body[at : match.start()], _argument(match, arguments)]
        at = match.end()
    return "".join([*parts, body[at:]])


def _argument(match: re.Match[str], arguments: Sequence[str]) -> str:
    """Return what stands for one placeholder."""
    if match["escaped"]:
        return match[0][1:]
    if match["from"]:
        begin = max(int(match["from"]), 1) - 1
        end = len(arguments) if match["count"] is None else begin + int(match["count"])
        return " ".join(arguments[begin:end])
    which = match["index"] or match["all"] or match["braced"]
    if which in ("@", "ARGUMENTS"):
        value = " ".join(arguments)
    else:
        value = arguments[int(which) - 1] if 0 < int(which) <= len(arguments) else ""
    return value or match["default"] or ""


def _named(values: Values) -> str:
    return " and ".join(repr(name) for name in values)


class Use(NamedTuple):
    """A variable where its value is put."""

    name: str  # "this" is the item of the block around it
    line: int


class Block(NamedTuple):
    """A part of a template that shows once, never, or for every item of a variable."""

    kind: str  # if, unless, each
    use: Use
    then: list[Node]
    otherwise: list[Node]


def _expand_declared(template: Template, arguments: Sequence[str], values: Values) -> str:
    declared = {variable.name: variable for variable in template.variables or ()}
    unknown = {name: texts for name, texts in values.items() if name not in declared}
    if unknown:
        known = ", ".join(declared) or "none"
        raise UsageError(f"{template.path}: no variable is named {_named(unknown)}", f"the template declares {known}")
    uses: list[Use] = []
    nodes = _parse(template, arguments, uses)
    for use in uses:
        if use.name not in declared and use.name != "this":
            raise InputError(f"variable {use.name!r} is not declared", source=template.path, line=use.line)
    first_use = {use.name: use.line for use in reversed(uses)}
    filled = {}
    for variable in declared.values():
        given = values.get(variable.name, variable.default)
        if given is None:
            line = first_use.get(variable.name, variable.line)
            hint = f"give it with --var {variable.name}=VALUE"
            raise InputError(f"variable {variable.name!r} is missing", source=template.path, line=line, hint=hint)
        filled[variable.name] = given
    return "".join(_render(nodes, filled, None))


def _parse(template: Template, arguments: Sequence[str], uses: list[Use]) -> list[Node]:
    """Return the parts of a template, arguments put in; `uses` gets every use of a variable."""

    def wrong(what: str, line: int) -> InputError:
        return InputError(what, source=template.path, line=line)

    body = template.body
    nodes: list[Node] = []
    unfinished: list[tuple[Block, list[Node]]] = []  # each with the list that its end goes back to
    at, line, counted = 0, template.line, 0
    for match in _places(_ARGUMENTS_AND_TAGS, body):
        nodes.append(body[at : match.start()])
        at = match.end()
        line += body.count("\n", counted, match.end())
        counted = match.end()
        tag = match["tag"]
        if match["unclosed"]:
            raise wrong("'{{' is not closed on its line", line)
        if match["literal"]:
            nodes.append("{{")
        elif tag is None:
            nodes.append(_argument(match, arguments))
        elif re.fullmatch(_NAME, tag):
            if tag == "this" and not any(block.kind == "each" for block, _ in unfinished):
                raise wrong("'{{this}}' stands outside of '{{#each}}'", line)
            if tag != "else":
                uses.append(Use(tag, line))
                nodes += [match["margin"] or "", uses[-1]]
                continue
        if tag is None or match["literal"]:
            continue
        end_of_line = _END_OF_LINE.match(body, at)
        if match["margin"] is not None and end_of_line:  # a tag alone on a line takes the line with it
            at = end_of_line.end()
        else:
            nodes.append(match["margin"] or "")
        begin = re.fullmatch(rf"#(if|unless|each)[ \t]+({_NAME})", tag)
        if begin:
            uses.append(Use(begin[2], line))
            if len(unfinished) == DEPTH or begin[2] == "this":
                raise wrong(f"'{{{{{tag}}}}}' is nested too deeply" if unfinished else "'this' is no variable", line)
            block = Block(begin[1], uses[-1], [], [])
            nodes.append(block)
            unfinished.append((block, nodes))
            nodes = block.then
        elif tag == "else" and unfinished and nodes is unfinished[-1][0].then:
            nodes = unfinished[-1][0].otherwise
        elif tag[:1] == "/" and unfinished and tag[1:] == unfinished[-1][0].kind:
            nodes = unfinished.pop()[1]
        else:
            raise wrong(f"'{{{{{tag}}}}}' means nothing here", line)
    if unfinished:
        block = unfinished[-1][0]
        raise wrong(f"'{{{{#{block.kind} {block.use.name}}}}}' is not closed", block.use.line)
    return [*nodes, body[at:]]


def _render(nodes: list[Node], values: Values, item: str | None) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield node
        elif isinstance(node, Use):
            yield (item or "") if node.name == "this" else ", ".join(values[node.name])
        else:
            items = [text for text in values[node.use.name] if text]
            if node.kind == "each" and items:
                for each in items:
                    yield from _render(node.then, values, each)
            else:
                shows = bool(items) == (node.kind == "if")
                yield from _render(node.then if shows and node.kind != "each" else node.otherwise, values, item)
