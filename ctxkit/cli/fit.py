"""ctx fit: make it fit, by a policy you name."""

from __future__ import annotations

from ctxkit import budget, process, providers
from ctxkit.agents import pi
from ctxkit.cli.context import REQUESTS
from ctxkit.context import Context, as_three_roles, build_context
from ctxkit.entry import Entry, Message, entry_of
from ctxkit.errors import UsageError
from ctxkit.files import replace, same_file
from ctxkit.fit import Edit, break_even, choose
from ctxkit.models import find_model
from ctxkit.sessionfile import SessionFile, open_session, warn_of_findings
from ctxkit.vocabularies import load_encoding, load_model_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any, Literal

    from ctxkit.cli.options import (
        Annotated,
        InPlace,
        Json,
        Leaf,
        ModelName,
        Option,
        Quiet,
        Reserve,
        Result,
        SessionName,
        WindowSize,
    )

EXCLUSIVE = (("window", "model"), ("in_place", "output", "format"))
NO = 1  # it cannot be made to fit
LARGEST = 5  # entries that are named when it cannot


def command(
    session: SessionName,
    window: WindowSize = None,
    model: ModelName = None,
    reserve: Reserve = 16384,
    policy: Annotated[
        Literal["tool-results", "oldest", "importance"],
        Option("--policy", metavar="POLICY", help="What gives way first."),
    ] = "tool-results",
    keep_recent: Annotated[
        int, Option("--keep-recent", metavar="N", min=0, help="Leave the newest N tokens as they are.")
    ] = 20000,
    protect: Annotated[
        list[str] | None,
        Option("--protect", metavar="TOOL", show_default=False, help="Leave the results of TOOL as they are."),
    ] = None,
    pin: Annotated[
        list[str] | None, Option("--pin", metavar="ID", show_default=False, help="Leave the entry ID as it is.")
    ] = None,
    min_saving: Annotated[
        int, Option("--min-saving", metavar="N", min=0, help="Change nothing for less than N tokens.")
    ] = 0,
    leaf: Leaf = None,
    in_place: InPlace = False,
    output: Annotated[
        str | None, Option("--output", "-o", metavar="NEW", show_default=False, help="Write the session to NEW.")
    ] = None,
    format: Annotated[
        Literal["pi", "openai", "responses", "anthropic"] | None,
        Option("--format", metavar="FORMAT", show_default=False, help="Print the messages, not the session."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Make it fit, by a policy you name.

    Leaves out the least valuable contents until the context fits the window less the reserve: results of tools, and
    answers that are nothing but prose. Each gives way to a note of one line with its entry and size. What the user
    says, the system prompt, summaries, calls, pinned entries and the newest part are never touched.

    The policy 'tool-results' takes reads that a later one of the same file covers, then other results, then prose,
    the oldest first; 'oldest' goes by age alone; 'importance' takes the same kinds in order, results that show errors
    or tests after others, and the largest first.

    This is written as context_edit entries after the session, which is printed, or appended to with --in-place: what
    is left out stays in the file, and the leaf before them still has it. What was done is said on standard error;
    with --json it is printed instead of the session. Exit status is 1, and nothing is written, if it cannot be made
    to fit or saves less than --min-saving.
    """
    if window is None and model is None:
        raise UsageError("how large is the window?", "give --window or --model")
    if output is not None and session != "-" and same_file(session, output):
        raise UsageError(f"{output} is the session itself")
    limit = window if window is not None else find_model(model or "").window
    counting = load_encoding() if model is None else load_model_encoding(model)
    file = open_session(session)
    warn_of_findings(file)
    at = file.leaf(leaf)
    built = build_context(file.session, at)
    fit = Fit(built, counting.count)
    target = max(0, limit - reserve)
    wanted = {
        "policy": policy,
        "keep_recent": keep_recent,
        "protected": protect or (),
        "pinned": {file.find(id) for id in pin or ()},
    }
    edits = fit.choose(target, wanted)
    after = fit.after(edits)
    failed = after > target or (bool(edits) and fit.before - after < min_saving)
    status = "failed" if failed else "fitted" if edits else "unchanged"
    report = {
        "schema": 1,
        "status": status,
        "target": target,
        "tokensBefore": fit.before,
        "tokensAfter": fit.before if failed else after,
        **fit.cache(edits),
        "edits": [] if failed else [_edit_as_json(edit) for edit in edits],
        "largest": fit.largest(edits) if failed else [],
    }
    if not quiet:
        _say(report, edits, failed=failed)
    made = [] if failed else _entries(file, at, edits)
    if made:
        _check_again(file, made, counting.count, fit.counted(edits))
    if not failed:
        _write(file, made, in_place=in_place, output=output, printed=format is None and not json)
    code = NO if failed else 0
    if json:
        return _values(report, code)
    if format is not None and not failed:
        return _values(_messages(fit.edited(edits), format), code)
    return code


class Fit:
    """A context weighed, and what becomes of it."""

    __slots__ = ("_count", "_messages", "_sizes", "before")

    def __init__(self, built: Context, count: Callable[[str], int]) -> None:
        self._messages = built.messages
        self._count = count
        self._sizes = [sum(item.tokens for item in budget.weigh([message], count)) for message in built.messages]
        sizes = dict(zip(map(id, self._values()), self._sizes, strict=True))
        size = budget.measure_context(self._values(), since=built.settled, estimate=lambda value: sizes[id(value)])
        self.before = size.tokens

    def choose(self, target: int, wanted: dict[str, Any]) -> list[Edit]:
        """Choose what to leave out so that the target is met; nothing if it is met already."""
        excess = self.before - target
        return choose(self._messages, self._sizes, excess, self._count, **wanted) if excess > 0 else []

    def after(self, edits: Sequence[Edit]) -> int:
        """Return the tokens that are left: of what a provider reported, no more is taken off than is counted."""
        return self.before - sum(edit.before - edit.after for edit in edits)

    def counted(self, edits: Sequence[Edit]) -> int:
        """Return the tokens that are left as they are counted, without the correction by what was reported."""
        return sum(self._sizes) - sum(edit.before - edit.after for edit in edits)

    def edited(self, edits: Sequence[Edit]) -> list[Message]:
        """Return the messages with notes in place of what is left out."""
        messages = list(self._messages)
        for edit in edits:
            content = [{"type": "text", "text": edit.note}]
            messages[edit.place] = messages[edit.place]._replace(
                value={**messages[edit.place].value, "content": content}
            )
        return messages

    def cache(self, edits: Sequence[Edit]) -> dict[str, Any]:
        """Return where the cached prefix breaks, and after how many requests that has paid."""
        if not edits:
            return {"firstBroken": None, "breakEven": None}
        first = edits[0]
        tail = sum(self._sizes[first.place :])
        removed = sum(edit.before - edit.after for edit in edits)
        broken = {"message": first.place, "entryId": first.entry_id}
        return {"firstBroken": broken, "breakEven": break_even(tail, removed)}

    def largest(self, edits: Sequence[Edit]) -> list[dict[str, Any]]:
        """Return the largest contents that would be left, and so stand in the way."""
        gone = {edit.place for edit in edits}
        left = [place for place in range(len(self._sizes)) if place not in gone]
        left.sort(key=lambda place: -self._sizes[place])
        return [
            {
                "entryId": self._messages[place].entry_id,
                "role": self._messages[place].role,
                "tokens": self._sizes[place],
            }
            for place in left[:LARGEST]
        ]

    def _values(self) -> list[dict[str, Any]]:
        return [message.value for message in self._messages]


def _entries(file: SessionFile, leaf: str | None, edits: Sequence[Edit]) -> list[Entry]:
    now = process.timestamp(process.now())
    made: list[Entry] = []
    taken = set(file.session)
    for edit in edits:
        new = process.new_entry_id(taken)
        taken.add(new)
        base = {"type": "context_edit", "id": new, "parentId": leaf, "timestamp": now}
        made.append(entry_of({**base, "targetId": edit.entry_id, "replacement": {"content": edit.note}}))
        leaf = new
    return made


def _check_again(file: SessionFile, made: list[Entry], count: Callable[[str], int], expected: int) -> None:
    """Read back what is about to be written: it has the size that was planned, and the calls and results of before."""
    session = pi.load(file.appended(made))
    before = build_context(file.session, made[0].parent_id).messages
    after = build_context(session, session.leaf).messages
    size = sum(item.tokens for item in budget.weigh(after, count))
    pairs = [
        [(call.id, call.result is None) for turn in providers.turns(list(as_three_roles(side))) for call in turn.calls]
        for side in (before, after)
    ]
    if size != expected or pairs[0] != pairs[1]:
        raise AssertionError("the edits do not read back as they were planned")


def _write(file: SessionFile, made: list[Entry], *, in_place: bool, output: str | None, printed: bool) -> None:
    if in_place:
        if made:
            file.append(*made)
    elif output is not None:
        replace(output, [file.appended(made) if made else file.data[0 : len(file.data)]])
    elif printed:
        process.write(file.appended(made) if made else file.data[0 : len(file.data)])


def _say(report: dict[str, Any], edits: Sequence[Edit], *, failed: bool) -> None:
    before, target = report["tokensBefore"], report["target"]
    if failed:
        process.say(f"{before} tokens cannot be made to fit {target}: nothing was written")
        for entry in report["largest"]:
            process.say(f"  {entry['entryId']} {entry['role']}: {entry['tokens']} tokens stay")
    elif not edits:
        process.say(f"unchanged: {before} tokens fit {target}")
    else:
        process.say(f"{before} -> {report['tokensAfter']} tokens, within {target}")
        for edit in edits:
            process.say(f"  {edit.entry_id}: {edit.before} -> {edit.after} tokens, {edit.reason}")
        broken = report["firstBroken"]
        process.say(
            f"the cached prefix breaks at message {broken['message']} ({broken['entryId']});"
            f" this has paid after {report['breakEven']} requests"
        )


def _messages(messages: list[Message], format: str) -> dict[str, Any]:
    if format == "pi":
        return {"schema": 1, "messages": [message.value for message in messages]}
    return REQUESTS[format](list(as_three_roles(messages)))


def _edit_as_json(edit: Edit) -> dict[str, Any]:
    return {
        "entryId": edit.entry_id,
        "tool": edit.tool or None,
        "before": edit.before,
        "after": edit.after,
        "reason": edit.reason,
    }


def _values(value: dict[str, Any], code: int) -> Generator[dict[str, Any], None, int]:
    yield value
    return code
