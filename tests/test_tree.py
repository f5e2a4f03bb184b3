"""`ctx tree`: what a user types and what he gets, as real processes on real files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from shell import User

from ctxkit import treeview
from ctxkit.agents import pi
from ctxkit.cli.commands import COMMANDS

GOLDEN = Path(__file__).parent / "golden"
SESSIONS = sorted(
    [*(GOLDEN / "sessions").glob("*.jsonl"), *(GOLDEN / "probe").glob("*.jsonl"), *GOLDEN.glob("pi160/*.jsonl")]
)
BRANCHES = str(GOLDEN / "sessions" / "branches.jsonl")


def lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def golden(name: str) -> str:
    (found,) = [str(path) for path in SESSIONS if path.stem == name]
    return found


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_golden_session_through_every_reading_command(user: User, path: Path) -> None:
    """Right exit code, no traceback, no hang, and all commands agree on leaf and path."""
    before = path.read_bytes()
    try:
        session = pi.load(before, name=str(path))
    except Exception:
        for words in (["show"], ["path"], ["branches"], ["lca", "-q"]):
            done = user.ctx("tree", words[0], str(path), *(["a", "b"] if words[0] == "lca" else []))
            assert (done.code, done.out) == (3, b"")
            assert done.err.startswith(f"ctx tree {words[0]}: {path}: ".encode())
        return
    shown = user.ctx("tree", "show", str(path), "--filter", "all", "-q")
    rows = lines(user.ctx("tree", "show", str(path), "--filter", "all", "--format", "json", "-q").out)
    assert (shown.code, shown.err) == (0, b"")
    assert [row["id"] for row in rows] == [id for id, _ in session.walk()]
    assert [row["id"] for row in rows if row["leaf"]] == ([] if session.leaf is None else [session.leaf])
    assert user.ctx("tree", "path", str(path), "-q").out.decode().split() == session.path(session.leaf)
    ends = lines(user.ctx("tree", "branches", str(path), "--json", "-q").out)
    assert [end["id"] for end in ends] == session.leaves()
    assert path.read_bytes() == before


def test_findings_are_said_on_stderr_and_silenced_by_q(user: User) -> None:
    done = user.ctx("tree", "show", golden("orphans"))
    assert b"orphans.jsonl:4: the parent ghost of u2 is not in the file\n" in done.err
    assert user.ctx("tree", "show", golden("orphans"), "-q").err == b""


def test_lca_of_branches(user: User) -> None:
    assert user.ctx("tree", "lca", BRANCHES, "a8", "a3").out == b"a1\n"
    assert user.ctx("tree", "lca", BRANCHES, "a8", "a8").out == b"a8\n"
    (answer,) = lines(user.ctx("tree", "lca", BRANCHES, "a3", "a8", "--json").out)
    assert answer == {
        "schema": 1,
        "lca": "a1",
        "a": "a3",
        "b": "a8",
        "pathA": ["u1", "a1", "u2", "a2", "r2a", "r2b", "a3"],
        "pathB": ["u1", "a1", "bs1", "u4", "a8"],
        "depth": 2,
        "abandoned": ["u2", "a2", "r2a", "r2b", "a3"],
    }


def test_lca_across_islands_is_no(user: User) -> None:
    done = user.ctx("tree", "lca", golden("orphans"), "a1", "a2", "-q")
    assert (done.code, done.out, done.err) == (1, b"", b"")
    (answer,) = lines(user.ctx("tree", "lca", golden("orphans"), "a1", "a2", "--json", "-q").out)
    assert (answer["lca"], answer["depth"]) == (None, None)
    bridged = user.ctx("tree", "lca", golden("orphans"), "a1", "a2", "-q", "--bridge")
    assert (bridged.code, bridged.out) == (0, b"a1\n")


def test_unknown_and_ambiguous_ids(user: User) -> None:
    done = user.ctx("tree", "path", BRANCHES, "a88")
    assert (done.code, done.out) == (3, b"")
    assert done.err == f"ctx tree path: {BRANCHES}: no entry 'a88'\nhint: did you mean a8?\n".encode()
    done = user.ctx("tree", "path", BRANCHES, "r2")
    assert done.code == 3
    assert b"2 ids begin with 'r2'" in done.err
    assert user.ctx("tree", "path", BRANCHES, "bs").out.endswith(b"\nbs1\n")


def test_abandoned_gives_the_lines_as_they_are(user: User) -> None:
    done = user.ctx("tree", "abandoned", BRANCHES, "--from", "a3", "--to", "a8")
    whole = Path(BRANCHES).read_bytes().splitlines(keepends=True)
    ids = ("u2", "a2", "r2a", "r2b", "a3")
    assert done.out.splitlines(keepends=True) == [line for line in whole if json.loads(line).get("id") in ids]
    assert user.ctx("tree", "abandoned", BRANCHES, "--from", "a1", "--to", "a8").out == b""


def test_path_as_json_reads_version_1_as_version_3(user: User) -> None:
    entries = lines(user.ctx("tree", "path", golden("v1"), "--json").out)
    assert [entry["parentId"] for entry in entries] == [None, *(entry["id"] for entry in entries[:-1])]


@pytest.mark.parametrize("where", ["print", "in place"])
def test_goto_append_and_label(user: User, where: str) -> None:
    path = user.file("s.jsonl", Path(BRANCHES).read_bytes())
    before = path.read_bytes()
    in_place = ["--in-place"] if where == "in place" else []

    def add(*words: str, **settings: Any) -> Any:
        held = path.read_bytes()
        done = user.ctx("tree", *words, *in_place, **settings)
        assert (done.code, done.err) == (0, b"")
        if in_place:
            assert done.out == b""
        else:
            assert path.read_bytes() == held
            path.write_bytes(held + done.out)
        assert path.read_bytes().startswith(held)
        return json.loads(path.read_bytes().splitlines()[-1])

    jump = add("goto", "s.jsonl", "a3")
    assert (jump["parentId"], jump["type"]) == ("a3", "custom")
    message = add("append", "s.jsonl", "--role", "user", "--text", "-", input="line 1\nzwei é\n".encode())
    assert message["message"]["content"] == [{"type": "text", "text": "line 1\nzwei é\n"}]
    assert message["parentId"] == jump["id"]
    note = add("label", "s.jsonl", "a3", "here")
    assert user.ctx("tree", "path", "s.jsonl").out.decode().split()[-4:] == [
        "a3",
        jump["id"],
        message["id"],
        note["id"],
    ]
    assert b"a3 assistant: [here] A is done" in user.ctx("tree", "show", "s.jsonl").out
    add("label", "s.jsonl", "a3")
    assert b"[here]" not in user.ctx("tree", "show", "s.jsonl").out
    assert path.read_bytes().startswith(before)


def test_append_completes_a_torn_last_line(user: User) -> None:
    path = user.file("s.jsonl", Path(BRANCHES).read_bytes() + b'{"type":"message","id":"torn')
    before = path.read_bytes()
    assert user.ctx("tree", "append", "s.jsonl", "--text", "hi", "--in-place", "-q").code == 0
    after = path.read_bytes()
    assert after.startswith(before + b"\n{")
    assert after.endswith(b"}\n")
    assert user.ctx("tree", "path", "s.jsonl", "-q").out.decode().split()[-2] == "a8"


def test_append_to_version_1_or_to_standard_input_is_refused(user: User) -> None:
    path = user.file("v1.jsonl", Path(golden("v1")).read_bytes())
    done = user.ctx("tree", "append", "v1.jsonl", "--text", "hi", "--in-place")
    assert done.code == 5
    assert path.read_bytes() == Path(golden("v1")).read_bytes()
    done = user.ctx("tree", "append", "-", "--text", "hi", "--in-place", input=Path(BRANCHES).read_bytes())
    assert (done.code, done.out) == (2, b"")


def test_twenty_writers_lose_nothing(user: User) -> None:
    path = user.file("s.jsonl", Path(BRANCHES).read_bytes())
    started = [user.start_ctx("tree", "append", "s.jsonl", "--text", f"n{n}", "--in-place") for n in range(20)]
    assert [process.wait(60) for process in started] == [0] * 20
    messages = [entry["message"].get("content") for entry in lines(path.read_bytes()) if entry["type"] == "message"]
    for number in range(20):
        assert messages.count([{"type": "text", "text": f"n{number}"}]) == 1
    ids = user.ctx("tree", "path", "s.jsonl").out.decode().split()
    assert len(ids) == 5 + 20, "each continues from the one before"


def test_fork(user: User) -> None:
    path = user.file("s.jsonl", Path(BRANCHES).read_bytes())
    before = path.read_bytes()
    assert user.ctx("tree", "fork", "s.jsonl", "a3", "-o", "new.jsonl").code == 0
    header, *entries = lines((user.work / "new.jsonl").read_bytes())
    assert header["parentSession"] == str(path)
    assert [entry["id"] for entry in entries[:-1]] == ["u1", "a1", "u2", "a2", "r2a", "r2b", "a3"]
    assert (entries[-1]["type"], entries[-1]["targetId"], entries[-1]["label"]) == ("label", "a3", "plan-a")
    done = user.ctx("tree", "fork", "s.jsonl", "a3", "-o", "./s.jsonl")
    assert (done.code, path.read_bytes()) == (2, before)
    assert user.ctx("tree", "fork", "s.jsonl", "a3").out.count(b"\n") == 9


def test_show_is_cut_to_the_terminal_and_draws_branches(user: User) -> None:
    done = user.ctx("tree", "show", BRANCHES)
    text = done.out.decode()
    assert text.split("\n")[:4] == [
        "  u1 user: start",
        "  a1 assistant: hello",
        "  ├ u2 user: try plan A",
        "  │ a2 assistant: -> read(plan/a.md), write(out/a.md)",
    ]
    assert "* " in text
    assert max(map(len, text.split("\n"))) <= 80


def test_mermaid_and_dot_render_in_their_tools(user: User) -> None:
    hostile = json.loads(Path(BRANCHES).read_bytes().splitlines()[1])
    hostile["message"]["content"] = [{"type": "text", "text": 'a "quoted" \\ [x](y) %% --> end; {b} <i> #35; \u202e'}]
    path = user.file(
        "s.jsonl", Path(BRANCHES).read_bytes().splitlines()[0] + b"\n" + json.dumps(hostile).encode() + b"\n"
    )
    dot = user.ctx("tree", "show", path.name, "--format", "dot")
    assert (dot.code, dot.out.count(b"\n")) == (0, 4)
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=dot.out, check=True, capture_output=True)
    mermaid = user.ctx("tree", "show", BRANCHES, "--format", "mermaid").out.decode()
    assert mermaid.count("-->") == 17
    label = user.ctx("tree", "show", path.name, "--format", "mermaid").out.decode().split('"')[1]
    assert set(label) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:/-_()#;…")


@pytest.mark.parametrize(
    ("text", "columns", "cut"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("漢字漢", 5, "漢字…"),
        ("漢字漢", 4, "漢…"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
        ("", 0, ""),
    ],
)
def test_cut_to_columns(text: str, columns: int, cut: str) -> None:
    assert treeview.cut_to(text, columns) == cut


def test_a_chain_that_forks_a_thousand_times_stays_readable(user: User) -> None:
    header = '{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}'
    entry = '{"type":"custom_message","id":"%s","parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","content":"x"}'
    made = [header, entry % ("n0", "null")]
    for number in range(1, 1000):
        made += [entry % (f"n{number}", f'"n{number - 1}"'), entry % (f"m{number}", f'"n{number - 1}"')]
    user.file("deep.jsonl", "\n".join(made).encode() + b"\n")
    done = user.ctx("tree", "show", "deep.jsonl")
    assert (done.code, done.out.count(b"\n")) == (0, 1999)
    assert max(len(line) for line in done.out.decode().split("\n")) <= 80
    assert "… " in done.out.decode()


def test_the_group_has_help(user: User) -> None:
    done = user.ctx("tree", "--help")
    assert done.code == 0
    for name in COMMANDS:
        if name.startswith("tree "):
            assert name.removeprefix("tree ").encode() in done.out
