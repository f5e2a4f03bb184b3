"""Ignore files: which paths of a tree they leave out, by the rules of .gitignore."""

from __future__ import annotations

import re
from typing import NamedTuple

from pathspec import GitIgnoreSpec

# Each star multiplies the time that a match may take, and a stranger may have written the pattern and the names.
STARS, STARS_IN_A_NAME = 6, 3


class Rules(NamedTuple):
    """The rules of one ignore file, which speak of the paths below its folder."""

    folder: str  # "" for the top, else with a slash at its end
    spec: GitIgnoreSpec


def rules(text: str, folder: str) -> tuple[Rules, list[int]]:
    """Return the rules in the text of an ignore file, and the numbers of the lines that have too many stars for one."""
    kept, refused = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if _takes_long(line):
            refused.append(number)
        else:
            kept.append(line)
    return Rules(folder, GitIgnoreSpec.from_lines(kept)), refused


def _takes_long(pattern: str) -> bool:
    stars = [len(re.findall(r"\*+", name)) for name in pattern.split("/")]
    return not pattern.startswith("#") and (sum(stars) > STARS or max(stars) > STARS_IN_A_NAME)


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
