"""The values of a session and the scanner that finds them: bytes in, JSON values with their exact bytes out.

Knows JSON, lines and offsets, nothing about any agent: what an entry of Pi or Codex looks like is known in `agents/`.
The pieces that `values` yields cover its input without a gap, so what nobody changed can be written back byte for byte.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple, Protocol

BOM: Final = b"\xef\xbb\xbf"
BLOCK: Final = 1 << 20
JUNK: Final = object()  # the value of bytes that hold none; JSON's null is None

_BLANK = b" \t\r\n"
_TRIES = 2  # a line is looked at again at most this often, so that broken input costs linear time


class Finding(NamedTuple):
    """One thing that is wrong with an input: where (1-based line), which kind, and what."""

    line: int
    code: str
    what: str


Note = Callable[[Finding], None]


def ignore(_: Finding) -> None:
    """Take note of nothing."""


class Value(NamedTuple):
    """One JSON value of a stream, or JUNK, with the line it begins on and the bytes it came from.

    `start` is the offset of `raw`; `raw` holds the blanks around the value in its lines too, the line end included.
    Blank lines and a byte order mark are JUNK of their own, and no damage.
    """

    value: Any
    line: int
    start: int
    raw: bytes


class Entry(NamedTuple):
    """One entry of a session as ctx reads it.

    `id` is None for what is no part of the tree: a header, a foreign line, bytes that hold no value.
    `value` is the entry in terms of Pi's version 3, {} where there is none; `type` and `timestamp` are "" when absent.
    `raw` are the bytes it was read from, b"" for one that is new or was changed; `start` is their offset, -1 for none.
    """

    id: str | None
    parent_id: str | None
    type: str
    timestamp: str
    value: dict[str, Any]
    line: int = 0
    start: int = -1
    raw: bytes = b""

    @property
    def message(self) -> dict[str, Any]:
        """The message of a `message` entry, {} where there is none."""
        found = self.value.get("message")
        return found if isinstance(found, dict) else {}


class Message(NamedTuple):
    """What one entry gives to the model: the message as stored, and the id of the entry it came from."""

    value: dict[str, Any]
    entry_id: str | None = None

    @property
    def role(self) -> str:
        """The role, "" when it is missing or no string."""
        found = self.value.get("role")
        return found if isinstance(found, str) else ""

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The content as blocks: a string is one text block; what is neither block nor string is left out."""
        return blocks(self.value.get("content"))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tool calls of an assistant message, in order."""
        return [block for block in self.blocks if block.get("type") == "toolCall"] if self.role == "assistant" else []


class Bytes(Protocol):
    """Bytes that can be read anywhere: `bytes`, `mmap`, or anything with a length whose slices are bytes."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> bytes: ...


def entry_of(value: dict[str, Any], *, line: int = 0, start: int = -1, raw: bytes = b"") -> Entry:
    """Make an entry of an object, taking id, parent, type and timestamp from where Pi keeps them."""
    own, parent, kind, time = value.get("id"), value.get("parentId"), value.get("type"), value.get("timestamp")
    return Entry(
        own if isinstance(own, str) and own else None,
        parent if isinstance(parent, str) and parent else None,
        kind if isinstance(kind, str) else "",
        time if isinstance(time, str) else "",
        value,
        line,
        start,
        raw,
    )


def blocks(content: object) -> list[dict[str, Any]]:
    """Give the content of a message as a list of blocks, whatever a hand-edited file holds (Pi §2)."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [
        {"type": "text", "text": block} if isinstance(block, str) else block
        for block in content
        if isinstance(block, (dict, str))
    ]


def text_of(block: dict[str, Any]) -> str:
    """Give the text of a text block, "" for any other."""
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


# -- scanning --------------------------------------------------------------------------------------------------------


def chunks(data: Bytes, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Cut a buffer into blocks, so that it can be scanned without being held."""
    stop = len(data) if stop is None else stop
    for position in range(start, stop, BLOCK):
        yield data[position : min(position + BLOCK, stop)]


def values(source: Iterable[bytes], note: Note, *, line: int = 1, start: int = 0) -> Iterator[Value]:
    """Find the JSON values in a byte stream, and everything between them as JUNK.

    Values, not lines: several on one line (`glued`), one over many lines (`spread`), what a crash or a cut left behind
    (`torn`, `nul`, `not-json`). Each problem is noted; none is raised. The `raw`s joined are the input. `line` and
    `start` say where the input begins in its file. Time is linear in the input; memory is bounded by the largest value,
    and by the rest of the input while an opened value is looked for its end.
    """
    lines = _lines(source, line, start)
    again: deque[_Line] = deque()
    gap: list[bytes] = []
    gap_line = gap_start = 0
    while current := again.popleft() if again else next(lines, None):
        at, begin, raw, tries = current
        if begin == 0 and raw.startswith(BOM):
            note(Finding(at, "bom", "the file begins with a byte order mark"))
            yield Value(JUNK, at, begin, BOM)
            begin, raw = len(BOM), raw.removeprefix(BOM)
        if not raw.lstrip(_BLANK):
            if not gap:
                gap_line, gap_start = at, begin
            gap.append(raw)
            continue
        if gap:
            yield Value(JUNK, gap_line, gap_start, b"".join(gap))
            gap.clear()
        value = _whole(raw, at, note)
        if value is not JUNK:
            yield Value(value, at, begin, raw)
            continue
        spans = _spans(raw)
        if sum(what == "value" for *_, what in spans) > 1:
            note(Finding(at, "glued", "several values on one line"))
        for first, last, what in spans:
            part = raw[first:last]
            if what == "open" and tries < _TRIES:
                held, whole, rest = _gather(part, at, begin + first, again, lines)
                value = JUNK if whole is None else _whole(whole, at, note)
                if whole is not None and value is not JUNK:
                    note(Finding(at, "spread", f"one value over {len(held) + 1} lines"))
                    if rest is not None:
                        again.appendleft(rest)
                    yield Value(value, at, begin + first, whole)
                    continue
                again.extendleft(item._replace(tries=item.tries + 1) for item in reversed(held))
                found = _next_entry(part.decode("latin-1"), 0, 0, 4 * len(part) + 4096)[0]
                if found < len(part):
                    again.appendleft(_Line(at, begin + first + found, part[found:], _TRIES))
                    part = part[:found]
            elif what == "value":
                value = _whole(part, at, note)
                if value is not JUNK:
                    yield Value(value, at, begin + first, part)
                    continue
            note(_damage(part, at, what))
            yield Value(JUNK, at, begin + first, part)
    if any(gap):
        yield Value(JUNK, gap_line, gap_start, b"".join(gap))


class _Line(NamedTuple):
    line: int
    start: int
    raw: bytes
    tries: int


def _lines(source: Iterable[bytes], line: int, start: int) -> Iterator[_Line]:
    pending: list[bytes] = []
    for chunk in source:
        *whole, rest = chunk.split(b"\n")
        for raw in whole:
            raw = b"".join((*pending, raw, b"\n")) if pending else raw + b"\n"
            pending.clear()
            yield _Line(line, start, raw, 0)
            line += 1
            start += len(raw)
        if rest:
            pending.append(rest)
    if pending:
        yield _Line(line, start, b"".join(pending), 0)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _long_int(digits: str) -> int | float:
    return int(digits) if len(digits) < 4000 else float(digits)


_STRICT = json.JSONDecoder(parse_constant=_refuse)
_PATIENT = json.JSONDecoder(parse_constant=_refuse, parse_int=_long_int)
_LENIENT = json.JSONDecoder(parse_constant=_refuse, parse_int=_long_int, strict=False)
_CONTROL = re.compile(rb"[\x00-\x1f]")


def _decode(text: str, position: int = 0) -> tuple[Any, int]:
    try:
        return _STRICT.raw_decode(text, position)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer of more than 4300 digits, or NaN
        return _PATIENT.raw_decode(text, position)


def _whole(raw: bytes, line: int, note: Note) -> Any:
    """Decode bytes that hold one value and blanks, else JUNK."""
    try:
        text = raw.decode()
        value, end = _STRICT.raw_decode(text)
        if end != len(text) and text[end:].strip(" \t\r\n"):
            return JUNK
    except (ValueError, RecursionError):
        return _patiently(raw, line, note)
    if b"\\ud" in raw or b"\\uD" in raw:
        _check_surrogates(value, line, note)
    return value


def _patiently(raw: bytes, line: int, note: Note) -> Any:
    body = raw.strip(_BLANK)
    text = body.decode("utf-8", "replace")
    control = _CONTROL.search(body) is not None
    try:
        value, end = _LENIENT.raw_decode(text) if control else _decode(text)
    except (ValueError, RecursionError):
        return JUNK
    if end != len(text):
        return JUNK
    if "\ufffd" in text and not _is_utf8(body):
        note(Finding(line, "invalid-utf-8", "bytes that are not UTF-8; each reads as U+FFFD"))
    if control and not _is_strict(text):
        note(Finding(line, "control-character", "an unescaped control character in a string"))
    _check_surrogates(value, line, note)
    return value


def _is_strict(text: str) -> bool:
    try:
        _decode(text)
    except json.JSONDecodeError:
        return False
    return True


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_surrogates(value: Any, line: int, note: Note) -> None:
    try:
        _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        note(Finding(line, "lone-surrogate", "half a surrogate pair; it is written as U+FFFD"))
    except (ValueError, RecursionError):
        return  # a number beyond every float, or nested almost too deep; neither says anything about surrogates


def _stands_alone(value: Any) -> bool:
    """Tell an entry from a block or an argument object inside one: only entries have both a type and a time."""
    return isinstance(value, dict) and "type" in value and "timestamp" in value


_SPACE = re.compile("[ \t\r]*")


def _spans(raw: bytes) -> list[tuple[int, int, str]]:
    """Split one line into spans: a "value", "junk", "deep" junk, or "open", begun here and perhaps ended further down.

    Works on Latin-1 text, where a character is a byte: JSON's structure is ASCII, so the offsets are exact.
    """
    text = raw.rstrip(_BLANK).decode("latin-1")
    size = len(text)
    budget = 4 * size + 4096
    spans: list[tuple[int, int, str]] = []
    begin = 0
    while begin < size:
        position = failed = _SPACE.match(text, begin).end()  # type: ignore[union-attr]
        broken = "junk"
        if text[position] in "{[":
            try:
                end = _decode(text, position)[1]
            except json.JSONDecodeError as error:
                unclosed = error.msg.startswith("Unterminated")
                if error.pos >= size and not unclosed:
                    spans.append((begin, size, "open"))
                    break
                failed = error.pos
                budget -= (size if unclosed else failed) - position
            except RecursionError:
                broken = "deep"
            except ValueError:
                budget -= size - position
            else:
                spans.append((begin, end, "value"))
                begin = end
                continue
        found, budget = _next_entry(text, position, failed, budget)
        spans.append((begin, found, broken))
        begin = found
    first, _, what = spans[-1]
    spans[-1] = (first, len(raw), what)
    return spans


def _next_entry(text: str, position: int, failed: int, budget: int) -> tuple[int, int]:
    """Find where the next entry begins in a line that broke at `failed`: an append after a torn write (S02).

    An entry is looked for where the first objects begin and where decoding broke. Inside strings the quotes are
    escaped, so `{"` there is none. Returns the end of the text when there is no further entry.
    """
    size = len(text)
    places = {place for place in range(max(position + 1, failed - 8), failed + 8) if text.startswith('{"', place)}
    place = position
    for _ in range(8):
        place = text.find('{"', place + 1)
        if place < 0:
            break
        places.add(place)
    for place in sorted(places):
        if budget <= 0:
            break
        try:
            value, _ = _decode(text, place)
        except json.JSONDecodeError as error:
            budget -= (size if error.msg.startswith("Unterminated") else error.pos) - place
            continue
        except (ValueError, RecursionError):
            budget -= size - place
            continue
        if _stands_alone(value):
            return place, budget
        budget -= 64
    return size, budget


_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]', re.DOTALL)


def _gather(
    part: bytes, line: int, start: int, again: deque[_Line], lines: Iterator[_Line]
) -> tuple[list[_Line], bytes | None, _Line | None]:
    """Take lines until the value opened in `part` closes.

    Returns the lines taken, the bytes of the value (None when it does not close) and what is left of the last line.
    """
    held: list[_Line] = []
    parts: list[bytes] = []
    depth = 0
    current = _Line(line, start, part, 0)
    in_object = part.lstrip(_BLANK).startswith(b"{")
    while True:
        for token in _TOKEN.finditer(current.raw):
            mark = token[0]
            if mark in (b"{", b"["):
                depth += 1
            elif mark in (b"}", b"]"):
                depth -= 1
                if depth == 0:
                    end = token.end()
                    tail = current.raw[end:]
                    if not tail.strip(_BLANK):
                        return held, b"".join((*parts, current.raw)), None
                    rest = _Line(current.line, current.start + end, tail, current.tries)
                    return held, b"".join((*parts, current.raw[:end])), rest
            elif mark == b'"':
                return held, None, None  # no string goes on in the next line
        parts.append(current.raw)
        following = again.popleft() if again else next(lines, None)
        if following is None:
            return held, None, None
        held.append(following)
        # An entry on a line of its own is no part of an object, nor of an array that does not go on: a line was torn.
        if (
            following.raw.startswith(b"{")
            and (in_object or not current.raw.rstrip(_BLANK).endswith((b"[", b",")))
            and _stands_alone(_whole(following.raw, following.line, ignore))
        ):
            return held, None, None
        current = following


def _damage(raw: bytes, line: int, what: str) -> Finding:
    body = raw.strip(_BLANK)
    if not body.strip(b"\x00"):
        return Finding(line, "nul", f"{len(body)} NUL bytes")
    if what == "deep":
        return Finding(line, "too-deep", "a value nested too deep to be read")
    if body[:1] in (b"{", b"["):
        return Finding(line, "torn", f"{len(body)} bytes of a value that is cut or broken")
    return Finding(line, "not-json", f"{len(body)} bytes that are no JSON value")


# -- writing ---------------------------------------------------------------------------------------------------------

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_LONE = re.compile("[\ud800-\udfff]")
_INDEX = re.compile("0|[1-9][0-9]{0,9}")


def dumps(value: Any) -> str:
    """Write a value as compact JSON that is valid UTF-8: no spaces, non-ASCII literal, lone surrogates as U+FFFD.

    Integers keep all their digits; numbers that no float holds become null, as JSON.stringify has it (Pi §16).
    """
    try:
        return clean(_ENCODER.encode(value))
    except (ValueError, RecursionError):
        return clean(_written(value, _exact_number, list))


def stringify(value: Any) -> str:
    """Write a value exactly as JavaScript's JSON.stringify after JSON.parse would (Pi §16).

    Integer-like keys first, numbers as doubles, lone surrogates as `\\udxxx`.
    """
    text = _written(value, _js_number, in_order)
    return _LONE.sub(lambda lone: f"\\u{ord(lone[0]):04x}", text)


def clean(text: str) -> str:
    """Replace each lone surrogate by U+FFFD, so that the text can be encoded."""
    if _LONE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def line_of(entry: Entry) -> bytes:
    """Give an entry as one line of its own: its bytes where they are one line and say what `value` says, else anew."""
    body = entry.raw.strip(_BLANK)
    if entry.value and (not body or b"\n" in body or _whole(body, 0, ignore) != entry.value):
        body = dumps(entry.value).encode()
    return body + b"\n"


def disarm(text: str, tag: str) -> str:
    """Make text unable to close the tag it is put in: the `<` of each closing tag becomes `&lt;`.

    Any spelling a model may take for the tag counts (`</ Summary >`); all other text stays as it is.
    """
    return re.sub(rf"<(?=\s*/\s*{re.escape(tag)}\b)", "&lt;", text, flags=re.IGNORECASE)


def _written(value: Any, number: Callable[[int | float], str], items: Callable[[Any], list[Any]]) -> str:
    # Iterative: what could be read must be writable, however little of the stack is left.
    out: list[str] = []
    todo: list[Any] = [(value,)]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        node = item[0]
        if isinstance(node, str):
            out.append(encode_basestring(node))
        elif node is None:
            out.append("null")
        elif isinstance(node, bool):
            out.append("true" if node else "false")
        elif isinstance(node, (int, float)):
            out.append(number(node))
        elif isinstance(node, dict):
            out.append("{")
            todo.append("}")
            pairs = items(node.items())
            for position in range(len(pairs) - 1, -1, -1):
                key, member = pairs[position]
                todo += ((member,), ("," if position else "") + encode_basestring(key) + ":")
        else:
            out.append("[")
            todo.append("]")
            for position in range(len(node) - 1, -1, -1):
                todo.append((node[position],))
                if position:
                    todo.append(",")
    return "".join(out)


def in_order(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Order members as JavaScript does: keys that are array indices first, by number (Pi §16)."""
    rest: list[tuple[str, Any]] = []
    first: list[tuple[int, str, Any]] = []
    for key, member in pairs:
        if _INDEX.fullmatch(key) and int(key) < 2**32 - 1:
            first.append((int(key), key, member))
        else:
            rest.append((key, member))
    first.sort(key=lambda pair: pair[0])
    return [(key, member) for _, key, member in first] + rest


def _exact_number(number: int | float) -> str:
    return str(number) if isinstance(number, int) else _js_number(number)


def _js_number(number: int | float) -> str:
    try:
        number = float(number)
    except OverflowError:
        return "null"
    if number != number or number in (float("inf"), float("-inf")):
        return "null"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        body = digits[:point].ljust(point, "0") + ("." + digits[point:] if len(digits) > point else "")
    elif -6 < point <= 0:
        body = "0." + "0" * -point + digits
    else:
        body = digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e{point - 1:+d}"
    return sign + body


# -- time ------------------------------------------------------------------------------------------------------------

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(?:Z|([+-])(\d\d):?(\d\d))?)?",
    re.ASCII,
)


def millis(timestamp: str) -> int | None:
    """Read an ISO 8601 time as Unix milliseconds; no zone means UTC; None for what is no time."""
    match = _ISO.fullmatch(timestamp)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour <= 24 and minute <= 59 and second <= 60):
        return None
    # Count years from March on, so that the leap day is the last of its year.
    years = year - (month <= 2)
    days = 365 * years + years // 4 - years // 100 + years // 400
    days += (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 719469
    offset = (int(match[9]) * 60 + int(match[10])) * (-1 if match[8] == "-" else 1) if match[8] else 0
    seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second
    return seconds * 1000 + int((match[7] or "").ljust(3, "0")[:3])


def iso(milliseconds: int) -> str:
    """Write Unix milliseconds the way Pi writes the time of an entry: `2026-01-01T00:00:00.000Z`."""
    days, rest = divmod(milliseconds, 86_400_000)
    days += 719468
    era, day = divmod(days, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month += 3 if month < 10 else -9
    year += era * 400 + (month <= 2)
    seconds, fraction = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{fraction:03d}Z"
