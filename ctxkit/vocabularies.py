"""The shipped vocabularies, mapped into memory: pages that are not looked at are never read."""

from __future__ import annotations

import mmap
import os

from ctxkit.models import find_model, model_encoding
from ctxkit.tokenlimit import TokenLimit
from ctxkit.tokens import DEFAULT, find_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxkit.bpe import Buffer
    from ctxkit.tokens import Encoding

FOLDER = os.path.join(os.path.dirname(__file__), "data")


def map_data(name: str) -> Buffer:
    """Map a file of ctxkit/data."""
    with open(os.path.join(FOLDER, name), "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def load_encoding(name: str = DEFAULT) -> Encoding:
    """Return the encoding of that name, ready to count.

    Raises UsageError for an unknown name, VocabularyError where a vocabulary that is not shipped cannot be had.
    """
    return find_encoding(name, map_data)


def load_model_encoding(model: str) -> Encoding:
    """Return the encoding that counts for a model. Raises UsageError for a model that is not in the table."""
    return model_encoding(find_model(model), map_data)


def load_token_limit(limit: int, encoding: str = DEFAULT) -> TokenLimit:
    """Return a limit for `truncate_head` and its like: at most `limit` tokens of an encoding."""
    return TokenLimit(limit, load_encoding(encoding))
