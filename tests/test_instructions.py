"""Instruction files: those that an agent would take, in its order, each once, and a reason for every one."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import ctx, git, golden, plant

from ctxkit import imports, instructions, markdown
from ctxkit.folders import DISK
from ctxkit.instructions import Instruction, Instructions
from ctxkit.merge import merged
from ctxkit.profiles import PROFILES

RECORDED = golden("context_files.json")
# What Pi answers otherwise: case -> (reason, what is right here).
DIFFERS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "empty file is still returned": ("COMMANDS: an empty file gives way to the next name", []),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the recorded tree; its worktrees are git's own."""
    root = tmp_path_factory.mktemp("recorded")
    links = {"org/link-to-team": "team", "linkfile/AGENTS.md": "../both/AGENTS.md", "broken/AGENTS.md": "nowhere"}
    plant(root, RECORDED["files"], links)
    plant(root, {"invalid-utf8/AGENTS.md": b"a\xffb", "broken/CLAUDE.md": "after a broken link\n"})
    main = plant(root / "wt/main", {"AGENTS.md": "main repo rules\n", "sub/AGENTS.md": "sub rules\n"})
    commit(main)
    git("worktree", "add", "nested-wt", cwd=main)
    git("worktree", "add", "../sibling-wt", cwd=main)
    return root


def commit(folder: Path) -> Path:
    git("init", cwd=folder)
    git("add", ".", cwd=folder)
    git("commit", "-m", "all", cwd=folder)
    return folder


def find(cwd: str | Path, agent: str | Path = "/nowhere", profile: str = "pi", home: str = "/nowhere") -> Instructions:
    chosen = PROFILES[profile]
    above = instructions.folders_of(chosen, str(cwd), None, DISK)
    return instructions.find(chosen, instructions.places(chosen, above, str(agent), home), home, DISK)


def kept(found: Instructions, root: Path) -> list[tuple[str, str]]:
    return [(file.path.removeprefix(f"{root}/"), file.text) for file in found.files if file.kept]


def names(found: Instructions, root: Path) -> list[str]:
    return [path for path, _ in kept(found, root)]


def reasons(found: Instructions, root: Path) -> dict[str, str]:
    return {
        file.path.removeprefix(f"{root}/"): file.reason.replace(f"{root}/", "") for file in found.files if not file.kept
    }


def said(found: Instructions, root: Path) -> list[str]:
    return [str(finding).replace(f"{root}/", "") for finding in found.findings]


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["name"])
def test_as_pi_finds_them(case: dict[str, Any], tree: Path) -> None:
    got = kept(find(tree / case["cwd"], tree / case["agentDir"]), tree)
    expected = [(file["path"].removeprefix("{ROOT}/"), file["content"]) for file in case["result"]]
    if case["name"] in DIFFERS:
        assert got == DIFFERS[case["name"]][1] != expected
    else:
        assert got == expected


def test_every_exception_is_a_case() -> None:
    assert {case["name"] for case in RECORDED["cases"]} >= set(DIFFERS)


# -- field reports ---------------------------------------------------------------------------------------------------


def test_p01_one_file_by_two_paths_is_taken_once(tmp_path: Path) -> None:
    plant(
        tmp_path, {"home/AGENTS.md": "rules", "repo/AGENTS.md": "rules"}, {"repo/sub/AGENTS.md": "../../home/AGENTS.md"}
    )
    found = find(tmp_path / "repo/sub", tmp_path / "home")
    assert names(found, tmp_path) == ["home/AGENTS.md", "repo/AGENTS.md"], "equal text in two files stays"
    assert reasons(found, tmp_path) == {"repo/sub/AGENTS.md": "the same file as home/AGENTS.md"}
    plant(tmp_path, {"one/AGENTS.md": "rules"}, {"one/CLAUDE.md": "AGENTS.md"})
    assert names(find(tmp_path / "one"), tmp_path) == ["one/AGENTS.md"]
    os.link(tmp_path / "repo/AGENTS.md", tmp_path / "one/AGENTS.override.md")
    (tmp_path / "one/AGENTS.override.md").rename(tmp_path / "repo/sub/AGENTS.override.md")
    assert names(find(tmp_path / "repo/sub"), tmp_path) == ["repo/AGENTS.md"], "a hard link is the same file, too"


def test_p02_a_worktree_inside_its_repository(tmp_path: Path) -> None:
    repo = commit(plant(tmp_path / "repo", {"AGENTS.md": "rules", "sub/x": ""}))
    plant(tmp_path, {"AGENTS.md": "above"})
    git("worktree", "add", ".wt/x", cwd=repo)
    inside = repo / ".wt/x"
    assert names(find(inside / "sub"), tmp_path) == ["AGENTS.md", "repo/.wt/x/AGENTS.md"]
    assert reasons(find(inside), tmp_path)["repo/AGENTS.md"] == "the worktree has its own: repo/.wt/x/AGENTS.md"
    (inside / "AGENTS.md").unlink()
    assert names(find(inside), tmp_path) == ["AGENTS.md", "repo/AGENTS.md"], "without its own it has the repository's"
    plant(inside, {"CLAUDE.md": "other name"})
    assert names(find(inside), tmp_path) == ["AGENTS.md", "repo/AGENTS.md", "repo/.wt/x/CLAUDE.md"]


def test_p02_a_bare_repository_and_a_submodule_hide_nothing(tmp_path: Path) -> None:
    seed = commit(plant(tmp_path / "seed", {"AGENTS.md": "rules"}))
    project = plant(tmp_path / "project", {"AGENTS.md": "beside the bare repository"})
    git("clone", "--bare", seed, project / ".bare", cwd=tmp_path)
    git("worktree", "add", project / "work", cwd=project / ".bare")
    assert names(find(project / "work"), tmp_path) == ["project/AGENTS.md", "project/work/AGENTS.md"]
    outer = commit(plant(tmp_path / "outer", {"AGENTS.md": "outer"}))
    git("-c", "protocol.file.allow=always", "submodule", "add", seed, "inner", cwd=outer)
    assert names(find(outer / "inner"), tmp_path) == ["outer/AGENTS.md", "outer/inner/AGENTS.md"]


def test_p03_what_counts_differs_by_agent_and_is_said(tmp_path: Path) -> None:
    plant(tmp_path, {"AGENTS.md": "a", "CLAUDE.md": "c", ".git/HEAD": ""})
    for profile, expected in {
        "pi": "AGENTS.md",
        "claude": "CLAUDE.md",
        "codex": "AGENTS.md",
        "omp": "AGENTS.md",
    }.items():
        done = ctx("prompt", "files", "--profile", profile, cwd=tmp_path)
        assert [line.split()[1] for line in done.out.splitlines() if line.split()[0] != "no"] == [
            f"{tmp_path}/{expected}"
        ]
    listed = ctx("prompt", "files", cwd=tmp_path)
    assert listed.out == (
        f" 1  {tmp_path}/AGENTS.md  project: first of its names here\n"
        f"no  {tmp_path}/CLAUDE.md  project: AGENTS.md comes first\n"
    )


def test_p04_a_link_that_git_wrote_as_text(tmp_path: Path) -> None:
    plant(tmp_path, {"a/AGENTS.override.md": "AGENTS.md", "a/AGENTS.md": "rules", "b/CLAUDE.md": "../a/AGENTS.md\n"})
    found = find(tmp_path / "a")
    assert kept(found, tmp_path) == [("a/AGENTS.md", "rules")]
    what = "not read: it only names AGENTS.md, as a link that git wrote as text does"
    assert said(found, tmp_path) == [f"a/AGENTS.override.md:1: {what}"]
    assert kept(find(tmp_path / "b"), tmp_path) == []
    plant(tmp_path, {"c/AGENTS.md": "pnpm"})
    assert kept(find(tmp_path / "c"), tmp_path) == [("c/AGENTS.md", "pnpm")], "one word that names nothing is a rule"


def test_p05_the_budget_of_codex_is_used_up_in_order_and_said(tmp_path: Path) -> None:
    root = "# Root\n" + "é rule of the root\n" * 2000
    plant(tmp_path, {".git/HEAD": "", "AGENTS.md": root, "pkg/AGENTS.md": "# Leaf\n" + "leaf rule\n" * 20})
    done = ctx("prompt", "build", "--profile", "codex", "--date", "none", cwd=tmp_path / "pkg")
    assert done.code == 0
    assert "leaf rule" not in done.out
    assert "é rule of the root\n[... 7.1KB of " in done.out
    assert [line.partition(f"{tmp_path}/")[2] for line in done.err.splitlines()] == [
        "AGENTS.md: 32.0KB of 39.1KB kept: the files of a project have 32768 bytes together",
        "pkg/AGENTS.md: left out: the files of a project have 32768 bytes together",
    ]
    first = ctx("prompt", "build", "--profile", "codex", "--merge", "prepend", "-q", cwd=tmp_path / "pkg")
    assert "leaf rule" in first.out, "the specific file first, and it is whole"
    found = json.loads(ctx("prompt", "files", "--profile", "codex", "--json", "-q", cwd=tmp_path / "pkg").out)["files"]
    assert [(file["bytes"], file["kept"] > 32000) for file in found] == [(len(root.encode()), True), (207, False)]


def test_p11_near_misses_are_said_and_never_taken(tmp_path: Path) -> None:
    plant(tmp_path, {"a/agents.md": "x", "b/Claude.md": "x", "c/AGENTS.md": "y", "c/agents.md": "x"})
    assert said(find(tmp_path / "a"), tmp_path) == ["a/agents.md: not read: its name is not AGENTS.md"]
    assert said(find(tmp_path / "b"), tmp_path) == ["b/Claude.md: not read: its name is not CLAUDE.md"]
    found = find(tmp_path / "c")
    assert (names(found, tmp_path), found.findings) == (["c/AGENTS.md"], [])


def test_p12_what_is_no_readable_file_gives_way_and_nothing_waits(tmp_path: Path) -> None:
    plant(tmp_path, {"AGENTS.md/x": "", "CLAUDE.md": "used"}, {"AGENTS.override.md": "gone"})
    os.mkfifo(tmp_path / "AGENTS.MD")
    done = ctx("prompt", "build", cwd=tmp_path)
    assert done.code == 0
    assert "\nused\n" in done.out
    assert [line.partition(f"{tmp_path}/")[2] for line in done.err.splitlines()] == [
        "AGENTS.override.md: not read: No such file or directory",
        "AGENTS.md: not read: a folder",
        "AGENTS.MD: not read: not a regular file",
    ]
    assert ctx("prompt", "build", "-q", cwd=tmp_path).err == ""


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no file here that not even root can read")
def test_p12_a_file_that_cannot_be_read_gives_way(tmp_path: Path) -> None:
    plant(tmp_path, {"CLAUDE.md": "used"}, {"AGENTS.md": "/proc/self/mem"})
    found = find(tmp_path)
    assert names(found, tmp_path) == ["CLAUDE.md"]
    assert said(found, tmp_path) == ["AGENTS.md: not read: Input/output error"]


def test_p14_no_byte_order_mark_and_no_carriage_return(tmp_path: Path) -> None:
    plant(tmp_path, {"AGENTS.md": b"\xef\xbb\xbfone\r\ntwo\r\n"})
    assert kept(find(tmp_path), tmp_path) == [("AGENTS.md", "one\ntwo\n")]


def test_p18_copies_made_in_another_order_give_the_same(tmp_path: Path) -> None:
    files = {
        "AGENTS.md": "@b.md @a.md",
        "a.md": "a",
        "b.md": "b",
        ".claude/rules/z.md": "z",
        ".claude/rules/a/x.md": "x",
    }
    plant(tmp_path / "1", files)
    plant(tmp_path / "2", dict(reversed(files.items())))
    one, two = (kept(find(tmp_path / n, profile="claude"), tmp_path / n) for n in "12")
    assert one == two
    assert [path for path, _ in one] == ["AGENTS.md", "b.md", "a.md", ".claude/rules/a/x.md", ".claude/rules/z.md"]


def test_p19_a_variable_or_an_option_replaces_the_folder(tmp_path: Path) -> None:
    plant(tmp_path, {"home/.pi/agent/AGENTS.md": "d", "a/AGENTS.md": "a", "b/AGENTS.md": "b", "work/x": ""})
    home = {"HOME": str(tmp_path / "home")}

    def listed(*words: str | Path, env: dict[str, str]) -> list[str]:
        out = ctx("prompt", "files", *words, cwd=tmp_path / "work", env=env).out
        return [line.split()[1].removeprefix(f"{tmp_path}/") for line in out.splitlines()]

    assert listed(env=home) == ["home/.pi/agent/AGENTS.md"]
    variable = {**home, "PI_CODING_AGENT_DIR": str(tmp_path / "a")}
    assert listed(env=variable) == ["a/AGENTS.md"]
    assert listed("--agent-dir", tmp_path / "b", env=variable) == ["b/AGENTS.md"]
    assert listed("--agent-dir", "../b", env=variable) == ["b/AGENTS.md"]


# -- profiles --------------------------------------------------------------------------------------------------------


def test_where_the_folders_begin(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "AGENTS.md": "1",
            "repo/.git/HEAD": "",
            "repo/AGENTS.md": "2",
            "repo/pkg/AGENTS.md": "3",
            "no/x/AGENTS.md": "4",
        },
    )

    def listed(*words: str, cwd: str) -> str:
        out = ctx("prompt", "files", *words, cwd=tmp_path / cwd).out
        return "".join((Path(line.split()[1])).read_text() for line in out.splitlines())

    assert listed(cwd="repo/pkg") == listed("--stop-at", "root", cwd="repo/pkg") == "123"
    assert listed("--stop-at", "git", cwd="repo/pkg") == "23"
    assert listed("--stop-at", "git", cwd="no/x") == "14", "without a repository nothing stops it"
    assert listed("--profile", "codex", cwd="repo/pkg") == "23"
    assert listed("--profile", "codex", "--stop-at", "root", cwd="repo/pkg") == "123"
    assert listed("--profile", "codex", cwd="no/x") == "4", "without a repository Codex takes the folder alone"
    assert listed("--profile", "omp", cwd="repo/pkg") == "23"


def test_claude_takes_its_files_rules_and_imports(tmp_path: Path) -> None:
    home = plant(tmp_path / "home", {".claude/CLAUDE.md": "user", ".claude/rules/r.md": "user rule"})
    repo = plant(
        tmp_path / "repo",
        {
            ".git/HEAD": "",
            "CLAUDE.md": "root @docs/more.md",
            "AGENTS.md": "not beside CLAUDE.md",
            "docs/more.md": "imported",
            ".claude/CLAUDE.md": "hidden",
            ".claude/rules/all.md": "---\ndescription: d\n---\nfor all",
            ".claude/rules/ts.md": '---\npaths:\n  - "src/**/*.ts"\n---\nfor some',
            "CLAUDE.local.md": "local",
            "pkg/AGENTS.md": "alone",
        },
    )
    found = find(repo / "pkg", home / ".claude", "claude", str(home))
    assert kept(found, tmp_path) == [
        ("home/.claude/CLAUDE.md", "user"),
        ("home/.claude/rules/r.md", "user rule"),
        ("repo/CLAUDE.md", "root @docs/more.md"),
        ("repo/docs/more.md", "imported"),
        ("repo/.claude/rules/all.md", "for all"),
        ("repo/.claude/CLAUDE.md", "hidden"),
        ("repo/CLAUDE.local.md", "local"),
        ("repo/pkg/AGENTS.md", "alone"),
    ]
    assert reasons(found, tmp_path) == {
        "repo/AGENTS.md": "CLAUDE.md comes first",
        "repo/.claude/rules/ts.md": "only for files that match src/**/*.ts",
    }
    assert [file.scope for file in found.files][:3] == ["user", "user", "project"]


def test_omp_takes_one_file_a_folder_and_none_that_another_contains(tmp_path: Path) -> None:
    repo = plant(
        tmp_path / "repo",
        {
            ".git/HEAD": "",
            ".omp/AGENTS.md": "one\n\ntwo",
            "AGENTS.md": "x",
            "pkg/GEMINI.md": "no",
            "pkg/CLAUDE.md": "two\n",
        },
    )
    plant(tmp_path / "home", {".claude/CLAUDE.md": "user"})
    found = find(repo / "pkg", tmp_path / "home/.omp/agent", "omp", f"{tmp_path}/home")
    assert names(found, tmp_path) == ["home/.claude/CLAUDE.md", "repo/.omp/AGENTS.md"]
    assert reasons(found, tmp_path) == {
        "repo/AGENTS.md": "AGENTS.md comes first",
        "repo/pkg/CLAUDE.md": "all of it is in repo/.omp/AGENTS.md",
    }


# -- imports ---------------------------------------------------------------------------------------------------------


def claude(root: Path, files: dict[str, str], links: dict[str, str] | None = None) -> Instructions:
    plant(root, {".git/HEAD": "", **files}, links)
    return find(root, profile="claude", home=f"{root}/home")


def test_p06_only_what_exists_is_an_import(tmp_path: Path) -> None:
    text = (
        "@param x\n- @types/node and @angular/core\n@Component({})\n"
        "Mail me@b.md or (me@example.com), @example.com)\nhttps://x.org/@b.md\n@ b.md\n@\n@@b.md\nfoo@b.md\n"
    )
    found = claude(tmp_path, {"CLAUDE.md": text, "b.md": "never"})
    assert (names(found, tmp_path), found.findings) == (["CLAUDE.md"], [])
    assert kept(found, tmp_path)[0][1] == text, "everything stays literal"


@pytest.mark.parametrize(
    "written",
    [
        "@guide.md:", "see @guide.md, then", "@guide.md.", "(x) @guide.md)", "**x** @guide.md**", "@guide.md#part",
        "@./guide.md", "@sub/../guide.md", "@guide.md!?", "- @guide.md", "\t@guide.md", "@guide.md#part.",
    ],
)  # fmt: skip
def test_p07_punctuation_and_anchors(written: str, tmp_path: Path) -> None:
    found = claude(tmp_path, {"CLAUDE.md": f"x\n{written}\n", "guide.md": "g", "sub/x": ""})
    assert names(found, tmp_path) == ["CLAUDE.md", "guide.md"]
    assert (found.files[1].reason, found.findings) == (f"imported by {tmp_path}/CLAUDE.md:2", [])


def test_p07_blanks_digits_and_homes(tmp_path: Path) -> None:
    files = {"my guide.md": "1", "other guide.md": "2", "3.md": "3", "home/at home.md": "4", "x).md": "5"}
    text = '@my\\ guide.md @"other guide.md" @3.md\n@~/at\\ home.md @x).md'
    found = claude(tmp_path, {"CLAUDE.md": text, **files})
    assert "".join(content for _, content in kept(found, tmp_path)[1:]) == "12345"


def test_p07_what_looks_like_a_path_and_is_none_is_said(tmp_path: Path) -> None:
    found = claude(tmp_path, {"CLAUDE.md": "x\n@docs/missing.md. @./no @~/no @folder @types/node", "folder/x": ""})
    assert [line.partition(":")[2] for line in said(found, tmp_path)] == [
        f"2: imports {name!r}, which is no file" for name in ("docs/missing.md.", "./no", "~/no")
    ]


def test_p08_every_layer_is_expanded_next_to_the_file_that_imports(tmp_path: Path) -> None:
    files = {
        "AGENTS.md": "no", "CLAUDE.md": "@d/a.md", "d/a.md": "@b.md", "d/b.md": "b", "b.md": "wrong",
        "shared/CLAUDE.md": "@c.md", "shared/c.md": "next to the real file", "pkg/c.md": "next to the link",
    }  # fmt: skip
    plant(tmp_path, {".git/HEAD": "", **files}, {"pkg/CLAUDE.md": "../shared/CLAUDE.md"})
    found = find(tmp_path / "pkg", profile="claude")
    assert names(found, tmp_path) == ["CLAUDE.md", "d/a.md", "d/b.md", "pkg/CLAUDE.md", "shared/c.md"]


def test_p09_nothing_in_code_is_an_import(tmp_path: Path) -> None:
    text = (
        "````\n```\n@x.md\n```\n@x.md\n````\n~~~ py\n@x.md\n```\n@x.md\n~~~~\n`@x.md` `` ` @x.md `` `a\n@x.md b`\n"
        "- list\n    ```\n    @x.md\n    ```\n> ```\n> @x.md\n> ```\n@y.md\n```\n@x.md\n"
    )
    found = claude(tmp_path, {"CLAUDE.md": text, "x.md": "never", "y.md": "```\nnever closed @x.md"})
    assert (names(found, tmp_path), found.findings) == (["CLAUDE.md", "y.md"], [])


def test_p09_a_backtick_alone_and_an_open_fence_elsewhere_hide_nothing(tmp_path: Path) -> None:
    found = claude(tmp_path, {"CLAUDE.md": "a ` b\n\n@x.md\n\n\\` @y.md `\n", "x.md": "```\n", "y.md": "y"})
    assert names(found, tmp_path) == ["CLAUDE.md", "x.md", "y.md"]


def test_p10_a_diamond_is_no_cycle_and_a_cycle_is_named(tmp_path: Path) -> None:
    files = {"CLAUDE.md": "@b.md\n@c.md", "b.md": "@d.md", "c.md": "@d.md", "d.md": "end"}
    found = claude(tmp_path / "diamond", files)
    assert names(found, tmp_path / "diamond") == ["CLAUDE.md", "b.md", "d.md", "c.md"]
    assert found.findings == []
    found = claude(tmp_path / "cycle", {"CLAUDE.md": "@b.md", "b.md": "\n@CLAUDE.md @b.md"})
    assert names(found, tmp_path / "cycle") == ["CLAUDE.md", "b.md"]
    assert said(found, tmp_path / "cycle") == [
        "b.md:2: imports in a circle: CLAUDE.md -> b.md -> CLAUDE.md",
        "b.md:2: imports in a circle: CLAUDE.md -> b.md -> b.md",
    ]


def test_p10_five_deep_and_no_deeper(tmp_path: Path) -> None:
    files = {"CLAUDE.md": "@1.md", **{f"{n}.md": f"@{n + 1}.md" for n in range(1, 8)}}
    found = claude(tmp_path, files)
    assert names(found, tmp_path) == ["CLAUDE.md", "1.md", "2.md", "3.md", "4.md", "5.md"]
    (finding,) = said(found, tmp_path)
    assert finding.startswith("5.md:1: imports more than 5 deep: CLAUDE.md -> 1.md -> 2.md")


def test_an_import_from_outside_of_the_project_is_said(tmp_path: Path) -> None:
    plant(tmp_path, {"secret.txt": "key"})
    found = claude(tmp_path / "p", {"CLAUDE.md": "@../secret.txt\n@in.md", "in.md": "x"})
    assert said(found, tmp_path) == ["p/CLAUDE.md:1: imports a file outside of the project: secret.txt"]
    plant(tmp_path / "p", {"in.md": "\0"})
    assert said(find(tmp_path / "p", profile="claude"), tmp_path)[1:] == [
        "p/CLAUDE.md:2: imports 'in.md', which is no text"
    ]


def test_other_profiles_follow_no_imports(tmp_path: Path) -> None:
    plant(tmp_path, {"AGENTS.md": "@x.md", "x.md": "x"})
    assert names(find(tmp_path), tmp_path) == ["AGENTS.md"]


@given(st.text(st.sampled_from(list("`~ \n\\a@>-")), max_size=60))
def test_code_is_blanked_and_nothing_moves(text: str) -> None:
    blanked = markdown.without_code(text)
    assert len(blanked) == text.count("\n") + 1
    for before, after in zip(text.split("\n"), blanked, strict=True):
        assert after in ("", before) or (len(after) == len(before) and "`" in after)
    assert all(1 <= line <= len(blanked) for line, _ in imports.references(text))


@pytest.mark.parametrize(
    "unit", ["` ", "`` ` ", "@a)))", "@\\ ", "~~~\n", "> ", "`a\n\n", "# \t", "@" + ")" * 50 + " "]
)
def test_long_texts_take_no_time(unit: str) -> None:
    start = time.process_time()
    spans = " ".join("`" * length for length in range(1, 300))
    for text in (unit * (200_000 // len(unit)), f"# a{unit[-1] * 200_000}b", spans):
        list(imports.references(text))
        markdown.sections(text)
    assert time.process_time() - start < 5


# -- merge rules -----------------------------------------------------------------------------------------------------

FAR = "top\n# Style\nfar style\n## Tests\nfar tests\n# Only far\nfar only\n```\n# Style\n```\n"
NEAR = "# style #\nnear style\n# Only near\nnear only\n"


def files(*texts: str) -> list[Instruction]:
    return [Instruction(f"/{n}", "project", len(text), text, True, "") for n, text in enumerate(texts)]


def texts(result: list[Instruction]) -> list[str]:
    return [file.text for file in result if file.kept]


def test_append_prepend_replace() -> None:
    assert texts(merged(files(FAR, NEAR), "append")) == [FAR, NEAR]
    assert texts(merged(files(FAR, NEAR), "prepend")) == [NEAR, FAR]
    replaced = merged(files(FAR, NEAR), "replace")
    assert texts(replaced) == [NEAR]
    assert replaced[0].reason == "replaced by /1"
    skipped = [*files(FAR), files(NEAR)[0].without("x")]
    assert texts(merged(skipped, "replace")) == [FAR], "a file that is not kept replaces none"


def test_smart_lets_a_section_give_way_to_its_like() -> None:
    far, near = merged(files(FAR, NEAR), "smart")
    assert near.text == NEAR
    assert far.text == "top\n# Style\n\n## Tests\nfar tests\n# Only far\nfar only\n```\n# Style\n```\n"
    assert far.reason.endswith("sections replaced by /1")


def test_smart_over_three_files_and_whole_files() -> None:
    one, two, three = merged(files("# A\n1\n# B\n1\n", "# B\n2\n# C\n2\n", "# C\n3\n# A\n3"), "smart")
    assert (one.kept, one.reason) == (False, "sections replaced by /2, /1")
    assert (two.text, three.text) == ("# B\n2", "# C\n3\n# A\n3")


@pytest.mark.parametrize(
    ("far", "near", "left"),
    [
        ("## A\n1", "# A\n2", "## A\n1"),
        ("# A\n1", "```\n# A\n```", "# A\n1"),
        ("# A\n1", "~~~\n# A", "# A\n1"),
        ("# A\n1\n#B\n2", "# A\n", None),
        ("#\n1", "#\n2", None),
        ("text", "text", "text"),
    ],
)
def test_what_is_the_same_heading(far: str, near: str, left: str | None) -> None:
    result = merged(files(far, near), "smart")[0]
    assert (result.text if result.kept else None) == left


@given(
    st.lists(st.lists(st.sampled_from(["# A", "## A", "# B", "x", "```", ""]), max_size=8).map("\n".join), max_size=4)
)
def test_smart_keeps_the_nearest_and_invents_nothing(every: list[str]) -> None:
    result = merged(files(*every), "smart")
    assert [file.path for file in result] == [f"/{n}" for n in range(len(every))]
    if every:
        assert result[-1].text == every[-1]
    for before, after in zip(every, result, strict=True):
        assert set(after.text.split("\n")) <= {*before.split("\n"), ""}


def test_merge_rules_on_the_command_line(tmp_path: Path) -> None:
    plant(tmp_path, {"AGENTS.md": "# Tests\nfar\n# Far\nf\n", "p/AGENTS.md": "# Tests\nnear\n"})
    built = {
        rule: ctx("prompt", "build", "--merge", rule, cwd=tmp_path / "p").out
        for rule in ("append", "prepend", "replace", "smart")
    }
    assert built["append"].index("far") < built["append"].index("near")
    assert built["prepend"].index("far") > built["prepend"].index("near")
    assert "far" not in built["replace"]
    assert "far" not in built["smart"]
    assert "# Far\nf\n" in built["smart"]


def test_this_repository_is_an_example(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    (tmp_path / "clone").mkdir()
    for name in ("AGENTS.md", "CONTRIBUTING.md"):
        shutil.copy(root / name, tmp_path / "clone" / name)
    out = ctx("prompt", "build", cwd=tmp_path / "clone").out
    assert "CONTRIBUTING.md" in out
    assert "Imports point down" in out
