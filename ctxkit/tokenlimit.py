"""A limit in tokens, as `truncate` needs it: how many bytes can fit at most, and what fits of either end of a text."""

from __future__ import annotations

from ctxkit.tokens import LONGEST_TOKEN, keep_head, keep_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxkit.tokens import Encoding


class TokenLimit:
    """At most `limit` tokens of an encoding."""

    __slots__ = ("_encoding", "limit")

    def __init__(self, limit: int, encoding: Encoding) -> None:
        self.limit = limit
        self._encoding = encoding

    @property
    def most_bytes(self) -> int:
        """The number of bytes beyond which any text has more tokens."""
        return self.limit * LONGEST_TOKEN

    def halves(self) -> tuple[TokenLimit, TokenLimit]:
        """Return the shares of head and tail in a middle cut; the tail gets the odd one."""
        half = self.limit // 2
        return TokenLimit(half, self._encoding), TokenLimit(self.limit - half, self._encoding)

    def fits(self, text: bytes) -> bool:
        """Say whether the whole text is within the limit."""
        return self._encoding.count(text.decode("utf-8", "replace")) <= self.limit

    def head(self, text: bytes) -> tuple[bytes, bool]:
        """Return what fits of the beginning of valid UTF-8: whole lines, or (True) a part of the first one."""
        kept = keep_head(text.decode(), self.limit, self._encoding)
        return kept.text.encode(), kept.partial

    def tail(self, text: bytes) -> tuple[bytes, bool]:
        """Return what fits of the end of valid UTF-8: whole lines, or (True) a part of the last one."""
        kept = keep_tail(text.decode(), self.limit, self._encoding)
        return kept.text.encode(), kept.partial
