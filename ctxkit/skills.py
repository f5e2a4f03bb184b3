"""Skills: where they are, which ones count, the list a prompt gets, and one skill as it is loaded (Pi §10)."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from ctxkit import frontmatter
from ctxkit.found import Finding
from ctxkit.markup import escape, neutralise, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from ctxkit.found import Disk, Found
    from ctxkit.ignore import Rules

NAME_LIMIT = 64
DESCRIPTION_LIMIT = 1024
IGNORE_FILES = (".gitignore", ".ignore", ".fdignore")
FILE = "SKILL.md"


class Root(NamedTuple):
    """A place where skills are looked for."""

    path: str
    scope: Literal["explicit", "project", "user"]
    loose: Literal["top", "below"] = "top"  # where a Markdown file that is not called SKILL.md counts


class Skill(NamedTuple):
    """A skill that counts."""

    name: str
    description: str
    location: str  # its file
    folder: str  # what its relative paths refer to
    scope: str
    hidden: bool  # not listed for the model
    body: str


class Skills(NamedTuple):
    """What was found: the skills that count, in order, and what a person should know about the others."""

    skills: list[Skill]
    findings: list[Finding]
    collisions: list[Finding]


def roots(folders: list[str], agent_folder: str, home: str, explicit: list[str]) -> list[Root]:
    """Return where skills are looked for, strongest first.

    `folders` are the working folder and those above it, up to the top of the repository, nearest first.
    """
    return [
        *(Root(path, "explicit") for path in explicit),
        Root(f"{folders[0]}/.pi/skills", "project"),
        *(Root(posixpath.join(folder, ".agents/skills"), "project", "below") for folder in folders),
        Root(f"{agent_folder}/skills", "user"),
        Root(f"{home}/.agents/skills", "user", "below"),
    ]


def find(places: list[Root], disk: Disk) -> Skills:
    """Find the skills in order of their places; of several with one name the first counts."""
    found = Skills([], [], [])
    by_name: dict[str, Skill] = {}
    seen: set[tuple[int, int] | None] = set()
    for place in places:
        for file in _files(place, found.findings, disk):
            if file.identity in seen:
                continue
            skill, findings = read(file, place.scope)
            found.findings.extend(findings)
            if skill is None:
                continue
            seen.add(file.identity)
            first = by_name.setdefault(skill.name, skill)
            if first is skill:
                found.skills.append(skill)
            else:
                found.collisions.append(Finding(file.path, None, f"name {skill.name!r} is taken by {first.location}"))
    return found


def read(file: Found, scope: str) -> tuple[Skill | None, list[Finding]]:
    """Read a skill and say what is wrong with it; without a description it is none."""
    meta = frontmatter.split(frontmatter.decode(file.data))
    folder, base = posixpath.split(file.path)
    description = meta.text("description")
    if base != FILE and (description is None or not description.strip()):
        return None, []  # some Markdown file
    name = meta.text("name") or posixpath.basename(folder)
    findings = []

    def say(what: str, key: str = "") -> None:
        findings.append(Finding(file.path, meta.lines.get(key, 1), what))

    if meta.problem:
        findings.append(Finding(file.path, meta.problem_line, f"{meta.problem}; read as plain lines"))
    for key in ("name", "description"):
        if isinstance(meta.fields.get(key), list | dict):
            say(f"{key} is not text", key)
    if description is None or not description.strip():
        if not isinstance(meta.fields.get("description"), list | dict):
            say("description is required", "description")
        return None, findings
    if len(description) > DESCRIPTION_LIMIT:
        say(f"description exceeds {DESCRIPTION_LIMIT} characters ({len(description)})", "description")
    for what in wrong_with_name(name):
        say(what, "name")
    hidden = meta.is_true("disable-model-invocation")
    return Skill(name, description, file.path, folder, scope, hidden, meta.body), findings


def wrong_with_name(name: str) -> Iterator[str]:
    """Yield what is wrong with a name; the skill is loaded all the same."""
    if len(name) > NAME_LIMIT:
        yield f"name exceeds {NAME_LIMIT} characters ({len(name)})"
    if not re.fullmatch(r"[a-z0-9-]+", name):
        yield "name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)"
    if name.startswith("-") or name.endswith("-"):
        yield "name must not start or end with a hyphen"
    if "--" in name:
        yield "name must not contain consecutive hyphens"


def without_any(places: list[Root], found: Skills) -> list[Finding]:
    """Return a finding for each place where neither a skill nor anything else was found."""
    met = [skill.location for skill in found.skills]
    met += [finding.path for finding in found.findings] + [collision.path for collision in found.collisions]
    return [
        Finding(place.path, None, "no skill here")
        for place in places
        if not any(path == place.path or path.startswith(f"{place.path}/") for path in met)
    ]


def summary(skill: Skill) -> str:
    """Return what a skill is for, on one line within the limit of a description."""
    text = " ".join(skill.description.split())
    return text if len(text) <= DESCRIPTION_LIMIT else f"{text[: DESCRIPTION_LIMIT - 3]}..."


def available(skills: list[Skill]) -> str:
    """Return the block that lists the skills for a model; empty without any that it may see."""
    rows = [entry(skill) for skill in skills if not skill.hidden]
    return "\n".join(["<available_skills>", *rows, "</available_skills>"]) if rows else ""


def entry(skill: Skill) -> str:
    """Return the lines of one skill in that block: escaped, the description on one line and within its limit."""
    return (
        "  <skill>\n"
        f"    <name>{escape(' '.join(skill.name.split()))}</name>\n"
        f"    <description>{escape(summary(skill))}</description>\n"
        f"    <location>{escape(skill.location)}</location>\n"
        "  </skill>"
    )


def load(skill: Skill, arguments: str = "") -> str:
    """Return a skill as a model gets it when it is needed (Pi §10.5)."""
    block = (
        f'<skill name="{escape(skill.name)}" location="{escape(skill.location)}">\n'
        f"References are relative to {one_line(skill.folder)}.\n\n{neutralise(skill.body)}\n</skill>"
    )
    arguments = arguments.strip(frontmatter.WHITE)
    return f"{block}\n\n{arguments}" if arguments else block


def _files(place: Root, findings: list[Finding], disk: Disk) -> Iterator[Found]:
    """Yield the files of a place that may be skills."""
    found = disk.look(place.path)
    if found.kind == "folder":
        yield from _walk(found, place, findings, disk)
    elif found.kind == "file" and place.path.endswith(".md"):
        yield disk.read(place.path)
    elif place.scope != "explicit" and found.kind == "missing":
        return
    elif found.kind == "file":
        findings.append(Finding(place.path, None, "skill path is not a markdown file"))
    elif found.kind in ("missing", "dangling"):
        findings.append(Finding(place.path, None, "skill path does not exist"))
    else:
        findings.append(Finding(place.path, None, f"skill path is not readable: {found.why}"))


def _walk(top: Found, place: Root, findings: list[Finding], disk: Disk) -> Iterator[Found]:
    """Walk a folder in order of names: each real folder once, so that links in circles end; a skill holds no others."""
    visited = set()
    waiting: list[tuple[Found, str, tuple[Rules, ...]]] = [(top, "", ())]
    while waiting:
        at, inside, rules = waiting.pop()
        if at.kind == "file":
            yield disk.read(at.path)
            continue
        if at.identity in visited:
            continue
        visited.add(at.identity)
        entries = disk.names(at.path)
        if FILE in entries:
            skill = disk.read(posixpath.join(at.path, FILE))
            if skill.kind == "file":
                yield skill
                continue
            findings.append(Finding(skill.path, None, f"skill is not readable: {skill.why}"))
        rules += _rules(at.path, inside, entries, findings, disk)
        takes_loose = (inside == "") == (place.loose == "top")
        below = []
        for name in entries:
            if name.startswith(".") or name in ("node_modules", FILE):
                continue
            found = disk.look(posixpath.join(at.path, name))
            if found.kind == "folder" and not _ignored(f"{inside}{name}/", rules):
                below.append((found, f"{inside}{name}/", rules))
            elif found.kind == "file" and takes_loose and name.endswith(".md") and not _ignored(inside + name, rules):
                below.append((found, "", ()))
        waiting.extend(reversed(below))


def _rules(folder: str, inside: str, entries: list[str], findings: list[Finding], disk: Disk) -> tuple[Rules, ...]:
    """Return the rules of the ignore files in a folder."""
    names = [name for name in IGNORE_FILES if name in entries]
    if not names:
        return ()
    from ctxkit import ignore  # noqa: PLC0415 - takes longer to load than all else of a usual start

    every = []
    for name in names:
        path = posixpath.join(folder, name)
        rules, refused = ignore.rules(frontmatter.decode(disk.read(path).data), inside)
        every.append(rules)
        findings += [Finding(path, line, "has too many stars, so it is not followed") for line in refused]
    return tuple(every)


def _ignored(path: str, rules: tuple[Rules, ...]) -> bool:
    if not rules:
        return False
    from ctxkit import ignore  # noqa: PLC0415

    return ignore.ignored(path, rules)
