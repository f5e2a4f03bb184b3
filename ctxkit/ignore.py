"""Ignore files: which paths of a tree they leave out, by the rules of .gitignore."""

from __future__ import annotations

from typing import NamedTuple

from pathspec import GitIgnoreSpec


class Rules(NamedTuple):
    """The rules of one ignore file, which speak of the paths below its folder."""

    folder: str  # "" for the top, else with a slash at its end
    spec: GitIgnoreSpec


def rules(text: str, folder: str) -> Rules:
    """Return the rules in the text of an ignore file."""
    return Rules(folder, GitIgnoreSpec.from_lines(text.split("\n")))


def ignored(path: str, every: tuple[Rules, ...]) -> bool:
    """Say whether a path is left out; the last rule that speaks of it decides, those of deeper folders being later.

    A folder's path ends in a slash.
    """
    answer = False
    for folder, spec in every:
        said = spec.check_file(path.removeprefix(folder)).include
        if said is not None:
            answer = said
    return answer
