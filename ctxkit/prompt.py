"""One system prompt from everything that belongs in it, as parts, so that every byte of it can be explained.

What changes from day to day stands last, so that a change in a file changes nothing before the place of that file.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxkit import skills
from ctxkit.clean import to_utf8
from ctxkit.errors import CtxError
from ctxkit.frontmatter import WHITE
from ctxkit.markup import escape, neutralise, one_line
from ctxkit.truncate import format_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Literal, TypeAlias

    from ctxkit.instructions import Instruction
    from ctxkit.skills import Skill

    Layout: TypeAlias = Literal["seed", "pi"]

ROLE = "You are a coding agent in a terminal: you read files, run commands, and write and change code for the user."
OWN = "our own words"  # why text is there that ctx wrote
MORE_TOOLS = "Additional tools may be available."
FILES = "Project-specific instructions and guidelines:"
CLOSING_GUIDELINES = ("Be concise in your responses", "Show file paths clearly when working with files")
SKILLS = (
    "The following skills provide specialized instructions for specific tasks.",
    "Resolve relative paths against the skill's directory (parent of SKILL.md). Use absolute paths in tool calls.",
)
READERS = {
    "read": "Use the read tool to load a skill's file when the task matches its description.",
    "bash": "Use bash to load a skill's file when the task matches its description.",
    "": "Load a skill's file when the task matches its description.",
}
SNIPPETS = {
    "read": "Read a file",
    "bash": "Run a command in a shell",
    "edit": "Change parts of a file",
    "write": "Write a file",
    "grep": "Search in files",
    "find": "Find files by name",
    "ls": "List a folder",
}


class Tool(NamedTuple):
    """A tool that the model may use; one without a snippet is not listed, a hidden one not spoken of at all."""

    name: str
    snippet: str = ""
    guidelines: tuple[str, ...] = ()
    hidden: bool = False


TOOLS = tuple(Tool(name, SNIPPETS[name]) for name in ("read", "bash", "edit", "write"))


class Content(NamedTuple):
    """What goes into a prompt. A role that is given takes the place of the tools, guidelines and documentation, too."""

    cwd: str
    role: str = ""
    role_source: str = ""  # where it comes from
    tools: tuple[Tool, ...] = TOOLS
    guidelines: tuple[str, ...] = ()
    docs: str = ""
    appended: tuple[tuple[str, str], ...] = ()  # texts, and where each comes from
    files: tuple[Instruction, ...] = ()  # in the order of the prompt
    note: str = ""  # what was left out of the files
    skills: tuple[Skill, ...] = ()
    date: str = ""


class Part(NamedTuple):
    """A part of a prompt: its text, and what put it there."""

    section: str
    text: str
    source: str = ""  # a path, or the option that gave it; "" if ctx wrote it
    reason: str = ""


# -- layouts ---------------------------------------------------------------------------------------------------------


def lay_out(content: Content, layout: Layout, sections: Mapping[str, str] | None = None) -> list[Part]:
    """Return the parts of a prompt; joined, they are the prompt.

    seed  prose with its sections in the order of Pi 0.80, the date and the working directory last
    pi    the tagged sections of Pi 1.6 (Pi §9.1); `sections` replace some of these or follow them
    """
    every = _sections(content)
    if layout == "pi":
        every.append([Part("cwd", one_line(content.cwd), content.cwd)])
        for name, text in (sections or {}).items():
            _replace(every, name, text)
        parts = [part for section in every for part in _tagged(section)]
    else:
        parts = [part for section in every for part in _titled(section)]
        parts += [Part("date", f"\n\nCurrent date: {content.date}", reason="--date")] if content.date else []
        gap = "\n" if content.date else "\n\n"
        parts += [Part("cwd", f"{gap}Current working directory: {one_line(content.cwd)}", content.cwd)]
    parts[0] = parts[0]._replace(text=parts[0].text.removeprefix("\n\n"))
    parts[-1] = parts[-1]._replace(text=f"{parts[-1].text}\n")
    return parts


def join(parts: Sequence[Part]) -> str:
    """Return the prompt."""
    return "".join(part.text for part in parts)


def _sections(content: Content) -> list[list[Part]]:
    """Return the sections that both layouts have, each with the parts of its text."""
    role = neutralise(content.role or ROLE)
    sections = [[Part("preamble", role, content.role_source, "" if content.role else OWN)]]
    if not content.role:
        sections += [_tools(content), _rules(content)]
        if content.docs:
            docs = neutralise(f"Documentation is in {one_line(content.docs)}. Read it when it is asked for.", "docs")
            sections.append([Part("docs", docs, content.docs, "given")])
    if content.appended:
        texts = [(neutralise(text, "addendum"), source) for text, source in content.appended]
        sections.append(
            [Part("addendum", text if not n else f"\n\n{text}", source) for n, (text, source) in enumerate(texts)]
        )
    files = list(_files(content))
    if files:
        sections.append([Part("project_context", FILES, reason=OWN), *files])
    listed = list(_skills(content))
    return [*sections, listed] if listed else sections


def _tools(content: Content) -> list[Part]:
    rows = [f"- {tool.name}: {tool.snippet}" for tool in content.tools if tool.snippet and not tool.hidden]
    text = neutralise("\n".join(rows) or "(none)", "tools")
    return [Part("tools", f"{text}\n\n{MORE_TOOLS}", reason=", ".join(tool.name for tool in content.tools))]


def _rules(content: Content) -> list[Part]:
    shown = [tool for tool in content.tools if not tool.hidden]
    every = [_shell_guideline({tool.name for tool in shown})]
    every += [guideline for tool in shown for guideline in tool.guidelines]
    every += [*content.guidelines, *CLOSING_GUIDELINES]
    rows = dict.fromkeys(stripped for each in every if (stripped := each.strip(WHITE)))
    reason = f"{OWN}, and {len(content.guidelines)} given" if content.guidelines else OWN
    return [Part("rules", neutralise("\n".join(f"- {row}" for row in rows), "rules"), reason=reason)]


def _shell_guideline(names: set[str]) -> str:
    shells = names & {"bash", "powershell"}
    if not shells or names & {"grep", "find", "ls"}:
        return ""
    if shells == {"bash"}:
        return "Use bash for file operations like ls, rg, find"
    which = "PowerShell" if shells == {"powershell"} else "bash or PowerShell"
    return f"Use {which} for file operations like listing, searching, and finding files"


def _files(content: Content) -> Iterator[Part]:
    for file in content.files:
        if file.kept:
            begin = f'\n\n<project_instructions path="{escape(file.path)}">\n'
            text = f"{begin}{neutralise(file.text)}\n</project_instructions>"
            yield Part("project_context", text, file.path, f"{file.scope}: {file.reason}")
    if content.note:
        yield Part("project_context", f"\n\n{content.note}", reason="what was left out")


def _skills(content: Content) -> Iterator[Part]:
    """Yield the parts of the list of skills, the block of `skills.available`; none where no tool could load one."""
    listed = [skill for skill in content.skills if not skill.hidden]
    reader = _reader(content.tools)
    if not listed or reader is None:
        return
    intro = "\n".join((SKILLS[0], READERS[reader], SKILLS[1]))
    yield Part("skills", f"{intro}\n\n<available_skills>", reason=OWN)
    for number, skill in enumerate(listed, 1):
        end = "\n</available_skills>" if number == len(listed) else ""
        yield Part("skills", f"\n{skills.entry(skill)}{end}", skill.location, f"{skill.scope}: {skill.name}")


def _reader(tools: Sequence[Tool]) -> str | None:
    """Return the tool that loads a skill: "" if those that could are hidden, None if there is none."""
    readers = [tool for name in ("read", "bash") for tool in tools if tool.name == name]
    if not readers:
        return None
    return next((tool.name for tool in readers if not tool.hidden), "")


def _titled(section: list[Part]) -> list[Part]:
    """Return a section of prose, after a blank line."""
    titles = {"tools": "Available tools:\n", "rules": "Guidelines:\n", "project_context": "<project_context>\n\n"}
    name = section[0].section
    parts = [section[0]._replace(text=f"\n\n{titles.get(name, '')}{section[0].text}"), *section[1:]]
    if name == "project_context":
        parts[-1] = parts[-1]._replace(text=f"{parts[-1].text}\n\n</project_context>")
    return parts


def _tagged(section: list[Part]) -> list[Part]:
    """Return a section between its tags, after a blank line; the preamble has none."""
    name = section[0].section
    if name == "preamble":
        return [section[0]._replace(text=f"\n\n{section[0].text}")]
    parts = [section[0]._replace(text=f"\n\n<{name}>\n{section[0].text}"), *section[1:]]
    parts[-1] = parts[-1]._replace(text=f"{parts[-1].text}\n</{name}>")
    return parts


def _replace(sections: list[list[Part]], name: str, text: str) -> None:
    """Put a section in the place of the one with its name, or at the end. Raises ValueError for a bad name."""
    if name == "preamble" or not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise ValueError(f"{name!r} is no name for a section")
    if not text:
        return
    section = [Part(name, neutralise(text, name))]
    for number, other in enumerate(sections):
        if other[0].section == name:
            sections[number] = section
            return
    sections.append(section)


# -- budget ----------------------------------------------------------------------------------------------------------


def fit(
    content: Content, layout: Layout, max_tokens: int, count: Callable[[str], int], *, nearest_first: bool = False
) -> Content:
    """Return content that fits.

    The farthest file gives way first: it is cut at the end of a line, or left out, then the next. What is left out is
    named in the prompt. Raises CtxError if even the prompt without instruction files does not fit.
    """

    def tokens(tried: Content) -> int:
        return count(join(lay_out(tried, layout)))

    if tokens(content) <= max_tokens:
        return content
    limit = f"to keep within {max_tokens} tokens"
    files = list(content.files)
    gone: list[str] = []

    def noted(left_out: list[str]) -> Content:
        note = f"[Left out {limit}: {', '.join(left_out)}]" if left_out else ""
        return content._replace(files=tuple(files), note=note)

    kept = [number for number, file in enumerate(files) if file.kept]
    for number in reversed(kept) if nearest_first else kept:
        whole = files[number]
        files[number] = whole.without(f"left out {limit}")
        before, gone = gone, [*gone, f"{one_line(whole.path)} ({_size(whole.text)})"]
        smallest = noted(gone)
        if tokens(smallest) > max_tokens:
            continue
        lines = whole.text.removesuffix("\n").split("\n")
        best, least, most = smallest, 1, len(lines) - 1
        while least <= most:
            middle = (least + most) // 2
            files[number] = _cut(whole, lines, middle, limit)
            tried = noted(before)
            if tokens(tried) <= max_tokens:
                best, least = tried, middle + 1
            else:
                most = middle - 1
        return best
    raise CtxError(f"the prompt has {tokens(noted(gone))} tokens without any instruction file, more than {max_tokens}")


def _cut(file: Instruction, lines: list[str], kept: int, limit: str) -> Instruction:
    rest = "\n".join(lines[kept:])
    mark = f"[... {len(lines) - kept} lines ({_size(rest)}) of {one_line(file.path)} left out {limit} ...]"
    reason = f"{file.reason}; {kept} of {len(lines)} lines kept {limit}"
    return file._replace(text="\n".join([*lines[:kept], mark]), reason=reason)


def _size(text: str) -> str:
    return format_size(len(to_utf8(text)))


# -- explanation -----------------------------------------------------------------------------------------------------


class Explained(NamedTuple):
    """Where some bytes of a prompt come from."""

    first_byte: int
    size: int
    tokens: int
    part: Part

    @property
    def what(self) -> str:
        """The part in words."""
        source = f" {self.part.source}" if self.part.source else ""
        return f"{self.part.section}{source}{f' ({self.part.reason})' if self.part.reason else ''}"

    def as_json(self) -> dict[str, str | int]:
        """Return the row as a JSON object."""
        return {
            "section": self.part.section,
            "source": self.part.source,
            "reason": self.part.reason,
            "firstByte": self.first_byte,
            "bytes": self.size,
            "tokens": self.tokens,
        }


def explain(parts: Sequence[Part], count: Callable[[str], int]) -> list[Explained]:
    """Say of every byte of a prompt which part it belongs to; the parts follow each other without a gap."""
    rows: list[Explained] = []
    at = 0
    for part in parts:
        size = len(to_utf8(part.text))
        rows.append(Explained(at, size, count(part.text), part))
        at += size
    return rows
