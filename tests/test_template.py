"""Templates: slash commands and arguments as Pi reads them; variables that are declared, and errors that say where."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import ctx, golden, plant

from ctxkit import template
from ctxkit.errors import InputError, UsageError
from ctxkit.folders import DISK
from ctxkit.template import Template, Variable

RECORDED = golden("prompt_templates.json")
ESCAPE = "Pi §14.4, 33: a sum of money is eaten, and nothing can be escaped"
BRACES = "Pi §14.4, 33: a number in braces is not recognised"

# What Pi answers otherwise: (template, arguments) -> (reason, what is right here).
EXPANDED = {
    ("\\$1", "a"): (ESCAPE, "$1"),
    ("cost $100", "a"): (ESCAPE, "cost $100"),
    ("${1}", "a"): (BRACES, "a"),
    ("${@}", "a"): (BRACES, "a"),
    ("${ARGUMENTS}", "a"): (BRACES, "a"),
}
ARGUMENTS = {'"a\\\\"': ("Pi §14.4, 35: a backslash before a closing quote cannot be written", ["a\\"])}
CUT = "a cut is never inside a character"
P15 = "field report P15: a scalar keeps its source text"
P13 = "field report P13: metadata that is no YAML does not lose the file"
DESCRIBED = {
    "emoji": (CUT, {"description": "w" * 59 + "😀..."}),
    "numdesc": (P15, {"description": "5", "argumentHint": "6"}),
}
ADDED = {"bad": (P13, "Body")}


def plain(body: str) -> Template:
    return Template("t", "", "", body, "t.md", 1, None)


def declaring(body: str, *variables: str | tuple[str, list[str]], line: int = 1) -> Template:
    declared = [Variable(v, None, "", 1) if isinstance(v, str) else Variable(v[0], v[1], "", 1) for v in variables]
    return Template("t", "", "", body, "t.md", line, tuple(declared))


@pytest.mark.parametrize("case", RECORDED["parseCommandArgs"], ids=lambda case: repr(case["input"]))
def test_arguments_as_pi_splits_them(case: dict[str, Any]) -> None:
    got = template.split_arguments(case["input"])[0]
    if case["input"] in ARGUMENTS:
        assert got == ARGUMENTS[case["input"]][1] != case["result"]
    else:
        assert got == case["result"]


@pytest.mark.parametrize("case", RECORDED["substituteArgs"], ids=lambda case: f"{case['template']!r} {case['args']}")
def test_placeholders_as_pi_fills_them(case: dict[str, Any]) -> None:
    got = template.expand(plain(case["template"]), case["args"], {})
    key = (case["template"], case["args"][0]) if case["args"] else ("", "")
    if key in EXPANDED:
        assert got == EXPANDED[key][1] != case["result"]
    else:
        assert got == case["result"]
    assert template.expand(declaring(case["template"]), case["args"], {}) == got


def test_every_exception_is_a_case() -> None:
    assert {(c["template"], c["args"][0]) for c in RECORDED["substituteArgs"] if c["args"]} >= set(EXPANDED)
    assert {c["input"] for c in RECORDED["parseCommandArgs"]} >= set(ARGUMENTS)
    assert {t["name"] for c in RECORDED["loadPromptTemplates"] for t in c["result"]["templates"]} >= set(DESCRIBED)


@pytest.mark.parametrize("case", RECORDED["expandPromptTemplate"]["cases"], ids=lambda case: repr(case["text"]))
def test_slash_commands_as_pi_reads_them(case: dict[str, Any]) -> None:
    known = {t["name"]: plain(t["content"]) for t in RECORDED["expandPromptTemplate"]["templates"]}
    command = template.split_command(case["text"])
    got = case["text"]
    if command and command[0] in known:
        got = template.expand(known[command[0]], template.split_arguments(command[1])[0], {})
    assert got == case["result"]


@pytest.mark.parametrize("case", RECORDED["loadPromptTemplates"], ids=lambda case: str(case["promptPaths"]))
def test_found_as_pi_finds_them(case: dict[str, Any], tmp_path: Path) -> None:
    plant(tmp_path, RECORDED["files"])
    every = list(case["promptPaths"]) + (["agent/prompts", "proj/.pi/prompts"] if case["includeDefaults"] else [])
    got: list[Template] = []
    said = []
    for path in every:  # one by one: Pi's function lists a name as often as it finds it
        file = DISK.read(f"{tmp_path}/{path}")
        if file.kind == "folder":
            found, findings = template.find([file.path], DISK)
            got += found
            said += findings
        elif file.kind == "file" and path.endswith(".md"):
            got.append(template.read(file)[0])
    expected = {t["filePath"].replace("{ROOT}", str(tmp_path)): t for t in case["result"]["templates"]}
    mine = {t.path: t for t in got if t.name not in ADDED}
    assert set(mine) == set(expected)
    for path, want in expected.items():
        here = {
            "description": mine[path].description, "argumentHint": mine[path].argument_hint or None,
        }  # fmt: skip
        recorded = {key: want[key] for key in here}
        if mine[path].name in DESCRIBED:
            assert here == {**recorded, **DESCRIBED[mine[path].name][1]} != recorded
        else:
            assert here == recorded
        assert (mine[path].name, mine[path].body) == (want["name"], want["content"])
    assert [t.body for t in got if t.name in ADDED] == ["Body"] * case["includeDefaults"]
    assert len(said) == len(case["result"]["diagnostics"])


# -- variables -------------------------------------------------------------------------------------------------------

ONE = {"a": ["1"]}


@pytest.mark.parametrize(
    ("body", "values", "text"),
    [
        ("{{a}} {{ a }}", ONE, "1 1"),
        ("{{a}}", {"a": ["1", "2"]}, "1, 2"),
        ("{{#if a}}yes{{else}}no{{/if}}", ONE, "yes"),
        ("{{#if a}}yes{{else}}no{{/if}}", {"a": [""]}, "no"),
        ("{{#if a}}yes{{/if}}", {"a": [""]}, ""),
        ("{{#unless a}}none{{else}}some{{/unless}}", {"a": []}, "none"),
        ("{{#unless a}}none{{else}}some{{/unless}}", ONE, "some"),
        ("{{#each a}}<{{this}}>{{else}}-{{/each}}", {"a": ["x", "", "y"]}, "<x><y>"),
        ("{{#each a}}<{{this}}>{{else}}-{{/each}}", {"a": []}, "-"),
        ("{{#each a}}{{#if a}}{{this}}{{/if}}{{/each}}", {"a": ["x", "y"]}, "xy"),
        ("1\n{{#if a}}\n2\n  {{else}}  \n3\n{{/if}}\n4", ONE, "1\n2\n4"),
        ("1 {{#if a}}\n2\n{{/if}}", ONE, "1 \n2\n"),
        ("\\{{a}} \\{{#if", ONE, "{{a}} {{#if"),
        ("{{a}} $1 {{a}}", {"a": ["$1 {{a}} ${@}"]}, "$1 {{a}} ${@} arg {{a}} $1 {{a}} ${@}"),
        ("{ {a} } }} {a}", ONE, "{ {a} } }} {a}"),
    ],
)
def test_variables(body: str, values: dict[str, list[str]], text: str) -> None:
    assert template.expand(declaring(body, "a"), ["arg {{a}}"], values) == text


def test_without_a_declaration_braces_are_text() -> None:
    body = "${{ secrets.X }} {{#if a}} {{a}} \\{{"
    assert template.expand(plain(body), [], {}) == body
    with pytest.raises(UsageError, match="declares no variables"):
        template.expand(plain(body), [], ONE)


@pytest.mark.parametrize(
    ("body", "line", "what"),
    [
        ("x\n{{b}}", 11, "variable 'b' is not declared"),
        ("\n\n{{#if b}}{{/if}}", 12, "variable 'b' is not declared"),
        ("\n{{#if a}}\n{{#each a}}{{/each}}\n", 11, "'{{#if a}}' is not closed"),
        ("\n{{#if a}}{{/each}}", 11, "'{{/each}}' means nothing here"),
        ("{{/if}}", 10, "'{{/if}}' means nothing here"),
        ("{{else}}", 10, "'{{else}}' means nothing here"),
        ("{{#if a}}{{else}}\n{{else}}{{/if}}", 11, "'{{else}}' means nothing here"),
        ("{{#with a}}", 10, "'{{#with a}}' means nothing here"),
        ("{{a.b}}", 10, "'{{a.b}}' means nothing here"),
        ("{{> partial}}", 10, "'{{> partial}}' means nothing here"),
        ("{{a", 10, "'{{' is not closed on its line"),
        ("{{this}}", 10, "'{{this}}' stands outside of '{{#each}}'"),
        ("{{#if this}}{{/if}}", 10, "'this' is no variable"),
        ("{{#if a}}" * 40, 10, "'{{#if a}}' is nested too deeply"),
    ],
)
def test_errors_name_file_line_and_what(body: str, line: int, what: str) -> None:
    with pytest.raises(InputError) as error:
        template.expand(declaring(body, ("a", ["1"]), line=10), [], {})
    assert error.value.message == f"t.md:{line}: {what}"


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("[a, b]", {"a": None, "b": None}),
        ("\n  - a\n  - b: x", {"a": None, "b": ["x"]}),
        ("\n  - name: a\n    default: x\n  - name: b\n    required: false", {"a": ["x"], "b": []}),
        ("\n  - name: a\n    required: true\n    description: what", {"a": None}),
        ("\n  a: x\n  b:", {"a": ["x"], "b": None}),
        ("\n  - a: [x, 1]\n  - b: ''\n  - c: []", {"a": ["x", "1"], "b": [""], "c": []}),
        ("", {}),
    ],
)
def test_declarations(declaration: str, expected: dict[str, list[str] | None], tmp_path: Path) -> None:
    plant(tmp_path, {"t.md": f"---\nvariables: {declaration}\n---\nx"})
    got, findings = template.read(DISK.read(f"{tmp_path}/t.md"))
    assert findings == []
    assert got.variables is not None
    assert {v.name: v.default for v in got.variables} == expected


@pytest.mark.parametrize(
    ("declaration", "what"),
    [
        ("a", "variables is not a list"),
        ("[[a]]", "a variable has no name"),
        ("[a, a]", "variable 'a' is declared twice"),
        ("['a b']", "'a b' is no name for a variable"),
        ("[this]", "'this' is no name for a variable"),
        ("[{a: {b: c}}]", "the default of variable 'a' is not text, nor a list of texts"),
    ],
)
def test_a_bad_declaration_says_where_and_spoils_no_other_template(declaration: str, what: str, tmp_path: Path) -> None:
    plant(tmp_path, {".pi/prompts/bad.md": f"---\nvariables: {declaration}\n---\nx", ".pi/prompts/ok.md": "fine"})
    path = f"{tmp_path}/.pi/prompts/bad.md"
    done = ctx("template", "expand", path, cwd=tmp_path)
    assert (done.code, done.out, done.err) == (3, "", f"ctx template expand: {path}:2: {what}\n")
    listed = ctx("template", "list", cwd=tmp_path)
    assert (listed.code, listed.out) == (0, "ok  fine\n")
    assert listed.err == f"ctx template list: warning: {path}:2: {what}\n"


def test_a_missing_variable_is_named_where_it_is_used_or_else_declared(tmp_path: Path) -> None:
    plant(tmp_path, {"t.md": "---\nname: t\nvariables: [a, b]\n---\n\nfirst\n{{a}} {{a}}\n"})
    done = ctx("template", "expand", "t.md", "--var", "b=1", cwd=tmp_path)
    assert (done.code, done.out) == (3, "")
    assert done.err == "ctx template expand: t.md:7: variable 'a' is missing\nhint: give it with --var a=VALUE\n"
    assert ctx("template", "expand", "t.md", "--var", "a=1", cwd=tmp_path).err.startswith(
        "ctx template expand: t.md:3: variable 'b' is missing\n"
    )
    wrong = ctx("template", "expand", "t.md", "--var", "c=1", "--var", "x", cwd=tmp_path)
    assert (wrong.code, wrong.err) == (2, "ctx template expand: --var 'x' is not KEY=VALUE\n")
    unknown = ctx("template", "expand", "t.md", "--var", "c=1", cwd=tmp_path)
    assert unknown.err == "ctx template expand: t.md: no variable is named 'c'\nhint: the template declares a, b\n"


# -- as a user runs it -----------------------------------------------------------------------------------------------


def test_names_files_and_slashes(tmp_path: Path) -> None:
    agent = plant(tmp_path / "agent", {"prompts/both.md": "user's", "prompts/mine.md": "mine $1"})
    project = plant(tmp_path / "project", {".pi/prompts/both.md": "project's", "mine.md": "a file $1"})
    env = {"PI_CODING_AGENT_DIR": str(agent)}

    def expand(*words: str) -> str:
        return ctx("template", "expand", *words, cwd=project, env=env).out

    assert expand("both") == expand("/both") == "project's\n"
    assert expand("mine", "x") == expand("/mine", "x") == "mine x\n"
    assert expand("./mine.md", "x") == expand("mine.md", "x") == expand(f"{project}/mine.md", "x") == "a file x\n"
    said = ctx("template", "list", cwd=project, env=env)
    assert said.out == "both  project's\nmine  mine $1\n"
    assert said.err == (
        f"ctx template list: warning: {agent}/prompts/both.md: name 'both' is taken by {project}/.pi/prompts/both.md\n"
    )
    unknown = ctx("template", "expand", "nope", cwd=project, env=env)
    assert (unknown.code, unknown.out) == (3, "")
    assert "no template is named 'nope'\nhint: 'ctx template list'" in unknown.err
    assert ctx("template", "expand", ".", cwd=project).err == f"ctx template expand: {project}: Is a directory\n"
    assert ctx("template", "expand", "/dev/stdin", "x", cwd=project, stdin="piped $1\n").out == "piped x\n"


def test_a_slash_command_with_variables(tmp_path: Path) -> None:
    text = "---\nvariables:\n  - focus: all\n---\nReview $1 for {{focus}}. [$@]"
    plant(tmp_path, {".pi/prompts/review-pr.md": text})
    link = "https://example.org/pull/7"
    for command, expected in {
        f'/review-pr {link} focus="x"': f"Review {link} for x. [{link}]",
        f'/review-pr focus="two words" {link} "a b"': f"Review {link} for two words. [{link} a b]",
        f"/review-pr {link}": f"Review {link} for all. [{link}]",
        f"/review-pr {link} other=1": f"Review {link} for all. [{link} other=1]",
        "/review-pr focus='it''s": "Review  for it's. []",
    }.items():
        assert ctx("template", "expand", "-", command, cwd=tmp_path).out == f"{expected}\n"
        assert ctx("template", "expand", "-", cwd=tmp_path, stdin=f"{command}\n").out == f"{expected}\n"
    passed = ctx("template", "expand", "-", "no command $1", cwd=tmp_path)
    assert passed == (0, "no command $1\n", "")
    unknown = ctx("template", "expand", "-", "/nope $1", cwd=tmp_path)
    assert unknown == (0, "/nope $1\n", "ctx template expand: warning: no template is named 'nope'\n")


def test_list_as_json(tmp_path: Path) -> None:
    text = "---\ndescription: d\nargument-hint: '[x]'\nvariables: [{name: a, default: b, description: c}]\n---\nt"
    plant(tmp_path, {".pi/prompts/t.md": text})
    assert json.loads(ctx("template", "list", "--json", cwd=tmp_path).out) == {
        "schema": 1,
        "templates": [
            {
                "name": "t", "description": "d", "argumentHint": "[x]", "path": f"{tmp_path}/.pi/prompts/t.md",
                "variables": [{"name": "a", "default": ["b"], "description": "c"}],
            }
        ],
    }  # fmt: skip


def test_what_is_no_file_is_said_and_never_waited_for(tmp_path: Path) -> None:
    plant(tmp_path, {".pi/prompts/ok.md": "x", ".pi/prompts/dir.md/y": ""}, {".pi/prompts/gone.md": "nowhere"})
    os.mkfifo(tmp_path / ".pi/prompts/pipe.md")
    done = ctx("template", "list", cwd=tmp_path)
    assert done.out == "ok  x\n"
    assert [line.rpartition("/")[2] for line in done.err.splitlines()] == [
        "gone.md: template is not readable: No such file or directory",
        "pipe.md: template is not readable: not a regular file",
    ]


PIECES = st.sampled_from(["$1", "$@", "${1}", "${@:1}", "{{a}}", "{{#if a}}", "{{/if}}", "\\", "x", "\n", " ", "\\{{"])
HOSTILE = st.lists(PIECES, max_size=8).map("".join)


@given(HOSTILE, HOSTILE)
def test_a_value_comes_out_as_it_went_in(argument: str, value: str) -> None:
    body = "<$1|${@}|{{a}}|{{#each a}}{{this}}{{/each}}>"
    got = template.expand(declaring(body, "a"), [argument], {"a": [value]})
    assert got == f"<{argument}|{argument}|{value}|{value}>"


@given(HOSTILE)
def test_a_template_is_expanded_or_refused_with_its_line(body: str) -> None:
    try:
        template.expand(declaring(body, "a"), ["1"], {"a": ["v"]})
    except InputError as error:
        assert re.match(r"t\.md:\d+: ", error.message)


@pytest.mark.parametrize("unit", ['"\\', '"', "a=", " ", "\\", '"a ', "${1:-", "${1", "9", "{{", "{{#if a}}"])
def test_long_arguments_take_no_time(unit: str) -> None:
    text = unit * 40_000
    assert template.expand(plain(f"${{{text}}}"), [], {}) is not None
    start = time.process_time()
    template.split_arguments(text, ["a"])
    template.expand(plain(text), [text], {})
    with contextlib.suppress(InputError):
        template.expand(declaring(text, "a"), [text], {"a": [text]})
    assert time.process_time() - start < 5
