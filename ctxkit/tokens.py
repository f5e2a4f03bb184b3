"""Count tokens: exactly where a vocabulary is at hand, estimated where not; and keep as much text as a number allows.

`find_encoding` gives an encoding by name. All of them have the same shape: `name`, `estimated` (is a count only an
estimate?), `count(text)`, and `counter()`, which takes bytes as they come (`add`, then `total`). Bytes that are no
UTF-8 count as U+FFFD, as lone surrogates do; text that spells a special token is text.

| name | what |
|---|---|
| `o200k_base`, `cl100k_base`, `o200k_harmony` | exact, offline, from the vocabularies in `ctxkit/data` |
| any other that tiktoken knows | exact, if tiktoken has its vocabulary or can get it |
| `estimate` | from the bytes alone, by script |
| `pi` | what the Pi agent takes for an estimate: a quarter of the UTF-16 units |
"""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import getincrementaldecoder

from ctxkit.bpe import BLOCK, GRAMMARS, Vocabulary, final_pieces, start_run
from ctxkit.errors import CtxError, UsageError, VocabularyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    import tiktoken

    from ctxkit.bpe import Buffer, Run

    Encoding: TypeAlias = "Exact | Foreign | Estimate | Pi | Scaled"
    Counter: TypeAlias = "ExactCounter | WholeCounter | EstimateCounter | PiCounter | ScaledCounter"

DEFAULT = "o200k_base"
VOCABULARIES = {  # encoding -> the vocabulary it uses, a file NAME.ctxv in ctxkit/data
    "o200k_base": "o200k_base",
    "cl100k_base": "cl100k_base",
    "o200k_harmony": "o200k_base",  # differs in its special tokens only
}

# How much the pure engine works on one encoding before tiktoken is loaded, counted in bytes merged: a third of what
# loading costs, so that a text of many megabytes is not much slower than had its size been known, and one that ends
# soon after not much slower than without tiktoken.
PATIENCE = 64_000
SCANNED = 16  # characters split into known pieces that take as long as one byte merged


def find_encoding(name: str, map_data: Callable[[str], Buffer]) -> Exact | Foreign | Estimate | Pi:
    """Return the encoding of that name.

    `map_data` maps a file of ctxkit/data into memory, given its name, and is asked at most once.
    Raises UsageError for a name that is unknown here and to tiktoken, VocabularyError where its vocabulary cannot be
    had.
    """
    if name in VOCABULARIES:
        vocabulary = VOCABULARIES[name]
        return Exact(name, Vocabulary(map_data(f"{vocabulary}.ctxv"), GRAMMARS[vocabulary]))
    if name == "estimate":
        return Estimate()
    if name == "pi":
        return Pi()
    return Foreign(name)


def replace_surrogates(text: str) -> str:
    """Return text as UTF-8 can hold it: surrogates that form a pair become its character, lone ones U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class Exact:
    """An encoding whose vocabulary is shipped: exact, offline, in memory that does not grow with the text."""

    __slots__ = ("_scanned", "_tiktoken", "name", "vocabulary")

    estimated = False

    def __init__(self, name: str, vocabulary: Vocabulary) -> None:
        self.name = name
        self.vocabulary = vocabulary
        self._scanned = 0
        self._tiktoken: tiktoken.Encoding | None = None

    def count(self, text: str) -> int:
        """Return the number of tokens of text."""
        text = replace_surrogates(text)
        if len(text) <= BLOCK:
            return self.count_block(text)
        counter = ExactCounter(self)
        counter.add_text(text)
        return counter.total()

    def counter(self) -> ExactCounter:
        """Return a new counter for bytes that come in parts."""
        return ExactCounter(self)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the tokens of text."""
        return self.vocabulary.encode(replace_surrogates(text))

    def count_block(self, text: str) -> int:
        """Return the number of tokens of text that is not much longer than a block and holds no surrogates."""
        if self._tiktoken is None:
            self._scanned += len(text)
            if self._scanned // SCANNED + self.vocabulary.merged_bytes <= PATIENCE:
                return self.vocabulary.count(text)
            self._tiktoken = load_tiktoken(self.vocabulary)
        ids = encode_ordinary(self._tiktoken, text)
        return self.vocabulary.count(text) if ids is None else len(ids)


def load_tiktoken(vocabulary: Vocabulary) -> tiktoken.Encoding:
    """Build tiktoken's encoding from a shipped vocabulary; it takes a third of a second and some 90 MB, no network."""
    import tiktoken  # noqa: PLC0415 - takes longer to load than most texts take to count

    ranks = {token: rank for rank, token in enumerate(vocabulary.tokens())}
    grammar = vocabulary.grammar
    return tiktoken.Encoding(grammar.name, pat_str=grammar.tiktoken, mergeable_ranks=ranks, special_tokens={})


def encode_ordinary(encoding: tiktoken.Encoding, text: str) -> list[int] | None:
    """Return tiktoken's ids of text, or None where it panics: some patterns overflow its stack on long runs."""
    try:
        return encoding.encode_ordinary(text)
    except BaseException as error:
        # A panic is not an Exception, so that "except Exception" misses it; KeyboardInterrupt must not be caught here.
        if type(error).__name__ != "PanicException":
            raise
        return None


class ExactCounter:
    """The exact number of tokens of bytes that come in parts.

    Memory is bounded whatever comes: text is cut where pieces part, and a piece longer than a block goes through a
    `LongPiece`. One case is kept whole until it ends: a mark or an uncased letter followed by a block of capitals
    without a break, since whether a small letter comes after them decides about all of them.
    """

    __slots__ = ("_base", "_decode", "_encoding", "_need", "_parts", "_run", "_size", "_total", "_vocabulary")

    estimated = False

    def __init__(self, encoding: Exact, block: int = BLOCK) -> None:
        self._encoding = encoding
        self._vocabulary = encoding.vocabulary
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._base = self._need = block
        self._parts: list[str] = []
        self._size = 0
        self._run: Run | None = None
        self._total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.add_text(self._decode(data))

    def add_text(self, text: str) -> None:
        """Take the next text, instead of bytes; it must not hold surrogates."""
        self._parts.append(text)
        self._size += len(text)
        if self._size >= self._need:
            rest = self._drain("".join(self._parts), False)
            self._parts, self._size = [rest], len(rest)

    def total(self) -> int:
        """Return the number of tokens of all that was added; nothing can be added after it."""
        self.add_text(self._decode(b"", True))
        self._drain("".join(self._parts), True)
        self._parts, self._size = [], 0
        if self._run is not None:  # it took all there was
            self._total += self._run.count()
            self._run = None
        return self._total

    def _drain(self, text: str, last: bool) -> str:
        """Count as much of text as what follows cannot change, all of it where it is the last; return the rest."""
        at, size = 0, self._base
        while at < len(text):
            block = text[at : at + size]
            ends = last and at + size >= len(text)
            if len(block) < size and not ends:
                break
            if ends and self._run is None:
                self._total += self._encoding.count_block(block)
                return ""
            taken = self._take(block, ends)
            at += taken
            size = self._base if taken else 2 * size
        self._need = size
        return text[at:]

    def _take(self, block: str, ends: bool) -> int:
        """Count some of a block; return how many characters, 0 where it needs to see more of them."""
        vocabulary = self._vocabulary
        if self._run is None:
            cut = vocabulary.last_cut(block)
            if cut:
                self._total += self._encoding.count_block(block[:cut])
                return cut
            pieces = final_pieces(vocabulary, block)
            if pieces:
                self._total += vocabulary.count_pieces(pieces)
                return sum(map(len, pieces))
            self._run = start_run(vocabulary, block)
            if self._run is None:
                return 0
        taken, done = self._run.take(block, vocabulary.classes(block), ends)
        if not done:
            return taken
        self._total += self._run.count()
        self._run = None
        return taken or self._take(block, ends)


class Foreign:
    """An encoding that tiktoken knows and ctx does not ship; its text is counted as a whole.

    tiktoken takes the vocabulary from its cache and otherwise tries once to download it.
    Raises UsageError for a name tiktoken does not know, VocabularyError where the vocabulary cannot be had.
    """

    __slots__ = ("_tiktoken", "name")

    estimated = False

    def __init__(self, name: str) -> None:
        import tiktoken  # noqa: PLC0415 - costs more than to count a text of the usual size

        known = tiktoken.list_encoding_names()
        if name not in known:
            names = ", ".join([*known, "estimate", "pi"])
            raise UsageError(f"unknown encoding: {name}", f"the known ones are {names}")
        self.name = name
        try:
            self._tiktoken = tiktoken.get_encoding(name)
        except Exception as error:  # whatever a download, a proxy, a cache folder or a plug-in can raise
            raise VocabularyError(
                f"no vocabulary for {name}: not in tiktoken's cache, and not to be downloaded ({first_line(error)})",
                "use o200k_base, cl100k_base or estimate, which need no download",
            ) from error

    def count(self, text: str) -> int:
        """Return the number of tokens of text; raise CtxError where tiktoken gives up on it."""
        ids = encode_ordinary(self._tiktoken, replace_surrogates(text))
        if ids is None:
            raise CtxError(f"tiktoken cannot count this text in {self.name}", "use o200k_base, cl100k_base or estimate")
        return len(ids)

    def counter(self) -> WholeCounter:
        """Return a new counter; it keeps the text, as only the shipped grammars are known well enough to cut it."""
        return WholeCounter(self)


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, short enough for one line of ours; its kind if it says nothing."""
    lines = str(error).splitlines()
    kind = type(error).__name__
    return f"{kind}: {lines[0][:100]}" if lines else kind


class WholeCounter:
    """The number of tokens of bytes that come in parts, counted when all are there; memory grows with them."""

    __slots__ = ("_encoding", "_parts")

    estimated = False

    def __init__(self, encoding: Foreign) -> None:
        self._encoding = encoding
        self._parts: list[bytes] = []

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self._parts.append(data)

    def total(self) -> int:
        """Return the number of tokens of all that was added."""
        return self._encoding.count(b"".join(self._parts).decode("utf-8", "replace"))


class Pi:
    """Pi's estimate: a quarter of the UTF-16 units, rounded up."""

    __slots__ = ()

    name = "pi"
    estimated = True

    def count(self, text: str) -> int:
        """Return Pi's estimate for text."""
        return -(-count_utf16(text) // 4)

    def counter(self) -> PiCounter:
        """Return a new counter for bytes that come in parts."""
        return PiCounter()


def count_utf16(text: str) -> int:
    """Return the length of text in UTF-16 units: what `length` says in JavaScript."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


class PiCounter:
    """Pi's estimate for bytes that come in parts."""

    __slots__ = ("_decode", "_units")

    estimated = True

    def __init__(self) -> None:
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._units = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self._units += count_utf16(self._decode(data))

    def total(self) -> int:
        """Return Pi's estimate for all that was added; nothing can be added after it."""
        self._units += count_utf16(self._decode(b"", True))
        return -(-self._units // 4)


# The estimate adds up what each kind of byte usually costs, in thousandths of a token of o200k_base. Fitted to prose,
# code, logs and Markdown, and to texts in eighteen other languages. A character goes by its first byte.
_KINDS = (  # sign, first byte, last byte, cost of each
    (b".", 0x00, 0x7F, 91),  # ASCII that is none of the next
    (b"a", 0x61, 0x7A, 114),
    (b"A", 0x41, 0x5A, 114),
    (b"0", 0x30, 0x39, 591),
    (b"\n", 0x0A, 0x0A, 262),
    (b" ", 0x20, 0x20, 0),
    (b" ", 0x09, 0x09, 0),
    (b" ", 0x0D, 0x0D, 0),
    (b".", 0xC2, 0xC2, 91),  # signs of Latin 1
    (b"e", 0xC3, 0xCB, 1400),  # Latin with accents: less in French, more in Czech
    (b"m", 0xCC, 0xCD, 600),  # combining accents
    (b"g", 0xCE, 0xCF, 457),  # Greek
    (b"r", 0xD0, 0xD4, 120),  # Cyrillic, which costs mostly by the word
    (b"h", 0xD5, 0xDF, 500),  # Hebrew, Arabic
    (b"i", 0xE0, 0xE1, 500),  # Indic scripts, Thai, Vietnamese
    (b"s", 0xE2, 0xE2, 1400),  # dashes, quotation marks, arrows, lines, symbols
    (b"k", 0xE3, 0xE3, 716),  # kana
    (b"c", 0xE4, 0xE9, 740),  # ideographs
    (b"o", 0xEA, 0xED, 821),  # Hangul
    (b"f", 0xEE, 0xEF, 210),  # full-width signs, variation selectors
    (b"4", 0xF0, 0xF4, 1629),  # emoji
)
_RUNS = (  # over the signs: what costs by the run
    (rb"[aAem]+", 492),  # a word
    (rb"aA", 45),  # another word within a name
    (rb"r+", 930),
    (rb"\.+", 886),
    (rb"  +", 823),  # an indentation
)
_CONTINUATION = bytes(range(0x80, 0xC0))


def _sign_table() -> bytes:
    table = bytearray(b"?" * 256)
    for sign, first, last, _ in _KINDS:
        table[first : last + 1] = sign * (last + 1 - first)
    return bytes(table)


def _weigh(signs: bytes) -> int:
    """Return what text costs by the estimate, in thousandths of a token."""
    costs = {sign: cost for sign, _, _, cost in _KINDS}
    total = sum(signs.count(sign) * cost for sign, cost in costs.items())
    return total + sum(len(re.findall(run, signs)) * cost for run, cost in _RUNS)


def calibrate(estimated: int, reported: int) -> float:
    """Return the factor that brings an estimate to the usage that a provider reported for the same text.

    It stays between a half and two: what lies outside was not the same text. Without numbers it is 1.
    """
    if estimated <= 0 or reported <= 0:
        return 1.0
    return min(2.0, max(0.5, reported / estimated))


class Estimate:
    """An estimate by script, without a vocabulary, times `factor`: within 15 % of o200k_base on ordinary text."""

    __slots__ = ("factor",)

    name = "estimate"
    estimated = True

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def count(self, text: str) -> int:
        """Return the estimated number of tokens of text."""
        counter = self.counter()
        counter.add(replace_surrogates(text).encode())
        return counter.total()

    def counter(self) -> EstimateCounter:
        """Return a new counter for bytes that come in parts."""
        return EstimateCounter(self.factor)


class EstimateCounter:
    """The estimate for bytes that come in parts; the same however they are divided."""

    __slots__ = ("_before", "_factor", "_table", "_weight")

    estimated = True

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._table = _sign_table()
        self._before = b""  # the last two signs: all that a run needs to know of what came before
        self._weight = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        signs = self._before + data.translate(self._table, _CONTINUATION)
        self._weight += _weigh(signs) - _weigh(self._before)
        self._before = signs[-2:]

    def total(self) -> int:
        """Return the estimate for all that was added: at least 1 where there was a character."""
        return max(round(self._weight * self._factor / 1000), 1 if self._before else 0)


class Scaled:
    """An estimate for a model without a public vocabulary: what another encoding counts, times a known ratio.

    `percent` is that ratio in hundredths; the count is rounded up.
    """

    __slots__ = ("encoding", "name", "percent")

    estimated = True

    def __init__(self, name: str, encoding: Exact, percent: int) -> None:
        self.name = name
        self.encoding = encoding
        self.percent = percent

    def count(self, text: str) -> int:
        """Return the estimated number of tokens of text."""
        return self.scale(self.encoding.count(text))

    def counter(self) -> ScaledCounter:
        """Return a new counter for bytes that come in parts."""
        return ScaledCounter(self)

    def scale(self, count: int) -> int:
        """Return the estimate for what the other encoding counts."""
        return -(-count * self.percent // 100)


class ScaledCounter:
    """The estimate of a `Scaled` encoding for bytes that come in parts."""

    __slots__ = ("_counter", "_encoding", "add")

    estimated = True

    def __init__(self, encoding: Scaled) -> None:
        self._encoding = encoding
        self._counter = encoding.encoding.counter()
        self.add = self._counter.add

    def total(self) -> int:
        """Return the estimate for all that was added; nothing can be added after it."""
        return self._encoding.scale(self._counter.total())


class Kept:
    """What fits of a text: `text` itself, how many `tokens` it has, and whether it is `partial`, a part of one line."""

    __slots__ = ("partial", "text", "tokens")

    def __init__(self, text: str, tokens: int, partial: bool) -> None:
        self.text = text
        self.tokens = tokens
        self.partial = partial


LONGEST_TOKEN = 128  # bytes, in the shipped vocabularies: what has more than that times N has more than N tokens
_STEP = 4096  # characters counted at a time while the place is looked for where the limit is crossed


def keep_head(text: str, limit: int, encoding: Encoding) -> Kept:
    """Return the longest start of text, in whole lines, that has at most `limit` tokens.

    If not even the first line fits, it is as much of that one as does. Only LF ends a line, and it belongs to it.
    """
    return _keep(text, limit, encoding, _Head(text))


def keep_tail(text: str, limit: int, encoding: Encoding) -> Kept:
    """Return the longest end of text, in whole lines, that has at most `limit` tokens.

    If not even the last line fits, it is as much of its end as does.
    """
    return _keep(text, limit, encoding, _Tail(text))


class _Head:
    """Text seen from its start: `size` characters are kept, the rest is left out."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def part(self, begin: int, size: int) -> str:
        return self._text[begin:size]

    def cut(self, part: str, encoding: Exact) -> int:
        return encoding.vocabulary.last_cut(part)

    def lines(self, begin: int, size: int) -> list[int]:
        """Return the sizes above `begin`, up to `size`, that are whole lines."""
        ends = [match.end() for match in re.compile("\n").finditer(self._text, begin, size)]
        return [*ends, size] if size == len(self._text) and ends[-1:] != [size] else ends

    def whole_lines(self, size: int) -> int:
        """Return the largest size of whole lines that is not above `size`; 0 where there is none."""
        return self._text.rfind("\n", 0, size) + 1

    def first_line(self) -> int:
        return self._text.find("\n") + 1 or len(self._text)


class _Tail:
    """The same seen from the end of the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def part(self, begin: int, size: int) -> str:
        length = len(self._text)
        return self._text[length - size : length - begin]

    def cut(self, part: str, encoding: Exact) -> int:
        return len(part) - encoding.vocabulary.first_cut(part)

    def lines(self, begin: int, size: int) -> list[int]:
        # A line starts where the one before it has ended; so the last character of the text starts none.
        length = len(self._text)
        ends = re.compile("\n").finditer(self._text, max(length - size - 1, 0), max(length - begin - 1, 0))
        sizes = [length - match.end() for match in ends]
        sizes.reverse()
        return [*sizes, size] if size == length else sizes

    def whole_lines(self, size: int) -> int:
        length = len(self._text)
        if size >= length:
            return length
        end = self._text.find("\n", length - size - 1 if size else length, length - 1)
        return length - end - 1 if end >= 0 else 0

    def first_line(self) -> int:
        return len(self._text) - self._text.rfind("\n", 0, -1) - 1


def _keep(text: str, limit: int, encoding: Encoding, side: _Head | _Tail) -> Kept:
    if isinstance(encoding, Scaled):
        inner = _keep(text, limit * 100 // encoding.percent, encoding.encoding, side)
        return Kept(inner.text, encoding.scale(inner.tokens), inner.partial)

    # From cut to cut up to where the limit is crossed. Elsewhere than at cuts the counts of parts do not add up.
    cuts = [(0, 0)]
    length, step = len(text), _STEP
    while True:
        begin, before = cuts[-1]
        size = min(begin + step, length)
        cut = 0
        if size < length and isinstance(encoding, Exact):
            cut = side.cut(side.part(begin, size), encoding)
        if cut:
            size = begin + cut
        tokens = before + encoding.count(side.part(begin, size))
        if tokens > limit:
            break
        if size == length:
            return Kept(text, tokens, False)
        if cut:
            cuts.append((size, tokens))
            step = _STEP
        else:
            step *= 2

    def count(kept: int) -> int:
        begin, before = next(cut for cut in reversed(cuts) if cut[0] <= kept)
        return before + encoding.count(side.part(begin, kept))

    def longest(sizes: Sequence[int]) -> int:
        """Return the last of the sizes that fits; 0 where none does."""
        fits = bisect_right(sizes, limit, key=count)
        found = sizes[fits - 1] if fits else 0
        begin = cuts[-1][0]
        if found > begin and isinstance(encoding, Exact):  # count from as near as possible
            cut = side.cut(side.part(begin, found), encoding)
            cuts.append((begin + cut, count(begin + cut)))
        # More text may have fewer tokens, "wor" and "world": look on, as long as that is cheap.
        best = max(found, begin)
        if best - cuts[-1][0] <= _STEP:
            for kept in sizes[fits:]:
                if kept > best + LONGEST_TOKEN:
                    break
                if count(kept) <= limit:
                    best = found = kept
        return found

    begin = cuts[-1][0]
    end = min(size + LONGEST_TOKEN, length)
    kept = longest(side.lines(begin, end))
    whole = side.whole_lines(begin)
    while whole and not kept:
        if count(whole) <= limit:
            kept = whole
        whole = side.whole_lines(whole - 1)
    if kept:
        return Kept(side.part(0, kept), count(kept), False)
    line = side.first_line()
    begin = begin if begin < line else 0
    kept = longest(range(begin + 1, min(end, line) + 1)) or begin
    return Kept(side.part(0, kept), count(kept), kept > 0)
