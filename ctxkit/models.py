"""Which encoding and which context window a model has: a small table with its date, and no guesses.

The windows are those of the providers' own interfaces; a gateway or an agent may grant less. OpenAI's models count
exactly. No other vendor here publishes a vocabulary, so theirs are estimates: o200k_base times a measured ratio.
"""

from __future__ import annotations

import re

from ctxkit.errors import UsageError
from ctxkit.tokens import Exact, Scaled, find_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxkit.bpe import Buffer
    from ctxkit.tokens import Encoding

TABLE_DATE = "2026-10"

# encoding, percent of its count, window -> models
_TABLE = (
    ("o200k_base", 100, 1_050_000, "gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-5.5 gpt-5.5-pro gpt-5.4 gpt-5.4-pro"),
    ("o200k_base", 100, 1_047_576, "gpt-4.1 gpt-4.1-mini gpt-4.1-nano"),
    ("o200k_base", 100, 400_000, "gpt-5.4-mini gpt-5.4-nano gpt-5.3-codex gpt-5.2 gpt-5.2-codex gpt-5.2-pro"),
    ("o200k_base", 100, 400_000, "gpt-5.1 gpt-5.1-codex gpt-5.1-codex-max gpt-5.1-codex-mini"),
    ("o200k_base", 100, 400_000, "gpt-5 gpt-5-mini gpt-5-nano gpt-5-pro gpt-5-codex"),
    ("o200k_base", 100, 200_000, "o1 o1-pro o3 o3-mini o3-pro o4-mini codex-mini"),
    ("o200k_base", 100, 128_000, "gpt-5.2-chat gpt-5.1-chat gpt-5-chat gpt-4o gpt-4o-mini chatgpt-4o o1-mini"),
    ("o200k_harmony", 100, 131_072, "gpt-oss-120b gpt-oss-20b"),
    ("cl100k_base", 100, 128_000, "gpt-4-turbo gpt-4-1106-preview gpt-4-0125-preview"),
    ("cl100k_base", 100, 32_768, "gpt-4-32k"),
    ("cl100k_base", 100, 16_385, "gpt-3.5-turbo"),
    ("cl100k_base", 100, 8_192, "gpt-4"),
    # Claude's vocabulary is not public. The ratios are those of its reconstructed counts to o200k_base on a mix of
    # logs, code and JSON: one for the vocabulary up to 4.6, one for that since Opus 4.7.
    ("o200k_base", 133, 1_000_000, "claude-opus-5-5 claude-opus-5 claude-opus-4-8 claude-opus-4-7"),
    ("o200k_base", 133, 1_000_000, "claude-sonnet-5-5 claude-sonnet-5 claude-fable-5-1 claude-fable-5"),
    ("o200k_base", 113, 1_000_000, "claude-opus-4-6 claude-sonnet-4-6"),
    ("o200k_base", 113, 200_000, "claude-opus-4-5 claude-sonnet-4-5 claude-haiku-4-5 claude-opus-4-1"),
    ("o200k_base", 113, 200_000, "claude-opus-4 claude-opus-4-0 claude-sonnet-4 claude-sonnet-4-0"),
    ("o200k_base", 113, 200_000, "claude-3-7-sonnet claude-3-5-sonnet claude-3-5-haiku"),
    ("o200k_base", 113, 200_000, "claude-3-opus claude-3-sonnet claude-3-haiku"),
    ("estimate", 100, 1_048_576, "gemini-3.1-pro gemini-3-pro gemini-3-flash"),
    ("estimate", 100, 1_048_576, "gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite gemini-2.0-flash"),
)
# What stands before and after the name of a model with some provider: "us.anthropic.NAME-20250929-v1:0", "openai/NAME".
_BEFORE = re.compile(r".*/|(?:(?:us|eu|apac|global)\.)?(?:anthropic|openai)\.")
_AFTER = re.compile(r"(?:[-@](?:latest|preview|\d{8}|\d{4}-\d\d-\d\d|\d\d-\d\d|\d{4})|-v\d+(?::\d+)?|:\w+)+$")


class Model:
    """A model: its `name` here, its `encoding`, what `percent` of its count it takes, its `window` in tokens."""

    __slots__ = ("encoding", "name", "percent", "window")

    def __init__(self, name: str, encoding: str, percent: int, window: int) -> None:
        self.name = name
        self.encoding = encoding
        self.percent = percent
        self.window = window

    @property
    def estimated(self) -> bool:
        """Whether its tokens can only be estimated."""
        return self.percent != 100 or self.encoding == "estimate"


_MODELS = {
    name: Model(name, encoding, percent, window)
    for encoding, percent, window, names in _TABLE
    for name in names.split()
}


def find_model(name: str) -> Model:
    """Return the model of that name; a provider before it, and a date or version after it, do not matter.

    Raises UsageError for one that is not in the table, with those that are named most like it.
    """
    plain = name.strip().lower()
    if before := _BEFORE.match(plain):
        plain = plain[before.end() :]
    for form in (plain, _AFTER.sub("", plain)):
        for spelling in (form, form.replace(".", "-")):
            if spelling in _MODELS:
                return _MODELS[spelling]
    close = sorted(_MODELS, key=lambda known: (-_likeness(plain, known), known))[:3]
    hint = f"the nearest in the table of {TABLE_DATE} are {', '.join(close)}; or give an encoding and a window"
    raise UsageError(f"unknown model: {name}", hint)


def _likeness(one: str, other: str) -> float:
    """Return the share of pairs of neighbouring letters that two names have in common."""
    pairs = [{f"^{name}$"[at : at + 2] for at in range(len(name) + 1)} for name in (one, other)]
    return len(pairs[0] & pairs[1]) / max(len(pairs[0] | pairs[1]), 1)


def model_encoding(model: Model, map_data: Callable[[str], Buffer]) -> Encoding:
    """Return the encoding that counts for a model; `map_data` as for `find_encoding`."""
    encoding = find_encoding(model.encoding, map_data)
    if model.percent != 100 and isinstance(encoding, Exact):
        return Scaled(f"{encoding.name} x {model.percent / 100}", encoding, model.percent)
    return encoding
