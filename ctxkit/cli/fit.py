"""ctx fit: make it fit, by a policy you name."""

from __future__ import annotations

from ctxkit import fit, process
from ctxkit.agents import pi
from ctxkit.cli.context import REQUESTS, as_stored
from ctxkit.context import as_three_roles, build_context
from ctxkit.errors import UsageError
from ctxkit.files import replace, same_file
from ctxkit.models import find_model
from ctxkit.sessionfile import open_session, warn_of_findings
from ctxkit.vocabularies import load_encoding, load_model_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
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
    from ctxkit.context import Context
    from ctxkit.entry import Message
    from ctxkit.tokens import Encoding

EXCLUSIVE = (("window", "model"), ("in_place", "output", "format"), ("format", "json"))
NO = 1  # it cannot be made to fit, or is not worth it
LARGEST = 5  # entries that are named then


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
    says or runs, the system prompt, summaries, calls, pinned entries, what an edit has replaced already, and the
    newest part are never touched.

    The policy 'tool-results' takes reads that a later one of the same file covers, then other results, then prose,
    the oldest first; 'oldest' goes by age alone; 'importance' takes superseded reads, plain results, results that
    show errors or tests, then prose, of each kind the largest first.

    The context is taken to be as large as the provider reported with the last answer, or as it is counted, whichever
    is more; of what was reported, no more is taken off than is counted.

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
    plan = fit.plan(
        built,
        max(0, limit - reserve),
        counting.count,
        min_saving=min_saving,
        policy=policy,
        keep_recent=keep_recent,
        protected=protect or (),
        untouched={file.find(id) for id in pin or ()} | fit.replaced(file.session, at),
    )
    edited = built.messages if plan.refused else fit.apply(built.messages, plan.edits)
    data = b""
    writes = in_place or output is not None or not (json or format)
    if plan.status == fit.FITTED and not writes:
        fit.check_edits(built.messages, edited, plan, counting.count)
    if writes and not plan.refused:
        made = list(fit.edit_entries(file.session, at, plan.edits, new_id=process.new_entry_id, now=process.now()))
        data = file.appended(made) if made else file.data[0 : len(file.data)]
        if made:
            fit.check_session(built, at, pi.load(data), made, plan, counting.count)
        if in_place and made:
            file.append(*made)
        elif output is not None:
            replace(output, [data])
    if not quiet:
        _say(plan, built.messages, min_saving)
    if json:
        return _as_json(plan, built.messages, counting)
    if plan.refused:
        return NO
    if format is not None:
        return _as_messages(built, edited, format)
    if not in_place and output is None:
        process.write(data)
    return 0


def _say(plan: fit.Plan, messages: list[Message], min_saving: int) -> None:
    if plan.status == fit.FITS:
        process.say(f"unchanged: {plan.before} tokens fit {plan.target}")
        return
    if plan.status == fit.FITTED:
        process.say(f"{plan.before} -> {plan.after} tokens, within {plan.target}")
        for edit in plan.edits:
            process.say(f"  {edit.entry_id}: {edit.before} -> {edit.after} tokens, {edit.reason}")
        first = plan.edits[0]
        process.say(
            f"the cached prefix breaks at message {first.place} ({first.entry_id});"
            f" this has paid after {_requests(plan.break_even)}"
        )
        return
    if plan.status == fit.TOO_LARGE:
        process.say(
            f"{plan.before} tokens cannot be made to fit {plan.target}: {plan.after} would be left; nothing was written"
        )
    else:
        saved = plan.before - plan.after
        process.say(f"{saved} tokens would be saved, fewer than {min_saving}: nothing was written")
    for place in plan.largest()[:LARGEST]:
        message = messages[place]
        process.say(f"  {message.entry_id} {message.role}: {plan.sizes[place]} tokens stay")


def _requests(number: int | None) -> str:
    return "1 request" if number == 1 else f"{number} requests"


def _as_json(plan: fit.Plan, messages: list[Message], counting: Encoding) -> Generator[dict[str, Any], None, int]:
    done = plan.status == fit.FITTED
    broken = plan.first_broken if done else None
    yield {
        "schema": 1,
        "status": "failed" if plan.refused else plan.status,
        "why": plan.status if plan.refused else None,
        "target": plan.target,
        "tokensBefore": plan.before,
        "tokensAfter": plan.before if plan.refused else plan.after,
        "reachable": plan.after,
        "encoding": counting.name,
        "estimated": counting.estimated,
        "firstBroken": None if broken is None else {"message": broken, "entryId": messages[broken].entry_id},
        "breakEven": plan.break_even if done else None,
        "edits": [_edit_as_json(edit) for edit in plan.edits] if done else [],
        "largest": [
            {"entryId": messages[place].entry_id, "role": messages[place].role, "tokens": plan.sizes[place]}
            for place in (plan.largest()[:LARGEST] if plan.refused else ())
        ],
    }
    return NO if plan.refused else 0


def _edit_as_json(edit: fit.Edit) -> dict[str, Any]:
    return {
        "entryId": edit.entry_id,
        "kind": edit.kind,
        "tool": edit.tool or None,
        "before": edit.before,
        "after": edit.after,
        "reason": edit.reason,
    }


def _as_messages(built: Context, messages: list[Message], format: str) -> Generator[dict[str, Any], None, int]:
    """Print what `ctx context` would print of the session with the edits."""
    yield as_stored(built, messages) if format == "pi" else REQUESTS[format](list(as_three_roles(messages)))
    return 0
