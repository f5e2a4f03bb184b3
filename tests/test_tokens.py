"""Tokens: the same as tiktoken, however the text comes; estimates that are near; as much text as a number allows."""

from __future__ import annotations

import base64
import hashlib
import mmap
import random
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxkit import bpe, tokens
from ctxkit.errors import CtxError, UsageError

DATA = Path(tokens.__file__).parent / "data"
NAMES = ["o200k_base", "cl100k_base"]
# What tiktoken expects its rank files to be.
RANK_FILES = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


def map_data(name: str) -> mmap.mmap:
    with (DATA / name).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def exact(name: str) -> tokens.Exact:
    encoding = tokens.find_encoding(name, map_data)
    assert isinstance(encoding, tokens.Exact)
    return encoding


EXACT = {name: exact(name) for name in NAMES}
_TIKTOKEN: dict[str, tiktoken.Encoding] = {}


def peer(name: str) -> tiktoken.Encoding:
    """Return tiktoken's encoding of the same ranks."""
    if name not in _TIKTOKEN:
        _TIKTOKEN[name] = tokens.load_tiktoken(EXACT[name].vocabulary)
    return _TIKTOKEN[name]


def ids(name: str, text: str) -> list[int]:
    return peer(name).encode_ordinary(text)


# --- the same as tiktoken ---------------------------------------------------------------------------------------------

HOSTILE = [
    *"abzABZ019 \n\r\t'\"/._-=+{}()<>!?|",
    *"éßÀµªºſKİıǅʰ中の한กิ٣½²Ⅷ",
    *"\u0301\u200d\ufe0f\u00a0\u3000\u2028\x85\x1c\x0b\x0c\0\ufffd\ufeff\u0378\U0001fae9😀🇩👩🏽",
    *["'s", "'S", "'ſ", "'re", "'LL", "'v", "''", "  ", "\n\n", "\r\n", " \n", "\t\t", "/\n", "!\n"],
    *[
        "👩‍💻",
        "❤️",
        "e\u0301",
        "中A",
        "ʰA",
        "aB",
        "Ab",
        "the",
        " world",
        "<|endoftext|>",
        "<|im_start|>",
        "==",
        "\n    ",
    ],
]
hostile = st.lists(st.sampled_from(HOSTILE), max_size=40).map("".join)
runs = st.lists(
    st.tuples(st.sampled_from(HOSTILE), st.sampled_from([1, 1, 1, 2, 3, 4, 9, 40])).map(lambda run: run[0] * run[1]),
    max_size=14,
).map("".join)
anything = st.one_of(hostile, runs, st.text(st.characters(exclude_categories=["Cs"]), max_size=60))


def test_the_vocabularies_are_the_published_ones() -> None:
    for name, digest in RANK_FILES.items():
        vocabulary = EXACT[name].vocabulary
        lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(vocabulary.tokens()))
        assert hashlib.sha256(b"".join(lines)).hexdigest() == digest == vocabulary.rank_file_sha256
        assert vocabulary.longest == max(map(len, vocabulary.tokens())) == tokens.LONGEST_TOKEN <= bpe.WINDOW


@pytest.mark.parametrize("name", NAMES)
def test_every_token_is_found_again(name: str) -> None:
    vocabulary = EXACT[name].vocabulary
    wrong = []
    for rank, token in enumerate(vocabulary.tokens()):
        try:
            text = token.decode()
        except UnicodeDecodeError:
            continue
        if vocabulary.encode(text) != ids(name, text):
            wrong.append(rank)
    assert not wrong


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=400, deadline=None)
@given(text=anything)
def test_ids_and_counts_are_those_of_tiktoken(name: str, text: str) -> None:
    assert EXACT[name].encode(text) == ids(name, text)
    assert EXACT[name].vocabulary.count(text) == len(ids(name, text))


@pytest.mark.parametrize("name", NAMES)
def test_seeded_hostile_strings(name: str) -> None:
    chance = random.Random(4)
    for _ in range(4000):
        text = "".join(chance.choices(HOSTILE, k=chance.randint(1, 40)))
        assert EXACT[name].encode(text) == ids(name, text), ascii(text)


@pytest.mark.parametrize("name", NAMES)
def test_characters_of_every_age_have_the_class_that_tiktoken_gives_them(name: str) -> None:
    # Looked at around every place where the class changes, whatever Unicode this Python knows.
    starts = EXACT[name].vocabulary._classes.starts.tolist()
    codes = [code for start in starts[1:] for code in (start - 1, start) if not 0xD800 <= code < 0xE000]
    assert len(codes) > 5000
    for at in range(0, len(codes), 64):
        text = "".join(f"A{chr(code)}a {chr(code)}!1" for code in codes[at : at + 64])
        assert EXACT[name].encode(text) == ids(name, text), hex(codes[at])


def test_harmony_differs_in_its_special_tokens_only() -> None:
    text = "<|start|>assistant<|channel|>final<|message|>Hello, world<|end|>"
    assert exact("o200k_harmony").encode(text) == ids("o200k_base", text)


@pytest.mark.parametrize("name", NAMES)
def test_text_that_spells_a_special_token_is_text(name: str) -> None:
    # K01
    text = "<|endoftext|> <|im_start|> <|fim_prefix|>"
    assert EXACT[name].count(text) == len(ids(name, text)) > 10


def test_surrogates() -> None:
    encoding = EXACT["o200k_base"]
    assert encoding.count("a\ud800b") == encoding.count("a\ufffdb")
    assert encoding.count("a\ud83d\ude00b") == encoding.count("a😀b") == len(ids("o200k_base", "a\ud83d\ude00b"))


# --- in parts ---------------------------------------------------------------------------------------------------------


def feed(encoding: tokens.Exact, data: bytes, block: int, step: Callable[[], int]) -> int:
    counter = tokens.ExactCounter(encoding, block)
    at = 0
    while at < len(data):
        size = step()
        counter.add(data[at : at + size])
        at += size
    return counter.total()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=400, deadline=None)
@given(text=anything, block=st.sampled_from([4, 5, 8, 16, 32]), seed=st.integers(0, 99))
def test_parts_add_up_to_the_whole(name: str, text: str, block: int, seed: int) -> None:
    chance = random.Random(seed)
    count = feed(EXACT[name], text.encode(), block, lambda: chance.randint(1, 20))
    assert count == len(ids(name, text))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200), block=st.sampled_from([4, 16]))
def test_bytes_that_are_no_utf8_count_as_replacement_characters(name: str, data: bytes, block: int) -> None:
    assert feed(EXACT[name], data, block, lambda: 3) == len(ids(name, data.decode("utf-8", "replace")))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=300, deadline=None)
@given(text=anything, more=anything)
def test_a_cut_holds_whatever_stands_around_it(name: str, text: str, more: str) -> None:
    vocabulary = EXACT[name].vocabulary
    for cut in {vocabulary.last_cut(text), vocabulary.first_cut(text)} - {0, len(text)}:
        for whole, at in ((text, cut), (more + text, len(more) + cut), (text + more, cut)):
            assert ids(name, whole[:at]) + ids(name, whole[at:]) == ids(name, whole)


@pytest.mark.parametrize("name", NAMES)
def test_a_long_piece_in_parts_and_with_no_margin_at_its_seams(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = EXACT[name].vocabulary
    chance = random.Random(8)
    pool = sorted(vocabulary.tokens(), key=len)[-3000:]
    for margin in (0, 8, bpe.MARGIN):
        monkeypatch.setattr(bpe, "MARGIN", margin)
        for _ in range(12):
            piece = b"".join(chance.choice(pool)[chance.choice([0, 0, 1]) :] for _ in range(200))[:2000]
            long = bpe.LongPiece(vocabulary)
            for at in range(0, len(piece), 300):
                long.add(piece[at : at + 300])
            assert long.count() == long.count() == len(vocabulary.merge(piece))


MEGABYTE = 1_000_000
RUNS = {
    "letter": "a",
    "capital": "A",
    "spaces": " ",
    "tabs": "\t",
    "no-break spaces": "\u00a0",
    "newlines": "\n",
    "line ends of Windows": "\r\n",
    "digits": "7",
    "nul": "\0",
    "sign": "=",
    "caret": "^",
    "ideograph": "中",
    "emoji": "😀",
    "heart": "❤️",
    "two cases": "aA",
    "suffixes": "'s",
    "slashes": "/\n",
    "ideograph, capitals": "中" + "A" * 70_000,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", RUNS)
def test_a_megabyte_of_the_same(name: str, kind: str) -> None:
    # K02. tiktoken itself panics on a million blanks, so the peer gets what it survives; the count grows evenly.
    unit = RUNS[kind]
    times = MEGABYTE // len(unit.encode())
    began = time.process_time()
    count = exact(name).count(unit * times)
    assert time.process_time() - began < 20
    piece = unit * (times // 4)
    expected = len(ids(name, piece))
    assert EXACT[name].count(piece) == expected
    assert abs(count - 4 * expected) <= 4 + 2 * 4 * len(unit)


@pytest.mark.parametrize("name", NAMES)
def test_large_mixed_text_goes_through_tiktoken_and_is_the_same(name: str) -> None:
    chance = random.Random(5)
    words = [
        "the",
        "context",
        "window",
        "Fenster",
        "окно",
        "窗口",
        "x_1",
        "0x3f",
        "README.md",
        "\n",
        "\n    ",
        "}\n",
        "😀",
    ]
    text = "".join(f"{chance.choice(words)}{chance.choice(' .,;=(/')}" for _ in range(400_000))
    blob = base64.b64encode(chance.randbytes(300_000)).decode()
    text = text[: len(text) // 2] + blob + text[len(text) // 2 :]
    encoding = exact(name)
    assert feed(encoding, text.encode(), bpe.BLOCK, lambda: 65_536) == len(ids(name, text))
    assert encoding._tiktoken is not None
    assert encoding.count(text) == len(ids(name, text))


def test_a_panic_of_tiktoken_is_no_crash_but_an_interrupt_is_passed_on() -> None:
    class PanicException(BaseException):  # the name of pyo3's
        pass

    class Raises:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def encode_ordinary(self, text: str) -> list[int]:
            raise self.error

    assert tokens.encode_ordinary(Raises(PanicException("stack overflow")), "a") is None  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        tokens.encode_ordinary(Raises(KeyboardInterrupt()), "a")  # type: ignore[arg-type]
    encoding = exact("o200k_base")
    encoding._tiktoken = Raises(PanicException("stack overflow"))  # type: ignore[assignment]
    assert encoding.count("Hello, world") == 3


# --- the vocabulary file ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: b"", "damaged"),
        (lambda data: data[:1000], "damaged"),
        (lambda data: b"XXXX" + data[4:], "damaged"),
        (lambda data: data + b"\0", "damaged"),
        (lambda data: data[:12] + b"\xff\xff\xff\xff" + data[16:], "damaged"),
        (lambda data: data[:4] + data[7:3:-1] + data[8:], "other byte order"),
    ],
)
def test_a_vocabulary_that_cannot_be_used_is_refused(change: Callable[[bytes], bytes], words: str) -> None:
    data = (DATA / "cl100k_base.ctxv").read_bytes()
    with pytest.raises(CtxError, match=words):
        bpe.Vocabulary(change(data), bpe.GRAMMARS["cl100k_base"])


def test_the_data_is_small_enough() -> None:
    assert sum(path.stat().st_size for path in DATA.glob("*.ctxv")) < 6_500_000


def test_to_count_a_small_text_loads_no_tiktoken_and_no_network() -> None:
    script = f"""
import mmap, sys
sys.path.insert(0, {str(DATA.parent.parent)!r})
from ctxkit import tokens
def map_data(name):
    with open({str(DATA)!r} + "/" + name, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
assert tokens.find_encoding("o200k_base", map_data).count("Hello, world") == 3
print(*sorted({{name.split(".")[0] for name in sys.modules}} & {{"tiktoken", "typing", "requests", "socket", "json"}}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# --- other encodings --------------------------------------------------------------------------------------------------


def test_an_unknown_encoding_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown encoding: cl200k") as caught:
        tokens.find_encoding("cl200k", map_data)
    assert "o200k_base" in caught.value.hint


def test_a_foreign_encoding_without_its_vocabulary_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # K03
    attempts = []

    def no_network(address: str, *_: object, **__: object) -> None:
        attempts.append(address)
        raise ConnectionError("no network here\nand more about it")

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("requests.get", no_network)
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    with pytest.raises(CtxError, match="no vocabulary for r50k_base") as caught:
        tokens.find_encoding("r50k_base", map_data)
    assert len(attempts) == 1
    assert "\n" not in caught.value.message


def test_a_foreign_encoding_counts_through_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tiktoken.Encoding(
        "r50k_base", pat_str=r"\w+|\W", mergeable_ranks={bytes([byte]): byte for byte in range(256)}, special_tokens={}
    )
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {"r50k_base": made})
    encoding = tokens.find_encoding("r50k_base", map_data)
    assert encoding.count("h\u00e9\ud800") == 6
    counter = encoding.counter()
    for part in (b"h\xc3", b"\xa9", b"\xff"):
        counter.add(part)
    assert counter.total() == 6
    assert not encoding.estimated


# --- estimates --------------------------------------------------------------------------------------------------------

TEXTS = {
    "English": """A coding session begins with a question and ends, hours later, in a history that nobody could read in
one sitting. The model reads all of it at every step. What it pays for that is not only money: the more there is to look
at, the less any single line weighs, and the instruction from the first minute is the first thing to fade. So somebody
has to decide what stays. Old tool results can go, because the files they showed are still on the disk. A summary can
stand for the talk about an idea that was dropped. But what the user forbade must survive word for word, and so must the
name of the file that is half written. "Never touch the lock file," said on Monday, is still binding on Friday.""",
    "Python": '''def longest_common_prefix(names: list[str], *, sep: str = "/") -> str:
    """Return the part of the paths that all of them share."""
    if not names:
        return ""
    shared = []
    for column in zip(*(name.split(sep) for name in names)):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return sep.join(shared)


class RetryPolicy:
    def __init__(self, attempts=5, base_delay=0.25, max_delay=30.0):
        self.attempts = attempts
        self.max_delay = max_delay

    def delay(self, attempt):
        if attempt >= self.attempts:
            raise TooManyAttempts(f"gave up after {attempt} attempts")
        return min(self.max_delay, self.base_delay * 2 ** attempt)
''',
    "TypeScript": """export async function loadSession(path: string, options: LoadOptions = {}): Promise<Session> {
  const raw = await fs.readFile(path, "utf8");
  const entries = raw.split("\\n").filter(Boolean).map((line, index) => {
    try {
      return JSON.parse(line) as Entry;
    } catch (error) {
      throw new ParseError(`${path}:${index + 1}: ${(error as Error).message}`);
    }
  });
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  return { entries, byId, leafId: options.leafId ?? entries.at(-1)?.id ?? null };
}
""",
    "Chinese": "上下文窗口是有限的，而一次编程会话会不断增长。模型每走一步都要把全部历史重新读一遍，"
    "所以必须有人决定哪些内容留下，哪些内容离开。旧的工具输出可以先删掉，因为文件还在磁盘上；"
    "被放弃的想法只需要一句总结。但是用户明确禁止的事情必须逐字保留，正在修改的文件名也不能丢。"
    "第一天说过的规则，到了最后一天仍然有效，哪怕中间隔着六万个词元。",
    "Japanese": "コンテキストの大きさには限りがありますが、コーディングの作業は終わりなく長くなっていきます。"
    "モデルは一歩進むたびに履歴をすべて読み直すので、何を残して何を捨てるかを誰かが決めなければなりません。"
    "古いツールの出力は、ファイルがまだディスクにあるので消してもかまいません。"
    "しかし、利用者がはっきりと禁じたことは一字一句そのまま残す必要があります。",
    "Russian": "Окно модели ограничено, а рабочая сессия растёт без конца. На каждом шаге модель заново читает всю "
    "историю, поэтому кто-то должен решать, что останется, а что уйдёт. Старые результаты инструментов можно убрать "
    "первыми: файлы, которые они показали, всё ещё лежат на диске. Но то, что пользователь запретил, должно "
    "сохраниться слово в слово.",
    "emoji": "🚀 ship it 🎉🎉 looks good 👍 but the tests are red 🔥😅 let me fix that 🙏 done ✅ merged 🎊 "
    "thanks 💜👀 and coffee for all 👩\u200d💻👨\u200d💻 see you 👋🏽 🇯🇵🇩🇪 😂😂😂🤔💡📦🐛✨",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_the_estimate_is_near(kind: str) -> None:
    true = EXACT["o200k_base"].count(TEXTS[kind])
    assert abs(tokens.Estimate().count(TEXTS[kind]) - true) <= 0.15 * true


def test_the_estimate_knows_ideographs() -> None:
    # K05: characters / 4 would say 1000
    assert 0.6 * 4000 <= tokens.Estimate().count("上下文窗口有限" * 571 + "的历史") <= 1.7 * 4000


@settings(max_examples=200, deadline=None)
@given(data=st.one_of(st.binary(max_size=80), hostile.map(str.encode)), cuts=st.lists(st.integers(0, 80), max_size=5))
def test_an_estimate_does_not_depend_on_how_bytes_come(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(data)]
    for encoding in (tokens.Estimate(1.2), tokens.Pi()):
        counter, whole = encoding.counter(), encoding.counter()
        whole.add(data)
        for begin, end in pairwise(places):
            counter.add(data[begin:end])
        assert counter.total() == whole.total()
    assert tokens.Pi().count(data.decode("utf-8", "replace")) == whole.total()


def test_an_estimate_of_something_is_not_nothing() -> None:
    assert tokens.Estimate().count("") == 0
    assert tokens.Estimate().count(" ") == 1


def test_calibration() -> None:
    assert tokens.calibrate(1000, 1300) == 1.3
    assert tokens.calibrate(1000, 9000) == 2.0
    assert tokens.calibrate(1000, 10) == 0.5
    assert tokens.calibrate(0, 10) == tokens.calibrate(10, 0) == 1.0
    assert tokens.Estimate().count("a " * 10_000) == 6060
    assert tokens.Estimate(1.5).count("a " * 10_000) == 9090


def test_pi_counts_utf16_units() -> None:
    assert tokens.Pi().count("") == 0
    assert tokens.Pi().count("abcde") == 2
    assert tokens.Pi().count("😀😀😀") == 2
    assert tokens.Pi().count("\ud800" * 5) == 2


# --- as much as fits --------------------------------------------------------------------------------------------------


def lines_of(text: str, *, tail: bool) -> list[str]:
    """Return what may be kept of a text in whole lines, from the shortest to the longest."""
    ends = [at + 1 for at, char in enumerate(text) if char == "\n"]
    if tail:
        return [text[at:] for at in sorted({0, *ends} - {len(text)}, reverse=True)]
    return [text[:at] for at in sorted({*ends, len(text)} - {0})]


@pytest.mark.parametrize("keep", [tokens.keep_head, tokens.keep_tail])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=200, deadline=None)
@given(text=runs, limit=st.integers(0, 60))
def test_what_is_kept_is_the_longest_that_fits(
    keep: Callable[[str, int, tokens.Exact], tokens.Kept], name: str, text: str, limit: int
) -> None:
    tail = keep is tokens.keep_tail
    kept = keep(text, limit, EXACT[name])
    assert len(ids(name, kept.text)) == kept.tokens <= limit
    whole = [lines for lines in lines_of(text, tail=tail) if len(ids(name, lines)) <= limit]
    if whole:
        assert (kept.text, kept.partial) == (whole[-1], False)
    elif text:
        line = lines_of(text, tail=tail)[0]
        parts = [line[len(line) - size :] if tail else line[:size] for size in range(len(line) + 1)]
        assert kept.text == [part for part in parts if len(ids(name, part)) <= limit][-1]
        assert kept.partial == bool(kept.text)


@pytest.mark.parametrize("keep", [tokens.keep_head, tokens.keep_tail])
@settings(max_examples=100, deadline=None)
@given(text=runs, limit=st.integers(0, 40))
def test_what_is_kept_fits_under_every_kind_of_encoding(
    keep: Callable[[str, int, tokens.Encoding], tokens.Kept], text: str, limit: int
) -> None:
    for encoding in (tokens.Pi(), tokens.Estimate(), tokens.Scaled("x", EXACT["o200k_base"], 133)):
        kept = keep(text, limit, encoding)
        assert encoding.count(kept.text) == kept.tokens <= limit
        assert text.startswith(kept.text) if keep is tokens.keep_head else text.endswith(kept.text)


def test_a_character_is_not_cut() -> None:
    # K04
    kept = tokens.keep_head("hello 👩‍💻 world", 3, EXACT["o200k_base"])
    assert kept.tokens <= 3
    assert "hello 👩‍💻 world".startswith(kept.text)
    assert kept.text.encode().decode() == kept.text
    assert tokens.keep_head("👩‍💻", 0, EXACT["o200k_base"]).text == ""


@pytest.mark.parametrize("keep", [tokens.keep_head, tokens.keep_tail])
@pytest.mark.parametrize("unit", ["    indented line of code()\n", "}\n", "\n", "a", "word ", "中文字符。", "😀"])
def test_cutting_a_megabyte_takes_no_megabyte_of_tries(
    keep: Callable[[str, int, tokens.Exact], tokens.Kept], unit: str
) -> None:
    text = unit * (MEGABYTE // len(unit.encode()))
    began = time.process_time()
    kept = keep(text, 4000, exact("o200k_base"))
    assert time.process_time() - began < 10
    assert 3900 <= kept.tokens <= 4000
