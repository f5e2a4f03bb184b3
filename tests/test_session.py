"""The tree of a session: what it is for any links, where the talk stands, and the entries that change it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import golden

from ctxkit import session as trees
from ctxkit.agents import pi
from ctxkit.entry import Entry, entry_of
from ctxkit.errors import InputError, UsageError
from ctxkit.session import GOTO, Label, Session

GOLDEN = Path(__file__).parent / "golden"
NOW = 1767225600000

Link = tuple[str, str | None]


def entry(id: str | None, parent: str | None = None, kind: str = "message", line: int = 0, **more: Any) -> Entry:
    value = {"type": kind, "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", **more}
    return entry_of(value, line=line)


def tree(*links: Link, bridge: bool = False) -> Session:
    """Make a session of (id, parent) in file order; the first is in line 2."""
    return Session([entry(id, parent, line=n) for n, (id, parent) in enumerate(links, 2)], bridge=bridge)


def codes(session: Session) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in session.findings]


def new_ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"new{next(numbers)}"


# -- any links -------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from("abcdefgh")
LINKS = st.lists(st.tuples(NAMES, st.none() | NAMES | st.just("nowhere")), max_size=14)


def slow(links: list[Link], bridge: bool) -> dict[str, str | None]:
    """Say by obvious means what the parent of each entry is: the later of two counts, cycles begin at their first."""
    last = {id: place for place, (id, _) in enumerate(links)}
    parents: dict[str, str | None] = {}
    kept = [id for place, (id, _) in enumerate(links) if last[id] == place]
    for place, id in enumerate(kept):
        parent = links[last[id]][1]
        if parent is not None and parent not in last:
            parent = kept[place - 1] if bridge and place else None
        parents[id] = parent
    for id in kept:
        seen = []
        above: str | None = id
        while above is not None and above not in seen:
            seen.append(above)
            above = parents[above]
        if above == id:
            parents[id] = None
    return parents


def slow_path(parents: dict[str, str | None], id: str) -> list[str]:
    found = [id]
    while (above := parents[found[0]]) is not None:
        found.insert(0, above)
    return found


@given(LINKS, st.booleans())
def test_any_links_make_a_forest(links: list[Link], bridge: bool) -> None:
    session = tree(*links, bridge=bridge)
    parents = slow(links, bridge)
    assert sorted(session) == sorted(parents)
    assert {id: session.parent(id) for id in session} == parents
    for id in session:
        assert session.path(id) == slow_path(parents, id)
        assert session.depth(id) == len(session.path(id))
        assert sorted(session.children(id)) == sorted(child for child in parents if parents[child] == id)
    assert sorted(session.roots()) == sorted(id for id in parents if parents[id] is None)
    assert sorted(session.leaves()) == sorted(set(parents) - set(parents.values()))
    walked = [id for id, _ in session.walk()]
    assert sorted(walked) == sorted(parents)
    assert all(walked.index(parent) < walked.index(id) for id, parent in parents.items() if parent is not None)
    assert (len(session), session.leaf) == (len(parents), links[-1][0] if links else None)


@given(LINKS)
def test_where_two_paths_part(links: list[Link]) -> None:
    session = tree(*links)
    for a in session:
        for b in session:
            way, other = session.path(a), session.path(b)
            shared = [id for id in way if id in other]
            assert session.lca(a, b) == (shared[-1] if shared else None)
            assert session.abandoned(a, b) == way[len(shared) :]


@given(LINKS)
def test_every_fault_of_the_links_is_found(links: list[Link]) -> None:
    session = tree(*links)
    found = {code for _, code in codes(session)}
    ids = [id for id, _ in links]
    last = dict(links)
    assert ("duplicate-id" in found) == (len(set(ids)) < len(ids))
    assert ("missing-parent" in found) == (
        "nowhere" in last.values() or any(p and p not in last for p in last.values())
    )
    assert ("self-parent" in found) == any(id == parent for id, parent in last.items())
    cut = [id for id in session if session.parent(id) is None and last[id] in last]
    assert len(cut) == sum(code in ("self-parent", "cycle") for _, code in codes(session))


@pytest.mark.parametrize("case", golden("hazards.json")["cases"], ids=lambda case: case["name"])
def test_where_pi_never_ends_ctx_does(case: dict[str, Any]) -> None:
    data = b"".join(json.dumps(value).encode() + b"\n" for value in case["entries"])
    session = pi.load(data)
    right = {
        "self parent": (["u1"], [(2, "self-parent")]),
        "two-entry cycle": (["u1", "u2"], [(2, "cycle")]),
        "three-entry cycle below a good root": (["u1", "u2", "u3"], [(3, "cycle")]),
        "cycle not on the active path": (["r"], [(2, "cycle")]),
        "duplicate id that closes a loop": (["u2", "u1"], [(3, "cycle"), (4, "duplicate-id")]),
    }
    assert (session.path(session.leaf), codes(session)) == right[case["name"]]
    assert sorted(id for id, _ in session.walk()) == sorted(session)


@pytest.mark.parametrize("case", golden("branch_summary.json")["collectEntries"], ids=lambda case: case["file"])
def test_the_branch_that_is_left_is_that_of_pi(case: dict[str, Any]) -> None:
    session = pi.load((GOLDEN / "sessions" / case["file"]).read_bytes())
    known = [p for p in case["pairs"] if {p["oldLeafId"], p["targetId"]} <= {None, *session}]
    assert len(known) > len(case["pairs"]) // 2
    for pair in known:
        old, new = pair["oldLeafId"], pair["targetId"]
        assert session.abandoned(old, new) == pair["entries"]
        if old and new:
            assert session.lca(old, new) == pair["commonAncestorId"]


def test_s04_a_gap_makes_a_second_root_and_no_link_is_invented() -> None:
    links: list[Link] = [("a", None), ("b", "a"), ("c", "b"), ("d", "lost"), ("e", "d"), ("f", "e")]
    session = tree(*links)
    assert session.roots() == ["a", "d"]
    assert session.path("f") == ["d", "e", "f"]
    assert session.lca("c", "f") is None
    assert codes(session) == [(5, "missing-parent")]
    bridged = tree(*links, bridge=True)
    assert bridged.path("f") == ["a", "b", "c", "d", "e", "f"]
    assert codes(bridged) == [(5, "missing-parent")]


def test_s07_an_abandoned_branch_is_not_on_the_path() -> None:
    session = tree(("a", None), ("b", "a"), ("c", "a"), ("d", "c"))
    assert session.path(session.leaf) == ["a", "c", "d"]
    assert list(session.walk()) == [("a", 0), ("b", 1), ("c", 1), ("d", 1)]


def test_a_chain_of_a_million_entries_is_no_problem() -> None:
    ids = [f"{n:08x}" for n in range(1_000_000)]
    nodes = [(id, ids[n - 1] if n else None, "message", n, n) for n, id in enumerate(ids)]

    def fetch(node: trees.Node, stop: int) -> Entry:
        raise AssertionError("contents are not needed for the tree")

    session = Session.over(nodes, fetch, len(nodes))
    assert len(session.path(session.leaf)) == session.depth(ids[-1]) == 1_000_000
    assert session.lca(ids[-1], ids[500_000]) == ids[500_000]
    assert sum(1 for _ in session.walk()) == 1_000_000
    backwards = Session.over(reversed(nodes), fetch, len(nodes))
    assert (backwards.depth(ids[-1]), backwards.findings) == (1_000_000, [])


def test_a_cycle_of_a_hundred_thousand_entries_ends() -> None:
    size = 100_000
    session = tree(*((str(n), str((n + 1) % size)) for n in range(size)))
    assert session.roots() == ["0"]
    assert codes(session) == [(2, "cycle")]


# -- names -----------------------------------------------------------------------------------------------------------


def test_an_id_may_be_given_by_its_beginning() -> None:
    session = tree(("abcd1234", None), ("abce0000", "abcd1234"), ("ab", None), ("f0", None))
    assert session.find("abcd") == "abcd1234"
    assert session.find("ab") == "ab"
    assert session.find("f") == "f0"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("abc", "2 ids begin with 'abc'", "it could be abcd1234, abce0000"),
        ("abcd1243", "no entry 'abcd1243'", "did you mean abcd1234?"),
        ("xbcd1234", "no entry 'xbcd1234'", "did you mean abcd1234?"),
        ("zzz", "no entry 'zzz'", ""),
        ("", "no entry ''", ""),
    ],
)
def test_an_unknown_id_brings_close_ones(text: str, message: str, hint: str) -> None:
    with pytest.raises(InputError) as raised:
        tree(("abcd1234", None), ("abce0000", None)).find(text)
    assert (raised.value.message, raised.value.hint) == (message, hint)


# -- where the talk stands -------------------------------------------------------------------------------------------


def leaf_of(*entries: Entry) -> tuple[str | None, list[tuple[int, str]]]:
    session = Session([item._replace(line=line) for line, item in enumerate(entries, 1)])
    return session.leaf, codes(session)


TALK = (entry("u", None), entry("a", "u"))


def test_s06_what_cannot_be_named_is_no_leaf() -> None:
    title = Entry(None, None, "ai-title", "", {"type": "ai-title"})
    assert leaf_of(*TALK, title) == ("a", [])


def test_s06_what_another_process_left_beside_the_last_message_is_no_leaf() -> None:
    left = entry("x", "u", "custom", customType="session_exit")
    title = Entry(None, None, "ai-title", "", {"type": "ai-title"})
    assert leaf_of(*TALK, title, left) == ("a", [(4, "leaf-beside")])
    assert leaf_of(*TALK, left, entry("y", "x", "custom")) == ("a", [(4, "leaf-beside")])
    label = entry("l", "a", "label", targetId="a", label="here")
    assert leaf_of(*TALK, label, left) == ("l", [(4, "leaf-beside")])


def test_s06_what_hangs_below_the_talk_is_its_leaf_as_in_pi() -> None:
    assert leaf_of(*TALK, entry("x", "a", "custom")) == ("x", [])
    assert leaf_of(*TALK, entry("x", "a", "session_info", name="n")) == ("x", [])
    assert leaf_of(*TALK, entry("l", "u", "label", targetId="u", label="l")) == ("l", [])


def test_s06_a_leaf_record_says_where_the_talk_stands() -> None:
    assert leaf_of(*TALK, entry("L", "a", "leaf", targetId="u")) == ("u", [])
    assert leaf_of(*TALK, entry("L", "a", "leaf", entry_id="u")) == ("u", [])
    assert leaf_of(*TALK, entry("L", "a", "leaf", targetId=None)) == (None, [])
    assert leaf_of(*TALK, entry("L", "u", "leaf")) == ("L", [])
    assert leaf_of(*TALK, entry("L", "u", "leaf", targetId="gone")) == ("L", [(3, "leaf-target")])
    assert leaf_of(*TALK, entry("L", "u", "leaf", targetId=7)) == ("L", [(3, "leaf-target")])
    assert leaf_of(*TALK, entry("L", "u", "leaf", targetId=["u"])) == ("L", [(3, "leaf-target")])
    assert leaf_of(*TALK, entry("L", "a", "leaf", targetId="u"), entry("b", "u")) == ("b", [])


def test_nothing_has_no_leaf() -> None:
    assert leaf_of() == (None, [])
    assert tree().path(None) == []


# -- labels and names ------------------------------------------------------------------------------------------------


def test_the_last_label_counts_and_an_empty_one_clears() -> None:
    def label(id: str, target: str, **more: Any) -> Entry:
        return entry(id, "a", "label", targetId=target, **more)

    given_ = [label("1", "a", label="x"), label("2", "u", label="y"), label("3", "a", label="z"), label("4", "u")]
    session = Session([*TALK, *given_, label("5", "gone", label=7), entry("6", "u", "label", targetId=[])])
    assert session.labels == {"a": Label("z", "2026-01-01T00:00:00.000Z")}


@pytest.mark.parametrize(
    ("names", "right"),
    [
        ([], None),
        (["one", " two\r\n lines\n"], "two  lines"),
        (["one", ""], None),
        (["one", None], None),
        (["\n"], None),
    ],
)
def test_the_last_name_counts(names: list[str | None], right: str | None) -> None:
    session = Session([entry(str(n), None, "session_info", name=name) for n, name in enumerate(names)])
    assert session.name == right


# -- new entries -----------------------------------------------------------------------------------------------------


def written(data: bytes, *added: Entry) -> Session:
    return pi.load(data + b"".join(pi.write(added)))


BRANCHES = (GOLDEN / "sessions" / "branches.jsonl").read_bytes()


@pytest.mark.parametrize("target", ["u2", "a8", None])
def test_after_going_to_an_entry_the_talk_goes_on_from_there(target: str | None) -> None:
    moved = trees.goto_entry(pi.load(BRANCHES), target, new_id=new_ids(), now=NOW)
    session = written(BRANCHES, moved)
    assert (session.leaf, session.parent("new1")) == ("new1", target)
    assert moved.value["customType"] == GOTO
    assert moved.timestamp == "2026-01-01T00:00:00.000Z"
    assert session.findings == []


def test_going_beside_the_last_message_is_meant() -> None:
    data = (GOLDEN / "sessions" / "forward-parent.jsonl").read_bytes()
    session = written(data, trees.goto_entry(pi.load(data), "u2", new_id=new_ids(), now=NOW))
    assert (session.leaf, session.path("new1"), session.findings) == ("new1", ["u1", "u2", "new1"], [])


def test_labels_are_given_and_cleared() -> None:
    session = pi.load(BRANCHES)
    ids = new_ids()
    given_ = trees.label_entry(session, "u1", "start", new_id=ids, now=NOW)
    cleared = trees.label_entry(session, "a3", "", new_id=ids, now=NOW)
    assert written(BRANCHES, given_, cleared).labels == {"u1": Label("start", "2026-01-01T00:00:00.000Z")}
    assert given_.parent_id == session.leaf
    assert "label" not in cleared.value


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_message_is_appended_with_what_pi_expects(role: str) -> None:
    new = trees.message_entry(pi.load(BRANCHES), "a1", role, "hi", new_id=new_ids(), now=NOW)
    session = written(BRANCHES, new)
    assert session.path(session.leaf) == ["u1", "a1", "new1"]
    assert (new.message["role"], new.message["timestamp"]) == (role, NOW)
    if role == "assistant":
        assert (new.message["provider"], new.message["model"]) == ("acme", "m-1")
        assert new.message["usage"]["cost"]["total"] == 0
        assert new.message["stopReason"] == "stop"


def test_other_roles_cannot_be_appended() -> None:
    with pytest.raises(UsageError, match="no message of role 'toolResult'"):
        trees.message_entry(tree(), None, "toolResult", "x", new_id=new_ids(), now=NOW)


def test_an_id_that_is_taken_is_not_given_again() -> None:
    session = tree(("new1", None), ("new2", "new1"))
    assert trees.goto_entry(session, "new1", new_id=new_ids(), now=NOW).id == "new3"
    with pytest.raises(ValueError, match="taken"):
        trees.goto_entry(session, "new1", new_id=lambda: "new1", now=NOW)


def fork(session: Session, leaf: str) -> tuple[bytes, Session]:
    entries = trees.fork(session, leaf, session_id="S", source="/old.jsonl", new_id=new_ids(), now=NOW)
    data = b"".join(pi.write(entries))
    return data, pi.load(data)


def test_a_fork_has_the_path_with_its_bytes_and_its_header() -> None:
    session = pi.load(BRANCHES)
    data, new = fork(session, "a5")
    assert list(new) == session.path("a5")
    assert [new.entry(id).raw for id in new] == [session.entry(id).raw for id in new]
    assert new.header is not None
    assert new.header.value == {
        "type": "session",
        "version": 3,
        "id": "S",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": "/proj/demo",
        "parentSession": "/old.jsonl",
    }
    assert (new.leaf, new.findings, data[-1:]) == ("a5", [], b"\n")


def test_a_fork_links_around_labels_and_gives_them_again() -> None:
    """Pi §1.8; a first kept entry that was a label moves to the next that is kept."""
    when = "2026-01-01T00:00:09.000Z"
    session = Session(
        [
            entry("u", None),
            entry("l1", "u", "label", targetId="u", label="old"),
            entry("l2", "l1", "label", targetId="a", label="answer", timestamp=when),
            entry("a", "l2"),
            entry("k", "a", "compaction", summary="s", firstKeptEntryId="l1", tokensBefore=1),
            entry("l3", "k", "label", targetId="u", label="new", timestamp=when),
            entry("other", "u"),
            entry("l4", "other", "label", targetId="other", label="off the path"),
        ]
    )
    _, new = fork(session, "l3")
    assert new.path(new.leaf) == ["u", "a", "k", "new1", "new2"]
    assert new.entry("k").value["firstKeptEntryId"] == "a"
    assert new.labels == {"u": Label("new", when), "a": Label("answer", when)}
    assert [new.entry(id).timestamp for id in ("new1", "new2")] == [when, when]
    assert new.findings == []


def test_a_fork_of_a_gap_begins_at_the_gap() -> None:
    _, new = fork(tree(("a", None), ("b", "lost"), ("c", "b")), "c")
    assert (new.path(new.leaf), new.findings) == (["b", "c"], [])


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_a_fork_of_an_old_session_is_a_new_one(name: str) -> None:
    """Pi §14.2 fault 17: Pi's own forks of old files come out empty."""
    session = pi.load((GOLDEN / "sessions" / f"{name}.jsonl").read_bytes())
    assert session.leaf is not None
    _, new = fork(session, session.leaf)
    assert [e.value for e in new.entries(new)] == [e.value for e in session.entries(session.path(session.leaf))]
    assert (new.appendable, new.findings) == (True, [])


@given(LINKS)
def test_a_fork_of_anything_is_a_clean_line(links: list[Link]) -> None:
    session = tree(*links)
    for id in session:
        _, new = fork(session, id)
        assert new.path(new.leaf) == session.path(id)
        assert new.findings == []
