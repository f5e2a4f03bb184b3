"""ctx skills: list the skills that apply, load one, check them."""

from __future__ import annotations

from ctxkit import folders, process, skills, vocabularies
from ctxkit.clean import to_utf8
from ctxkit.errors import InputError
from ctxkit.markup import visible
from ctxkit.repository import find_top, upward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    from ctxkit.cli.options import (
        AgentDir,
        Annotated,
        Argument,
        Arguments,
        Cwd,
        Json,
        Quiet,
        Result,
        Skill,
        SkillFormat,
        SkillPaths,
    )
    from ctxkit.found import Finding


def list(
    format: SkillFormat = "table",
    skill: Skill = None,
    cwd: Cwd = None,
    agent_dir: AgentDir = None,
    quiet: Quiet = False,
) -> Result:
    """List the skills that apply, by name and description.

    Skills are looked for in this order, and of several with one name the first counts: each --skill; .pi/skills of the
    working directory; .agents/skills of the working directory and of those above it, up to the top of the repository;
    skills in the agent's folder; ~/.agents/skills. In a folder, SKILL.md is the skill; a folder without one is searched
    for skills, except where its .gitignore, .ignore or .fdignore says no. What is wrong with a skill is a warning.
    With --format json also where each skill is, and whether it is hidden from the model.
    """
    found = discover(skill, folders.working_folder(cwd), agent_dir)
    warn(found)
    if format == "json":
        return _listed(found)
    if format == "prompt":
        text = skills.available(found.skills)
    else:
        width = max((len(visible(each.name)) for each in found.skills), default=0)
        text = "\n".join(f"{visible(each.name):{width}}  {visible(skills.summary(each))}" for each in found.skills)
    process.write(to_utf8(f"{text}\n" if text else ""))
    return 0


def show(
    name: Annotated[str, Argument(metavar="NAME", help="The name of the skill.")],
    arguments: Arguments = None,
    skill: Skill = None,
    cwd: Cwd = None,
    agent_dir: AgentDir = None,
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Print a skill as a model gets it when it is needed.

    The text of the skill stands between skill tags, after a line that names the folder its relative paths refer to. The
    ARGs follow below, as a user would have typed them behind the name. With --json also what it costs in tokens.
    """
    found = discover(skill, folders.working_folder(cwd), agent_dir)
    wanted = next((each for each in found.skills if each.name == name), None)
    if wanted is None:
        raise InputError(f"no skill is named {name!r}", hint="'ctx skills list' names those that apply")
    text = skills.load(wanted, " ".join(arguments or ()))
    if json:
        return _shown(wanted, text)
    process.write(to_utf8(f"{text}\n"))
    return 0


def check(
    paths: SkillPaths = None,
    skill: Skill = None,
    cwd: Cwd = None,
    agent_dir: AgentDir = None,
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Say what is wrong with skills, one line for each finding, and exit with 1 if there is any.

    A skill needs a description of at most 1024 characters and a name of at most 64, in lower case with digits and
    single hyphens. Only a skill without a description is not loaded; but another agent may be stricter.
    """
    base = folders.working_folder(cwd)
    if paths:
        places = [skills.Root(folders.absolute(path, base), "explicit") for path in paths]
        found = skills.find(places, folders.DISK)
    else:
        places = []
        found = discover(skill, base, agent_dir)
    rows: Sequence[Finding] = [
        *found.findings,
        *found.collisions,
        *skills.without_any(places, found),
    ]
    if json:
        return _checked(rows)
    process.write(to_utf8("".join(f"{row}\n" for row in rows)))
    return 1 if rows else 0


def discover(explicit: Sequence[str] | None, base: str, agent_dir: str | None) -> skills.Skills:
    """Find the skills that apply in a folder."""
    top = find_top(base, folders.DISK)
    agent = folders.agent_folder(agent_dir, "PI_CODING_AGENT_DIR", "~/.pi/agent", base)
    given = [folders.absolute(path, base) for path in explicit or ()]
    return skills.find(skills.roots(upward(base, top or "/"), agent, folders.home(), given), folders.DISK)


def warn(found: skills.Skills) -> None:
    """Warn of what is wrong with the skills that were found, and of those that do not count."""
    for row in (*found.findings, *found.collisions):
        process.warn(str(row))


def _listed(found: skills.Skills) -> Generator[dict[str, Any], None, int]:
    yield {"schema": 1, "skills": [_described(skill) for skill in found.skills]}
    return 0


def _shown(skill: skills.Skill, text: str) -> Generator[dict[str, Any], None, int]:
    yield {"schema": 1, **_described(skill), "content": text, "tokens": vocabularies.load_encoding().count(text)}
    return 0


def _checked(rows: Sequence[Finding]) -> Generator[dict[str, Any], None, int]:
    yield {"schema": 1, "findings": [row.as_json() for row in rows]}
    return 1 if rows else 0


def _described(skill: skills.Skill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "location": skill.location,
        "folder": skill.folder,
        "scope": skill.scope,
        "hidden": skill.hidden,
    }
