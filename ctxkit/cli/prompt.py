"""ctx prompt: one system prompt from everything that belongs in it."""

from __future__ import annotations

import re

from ctxkit import folders, instructions, process, prompt, skills, vocabularies
from ctxkit.clean import to_utf8
from ctxkit.cli.skills import discover, warn
from ctxkit.errors import UsageError
from ctxkit.frontmatter import decode
from ctxkit.markup import visible
from ctxkit.merge import merged
from ctxkit.profiles import PROFILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    from ctxkit.cli.options import (
        AgentDir,
        Annotated,
        Cwd,
        Json,
        Layout,
        MergeRule,
        Option,
        ProfileName,
        Quiet,
        Result,
        Skill,
        StopAt,
        limit,
    )
    from ctxkit.instructions import Instruction


def build(
    cwd: Cwd = None,
    profile: ProfileName = "pi",
    agent_dir: AgentDir = None,
    system: Annotated[
        str | None,
        Option("--system", metavar="TEXT", show_default=False, help="The role, in place of our own; @FILE is read."),
    ] = None,
    append: Annotated[
        list[str] | None,
        Option("--append", metavar="TEXT", show_default=False, help="Append TEXT to what comes first; @FILE is read."),
    ] = None,
    tool: Annotated[
        list[str] | None,
        Option(
            "--tool",
            metavar="NAME[=SNIPPET]",
            show_default=False,
            help="A tool of the model, in place of read, bash, edit and write.",
        ),
    ] = None,
    guideline: Annotated[
        list[str] | None, Option("--guideline", metavar="TEXT", show_default=False, help="One more guideline.")
    ] = None,
    docs: Annotated[
        str | None, Option("--docs", metavar="DIR", show_default=False, help="Where documentation is.")
    ] = None,
    skill: Skill = None,
    no_skills: Annotated[bool, Option("--no-skills", help="List no skills.")] = False,
    no_context_files: Annotated[bool, Option("--no-context-files", help="Take no instruction files.")] = False,
    merge: MergeRule = "append",
    stop_at: StopAt = None,
    layout: Layout = "seed",
    date: Annotated[
        str | None,
        Option("--date", metavar="DATE", show_default=False, help="The date to name: YYYY-MM-DD, today or none."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        Option("--max-tokens", metavar="N", parser=limit, show_default=False, help="Let the farthest files give way."),
    ] = None,
    explain: Annotated[bool, Option("--explain", help="Print where each byte comes from, not the prompt.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Print the system prompt for a folder.

    In this order: the role; tools; guidelines; documentation; what is appended; instruction files, from the user's and
    the farthest folder's to the nearest one's; skills; the date; the working directory. What changes from day to day
    stands last, and the same files give the same bytes. With --layout pi the sections are tagged as Pi 1.6 does, and
    there is no date. A --system TEXT takes the place of role, tools, guidelines and documentation; with the profile pi
    that may also be a file .pi/SYSTEM.md or SYSTEM.md in the agent's folder, and what is appended APPEND_SYSTEM.md.

    In a folder the first file counts that is readable and not empty: AGENTS.override.md, AGENTS.md, AGENTS.MD,
    CLAUDE.md, CLAUDE.MD; other profiles have other names, and claude and omp follow imports. A file that is reached by
    two ways is taken once. Text from a file cannot close the tags it stands in, or open others. What looks like a
    mistake is a warning; 'ctx prompt files' says why each file was taken or not, --explain where each byte comes from.

    With --max-tokens the farthest file gives way first, to the end of a line or as a whole, the nearest last; what is
    left out is named in the prompt and on standard error. If not even the rest fits, the exit status is 1.
    """
    base = folders.working_folder(cwd)
    if layout == "pi" and date not in (None, "none"):
        raise UsageError("--layout pi has no date")
    found = instructions.Instructions([], [])
    if not no_context_files:
        found = _find(base, profile, agent_dir, stop_at, merge)
    listed = skills.Skills([], [], [])
    if not no_skills:
        listed = discover(skill, base, agent_dir)
        warn(listed)
    home = folders.agent_folder(agent_dir, PROFILES["pi"].variable, PROFILES["pi"].folder, base)
    own = [f"{base}/.pi", home] if profile == "pi" else []
    role, role_source = _given(system, "--system", base) or _first_file(own, "SYSTEM.md") or ("", "")
    appended = [each for text in append or () if (each := _given(text, "--append", base))]
    if append is None and (file := _first_file(own, "APPEND_SYSTEM.md")):
        appended = [file]
    content = prompt.Content(
        cwd=base,
        role=role,
        role_source=role_source,
        tools=prompt.TOOLS if tool is None else tuple(map(_tool, tool)),
        guidelines=tuple(guideline or ()),
        docs=folders.absolute(docs, base) if docs is not None else "",
        appended=tuple(appended),
        files=tuple(found.files),
        skills=tuple(listed.skills),
        date=_date(date) if layout == "seed" else "",
    )
    fitted = content
    if max_tokens is not None:
        count = vocabularies.load_encoding().count
        fitted = prompt.fit(content, layout, max_tokens, count, nearest_first=merge == "prepend")
    for before, after in zip(content.files, fitted.files, strict=True):
        if after != before:
            process.warn(f"{after.path}: {after.reason.removeprefix(f'{before.reason}; ')}")
    parts = prompt.lay_out(fitted, layout)
    if json or explain:
        return _explained(parts, fitted.files, json=json)
    process.write(to_utf8(prompt.join(parts)))
    return 0


def files(
    cwd: Cwd = None,
    profile: ProfileName = "pi",
    agent_dir: AgentDir = None,
    merge: MergeRule = "append",
    stop_at: StopAt = None,
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """List the instruction files that apply, in order, with why each was taken or not.

    The order is that of the prompt. For each file: how many bytes of it are kept, or 'no'; its path; and why.
    """
    found = _find(folders.working_folder(cwd), profile, agent_dir, stop_at, merge).files
    if json:
        return _listed(found)
    rows = [(str(len(to_utf8(file.text))) if file.kept else "no", file.path, _why(file)) for file in found]
    process.write(to_utf8(_table(rows)))
    return 0


def _find(base: str, name: str, agent_dir: str | None, stop_at: StopAt, rule: MergeRule) -> instructions.Instructions:
    """Find the instruction files of a folder, bring them in the order of the prompt, and warn of mistakes."""
    profile = PROFILES[name]
    agent = folders.agent_folder(agent_dir, profile.variable, profile.folder, base)
    above = instructions.folders_of(profile, base, stop_at, folders.DISK)
    every = instructions.places(profile, above, agent, folders.home())
    found = instructions.find(profile, every, folders.home(), folders.DISK)
    limited = instructions.limit(merged(found.files, rule), profile.budget)
    for finding in (*found.findings, *limited.findings):
        process.warn(str(finding))
    return limited


def _given(text: str | None, option: str, base: str) -> tuple[str, str] | None:
    """Return a text from the command line, or that of the file it names with `@`, and where it comes from."""
    if not text:
        return None
    if not text.startswith("@"):
        return text, option
    source = process.open_source(text[1:] if text == "@-" else folders.absolute(text[1:], base))
    try:
        return decode(b"".join(source.chunks())).rstrip("\n"), source.name
    finally:
        source.close()


def _first_file(within: Sequence[str], name: str) -> tuple[str, str] | None:
    """Return the text and the path of the first file of that name, if there is one with a text."""
    for folder in within:
        found = folders.read(f"{folder}/{name}")
        if found.kind == "file" and found.data.strip():
            return decode(found.data).rstrip("\n"), found.path
    return None


def _tool(text: str) -> prompt.Tool:
    name, equals, snippet = text.partition("=")
    if not name:
        raise UsageError(f"--tool {text!r} has no name")
    return prompt.Tool(name, snippet if equals else prompt.SNIPPETS.get(name, ""))


def _date(text: str | None) -> str:
    if text in (None, "today"):
        return process.today()
    if text == "none":
        return ""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text or ""):
        raise UsageError(f"--date {text!r} is not YYYY-MM-DD, today or none")
    return text or ""


def _explained(
    parts: Sequence[prompt.Part], files: Sequence[Instruction], *, json: bool
) -> Generator[dict[str, Any], None, int]:
    count = vocabularies.load_encoding().count
    text = prompt.join(parts)
    rows = prompt.explain(parts, count)
    size, tokens = len(to_utf8(text)), count(text)
    if json:
        yield {
            "schema": 1,
            "prompt": text,
            "bytes": size,
            "tokens": tokens,
            "parts": [row.as_json() for row in rows],
            "files": [_described(file, count(file.text)) for file in files],
        }
        return 0
    table = [("byte", "bytes", "tokens", "part")]
    table += [(str(row.first_byte), str(row.size), str(row.tokens), row.what) for row in rows]
    process.write(to_utf8(_table([*table, ("", str(size), str(tokens), "in all")])))
    if files:
        found = [("bytes", "kept", "tokens", "instruction file")]
        found += [
            (str(file.size), str(len(to_utf8(file.text))), str(count(file.text)), f"{file.path} ({_why(file)})")
            for file in files
        ]
        process.write(to_utf8(f"\n{_table(found)}"))
    return 0


def _listed(files: Sequence[Instruction]) -> Generator[dict[str, Any], None, int]:
    count = vocabularies.load_encoding().count
    yield {"schema": 1, "files": [_described(file, count(file.text)) for file in files]}
    return 0


def _described(file: Instruction, tokens: int) -> dict[str, Any]:
    return {
        "path": file.path,
        "scope": file.scope,
        "bytes": file.size,
        "kept": len(to_utf8(file.text)),
        "tokens": tokens,
        "reason": file.reason,
    }


def _why(file: Instruction) -> str:
    return f"{file.scope}: {file.reason}"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows as lines; numbers stand at the right of their columns."""
    rows = [tuple(map(visible, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if cell.isdecimal() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)
