"""Which contents to leave out so that a context fits: by a named policy, without a model, and nothing is lost.

Only results of tools and answers that are nothing but prose give way, each to a note of one line. What the user says
or runs, the system prompt, summaries, calls, what an edit has replaced already, and the newest part are never touched.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctxkit.budget import IMAGE, RESULT, TEXT, THINKING, measure_context, parts, weigh
from ctxkit.context import Context, as_three_roles, build_context
from ctxkit.entry import Entry, Message, entry_of, iso, text_of
from ctxkit.errors import StateError
from ctxkit.providers import turns
from ctxkit.session import Session

FLOOR = 50  # tokens; to save less is not worth a note
KEEP_RECENT = 20_000  # tokens of the end that stay as they are (Pi §7.1)
CACHED, WRITTEN = 0.1, 1.25  # prices of a cached and of a newly cached token, as parts of a plain one
LEFT_OUT = "[Left out to fit the window: "
FITS, FITTED, TOO_LARGE, SAVES_LITTLE = "unchanged", "fitted", "too-large", "saves-little"
SUPERSEDED, PLAIN, NOTABLE, PROSE = range(4)  # what a content is worth, the least first
REASONS = ("superseded by a later read", "an old result", "an old result that shows errors or tests", "old prose")
ARGUMENT = 60  # characters of the first argument of a call that a note shows
_READS = frozenset({"read", "Read"})
_PATHS = ("path", "file_path")
_RANGE = frozenset({"offset", "limit", *_PATHS})
_NOTABLE = re.compile(
    r"^[ \t]*(?:Traceback \(most recent call last\)|(?:fatal|error|failed|fail|panic)\b|[\w.]*(?:error|exception):)"
    r"|: (?:fatal )?error:"
    r"|\b\d+ (?:passed|failed|failures?|errors?)\b"
    r"|^test result: "
    r"|^Command (?:exited with code [1-9]|aborted|timed out)",
    re.IGNORECASE | re.MULTILINE,
)
_CUT = re.compile(r"\[(?:Showing (?:lines|last|first) |Line \d+ is |\.\.\. |[^\[\]\n]*\btruncated\b)")
_MORE = re.compile(r"\[\d+ more lines")


class Edit(NamedTuple):
    """One content left out: where and of what kind, what is put in its place, and the tokens before and after."""

    place: int  # among the messages
    entry_id: str
    kind: str  # toolResult or text
    tool: str
    note: str
    before: int
    after: int
    reason: str

    @property
    def saved(self) -> int:
        """The tokens that are saved."""
        return self.before - self.after


class Plan(NamedTuple):
    """What becomes of a context: whether it fits as it is, can be made to, or cannot, and by which edits.

    `before` and `after` are tokens; `sizes` are those of each message as counted. Where the status is TOO_LARGE or
    SAVES_LITTLE, the edits are all that could be done, and are not worth doing.
    """

    status: str
    target: int
    before: int
    after: int
    edits: list[Edit]
    sizes: list[int]

    @property
    def refused(self) -> bool:
        """Whether nothing is to be written."""
        return self.status in (TOO_LARGE, SAVES_LITTLE)

    @property
    def first_broken(self) -> int | None:
        """The place of the first message that is not what a provider may have cached."""
        return self.edits[0].place if self.edits else None

    @property
    def break_even(self) -> int | None:
        """After how many further requests the edits have paid for the cached prefix that they break."""
        if not self.edits:
            return None
        return break_even(sum(self.sizes[self.edits[0].place :]), sum(edit.saved for edit in self.edits))

    def largest(self) -> list[int]:
        """Return the places of the messages that the edits leave as they are, the largest first."""
        edited = {edit.place for edit in self.edits}
        return sorted(set(range(len(self.sizes))) - edited, key=lambda place: (-self.sizes[place], place))


class Candidate(NamedTuple):
    """A content that may give way."""

    place: int
    worth: int
    size: int
    what: str
    tool: str


# -- choosing --------------------------------------------------------------------------------------------------------


def plan(
    built: Context,
    target: int,
    count: Callable[[str], int],
    *,
    min_saving: int = 0,
    policy: str = "tool-results",
    keep_recent: int = KEEP_RECENT,
    protected: Collection[str] = (),
    untouched: Collection[str] = (),
) -> Plan:
    """Plan how a context is made to fit the target; `count` counts the tokens of a text.

    It fits if what `budget` measures is within the target. Else it has to be within by what a provider reported and by
    what is counted, whichever is more: of what was reported, no more is taken off than is counted, because the prompt
    and the tools of the agent are in it too; and after an edit only the count is left to go by.
    """
    messages = built.messages
    sizes = [sum(item.tokens for item in weigh([message], count)) for message in messages]
    by_value = dict(zip((id(message.value) for message in messages), sizes, strict=True))
    values = [message.value for message in messages]
    before = measure_context(values, since=built.settled, estimate=lambda value: by_value[id(value)]).tokens
    if before <= target:
        return Plan(FITS, target, before, before, [], sizes)
    before = max(before, sum(sizes))
    edits = choose(
        messages,
        sizes,
        before - target,
        count,
        policy=policy,
        keep_recent=keep_recent,
        protected=protected,
        untouched=untouched,
    )
    saved = sum(edit.saved for edit in edits)
    status = TOO_LARGE if before - saved > target else SAVES_LITTLE if saved < min_saving else FITTED
    return Plan(status, target, before, before - saved, edits, sizes)


def choose(
    messages: Sequence[Message],
    sizes: Sequence[int],
    excess: int,
    count: Callable[[str], int],
    *,
    policy: str = "tool-results",
    keep_recent: int = KEEP_RECENT,
    protected: Collection[str] = (),
    untouched: Collection[str] = (),
) -> list[Edit]:
    """Choose what to leave out until `excess` tokens are saved; all that may go if it does not suffice.

    `sizes` are the tokens of each message, `protected` names of tools, `untouched` ids of entries. Policies:
    `tool-results` takes superseded reads, then other results, then prose, the oldest first; `oldest` goes by age
    alone; `importance` takes superseded reads, plain results, results that show errors or tests, then prose, and of
    these the largest first, the older of two that are as large. The edits are in the order of the messages.
    """
    edits: list[Edit] = []
    saved = 0
    for candidate in _ordered(_candidates(messages, sizes, keep_recent, protected, untouched), policy):
        if saved >= excess:
            break
        place, worth, size, what, tool = candidate
        id = messages[place].entry_id or ""
        note = f"{LEFT_OUT}{what}, {size} tokens. To see it: ctx tree path SESSION {id} --json | tail -n 1]"
        edit = Edit(place, id, TEXT if worth == PROSE else RESULT, tool, note, size, count(note), REASONS[worth])
        if edit.saved >= FLOOR:
            edits.append(edit)
            saved += edit.saved
    return sorted(edits)


def break_even(tail: int, removed: int) -> int:
    """Return after how many further requests an edit has paid for the cache it breaks.

    `tail` are the tokens from the first edited message to the end, `removed` those that were saved.
    """
    if removed <= 0:
        return 0
    requests = 1 + ((tail - removed) * WRITTEN - tail * CACHED) / (removed * CACHED)
    return max(1, -int(-requests // 1))


def replaced(session: Session, leaf: str | None) -> set[str]:
    """Return the entries on the path to a leaf whose contents an edit has replaced already."""
    path = [id for id in session.path(leaf) if session.type_of(id) == "context_edit"]
    return {str(entry.value.get("targetId")) for entry in session.entries(path)}


def _candidates(
    messages: Sequence[Message],
    sizes: Sequence[int],
    keep_recent: int,
    protected: Collection[str],
    untouched: Collection[str],
) -> list[Candidate]:
    calls = _calls(messages)
    stale = _superseded(messages, calls, untouched)
    found = []
    for place in range(_recent(sizes, keep_recent)):
        message, size = messages[place], sizes[place]
        # an id that cannot be shown on one line, or not be written at all, is none that a note or an edit can name
        if size < FLOOR or not message.entry_id or not message.entry_id.isprintable() or message.entry_id in untouched:
            continue
        if message.role == "toolResult":
            tool = _name(message, calls.get(place))
            if tool not in protected:
                notable = message.value.get("isError") is True or _NOTABLE.search(_text(message)) is not None
                worth = SUPERSEDED if place in stale else NOTABLE if notable else PLAIN
                found.append(Candidate(place, worth, size, _described(message, calls.get(place), tool), tool))
        elif message.role == "assistant" and all(block.get("type") in (TEXT, THINKING) for block in message.blocks):
            found.append(Candidate(place, PROSE, size, "prose of the assistant", ""))
    return found


def _ordered(candidates: list[Candidate], policy: str) -> list[Candidate]:
    if policy == "oldest":
        return candidates
    if policy == "importance":
        return sorted(candidates, key=lambda one: (one.worth, -one.size, one.place))
    order = {SUPERSEDED: 0, PLAIN: 1, NOTABLE: 1, PROSE: 2}
    return sorted(candidates, key=lambda one: (order[one.worth], one.place))


def _recent(sizes: Sequence[int], keep_recent: int) -> int:
    """Return the index of the first message that has any of the newest tokens, which stay as they are."""
    kept = 0
    for index in range(len(sizes) - 1, -1, -1):
        if kept >= keep_recent:
            return index + 1
        kept += sizes[index]
    return 0


def _calls(messages: Sequence[Message]) -> dict[int, Mapping[str, Any]]:
    """Return the call of each result, by the place of the result; some agents give every first call the same id."""
    last: dict[str, Mapping[str, Any]] = {}
    found: dict[int, Mapping[str, Any]] = {}
    for place, message in enumerate(messages):
        for call in message.calls:
            last[str(call.get("id"))] = call
        if message.role == "toolResult" and (call_of := last.get(str(message.value.get("toolCallId")))) is not None:
            found[place] = call_of
    return found


# -- reads -----------------------------------------------------------------------------------------------------------


class Read(NamedTuple):
    """What a call reads: a file and its lines; `exact` if nothing else in the call could make that untrue."""

    path: str
    first: float
    last: float
    exact: bool


class Ranges:
    """Ranges of lines, none within another: by their first lines, and so by their last ones."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[tuple[float, float]] = []

    def cover(self, first: float, last: float) -> bool:
        """Say whether one of them has all these lines."""
        place = bisect_right(self._ranges, (first, float("inf"))) - 1
        return place >= 0 and self._ranges[place][1] >= last

    def add(self, first: float, last: float) -> None:
        """Add a range that none of them covers, in place of those that are within it."""
        place = end = bisect_left(self._ranges, (first, 0.0))
        while end < len(self._ranges) and self._ranges[end][1] <= last:
            end += 1
        self._ranges[place:end] = [(first, last)]


def _superseded(messages: Sequence[Message], calls: Mapping[int, Mapping[str, Any]], gone: Collection[str]) -> set[int]:
    """Return the reads that a later one covers: of the same file, as far or further, not failed, cut or replaced."""
    stale: set[int] = set()
    later: dict[str, Ranges] = {}
    for place in sorted(calls, reverse=True):
        read = _read(calls[place])
        if read is None:
            continue
        seen = later.setdefault(read.path, Ranges())
        if seen.cover(read.first, read.last):
            stale.add(place)
        elif read.exact and messages[place].entry_id not in gone and _is_whole(messages[place], read):
            seen.add(read.first, read.last)
    return stale


def _read(call: Mapping[str, Any]) -> Read | None:
    arguments = call.get("arguments")
    if call.get("name") not in _READS or not isinstance(arguments, dict):
        return None
    path = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), None)
    if path is None:
        return None
    offset, limit = _lines(arguments.get("offset"), 1.0), _lines(arguments.get("limit"), float("inf"))
    if offset is None or limit is None or not arguments.keys() <= _RANGE:
        return Read(path, 1.0, float("inf"), False)
    return Read(path, offset, offset + limit - 1, True)


def _lines(value: object, otherwise: float) -> float | None:
    """Return a number of lines, at least one as Pi has it; None for what is no number."""
    if value is None:
        return otherwise
    return max(1.0, value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_whole(message: Message, read: Read) -> bool:
    """Say whether a result has all that was asked for: a notice that looks like a cut counts as one."""
    details = message.value.get("details")
    cut = details.get("truncation") if isinstance(details, dict) else None
    if message.value.get("isError") is True or (isinstance(cut, dict) and cut.get("truncated", True)):
        return False
    text = _text(message)
    if text.startswith(LEFT_OUT) or _CUT.search(text) is not None:
        return False
    return read.last < float("inf") or _MORE.search(text) is None


# -- notes -----------------------------------------------------------------------------------------------------------


def _described(message: Message, call: Mapping[str, Any] | None, tool: str) -> str:
    """Say on one line what a result was: tool, first argument, images."""
    arguments = call.get("arguments") if call is not None else None
    values = arguments.values() if isinstance(arguments, dict) else ()
    first = _short(next((value for value in values if isinstance(value, str)), ""))
    images = sum(kind == IMAGE for kind, _ in parts(message.value))
    with_images = f" with {images} image{'s' * (images > 1)}" if images else ""
    return f"the result of {_short(tool)}({first}){with_images}"


def _name(message: Message, call: Mapping[str, Any] | None) -> str:
    name = message.value.get("toolName") or (call.get("name") if call is not None else None)
    return name if isinstance(name, str) else ""


def _short(text: str) -> str:
    """Shorten a text from outside to one line that cannot end a note."""
    text = " ".join(text[: 4 * ARGUMENT].split())[:ARGUMENT]
    return "".join(character if character.isprintable() else "?" for character in text).replace("]", ")")


def _text(message: Message) -> str:
    return "\n".join(text_of(block) for block in message.blocks)


# -- what is written -------------------------------------------------------------------------------------------------


def apply(messages: Sequence[Message], edits: Sequence[Edit]) -> list[Message]:
    """Return the messages with notes in place of what is left out."""
    made = list(messages)
    for edit in edits:
        value = {**made[edit.place].value, "content": [{"type": "text", "text": edit.note}]}
        made[edit.place] = made[edit.place]._replace(value=value)
    return made


def edit_entries(
    session: Session, leaf: str | None, edits: Sequence[Edit], *, new_id: Callable[[Collection[str]], str], now: int
) -> Iterator[Entry]:
    """Make the entries that leave out what was chosen, each below the one before it, the first below `leaf`.

    `new_id` gives an id that is none of those taken; `now` is in Unix milliseconds.
    """
    taken = set(session)
    for edit in edits:
        id = new_id(taken)
        taken.add(id)
        base = {"type": "context_edit", "id": id, "parentId": leaf, "timestamp": iso(now)}
        yield entry_of({**base, "targetId": edit.entry_id, "replacement": {"content": edit.note}})
        leaf = id


def check_edits(before: Sequence[Message], after: Sequence[Message], plan: Plan, count: Callable[[str], int]) -> None:
    """Raise StateError unless the edited messages are what was planned, hold together, fit and are smaller."""
    size = sum(item.tokens for item in weigh(after, count))
    for holds, what in (
        (list(after) == apply(before, plan.edits), "something else than the chosen contents would change"),
        (calls_and_results(before) == calls_and_results(after), "a call would lose its result"),
        (size <= plan.target and plan.after <= plan.target, "it would not fit"),
        (size < sum(plan.sizes), "it would not be smaller"),
    ):
        if not holds:
            raise StateError(f"the edits do not read back as they were planned: {what}", "see 'ctx session check'")


def check_session(
    built: Context, leaf: str | None, after: Session, made: Sequence[Entry], plan: Plan, count: Callable[[str], int]
) -> None:
    """Raise StateError unless a session with edits appended gives what was planned, and `leaf` what was built of it."""
    if after.leaf != made[-1].id or build_context(after, leaf) != built:
        raise StateError("the edits would change more than their own branch", "see 'ctx session check'")
    check_edits(built.messages, build_context(after, after.leaf).messages, plan, count)


def calls_and_results(messages: Sequence[Message]) -> list[tuple[str, bool]]:
    """Return each call that a provider would get, and whether it has its result."""
    known = list(as_three_roles(messages))
    return [(call.id, call.result is not None) for turn in turns(known) for call in turn.calls]
