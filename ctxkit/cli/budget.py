"""ctx budget: how full the window is."""

from __future__ import annotations

from ctxkit import budget, process, treeview
from ctxkit.clean import to_utf8
from ctxkit.context import build_context, with_system
from ctxkit.errors import UsageError
from ctxkit.models import find_model
from ctxkit.sessionfile import open_session, warn_of_findings
from ctxkit.tokens import Estimate, calibrate
from ctxkit.vocabularies import load_encoding, load_model_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from typing import Any

    from ctxkit.cli.options import (
        Annotated,
        Json,
        Leaf,
        ModelName,
        Option,
        Quiet,
        Reserve,
        Result,
        SessionName,
        SystemPrompt,
        WindowSize,
    )
    from ctxkit.entry import Message
    from ctxkit.sessionfile import SessionFile

EXCLUSIVE = (("window", "model"),)
OVER = 1  # exit code of --check
LARGEST = 10  # entries that are listed
BAR = 24  # columns
NAMES = {
    budget.SYSTEM: "system",
    budget.TOOLS: "tool definitions",
    budget.USER: "user",
    budget.TEXT: "assistant text",
    budget.THINKING: "thinking",
    budget.CALL: "tool calls",
    budget.RESULT: "tool results",
    budget.BASH: "commands of the user",
    budget.CUSTOM: "extensions",
    budget.SUMMARY: "summaries",
    budget.IMAGE: "images",
}


def command(
    session: SessionName,
    window: WindowSize = None,
    model: ModelName = None,
    reserve: Reserve = 16384,
    system: SystemPrompt = None,
    leaf: Leaf = None,
    encoding: Annotated[
        str | None,
        Option("--encoding", "-e", metavar="ENCODING", show_default=False, help="Count in ENCODING (o200k_base)."),
    ] = None,
    check: Annotated[bool, Option("--check", help="Print nothing; exit with 1 if it must be compacted.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Show how full the window is.

    What the context of the current leaf is made of, by kind and tool, with the largest entries; the total, the room
    that is left and how fast it fills. Without --window or --model the window is that of the session's model, if it
    is in the table of models.

    The total is what the provider reported with the last answer, and the count of what came after it, unless the
    context was compacted or edited since, the answer failed, or there is none: then everything is counted. The
    encoding 'estimate' is corrected by what was reported. It must be
    compacted when the total is larger than the window less the reserve.
    """
    if system == "-" and session == "-":
        raise UsageError("standard input was named twice")
    file = open_session(session)
    warn_of_findings(file)
    built = build_context(file.session, file.leaf(leaf))
    messages = built.messages
    if system is not None:
        messages = with_system(messages, process.read_text(system))
    own = built.settings.model
    if window is None:
        window = find_model(model).window if model is not None else _window_of(own)
    if window is None and check:
        raise UsageError("--check needs a window", f"the session's model is {own}; give --window or --model")
    counting = load_encoding(encoding or "o200k_base") if model is None or encoding else load_model_encoding(model)
    report = Report(file, messages, built.settled - len(built.messages), counting.count, window, reserve)
    if isinstance(counting, Estimate) and report.last is not None:
        counting = Estimate(calibrate(report.counted_before_usage, report.size.usage_tokens))
        report = Report(file, messages, built.settled - len(built.messages), counting.count, window, reserve)
    facts = {"encoding": counting.name, "estimated": counting.estimated}
    code = OVER if check and report.over else 0
    if json:
        return _as_json(report, facts, code)
    if not check:
        bars = process.stdout_is_terminal()
        process.write(b"".join(to_utf8(line) + b"\n" for line in report.lines(counting.name, bars=bars)))
    return code


class Report:
    """What a context takes, weighed once."""

    __slots__ = (
        "_file",
        "by_entry",
        "by_kind",
        "by_tool",
        "counted_before_usage",
        "estimate",
        "growth",
        "last",
        "over",
        "reserve",
        "size",
        "window",
    )

    def __init__(
        self,
        file: SessionFile,
        messages: Sequence[Message],
        settled: int,
        count: Any,
        window: int | None,
        reserve: int,
    ) -> None:
        self._file = file
        self.by_kind: dict[str, int] = {}
        self.by_tool: dict[str, int] = {}
        self.by_entry: dict[str, int] = {}
        weights: list[int] = []
        for message in messages:
            weight = 0
            for item in budget.weigh([message], count):
                weight += item.tokens
                self.by_kind[item.kind] = self.by_kind.get(item.kind, 0) + item.tokens
                if item.kind == budget.RESULT:
                    self.by_tool[item.tool] = self.by_tool.get(item.tool, 0) + item.tokens
            weights.append(weight)
            if message.entry_id is not None:
                self.by_entry[message.entry_id] = self.by_entry.get(message.entry_id, 0) + weight
        self.estimate = sum(weights)
        sizes = dict(zip(map(id, [message.value for message in messages]), weights, strict=True))
        values = [message.value for message in messages]
        since = max(0, len(messages) + settled)
        self.size = budget.measure_context(values, since=since, estimate=lambda value: sizes[id(value)])
        self.counted_before_usage = sum(weights[: (self.size.last_usage or 0) + 1])
        self.last = None if self.size.last_usage is None else messages[self.size.last_usage].entry_id
        self.window, self.reserve = window, reserve
        self.over = window is not None and budget.must_compact(self.size.tokens, window, reserve)
        self.growth = budget.growth(messages, weights, self.headroom or 0)

    @property
    def headroom(self) -> int | None:
        """Tokens left before the context must be compacted; less than 0 if it must."""
        return None if self.window is None else self.window - self.reserve - self.size.tokens

    def largest(self) -> list[tuple[str, int]]:
        """Return the entries that take most, the largest first."""
        return sorted(self.by_entry.items(), key=lambda pair: -pair[1])[:LARGEST]

    def lines(self, encoding: str, *, bars: bool) -> Iterator[str]:
        """Write the report for people, with bars if they look at a terminal."""
        width = process.terminal_width()

        def row(name: str, tokens: int) -> str:
            share = tokens / self.estimate if self.estimate else 0.0
            bar = "  " + "█" * round(BAR * share) if bars else ""
            return f"{name:22} {tokens:9} {share:7.1%}{bar}".rstrip()

        for kind, name in NAMES.items():
            if kind in self.by_kind:
                yield row(name, self.by_kind[kind])
            if kind == budget.RESULT:
                for tool, tokens in sorted(self.by_tool.items(), key=lambda pair: (-pair[1], pair[0])):
                    yield row(f"  {treeview.one_line(tool) or '?'}", tokens)
        yield ""
        yield "largest entries"
        for id, tokens in self.largest():
            role, text = treeview.describe(self._file.session.entry(id))
            yield treeview.cut_to(f"  {id} {tokens:9}  {role}: {treeview.one_line(text)}", width)
        yield ""
        yield f"{'counted':22} {self.estimate:9}  {encoding}"
        if self.last is None:
            yield f"{'total':22} {self.size.tokens:9}  as counted: no usage of an answer is valid"
        else:
            trailing = f", and {self.size.trailing_tokens} counted after it" if self.size.trailing_tokens else ""
            yield f"{'total':22} {self.size.tokens:9}  {self.size.usage_tokens} reported with {self.last}{trailing}"
        if self.window is None:
            yield f"{'window':22} {'unknown':>9}  give --window or --model"
        else:
            yield f"{'window':22} {self.window:9}"
            yield f"{'reserve':22} {self.reserve:9}"
            over = "  must be compacted" if self.over else ""
            yield f"{'headroom':22} {self.headroom:9}{over}"
        left = "" if self.growth.turns_left is None or self.window is None else f", {self.growth.turns_left} turns left"
        yield f"{'growth':22} {self.growth.per_turn:9}  a turn{left}"


def _window_of(model: str | None) -> int | None:
    """Return the window of the model a session is on, None where the table does not have it."""
    try:
        return None if model is None else find_model(model).window
    except UsageError:
        return None


def _as_json(report: Report, facts: dict[str, Any], code: int) -> Generator[dict[str, Any], None, int]:
    size = report.size
    usage = {"tokens": size.usage_tokens, "trailingTokens": size.trailing_tokens, "entryId": report.last}
    yield {
        "schema": 1,
        "tokens": size.tokens,
        "usage": None if report.last is None else usage,
        "counted": report.estimate,
        **facts,
        "window": report.window,
        "reserve": report.reserve,
        "headroom": report.headroom,
        "mustCompact": report.over if report.window is not None else None,
        "growthPerTurn": report.growth.per_turn,
        "turnsLeft": None if report.window is None else report.growth.turns_left,
        "kinds": report.by_kind,
        "tools": report.by_tool,
        "largest": [{"id": id, "tokens": tokens} for id, tokens in report.largest()],
    }
    return code
