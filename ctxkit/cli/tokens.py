"""ctx tokens: count tokens."""

from __future__ import annotations

from ctxkit import process
from ctxkit.errors import VocabularyError
from ctxkit.vocabularies import load_encoding, load_model_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from ctxkit.cli.options import Annotated, Files, Json, Option, Quiet, Result
    from ctxkit.process import Source
    from ctxkit.tokens import Encoding

EXCLUSIVE = (("encoding", "model"),)


def command(
    files: Files = None,
    encoding: Annotated[
        str,
        Option(
            "--encoding",
            "-e",
            metavar="ENCODING",
            help="Count in ENCODING: o200k_base, cl100k_base, o200k_harmony, estimate, pi, or another of tiktoken.",
        ),
    ] = "o200k_base",
    model: Annotated[
        str | None,
        Option("--model", "-m", metavar="MODEL", show_default=False, help="Count as MODEL does: gpt-5, claude-opus-5."),
    ] = None,
    or_estimate: Annotated[
        bool, Option("--or-estimate", help="Estimate, and say so, if the vocabulary of ENCODING cannot be had.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> Result:
    """Count tokens.

    Prints the number alone for one input; for several, each number with its name, and the total. The counts of
    o200k_base, cl100k_base and o200k_harmony are exact, need no network, and take time linear in the input. Text that
    spells a special token is text; bytes that are not UTF-8 count as U+FFFD.

    The encoding 'estimate' goes by the script alone, about one token for four Latin letters or one Chinese character;
    'pi' is the estimate of the Pi agent, a quarter of the UTF-16 units. For models whose vocabulary is not public the
    count is an estimate, which a warning says, and with --json "estimated". Other encodings are counted by tiktoken,
    if it has their vocabulary or can get it; where it cannot, that is an error, or with --or-estimate an estimate.
    """
    names = process.operands(files)
    counting = load_model_encoding(model) if model is not None else _load(encoding, or_estimate=or_estimate)
    if counting.estimated and model is not None:
        process.warn(f"the vocabulary of {model} is not public; this is an estimate ({counting.name})")
    facts = {"encoding": counting.name, "model": model, "estimated": counting.estimated}
    several = len(names) > 1
    total = 0

    def count_one(source: Source) -> Generator[dict[str, Any], None, int]:
        nonlocal total
        counter = counting.counter()
        for chunk in source.chunks():
            counter.add(chunk)
        tokens = counter.total()
        total += tokens
        if json:
            yield {"schema": 1, "tokens": tokens, **facts, "file": source.name if source.path or several else None}
        else:
            process.write(
                f"{tokens} {source.name}\n".encode("utf-8", "surrogateescape") if several else b"%d\n" % tokens
            )
        return 0

    def count_all() -> Generator[dict[str, Any], None, int]:
        code = yield from process.each(names, count_one)
        if several and json:
            yield {"schema": 1, "tokens": total, **facts, "file": None, "total": True}
        elif several:
            process.write(b"%d total\n" % total)
        return code

    return count_all()


def _load(name: str, *, or_estimate: bool) -> Encoding:
    try:
        return load_encoding(name)
    except VocabularyError as error:
        if not or_estimate:
            raise
        process.warn(f"{error.message}; this is an estimate")
        return load_encoding("estimate")
