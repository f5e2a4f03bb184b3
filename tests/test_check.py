"""`ctx session check` finds each fault that is put in, and `repair` mends it without inventing anything."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import User

from ctxkit.agents import pi
from ctxkit.check import check
from ctxkit.errors import InputError
from ctxkit.repair import repair
from ctxkit.session import ASIDE

GOLDEN = Path(__file__).parent / "golden"
TALK = Path(__file__).parents[1] / "examples" / "talk.jsonl"
REAL = Path(__file__).parents[2] / "shared" / "sessions" / "pi"
SESSIONS = sorted(
    [*(GOLDEN / "sessions").glob("*.jsonl"), *(GOLDEN / "probe").glob("*.jsonl"), *GOLDEN.glob("pi160/*.jsonl")]
)
HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"}
TIME = "2026-01-01T00:00:00.000Z"


def entry(id: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "id": id, "parentId": parent, "timestamp": TIME, **fields}


def user(text: str = "hi") -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}


def calls(*ids: str) -> dict[str, Any]:
    blocks = [{"type": "toolCall", "id": id, "name": "read", "arguments": {}} for id in ids]
    return {"role": "assistant", "content": blocks, "timestamp": 1}


def result(id: str) -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": id, "toolName": "read", "content": [{"type": "text", "text": "ok"}]}


def chain(*messages: dict[str, Any]) -> bytes:
    """Write a session in which each message follows the one before."""
    lines = [HEADER]
    for number, message in enumerate(messages):
        parent = f"e{number - 1}" if number else None
        lines.append({**entry(f"e{number}", parent), **({"message": message} if "role" in message else message)})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def codes(data: bytes) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in check(pi.load(data))]


def mended(data: bytes) -> tuple[bytes, list[str]]:
    numbers = itertools.count()
    done = repair(pi.load(data), new_id=lambda: f"made{next(numbers):04d}", session_id=lambda: "sid", now=0)
    return b"".join(done.lines), [finding.code for finding in done.done]


CASES = {
    "whole": (chain(user(), calls("a", "b"), result("b"), result("a"), user()), []),
    "call without result": (chain(user(), calls("a"), user()), [(3, "call-without-result")]),
    "call at the end": (chain(user(), calls("a", "b"), result("a")), [(3, "call-without-result")]),
    "result without call": (chain(user(), result("a")), [(3, "result-without-call")]),
    "result twice": (chain(user(), calls("a"), result("a"), result("a")), [(5, "duplicate-result")]),
    "batch torn apart": (
        chain(user(), calls("a", "b"), result("a"), user(), result("b")),
        [(3, "call-without-result"), (6, "torn-batch")],
    ),
    "settings between call and result": (
        chain(user(), calls("a"), {"type": "model_change", "provider": "p", "modelId": "m"}, result("a")),
        [],
    ),
    "empty block": (chain(user("")), [(2, "empty-block")]),
    "kept id missing": (
        chain(user(), {"type": "compaction", "summary": "s", "firstKeptEntryId": "nope", "tokensBefore": 1}),
        [(3, "kept-missing")],
    ),
    "keeps nothing, named by its own id": (
        chain(user(), {"type": "compaction", "summary": "s", "firstKeptEntryId": "e1", "tokensBefore": 1}),
        [],
    ),
    "label of nothing": (chain(user(), {"type": "label", "targetId": "nope", "label": "x"}), [(3, "target-missing")]),
    "edit of nothing": (
        chain(user(), {"type": "context_edit", "targetId": "nope", "replacement": None}),
        [(3, "target-missing")],
    ),
    "torn tail": (chain(user()) + b'{"type":"message","id":"x', [(3, "no-final-newline"), (3, "torn")]),
    "self parent": (chain(user()).replace(b'"parentId": null', b'"parentId": "e0"'), [(2, "self-parent")]),
    "orphan": (chain(user()).replace(b'"parentId": null', b'"parentId": "gone"'), [(2, "missing-parent")]),
    "glued": (chain(user(), user()).replace(b"}\n{", b"}{", 1), [(1, "glued")]),
    "byte order mark": (b"\xef\xbb\xbf" + chain(user()), [(1, "bom")]),
    "lone surrogate": (chain(user("half \ud83d")), [(2, "lone-surrogate")]),
}


@pytest.mark.parametrize("name", CASES)
def test_each_fault_is_found_where_it_is(name: str) -> None:
    data, expected = CASES[name]
    assert codes(data) == expected


@pytest.mark.parametrize("name", CASES)
def test_each_fault_is_mended(name: str) -> None:
    data, _ = CASES[name]
    new, _ = mended(data)
    assert codes(new) == []
    assert mended(new) == (new, []), "what is whole is left alone, byte for byte"


def test_a_branch_without_the_result_does_not_spoil_the_other() -> None:
    lines = [HEADER, entry("u", None, message=user()), entry("a", "u", message=calls("c"))]
    lines += [entry("r", "a", message=result("c")), entry("x", "a", message=user("other"))]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert codes(data) == [(3, "call-without-result")]
    new, done = mended(data)
    tree = pi.load(new)
    assert done == ["call-without-result"]
    assert tree.path("r") == ["u", "a", "r"]
    assert tree.path("x") == ["u", "a", "made0000", "x"]


def test_an_orphan_result_is_set_aside_and_not_lost() -> None:
    data, _ = CASES["result without call"]
    new, _ = mended(data)
    value = json.loads(new.splitlines()[2])
    assert (value["type"], value["customType"]) == ("custom", ASIDE)
    assert value["data"]["message"] == result("a")


def test_duplicate_ids_both_stay() -> None:
    lines = [HEADER, entry("u", None, message=user("one")), entry("u", None, message=user("two"))]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    new, _ = mended(data)
    assert [json.loads(line).get("id") for line in new.splitlines()] == ["s", "made0000", "u"]


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_sessions_are_mended_and_their_paths_kept(path: Path) -> None:
    data = path.read_bytes()
    try:
        before = pi.load(data)
    except InputError:
        return
    new, _ = mended(data)
    assert codes(new) == []
    after = pi.load(new)
    for id in before:
        kept = [step for step in after.path(id) if step in before]
        assert kept == before.path(id)
    if codes(data) == [] and before.header is not None and before.header.value.get("version") == 3:
        assert mended(data)[1] == []


@pytest.mark.skipif(not REAL.is_dir(), reason="the real sessions are not beside this checkout")
def test_real_sessions_are_mended() -> None:
    for path in sorted(REAL.glob("*.jsonl")):
        new, _ = mended(path.read_bytes())
        assert codes(new) == []


DAMAGE = {
    "missing-parent": lambda line, ids: {**line, "parentId": "gone"},
    "self-parent": lambda line, ids: {**line, "parentId": line["id"]},
    "duplicate-id": lambda line, ids: {**line, "id": ids[0]},
    "empty-block": lambda line, ids: {**line, "message": user("")},
    "result-without-call": lambda line, ids: {**line, "message": result("nobody")},
    "target-missing": lambda line, ids: {**line, "type": "label", "targetId": "gone", "label": "x"},
    "kept-missing": lambda line, ids: {**line, "type": "compaction", "summary": "s", "firstKeptEntryId": "gone"},
}


@settings(max_examples=150)
@given(st.data())
def test_random_damage_is_found_and_mended(data: st.DataObject) -> None:
    """In a random tree, each fault that was put in is found, and the mended file has none."""
    size = data.draw(st.integers(2, 12))
    ids = [f"e{number}" for number in range(size)]
    lines: list[dict[str, Any]] = []
    for number, id in enumerate(ids):
        parent = ids[data.draw(st.integers(0, number - 1))] if number else None
        lines.append(entry(id, parent, message=user(f"text {number}")))
    victims = data.draw(st.lists(st.integers(1, size - 1), unique=True, max_size=3))
    put_in = {}
    for victim in victims:
        code = data.draw(st.sampled_from(sorted(DAMAGE)))
        lines[victim] = DAMAGE[code](lines[victim], ids)
        put_in[victim] = code
    raw = [json.dumps(HEADER).encode(), *(json.dumps(line).encode() for line in lines)]
    torn = data.draw(st.booleans())
    if torn:
        raw.insert(data.draw(st.integers(1, len(raw))), b'{"type":"message","id":"torn","mess')
    written = b"\n".join(raw) + b"\n"
    found = {code for _, code in codes(written)}
    hidden = {code for code in put_in.values() if list(put_in.values()).count("duplicate-id")}
    for code in put_in.values():
        if code not in hidden:  # what a duplicate id takes out of the tree has no link any more
            assert code in found
    if "duplicate-id" in put_in.values():
        assert "duplicate-id" in found
    assert not torn or "torn" in found
    new, _ = mended(written)
    assert codes(new) == []
    before, after = pi.load(written), pi.load(new)
    for id in before:
        assert [step for step in after.path(id) if step in before] == before.path(id)


def test_commands(user: User) -> None:
    path = str(GOLDEN / "sessions" / "orphans.jsonl")
    done = user.ctx("session", "check", path, str(TALK), "missing.jsonl")
    assert done.code == 3
    assert done.out.decode().split("\n")[0] == f"{path}:4: missing-parent: the parent ghost of u2 is not in the file"
    assert done.err == b"ctx session check: missing.jsonl: No such file or directory\n"
    assert user.ctx("session", "check", path).code == 1
    assert user.ctx("session", "check", str(TALK)) == (b"", b"", 0)
    first = json.loads(user.ctx("session", "check", path, "--json").out.splitlines()[0])
    assert (first["line"], first["code"], first["file"]) == (4, "missing-parent", path)


def test_repair_never_writes_to_its_input(user: User) -> None:
    source = user.file("s.jsonl", CASES["torn tail"][0])
    done = user.ctx("session", "repair", "s.jsonl", "-o", "new.jsonl")
    assert (done.code, done.out) == (0, b"")
    assert b"s.jsonl:3: dropped: " in done.err
    assert user.ctx("session", "check", "new.jsonl").code == 0
    assert source.read_bytes() == CASES["torn tail"][0]
    assert user.ctx("session", "repair", "s.jsonl", "-o", "./s.jsonl").code == 2
    assert source.read_bytes() == CASES["torn tail"][0]


def test_repair_of_a_whole_session_is_a_copy(user: User) -> None:
    done = user.ctx("session", "repair", str(TALK), "-o", "copy.jsonl")
    assert done == (b"", b"", 0)
    assert (user.work / "copy.jsonl").read_bytes() == TALK.read_bytes()


def test_version_1_becomes_version_3_with_the_ids_that_were_shown(user: User) -> None:
    path = str(GOLDEN / "sessions" / "v1.jsonl")
    shown = user.ctx("tree", "path", path, "-q").out
    assert user.ctx("session", "repair", path, "-o", "v3.jsonl", "-q").code == 0
    assert user.ctx("tree", "path", "v3.jsonl").out == shown
    assert user.ctx("tree", "append", "v3.jsonl", "--text", "on", "--in-place").code == 0


def test_info(user: User) -> None:
    facts = json.loads(user.ctx("session", "info", str(TALK), "--json").out)
    assert (facts["turns"], facts["entries"], facts["leaf"], facts["tokens"]) == (3, 12, "c0000003", 1300)
    assert facts["filesChanged"] == ["src/cart.py"]
    assert facts["types"] == {"label": 1, "message": 11}
    text = user.ctx("session", "info", str(TALK), str(TALK)).out.decode()
    assert text.count("model        anthropic/claude-opus-5\n") == 2
