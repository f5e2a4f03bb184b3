"""CPU time of `ctx prompt build` against `python -c pass` of the same interpreter: three instruction files, ten skills.

python tests/bench/prompt.py PREFIX      PREFIX is an ordinary (not editable) installation: PREFIX/bin/ctx
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from start import ROUNDS, cpu

PLAIN, FOLDED = "description: What it is for, on one line", "description: >\n  What it is for,\n  on two lines"


def project(folder: Path, description: str) -> Path:
    """Make a project and return its innermost folder."""
    inner = folder / "shop" / "cart"
    for number in range(10):
        skill = inner / f".pi/skills/skill-{number}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: skill-{number}\n{description}\n---\n{'Do this.' * 50}\n")
    for above in (folder, folder / "shop", inner):
        (above / "AGENTS.md").write_text("# Rules\n" + "A rule of the project.\n" * 40)
    return inner


def main(prefix: str) -> None:
    """Print a table of ratios."""
    python, ctx = f"{prefix}/bin/python", f"{prefix}/bin/ctx"
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as made:
        plain, folded = project(Path(made) / "plain", PLAIN), project(Path(made) / "folded", FOLDED)
        cases = {
            "python -c pass": [python, "-c", "pass"],
            "ctx prompt build": [ctx, "prompt", "build", "--cwd", str(plain)],
            "with YAML in the skills": [ctx, "prompt", "build", "--cwd", str(folded)],
            "within --max-tokens": [ctx, "prompt", "build", "--cwd", str(plain), "--max-tokens", "1500"],
        }
        best = dict.fromkeys(cases, 9.0)
        for _ in range(ROUNDS):
            for name, argv in cases.items():
                best[name] = min(best[name], cpu(argv))
    floor = best["python -c pass"]
    for name, seconds in best.items():
        print(f"{name:24} {seconds * 1000:7.1f} ms {seconds / floor:6.2f} x")


if __name__ == "__main__":
    main(sys.argv[1])
