"""ctx: coreutils for LLM context.

The filters are functions: `from ctxkit import truncate_tail`. A name is loaded from its module on first use.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxkit.truncate import Truncation as Truncation
    from ctxkit.truncate import Truncator as Truncator
    from ctxkit.truncate import format_size as format_size
    from ctxkit.truncate import truncate_head as truncate_head
    from ctxkit.truncate import truncate_middle as truncate_middle
    from ctxkit.truncate import truncate_tail as truncate_tail
    from ctxkit.vocabularies import load_encoding as load_encoding
    from ctxkit.vocabularies import load_model_encoding as load_model_encoding
    from ctxkit.vocabularies import load_token_limit as load_token_limit
    from ctxkit.width import truncate_line as truncate_line

# public name: the module it lives in
NAMES = {
    "Truncation": "truncate",
    "Truncator": "truncate",
    "format_size": "truncate",
    "load_encoding": "vocabularies",
    "load_model_encoding": "vocabularies",
    "load_token_limit": "vocabularies",
    "truncate_head": "truncate",
    "truncate_line": "width",
    "truncate_middle": "truncate",
    "truncate_tail": "truncate",
}

__all__ = [*NAMES, "__version__"]


def __getattr__(name: str) -> object:
    if name not in NAMES:
        raise AttributeError(f"module 'ctxkit' has no attribute {name!r}")
    value: object = getattr(import_module(f"ctxkit.{NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
