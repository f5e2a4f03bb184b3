"""Byte pair encoding over a vocabulary that is mapped into memory: exact, and ready at once.

A text is split into pieces by the grammar of its encoding, and each piece into tokens by merging pairs of neighbours,
lowest rank first. The ids are those of `tiktoken.Encoding.encode_ordinary`; special tokens do not exist here.

Whatever is cut here is cut by one of two rules, so that the parts add up to the whole:

- Between pieces, at a cut (`Grammar.cut`): no piece spans it, and nothing before it is decided by looking past it.
- Inside a piece, by `LongPiece`: two sequences of tokens may be joined where the two tokens that meet would stay apart
  if they were merged alone. Merging is local: the first merge across the seam would need just those two tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, deque
from itertools import accumulate
from zlib import crc32

from ctxkit.errors import CtxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    Buffer: TypeAlias = bytes | mmap.mmap
    Run: TypeAlias = "_Letters | _Others | _Spaces"

MAGIC = b"CTXV"
BYTE_ORDER_MARK = 0x01020304
FORMAT = 1
HEADER_BYTES = 64

# Every character outside ASCII is replaced by a sign of its class before the pieces are looked for, so that `re` needs
# no tables of Unicode: the vocabulary file brings those of tiktoken. Sign -> what it stands for; the first one wins.
CLASSES = {
    "\xad": "\u017f",  # the long s: a lowercase letter, and in "'ſ" an s
    "A": r"[\p{Lu}\p{Lt}]",
    "a": r"\p{Ll}",
    "\xaa": r"[\p{Lm}\p{Lo}]",
    "\xac": r"\p{M}",
    "0": r"\p{N}",
    "\x0b": r"\s",
}
_SPACE = r"\t\n\x0b\x0c\r "
_SPACES = rf"[{_SPACE}]*"
_LETTER = r"A-Za-z\xaa\xad"
_MARK = r"\xac"
_SUFFIX = r"'(?:[sSdDmMtT\xad]|[lL][lL]|[vV][eE]|[rR][eE])"
_OTHER = rf"[^{_SPACE}{_LETTER}0-9]"
# Where text may be cut, in both grammars. Whatever holds the character on the left ends with it; and that the text ends
# there changes nothing before it: only white space looks ahead, and there is none, or it is one piece up to its last
# line end. On the right begins a piece, and none looks back.
_CUT = (
    rf"(?<=[{_LETTER}])(?=[^{_LETTER}{_MARK}'])"  # an apostrophe may begin a suffix of the word
    r"|(?<=[0-9])(?=[^0-9])"
    rf"|(?<=[^{_SPACE}])(?=[\t\x0b\x0c ])"  # other signs may go on with line ends, but not with these
    rf"|(?<=\n)(?=[^{_SPACE}/])"  # a slash may go on after the line ends of other signs
)

NONE = 1 << 32  # the rank of what is no token: above every rank
WINDOW = 144  # bytes of a long piece that are merged at a time; no token is longer
MARGIN = 24  # bytes at the end of a window that what follows may still change
BLOCK = 1 << 16  # characters that are split and counted at a time


class Grammar:
    """How an encoding splits text: patterns over the classes of the characters, all anchored where they are applied."""

    __slots__ = ("letters", "more_others", "name", "others", "piece", "reach", "tail", "tiktoken", "whole_end")

    def __init__(self, name: str, tiktoken: str, piece: str, letters: str, reach: str, tail: str, whole_end: bool):
        self.name = name
        self.tiktoken = tiktoken  # what `piece` says, in the dialect of tiktoken
        self.piece = piece
        self.letters = letters  # the start of a piece of letters that belongs together whatever follows
        self.reach = reach  # as far as the choice between alternatives may depend on the text
        self.tail = tail  # what a piece of other signs may end in
        self.others = rf"( ?{_OTHER}+)({tail})"
        self.more_others = rf"({_OTHER}*)({tail})"
        self.whole_end = whole_end  # is white space at the end of the text one piece?

    def find_letters(self, classes: str) -> int:
        """Return how many characters at the start belong to one piece of letters, whatever follows."""
        match = re.match(self.letters, classes)
        return match.end() if match else 0

    def find_reach(self, classes: str, start: int) -> int:
        """Return up to where the text decides which piece begins at `start`, but for three characters after it."""
        match = re.compile(self.reach).match(classes, start)
        return max(match.end(1), match.end(2)) if match else start


GRAMMARS = {
    "o200k_base": Grammar(
        "o200k_base",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        rf"[^\r\n{_LETTER}0-9]?[A-Z\xaa{_MARK}]*[a-z\xaa{_MARK}\xad]+(?:{_SUFFIX})?"
        rf"|[^\r\n{_LETTER}0-9]?[A-Z\xaa{_MARK}]+[a-z\xaa{_MARK}\xad]*(?:{_SUFFIX})?"
        rf"|[0-9]{{1,3}}| ?{_OTHER}+[\r\n/]*"
        rf"|[{_SPACE}]*[\r\n]+|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+",
        letters=rf"[^\r\n{_LETTER}{_MARK}0-9]?[A-Z]*[a-z\xaa{_MARK}\xad]*",
        reach=rf"(?=([^\r\n{_LETTER}0-9]?[A-Z\xaa{_MARK}]*[a-z\xaa{_MARK}\xad]*))(?=([{_SPACE}]*))",
        tail=r"[\r\n/]*",
        whole_end=False,
    ),
    "cl100k_base": Grammar(
        "cl100k_base",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        rf"{_SUFFIX}|[^\r\n{_LETTER}0-9]?[{_LETTER}]+|[0-9]{{1,3}}| ?{_OTHER}+[\r\n]*"
        rf"|[{_SPACE}]+\Z|[{_SPACE}]*[\r\n]|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]",
        letters=rf"(?!{_SUFFIX})[^\r\n{_LETTER}0-9]?[{_LETTER}]*",
        reach=rf"(?=([^\r\n{_LETTER}0-9]?[{_LETTER}]*))(?=([{_SPACE}]*))",
        tail=r"[\r\n]*",
        whole_end=True,
    ),
}


class _Classes(dict[int, str]):
    """The sign of each character, looked up in the ranges of the vocabulary when it is first met."""

    __slots__ = ("signs", "starts")

    def __init__(self, starts: memoryview, signs: bytes) -> None:
        super().__init__((code, chr(code)) for code in range(128))
        self.starts = starts
        self.signs = signs

    def __missing__(self, code: int) -> str:
        sign = self[code] = chr(self.signs[bisect_right(self.starts, code) - 1])
        return sign


class _Ranks(dict[bytes, int]):
    """The rank of each sequence of bytes that was asked for, `NONE` where it is no token."""

    __slots__ = ("bytes_at", "data", "mask", "offsets", "slots")

    def __init__(self, data: Buffer, slots: memoryview, offsets: memoryview, bytes_at: int) -> None:
        super().__init__()
        self.data = data
        self.slots = slots
        self.mask = len(slots) - 1
        self.offsets = offsets
        self.bytes_at = bytes_at

    def __missing__(self, token: bytes) -> int:
        slots, offsets, mask = self.slots, self.offsets, self.mask
        slot = crc32(token) & mask
        length = len(token)
        rank = NONE
        while entry := slots[slot]:
            start = offsets[entry - 1]
            if offsets[entry] - start == length:
                start += self.bytes_at
                if self.data[start : start + length] == token:
                    rank = entry - 1
                    break
            slot = (slot + 1) & mask
        self[token] = rank
        return rank


class Vocabulary:
    """The tokens of one encoding, read from the mapped file without parsing it.

    `data` is the file, best as a read-only `mmap`; it must stay open as long as the vocabulary is used.
    Raises CtxError when it is damaged, or was built for a machine of the other byte order.
    """

    __slots__ = (
        "_bytes_at",
        "_classes",
        "_counts",
        "_data",
        "_offsets",
        "_ranks",
        "_windows",
        "grammar",
        "longest",
        "merged_bytes",
        "rank_file_sha256",
    )

    def __init__(self, data: Buffer, grammar: Grammar) -> None:
        view = memoryview(data)
        damaged = CtxError(f"the vocabulary of {grammar.name} is damaged", "install ctxkit again")
        if len(view) < HEADER_BYTES or data[:4] != MAGIC:
            raise damaged
        mark, version, bits, tokens, size, ranges, self.longest = view[4:32].cast("I")
        if mark != BYTE_ORDER_MARK and mark.to_bytes(4, "little") == BYTE_ORDER_MARK.to_bytes(4, "big"):
            raise CtxError(
                f"the vocabulary of {grammar.name} was built for a machine of the other byte order",
                "build it here with ctxkit/data/build.py, or use the encoding estimate",
            )
        if mark != BYTE_ORDER_MARK or version != FORMAT or bits > 24:
            raise damaged
        slots_at = HEADER_BYTES
        offsets_at = slots_at + (4 << bits)
        ranges_at = offsets_at + 4 * (tokens + 1)
        signs_at = ranges_at + 4 * ranges
        self._bytes_at = signs_at + (ranges + 3) // 4 * 4
        if len(view) != self._bytes_at + size:
            raise damaged
        self.grammar = grammar
        self.rank_file_sha256 = data[32:64].hex()
        self._data = data
        self._offsets = view[offsets_at:ranges_at].cast("I")
        self._ranks = _Ranks(data, view[slots_at:offsets_at].cast("I"), self._offsets, self._bytes_at)
        self._classes = _Classes(view[ranges_at:signs_at].cast("I"), data[signs_at : signs_at + ranges])
        self._counts: dict[str, int] = {}
        self._windows: dict[bytes, list[int]] = {}
        self.merged_bytes = 0  # how much the pure engine had to work so far

    def tokens(self) -> Iterator[bytes]:
        """Yield the bytes of every token by rank."""
        blob = self._data[self._bytes_at :]
        ends = iter(self._offsets.tolist())
        start = next(ends)
        for end in ends:
            yield blob[start:end]
            start = end

    def classes(self, text: str) -> str:
        """Return the text with every character outside ASCII replaced by the sign of its class, one for one."""
        return text if text.isascii() else text.translate(self._classes)

    def pieces(self, text: str) -> Iterable[str]:
        """Split text into its pieces, in order; together they are the text."""
        found: list[str] = re.findall(self.grammar.piece, self.classes(text))
        if text.isascii():
            return found
        ends = list(accumulate(map(len, found)))
        return map(text.__getitem__, map(slice, [0, *ends], ends))

    def count(self, text: str) -> int:
        """Return the number of tokens of text; it must not hold surrogates."""
        return self.count_pieces(self.pieces(text))

    def count_pieces(self, pieces: Iterable[str]) -> int:
        """Return the number of tokens of pieces that `pieces` made."""
        counts = self._counts
        self._forget()
        total = 0
        for piece, times in Counter(pieces).items():
            count = counts.get(piece)
            if count is None:
                count = self._count_piece(piece.encode())
                if len(piece) < 64:
                    counts[piece] = count
            total += count * times
        return total

    def encode(self, text: str) -> list[int]:
        """Return the ids of the tokens of text; it must not hold surrogates."""
        ids: list[int] = []
        for piece in self.pieces(text):
            data = piece.encode()
            rank = self._ranks[data]
            if rank != NONE:
                ids.append(rank)
                continue
            if len(data) > WINDOW:
                long = LongPiece(self, keep=True)
                long.add(data)
                long.count()
                ids.extend(map(self._ranks.__getitem__, long.tail))
                continue
            ends = self.merge(data)
            ids.extend(map(self._ranks.__getitem__, map(data.__getitem__, map(slice, [0, *ends], ends))))
        return ids

    def _count_piece(self, piece: bytes) -> int:
        if len(piece) > WINDOW:
            long = LongPiece(self)
            long.add(piece)
            return long.count()
        if len(piece) == 1 or self._ranks[piece] != NONE:
            return 1
        self.merged_bytes += len(piece)
        return len(self.merge(piece))

    def merge(self, piece: bytes) -> list[int]:
        """Return where the tokens of a piece end; time grows with the square of its length."""
        ranks = self._ranks
        starts = list(range(len(piece) + 1))
        pairs = [ranks[piece[start : start + 2]] for start in range(len(piece) - 1)]
        while pairs:
            best = min(pairs)
            if best == NONE:
                break
            at = pairs.index(best)
            del starts[at + 1], pairs[at]
            if at < len(pairs):
                pairs[at] = ranks[piece[starts[at] : starts[at + 2]]]
            if at:
                pairs[at - 1] = ranks[piece[starts[at - 1] : starts[at + 1]]]
        return starts[1:]

    def merge_window(self, window: bytes) -> list[int]:
        """Return `merge` of a window of a long piece; a run of equal characters asks for few different ones."""
        ends = self._windows.get(window)
        if ends is None:
            self.merged_bytes += len(window)
            self._forget()
            ends = self._windows[window] = self.merge(window)
        return ends

    def _forget(self) -> None:
        """Drop what was looked up, once it is much: it bounds the memory of a stream without end."""
        if len(self._counts) > 100_000:
            self._counts.clear()
        if len(self._ranks) > 200_000:
            self._ranks.clear()
        if len(self._windows) > 64:
            self._windows.clear()

    def last_cut(self, text: str) -> int:
        """Return the last place in text where it may be cut without changing its tokens; 0 where there is none.

        What is before the cut, and what is after it, may go on in any way: it rests on the two characters around it.
        """
        near = max(0, len(text) - 1024)
        for start in (near, 0) if near else (0,):
            match = re.match(rf"(?s:.*)(?:{_CUT})", self.classes(text[start:]))
            if match:
                return start + match.end()
        return 0

    def first_cut(self, text: str) -> int:
        """Return the first such place in text; its length where there is none."""
        for end in (1024, len(text)):
            match = re.search(_CUT, self.classes(text[:end]))
            if match:
                return match.end()
        return len(text)


class LongPiece:
    """The number of tokens of one piece that comes in parts; constant memory, linear time.

    It is merged window by window, each beginning where a token of the last one ended. If the tokens on the two sides of
    that seam would not stay apart, the seam moves back by one token and the window is merged again. Hostile texts need
    to go back by a token or two; 64 are kept.
    """

    __slots__ = ("_data", "_done", "_vocabulary", "tail")

    def __init__(self, vocabulary: Vocabulary, keep: bool = False) -> None:
        self._vocabulary = vocabulary
        self._data = b""  # not yet tokens
        self._done = 0  # tokens that are final but for the seam
        self.tail: deque[bytes] = deque(maxlen=None if keep else 64)

    def add(self, data: bytes) -> None:
        """Take the next bytes of the piece."""
        data = self._data + data
        at = 0
        while len(data) - at > WINDOW + MARGIN:
            at, data = self._advance(data, at, WINDOW)
        self._data = data[at:]

    def count(self) -> int:
        """Return the number of tokens if the piece ended here; more may be added all the same."""
        rest = LongPiece(self._vocabulary)
        rest.tail, rest._done = self.tail.copy(), self._done
        at, data = 0, self._data
        while at < len(data):
            at, data = rest._advance(data, at, len(data) - at)
        if self.tail.maxlen is None:
            self.tail = rest.tail
        return rest._done

    def _advance(self, data: bytes, at: int, size: int) -> tuple[int, bytes]:
        """Turn data[at : at + size] into tokens, but for its margin unless data ends there; return what is left."""
        tail = self.tail
        window = data[at : at + size]
        ends = self._vocabulary.merge_window(window)
        while tail and not self._apart(tail[-1], window[: ends[0]]):
            token = tail.pop()
            self._done -= 1
            size += len(token)
            at, data = 0, token + data[at:]
            window = data[:size]
            ends = self._vocabulary.merge_window(window)
        limit = size - MARGIN if at + size < len(data) else size
        start = 0
        for end in ends:
            if end > limit and start:
                break
            tail.append(window[start:end])
            self._done += 1
            start = end
        return at + start, data

    def _apart(self, left: bytes, right: bytes) -> bool:
        return self._vocabulary.merge_window(left + right)[0] == len(left)


def final_pieces(vocabulary: Vocabulary, text: str) -> list[str]:
    """Return the pieces at the start of text that stay as they are however it goes on."""
    grammar = vocabulary.grammar
    classes = vocabulary.classes(text)
    pieces = list(vocabulary.pieces(text))
    end = len(text)
    # Where a piece is not final, what comes after it is in the same run of characters, and not final either.
    while pieces:
        start = end - len(pieces[-1])
        if max(end, grammar.find_reach(classes, start)) + 3 < len(text):
            break
        pieces.pop()
        end = start
    return pieces


def start_run(vocabulary: Vocabulary, text: str) -> Run | None:
    """Return what counts the long piece at the start of text; None where that cannot be told yet."""
    grammar = vocabulary.grammar
    classes = vocabulary.classes(text)
    if grammar.find_letters(classes) > 1:
        return _Letters(vocabulary)
    if re.fullmatch(_SPACES, classes):
        return _Spaces(vocabulary)
    piece = re.match(grammar.piece, classes)
    if piece and piece.end() == len(classes) and re.fullmatch(grammar.others, classes):
        return _Others(vocabulary)
    return None


class _Letters:
    """A piece of letters, perhaps with a sign before them and a suffix after.

    The last letter is held back each time, so that the pattern of pieces finds the end of the piece from there.
    """

    __slots__ = ("_grammar", "_piece", "count")

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._grammar = vocabulary.grammar
        self._piece = LongPiece(vocabulary)
        self.count = self._piece.count

    def take(self, text: str, classes: str, last: bool) -> tuple[int, bool]:
        piece = re.match(self._grammar.piece, classes)
        end = piece.end() if piece else 0
        done = last or max(end, self._grammar.find_reach(classes, 0)) + 3 < len(text)
        if not done:
            end = max(self._grammar.find_letters(classes) - 1, 0)
        self._piece.add(text[:end].encode())
        return end, done


class _Others:
    """A piece of signs that are neither letters nor digits, and of the line ends that belong to it."""

    __slots__ = ("_more", "_pattern", "_piece", "_tail", "count")

    def __init__(self, vocabulary: Vocabulary) -> None:
        grammar = vocabulary.grammar
        self._pattern = grammar.others
        self._more = grammar.more_others
        self._tail = f"()({grammar.tail})"
        self._piece = LongPiece(vocabulary)
        self.count = self._piece.count

    def take(self, text: str, classes: str, last: bool) -> tuple[int, bool]:
        match = re.match(self._pattern, classes)
        end = match.end() if match else 0
        self._pattern = self._tail if match and match[2] else self._more
        self._piece.add(text[:end].encode())
        return end, last or end < len(text)


class _Spaces:
    """White space: one piece up to its last line end, and one for what is left, without its last character if text
    follows.

    Which line end is the last one shows only in the end. So the count is kept for both, for all of it up to the last
    line end so far, and for what came after that.
    """

    __slots__ = ("_all", "_lines", "_since", "_vocabulary")

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._all = LongPiece(vocabulary)
        self._since = LongPiece(vocabulary)
        self._lines: int | None = None  # the tokens up to the last line end

    def take(self, text: str, classes: str, last: bool) -> tuple[int, bool]:
        end = match.end() if (match := re.match(_SPACES, classes)) else 0
        at_end = last and end == len(text)
        done = last or end < len(text)
        text = text[:end]
        if at_end and self._vocabulary.grammar.whole_end:
            self._all.add(text.encode())
            self._lines = None
            return end, True
        lines = max(text.rfind("\n"), text.rfind("\r")) + 1
        if done and lines:
            text = text[:lines]
        elif not at_end:
            text = text[:-1]
            lines = max(text.rfind("\n"), text.rfind("\r")) + 1
        if lines:
            self._all.add(text[:lines].encode())
            self._lines = self._all.count()
            self._since = LongPiece(self._vocabulary)
        rest = text[lines:].encode()
        self._all.add(rest)
        self._since.add(rest)
        return len(text), done

    def count(self) -> int:
        return self._all.count() if self._lines is None else self._lines + self._since.count()
