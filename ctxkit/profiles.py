"""Where the instruction files of each agent are: what `ctx prompt --profile` can be."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class Profile(NamedTuple):
    """What one agent loads. Of the names in a group the first counts; each group gives one file."""

    variable: str  # of the environment, that names the agent's folder
    folder: str
    user: tuple[tuple[str, ...], ...]
    project: tuple[tuple[str, ...], ...]  # in each folder
    top: Literal["root", "git", "here"] = "root"  # where the folders begin that are looked into
    top_without_git: Literal["root", "here"] = "root"
    managed: tuple[str, ...] = ()
    rules: bool = False  # files in `rules` beside the user's files and in .claude/rules of each folder
    imports: bool = False
    budget: int | None = None  # bytes for the files of a project
    contained: bool = False  # a file goes whose paragraphs are all in another


_PI = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")
_CODEX = ("AGENTS.override.md", "AGENTS.md")
_OMP_USER = (
    "AGENTS.md",
    "~/.claude/CLAUDE.md",
    "~/.codex/AGENTS.md",
    "~/.gemini/GEMINI.md",
    "~/.config/opencode/AGENTS.md",
)
_OMP = (
    ".omp/AGENTS.md",
    ".claude/CLAUDE.md",
    ".codex/AGENTS.md",
    ".gemini/GEMINI.md",
    ".github/copilot-instructions.md",
    "AGENTS.md",
    "CLAUDE.md",
)
PROFILES = {
    "pi": Profile("PI_CODING_AGENT_DIR", "~/.pi/agent", (_PI,), (_PI,)),
    "claude": Profile(
        "CLAUDE_CONFIG_DIR",
        "~/.claude",
        (("CLAUDE.md",),),
        (("CLAUDE.md", "AGENTS.md"), (".claude/CLAUDE.md",), ("CLAUDE.local.md",)),
        managed=("/etc/claude-code/CLAUDE.md", "/Library/Application Support/ClaudeCode/CLAUDE.md"),
        rules=True,
        imports=True,
    ),
    "codex": Profile("CODEX_HOME", "~/.codex", (_CODEX,), (_CODEX,), "git", "here", budget=32 * 1024),
    "omp": Profile(
        "PI_CODING_AGENT_DIR",
        "~/.omp/agent",
        (_OMP_USER,),
        (_OMP,),
        "git",
        imports=True,
        contained=True,
    ),
}
