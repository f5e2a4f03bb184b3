"""ctx context: what the model would get."""

from __future__ import annotations

from ctxkit import process, providers
from ctxkit.check import kept_on_path
from ctxkit.clean import to_utf8
from ctxkit.context import as_three_roles, build_context, serialize, with_system
from ctxkit.errors import UsageError
from ctxkit.sessionfile import open_session, warn_of_findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, Literal

    from ctxkit.cli.options import Annotated, Bridge, Leaf, Option, Quiet, Result, SessionName, SystemPrompt
    from ctxkit.context import Context
    from ctxkit.entry import Message
    from ctxkit.sessionfile import SessionFile

EXCLUSIVE = (("format", "ids"),)
REQUESTS = {
    "openai": providers.for_chat_completions,
    "responses": providers.for_responses,
    "anthropic": providers.for_anthropic,
}


def command(
    session: SessionName,
    leaf: Leaf = None,
    format: Annotated[
        Literal["pi", "openai", "responses", "anthropic", "text"],
        Option("--format", metavar="FORMAT", help="Print Pi's messages, a request for a provider, or plain text."),
    ] = "pi",
    system: SystemPrompt = None,
    ids: Annotated[bool, Option("--ids", help="Print the ids of the entries whose messages count.")] = False,
    bridge: Bridge = False,
    quiet: Quiet = False,
) -> Result:
    """Print what the model would get.

    These are the messages of the path to the current leaf: from the latest compaction on its summary, what it kept
    and what came after; context edits applied, summaries of branches in their place.

    The format 'pi' gives them as they are stored, with the thinking level and the model. The others give what a
    request needs: 'openai' the messages of chat completions, 'responses' an input, 'anthropic' system and messages.
    There Pi's own roles are messages of the user; each call has one result, right after it ('No result provided'
    where there is none); parallel calls stay together; a result without its call becomes text. 'text' is the
    conversation as a summarizer gets it, tool results cut to 2000 characters.
    """
    if system == "-" and session == "-":
        raise UsageError("standard input was named twice")
    file = open_session(session, bridge=bridge)
    warn_of_findings(file)
    at = file.leaf(leaf)
    warn_of_what_is_lost(file, at)
    built = build_context(file.session, at)
    messages = built.messages
    if system is not None:
        messages = with_system(messages, process.read_text(system))
    if ids:
        found = dict.fromkeys(message.entry_id for message in messages if message.entry_id is not None)
        process.write(b"".join(to_utf8(id) + b"\n" for id in found))
        return 0
    if format == "pi":
        return _values(as_stored(built, messages))
    known = list(as_three_roles(messages))
    if format == "text":
        text = serialize(known)
        process.write(to_utf8(text) + b"\n" if text else b"")
        return 0
    return _values(REQUESTS[format](known))


def warn_of_what_is_lost(file: SessionFile, leaf: str | None) -> None:
    """Say on standard error when the last compaction of a path names a first kept entry that is not on it."""
    tree = file.session
    last = next((id for id in reversed(tree.path(leaf)) if tree.type_of(id) == "compaction"), None)
    if last is not None:
        where = f"{file.name}:{tree.line_of(last)}: compaction {last}"
        kept_on_path(tree, tree.entry(last), lambda _entry, _code, what: process.warn(f"{where}: {what}"))


def as_stored(built: Context, messages: list[Message]) -> dict[str, Any]:
    """Return messages as they are stored, with the thinking level and the model of their context."""
    settings = built.settings
    return {
        "schema": 1,
        "messages": [message.value for message in messages],
        "thinkingLevel": settings.thinking_level,
        "model": {"provider": settings.provider, "modelId": settings.model} if settings.model else None,
    }


def _values(value: dict[str, Any]) -> Generator[dict[str, Any], None, int]:
    yield value
    return 0
