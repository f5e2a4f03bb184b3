"""Pi's session files: read as Pi reads them, except where Pi is wrong, and written back byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import golden

from ctxkit.agents import pi
from ctxkit.entry import BLOCK, Entry, Finding
from ctxkit.errors import InputError
from ctxkit.session import Session

GOLDEN = Path(__file__).parent / "golden"
REAL = Path(__file__).parents[2] / "shared" / "sessions" / "pi"
SESSIONS = sorted(
    [*(GOLDEN / "sessions").glob("*.jsonl"), *(GOLDEN / "probe").glob("*.jsonl"), *GOLDEN.glob("pi160/*.jsonl")]
)
CASES = {case["file"]: case for case in golden("session_load.json")["cases"]}

HEADER = b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}\n'


def user(id: str | None, parent: str | None = None, text: str = "x", **more: Any) -> bytes:
    """Return a line with a message of the user as Pi writes it."""
    value = {"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:01.000Z"}
    if id is None:
        del value["id"], value["parentId"]
    message = {"role": "user", "content": text, "timestamp": 1767225601000}
    return json.dumps({**value, **more, "message": message}, separators=(",", ":")).encode() + b"\n"


def read(data: bytes) -> tuple[list[Entry], list[Finding]]:
    """Read a session, and hold the reader and the writer to their promise."""
    findings: list[Finding] = []
    entries = list(pi.read([data], findings.append, name="s.jsonl"))
    assert b"".join(pi.write(entries)) == data
    return entries, findings


def codes(findings: list[Finding]) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in findings]


# -- as Pi -----------------------------------------------------------------------------------------------------------

# Where ctx does not do as Pi 1.6.0 on opening: what is right, and why.
EXCEPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "bad-lines.jsonl": (
        {"leafId": "a1", "branch": ["u1", "a1"], "tree": [("u1", [("a1", [])])]},
        "§14.2 fault 10: `{}` is no entry, so it is neither a root nor the leaf",
    ),
    "non-object-lines.jsonl": ({"tree": [("u1", [("a1", [])])]}, "§14.2 fault 10: numbers and texts are no roots"),
    "non-object-last-line.jsonl": (
        {"leafId": "u1", "branch": ["u1"], "tree": [("u1", [])]},
        "§14.2 fault 10: a number is no entry",
    ),
    "entry-without-id.jsonl": (
        {"leafId": "u1", "branch": ["u1"], "tree": [("u1", [])]},
        "§14.2 fault 10: an entry without an id cannot be named, so it is no leaf",
    ),
    "orphans.jsonl": (
        {"tree": [("u1", [("a1", [("u3", [("a3", []), ("a4", [])])])]), ("u2", [("a2", [])])]},
        "§14.2 fault 18: of two entries with one id the later counts, and only it has the children",
    ),
    "bom.jsonl": (
        {"leafId": "u1", "branch": ["u1"], "tree": [("u1", [])], "sessionName": None},
        "formats §1: a byte order mark is read over and reported",
    ),
    "header-second.jsonl": (
        {"leafId": "u1", "branch": ["u1"], "tree": [("u1", [])], "sessionName": None},
        "S10: a header in the wrong place must not hide the session",
    ),
    "header-id-number.jsonl": (
        {"leafId": None, "branch": [], "tree": [], "sessionName": None},
        "S10: a broken header must not hide the session",
    ),
}
REFUSED = {
    "empty.jsonl": "an empty file, not a session",  # Pi makes a new session of it; ctx only looks
    "whitespace-only.jsonl": "no session: no JSON in it",
    "not-a-session.jsonl": "not a Pi session",
}

Tree = list[tuple[str, list[Any]]]


def recorded_tree(nodes: list[dict[str, Any]]) -> Tree:
    return [(node["id"], recorded_tree(node.get("children", []))) for node in nodes]


def tree(session: Session, ids: list[str], shown: dict[str, str]) -> Tree:
    return [(shown[id], tree(session, session.children(id), shown)) for id in ids]


@pytest.mark.parametrize("name", CASES)
def test_a_session_is_opened_as_pi_opens_it(name: str) -> None:
    data = (GOLDEN / "sessions" / name).read_bytes()
    case = CASES[name]
    if name in REFUSED:
        with pytest.raises(InputError, match=f"s.jsonl: {REFUSED[name]}"):
            pi.load(data, name="s.jsonl")
        return
    session = pi.load(data, name=name)
    right = {
        "leafId": case.get("leafId"),
        "branch": case.get("branch"),
        "tree": recorded_tree(case.get("tree", [])),
        "sessionName": case.get("sessionName"),
        **EXCEPTIONS.get(name, ({}, ""))[0],
    }
    # Pi gives entries of version 1 random ids; they were recorded as their positions.
    shown = {id: f"#{place}" if name.startswith("v1") else id for place, id in enumerate(session)}
    found = {
        "leafId": shown.get(session.leaf or ""),
        "branch": [shown[id] for id in session.path(session.leaf)],
        "tree": tree(session, session.roots(), shown),
        "sessionName": session.name,
    }
    assert found == right
    if name in EXCEPTIONS and "header" not in case:
        return
    assert session.header is not None
    assert {**case["header"], "version": 0} == {**session.header.value, "version": 0}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "migrated" in case])
def test_old_versions_are_read_as_pi_migrates_them(name: str) -> None:
    session = pi.load((GOLDEN / "sessions" / name).read_bytes(), name=name)
    shown = {id: f"#{place}" for place, id in enumerate(session)}
    right = [dict(entry) for entry in CASES[name]["migrated"]]
    if name == "v1-bad-line-shifts-index.jsonl":
        right[2]["firstKeptEntryId"] = "#1"  # §14.2 fault 11: the index counts lines, the torn one too
    found = []
    for entry in session.entries(session):
        row: dict[str, Any] = {
            "type": entry.type,
            "id": shown[entry.id or ""],
            "parentId": shown.get(entry.parent_id or ""),
        }
        if entry.type == "message":
            row["role"] = entry.message["role"]
        elif entry.type == "compaction":
            row["firstKeptEntryId"] = shown.get(entry.value.get("firstKeptEntryId", ""))
            row["hasFirstKeptEntryIndex"] = "firstKeptEntryIndex" in entry.value
        found.append(row)
    assert found == right


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_reading_and_writing_is_the_identity(path: Path) -> None:
    data = path.read_bytes()
    if path.name not in REFUSED:
        read(data)
        compare(data)


@pytest.mark.parametrize("name", ["before-compaction", "cut-history", "large-session", "linear-v3"])
def test_real_sessions_come_back_byte_for_byte(name: str) -> None:
    path = REAL / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("the real sessions are not beside this repository")
    data = path.read_bytes()
    _, findings = read(data)
    assert findings == []
    compare(data)
    for case in golden("fixtures.json")["cases"]:
        if case["file"] == path.name:
            entries = [entry for entry in pi.load(data).everything() if entry.id is not None]
            places = {entry.id: place for place, entry in enumerate(entries)}
            kept = [(n, places[e.value["firstKeptEntryId"]]) for n, e in enumerate(entries) if e.type == "compaction"]
            assert kept == [(compaction["at"], compaction["firstKept"]) for compaction in case["compactions"]]


# -- the index -------------------------------------------------------------------------------------------------------


def compare(data: bytes) -> None:
    """Hold the index to the reader: the same pieces, the same tree, and all that the reader finds."""
    try:
        entries, findings = read(data)
    except InputError as error:
        with pytest.raises(InputError) as raised:
            pi.load(data, name="s.jsonl")
        assert raised.value.message == error.message
        return
    whole = Session(entries, findings=findings)
    session = pi.load(data, name="s.jsonl")
    assert list(session) == list(whole)
    assert session.leaf == whole.leaf
    assert [session.parent(id) for id in session] == [whole.parent(id) for id in whole]
    assert list(session.entries(session)) == list(whole.entries(whole))
    assert b"".join(entry.raw for entry in session.everything()) == data
    assert session.findings == whole.findings


PIECES = st.sampled_from(
    [
        HEADER,
        HEADER.rstrip(),
        user("a"),
        user("b", "a"),
        user("c", "a").replace(b"\n", b"\r\n"),
        user("d", "nowhere", text='}{ "parentId": '),
        user("b", "c", text="\ud83d"),
        user("e", "e"),
        user("f", "b", parentId=5),
        user("", "a"),
        user(None),
        user("g", "f")[:70],
        json.dumps(json.loads(user("h", "a")), indent=1).encode() + b"\n",
        b'{"customType":"x","type":"custom","id":"i","parentId":"a"}\n',
        b'{"type":"custom","id":"i","parentId":"b","timestamp":"t"}\n',
        b'{"type":"leaf","id":"L","parentId":"a","timestamp":"t","targetId":"b"}\n',
        b'{"type":"ai-title","title":"x"}\n',
        b'{"type":"new_kind","id":"n","parentId":"a","timestamp":"t"}\n',
        b'{"type":"event","id":"n"}\n',
        b'{"type":"session","id":"z","parentId":null,"timestamp":"t"}\n',
        b'{"type":"me\xffsage","id":"q","parentId":null,"timestamp":"t"}\n',
        b"\xef\xbb\xbf",
        b"null\n",
        b"\n",
        b"\0\0",
        b"torn {\n",
        b"{\n",
        b"[",
        b"}\n",
    ]
)


@given(st.lists(PIECES, max_size=12).map(b"".join))
def test_the_index_and_the_reader_agree(data: bytes) -> None:
    compare(data)


@pytest.mark.parametrize("between", [b"", b" ", b"\r"])
def test_the_index_and_the_reader_agree_on_glued_lines(between: bytes) -> None:
    custom = b'{"customType":"x","type":"custom","id":"i","parentId":"a"}\n'
    for after in (user("b", "a"), custom):
        compare(HEADER + user("a")[:-1] + between + after + user("c", "a"))


@given(st.lists(PIECES, max_size=8).map(b"".join))
def test_the_index_and_the_reader_agree_on_old_sessions(data: bytes) -> None:
    compare(b'{"type":"session","id":"old"}\n' + user(None) + data)


@pytest.mark.parametrize("size", [BLOCK - 300, BLOCK, BLOCK + 5, 2 * BLOCK + 17, 3 * BLOCK])
@pytest.mark.parametrize("mark", ["", '","parentId":"', "}"], ids=["plain", "parent", "brace"])
def test_lines_longer_than_a_block(size: int, mark: str) -> None:
    for end in (b"\n", b"\r\n", b""):
        long = user("b", "a", text="y" * size)[:-1]
        if mark:
            place = size // 2
            long = long[:place] + mark.encode() + long[place:]
        compare(HEADER + user("a") + long + end + (user("c", "a") if end else b""))


def test_s13_a_tree_is_read_without_the_contents() -> None:
    """No block of the file is held for longer than it is looked at, and no line is read whole."""

    class Watched:
        """Bytes that say how much of them was asked for at once."""

        def __init__(self, data: bytes) -> None:
            self.data = data
            self.largest = 0

        def __len__(self) -> int:
            return len(self.data)

        def __getitem__(self, place: slice) -> bytes:
            found = self.data[place]
            self.largest = max(self.largest, len(found))
            return found

    data = Watched(HEADER + user("a") + user("b", "a", text="y" * 30_000_000) + user("c", "b"))
    session = pi.load(data)
    assert session.path(session.leaf) == ["a", "b", "c"]
    assert data.largest <= BLOCK
    assert len(session.entry("b").raw) > 30_000_000


def test_what_the_index_took_on_trust_is_found_when_it_is_read() -> None:
    torn = user("b", "a", text="y")[:-2] + b"\n"  # cut after an inner brace
    session = pi.load(HEADER + user("a") + torn + user("c", "b")[:-1] + HEADER)
    assert session.findings == []
    assert session.entry("b")[:5] == ("b", "a", "message", "", {})
    assert session.entry("c").id == "c"
    assert codes(session.findings) == [(3, "torn"), (4, "glued")]
    assert session.entry("c").raw == user("c", "b")[:-1] + HEADER


# -- old, new and foreign --------------------------------------------------------------------------------------------


def test_s08_a_session_of_version_1_is_a_straight_line_with_the_same_ids_on_every_read() -> None:
    data = b'{"type":"session","id":"old"}\n' + user(None) + b"\n" + user(None) + user(None)
    session = pi.load(data)
    assert session.path(session.leaf) == ["v1-000002", "v1-000004", "v1-000005"]
    assert list(pi.load(data)) == list(session)
    assert session.findings == []
    assert not session.appendable


def test_s08_an_old_session_forked_without_migration_is_read_as_version_1() -> None:
    """§14.2 fault 17: Pi copied old entries below a new header; what it appended later hangs where it could."""
    later = user("abcd0001").replace(b'"parentId":null,', b"")
    session = pi.load(HEADER + user(None) + user(None) + later)
    assert session.path(session.leaf) == ["v1-000002", "v1-000003", "abcd0001"]
    assert codes(session.findings) == [(1, "old-body")]


def test_ids_made_from_lines_are_unlike_all_others() -> None:
    data = b'{"type":"session","id":"old"}\n' + user(None)[:-1] + user(None) + user("v1-000002") + user("v1-000002-2")
    session = pi.load(data)
    assert list(session) == ["v1-000002-3", "v1-000002-4", "v1-000002", "v1-000002-2"]
    assert codes(session.findings) == [(2, "glued")]


@pytest.mark.parametrize(
    ("index", "kept", "finding"),
    [
        (0, None, False),  # the header: Pi keeps nothing
        (1, "v1-000003", True),  # line 2 is torn; the first kept entry that is left comes after it
        (2, "v1-000003", False),
        (3, "v1-000004", False),
        (99, None, False),
        ("2", None, False),
        (True, None, False),
    ],
)
def test_the_first_kept_index_counts_lines(index: Any, kept: str | None, finding: bool) -> None:
    compaction = {"type": "compaction", "timestamp": "t", "summary": "s", "firstKeptEntryIndex": index}
    data = (
        b'{"type":"session","id":"old"}\ntorn {\n' + user(None) + user(None) + json.dumps(compaction).encode() + b"\n"
    )
    entries, findings = read(data)
    assert entries[-1].value.get("firstKeptEntryId") == kept
    assert [code for _, code in codes(findings)] == ["not-json"] + ["kept-line"] * finding


def test_s09_a_session_of_version_1_is_written_as_it_was_and_as_version_3_only_when_asked() -> None:
    data = (GOLDEN / "sessions" / "v1.jsonl").read_bytes()
    entries, _ = read(data)
    new = b"".join(pi.write(pi.upgrade(entries)))
    session = pi.load(new)
    assert session.appendable
    assert session.header is not None and session.header.value["version"] == 3
    assert [entry.value for entry in session.entries(session)] == [e.value for e in entries if e.id is not None]
    assert session.findings == []


def test_version_2_keeps_its_ids_and_its_bytes() -> None:
    data = (GOLDEN / "sessions" / "v2.jsonl").read_bytes()
    session = pi.load(data)
    assert session.appendable
    assert session.entry("h1").message["role"] == "custom"
    new = b"".join(pi.write(pi.upgrade(session.everything())))
    assert new.split(b"\n")[1] == data.split(b"\n")[1]
    assert b'"role":"custom"' in new.split(b"\n")[2]


def test_version_4_is_known_and_refused() -> None:
    data = b'{"kind":"header","v":4,"id":"s","createdAt":1}\n{"kind":"entry","seq":1}\n'
    assert pi.sniff(data)
    for open_it in (lambda: list(pi.read([data], print, name="s.jsonl")), lambda: pi.load(data, name="s.jsonl")):
        with pytest.raises(InputError, match=r"s\.jsonl:1: a Pi session of version 4 .*reads versions 1 to 3"):
            open_it()


def test_s10_a_broken_header_does_not_hide_the_session() -> None:
    session = pi.load(HEADER[:30] + b"\n" + user("a") + user("b", "a"))
    assert session.path(session.leaf) == ["a", "b"]
    assert session.header is None
    assert codes(session.findings) == [(1, "no-header"), (1, "torn")]


def test_s11_types_that_nobody_knows_pass_without_a_word() -> None:
    new = b'{"type":"hologram","id":"h","parentId":"a","timestamp":"t","data":[1]}\n{"type":"title","pad":"   "}\n'
    entries, findings = read(HEADER + user("a") + new)
    assert findings == []
    assert [(entry.id, entry.parent_id) for entry in entries] == [(None, None), ("a", None), ("h", "a"), (None, None)]


def test_s02_a_tail_torn_in_a_character_costs_the_tail() -> None:
    session = pi.load(HEADER + user("a") + user("b", "a", text="é")[:-22].rstrip(b"\xa9"))
    assert session.path(session.leaf) == ["a"]
    assert codes(session.findings) == [(3, "no-final-newline"), (3, "torn")]


def test_s02_an_entry_appended_to_a_torn_line_is_not_lost() -> None:
    session = pi.load(HEADER + user("a") + user("b", "a")[:90] + user("c", "a") + user("d", "c"))
    assert session.path(session.leaf) == ["a", "c", "d"]
    assert codes(session.findings) == [(3, "torn")]


def test_two_headers_too_many_and_one_from_the_future() -> None:
    _, findings = read(HEADER.replace(b":3,", b":7,") + user("a") + HEADER)
    assert codes(findings) == [(1, "new-version"), (3, "second-header")]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"7\n", "not-an-object"),
        (b"{}\n", "no-type"),
        (b'{"type":7,"id":"x"}\n', "no-type"),
        (user(None), "no-id"),
        (b'{"type":"message","id":7,"parentId":null,"message":{}}\n', "bad-id"),
        (b'{"type":"message","id":"x","parentId":7,"message":{}}\n', "bad-parent"),
        (user("x")[:-1], "no-final-newline"),
    ],
)
def test_each_problem_is_found_with_its_line(line: bytes, code: str) -> None:
    _, findings = read(HEADER + user("a") + line)
    assert codes(findings) == [(3, code)]


NOT_PI = {
    "claude": b'{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{},"timestamp":"t"}\n',
    "claude-like": b'{"type":"message","uuid":"a","message":{"role":"user"},"timestamp":"t"}\n',
    "codex": b'{"timestamp":"t","type":"response_item","payload":{"type":"message"}}\n',
    "deepseek": b'{"type":"session","version":0,"createdAt":1}\n{"type":"event","seq":1,"time":2,"data":{}}\n',
    "droid": b'{"type":"session_start","id":"x","cwd":"/"}\n',
    "chat": b'[{"role":"user","content":"x"}]',
    "text": b"hello\nworld\n",
    "binary": bytes(range(256)) * 40,
}


@pytest.mark.parametrize("name", NOT_PI)
def test_what_is_not_of_pi_is_told_from_what_is(name: str) -> None:
    assert not pi.sniff(NOT_PI[name])
    with pytest.raises(InputError):
        pi.load(NOT_PI[name])
    with pytest.raises(InputError):
        list(pi.read([NOT_PI[name]], lambda _: None))


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_golden_session_is_seen_to_be_of_pi(path: Path) -> None:
    data = path.read_bytes()
    assert pi.sniff(data) == (path.name not in REFUSED)


def test_a_head_that_ends_anywhere_is_seen_to_be_of_pi() -> None:
    assert pi.sniff((HEADER + user("a"))[:150])
    assert pi.sniff((user("a") + user("b", "a"))[:200])
    assert not pi.sniff(HEADER[:40])


# -- writing ---------------------------------------------------------------------------------------------------------


def test_what_was_taken_out_leaves_whole_lines() -> None:
    entries, _ = read(HEADER + user("a")[:-1] + user("b", "a") + user("c", "b")[:-1])
    assert b"".join(pi.write([entries[0], entries[1], entries[3]])) == HEADER + user("a") + user("c", "b")


def test_what_was_changed_or_is_new_is_written_anew() -> None:
    entries, _ = read(HEADER + user("a") + user("b", "a")[:-1])
    changed = entries[1]._replace(value={"type": "message", "id": "a"}, raw=b"", start=-1)
    new = Entry("z", "b", "custom", "", {"type": "custom", "id": "z"})
    written = b"".join(pi.write([entries[0], changed, entries[2], new]))
    assert written == HEADER + b'{"type":"message","id":"a"}\n' + user("b", "a") + b'{"type":"custom","id":"z"}\n'
