"""`ctx truncate` as a user types it: what it prints, what it says, what it costs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import ROOT, User, eventually, finish, linux_only

KEYS = {
    "schema", "content", "truncated", "truncatedBy", "totalLines", "totalBytes", "outputLines", "outputBytes",
    "firstLine", "lastLine", "lastLinePartial", "firstLineExceedsLimit", "maxLines", "maxBytes", "maxTokens",
    "fullOutputPath", "notice",
}  # fmt: skip


def seq(first: int, last: int) -> bytes:
    """Print what seq(1) prints."""
    return b"".join(b"%d\n" % number for number in range(first, last + 1))


def cut(user: User, *words: str, input: bytes) -> tuple[bytes, str]:
    """Return what is kept of an input, and the notice without the place of the spill."""
    done = user.ctx("truncate", *words, input=input)
    assert (done.err, done.code) == (b"", 0)
    text, _, notice = done.out.rpartition(b"\n[")
    said = re.sub(r"/\S*/ctx-[0-9a-f]{16}\.txt", "PATH", notice.decode().removesuffix("\n"))
    return text, f"[{said}"


def as_object(user: User, *words: str, input: bytes | None = None) -> dict[str, Any]:
    """Return the result as an object."""
    done = user.ctx("truncate", "--json", *words, input=input)
    assert (done.err, done.code) == (b"", 0)
    found: dict[str, Any] = json.loads(done.out)
    return found


# -- what fits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["--tail", "--head", "--middle"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"no newline",
        b"a\r\nb\r\n",
        b"a\0b\n\0",
        b"caf\xe9\n\xff\xfe\n",
        b"\xef\xbb\xbfbom\n",
        b"a\x0bb\x0cc\x85d\xe2\x80\xa8e\rf\n",
        b"\xed\xa0\x80 half a pair\n",
        seq(1, 2000),
        b"x" * 51_200,
        b"x" * 51_199 + b"\n",
    ],
    ids=lambda data: repr(data[:20]),
)
def test_what_fits_passes_byte_for_byte(user: User, keep: str, data: bytes) -> None:
    """T01, T11, T23: also at exactly the limits."""
    assert user.ctx("truncate", keep, input=data) == (data, b"", 0)
    user.file("data", data)
    assert user.ctx("truncate", keep, "data") == (data, b"", 0)


def test_a_filter_of_what_it_printed_prints_it_again(user: User) -> None:
    once = user.ctx("truncate", "--notice", "none", input=seq(1, 9000)).out
    assert user.ctx("truncate", "--notice", "none", input=once).out == once


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX", "tr_TR.UTF-8"])
def test_the_locale_changes_nothing(user: User, locale: str) -> None:
    data = "naïve 漢字 😀\n".encode() * 3000 + b"\xff\n"
    expected = user.ctx("truncate", "-w", "3", "--notice", "none", input=data).out
    assert "naï... [truncated]\n".encode() in expected
    assert user.ctx("truncate", "-w", "3", "--notice", "none", input=data, env={"LC_ALL": locale}).out == expected


# -- what does not ---------------------------------------------------------------------------------------------------


def test_t01_no_line_after_the_last_newline(user: User) -> None:
    text, notice = cut(user, "-n", "2000", input=seq(1, 4000))
    assert text == seq(2001, 4000)
    assert notice == "[Showing lines 2001-4000 of 4000. Full output: PATH]"
    text, notice = cut(user, "-n", "2000", input=seq(1, 4000)[:-1])
    assert text == seq(2001, 4000)[:-1] + b"\n", "a blank line comes before the notice"
    assert notice == "[Showing lines 2001-4000 of 4000. Full output: PATH]"


def test_the_notice_is_a_paragraph_of_its_own(user: User) -> None:
    assert user.ctx("truncate", "-n", "1", "--spill", "never", input=b"a\nb\n").out == (
        b"b\n\n[Showing lines 2-2 of 2. Full output not saved]\n"
    )
    assert user.ctx("truncate", "-n", "1", "--spill", "never", input=b"a\nb").out == (
        b"b\n\n[Showing lines 2-2 of 2. Full output not saved]\n"
    )
    assert user.ctx("truncate", "-n", "0", "--spill", "never", input=b"a\nb").out == (
        b"[Showing none of 2 lines. Full output not saved]\n"
    )


def test_the_default_limits_are_2000_lines_and_50_kilobytes(user: User) -> None:
    text, notice = cut(user, input=seq(1, 8500))
    assert (text, notice) == (seq(6501, 8500), "[Showing lines 6501-8500 of 8500. Full output: PATH]")
    text, notice = cut(user, input=(b"x" * 99 + b"\n") * 600)
    assert len(text) == 51_200
    assert notice == "[Showing lines 89-600 of 600 (50.0KB limit). Full output: PATH]"


def test_t03_the_chosen_end_is_kept_by_both_limits(user: User) -> None:
    log = b"".join(b"%02d %s\n" % (number, b"x" * 4000) for number in range(30)) + b"ERROR: boom\n"
    text, notice = cut(user, input=log)
    assert text.endswith(b"\nERROR: boom\n")
    assert "(50.0KB limit)" in notice
    text, notice = cut(user, "--head", input=log)
    assert text.startswith(b"00 x")
    assert "Showing lines 1-12 of 31 (50.0KB limit)" in notice


@pytest.mark.parametrize("keep", ["--tail", "--head", "--middle"])
def test_t04_a_single_long_line_is_kept_in_part(user: User, keep: str) -> None:
    data = b"begin" + b"x" * 200_000 + b"end"
    text, notice = cut(user, keep, "-c", "1K", input=data)
    text = text.removesuffix(b"\n")
    if keep == "--tail":
        assert text == data[-1024:]
        assert notice == "[Showing last 1.0KB of line 1 (line is 195.3KB). Full output: PATH]"
    elif keep == "--head":
        assert text == data[:1024]
        assert notice == "[Showing first 1.0KB of line 1 (line is 195.3KB). Full output: PATH]"
    else:
        first, marker, last = text.split(b"\n")
        assert (first, last) == (data[:512], data[-512:])
        assert marker == b"[... 194.3KB of 1 line left out ...]"


def test_whole_lines_keeps_nothing_of_it(user: User) -> None:
    done = user.ctx("truncate", "--head", "--whole-lines", "-c", "1K", input=b"x" * 2000)
    assert done.out == f"[Line 1 is 2.0KB, exceeds 1.0KB limit. Full output: {user.spill}]\n".encode()
    found = as_object(user, "--head", "--whole-lines", "-c", "1K", input=b"x" * 2000)
    assert (found["content"], found["firstLineExceedsLimit"], found["outputLines"]) == ("", True, 0)


def test_t05_totals_are_of_the_whole_stream(user: User) -> None:
    data = seq(1, 500_000)
    found = as_object(user, input=data)
    assert (found["totalLines"], found["totalBytes"]) == (500_000, len(data))
    assert (found["firstLine"], found["lastLine"]) == (498_001, 500_000)


def test_t06_limits_are_bytes_not_characters(user: User) -> None:
    for keep in ("--tail", "--head"):
        found = as_object(user, keep, "-c", "1000", input="漢".encode() * 1000)
        assert found["content"] == "漢" * 333
        assert found["outputBytes"] == 999


def test_t07_characters_are_whole(user: User) -> None:
    for keep, expected in (("--head", "hello漢"), ("--tail", "lo漢字")):
        text, _ = cut(user, keep, "-c", "8", input="hello漢字".encode())
        assert text.decode().removesuffix("\n") == expected
    found = as_object(user, "--head", "-c", "4", input="a\ufffdbc".encode())
    assert found["content"] == "a\ufffd", "a genuine U+FFFD stays"


def test_t08_a_line_is_not_cut_inside_an_emoji(user: User) -> None:
    family = "👩\u200d👩\u200d👧"
    text, notice = cut(user, "-w", "5", input=f"abcd{family}ef\n".encode())
    assert text.decode() in (f"abcd{family}... [truncated]\n", "abcd... [truncated]\n")
    assert notice == "[Some lines shortened to 5 characters. Full output: PATH]"


@pytest.mark.parametrize("keep", ["--tail", "--head", "--middle"])
def test_t09_a_progress_bar(user: User, keep: str) -> None:
    bar = b"".join(b"\r%3d%%|###| eta" % (number // 400) for number in range(40_000)) + b"\ndone\n"
    done = user.ctx("truncate", keep, input=bar)
    assert len(done.out) <= 51_200 + 400
    assert user.ctx("truncate", keep, "--cr", input=bar).out == b" 99%|###| eta\ndone\n"
    windows = b"a\r\nb\r\n"
    assert user.ctx("truncate", keep, "--cr", input=windows) == (windows, b"", 0)


def test_t09_the_spill_of_a_progress_bar_is_raw(user: User) -> None:
    bar = b"10%\r20%\r30%\n" * 5
    done = user.ctx("truncate", "--cr", "-n", "1", input=bar)
    assert done.out.startswith(b"30%\n\n[Showing lines 5-5 of 5. ")
    assert user.spill.read_bytes() == bar


@pytest.mark.parametrize("end", [b"\x1b\\", b"\x07"])
def test_t10_only_the_label_of_a_link_remains(user: User, end: bytes) -> None:
    link = b"\x1b]8;;http://x" + end + b"label" + b"\x1b]8;;" + end
    assert user.ctx("truncate", "--strip-ansi", input=b"a \x1b[1;31m" + link + b"\x1b[0m b\n").out == b"a label b\n"


def test_t10_an_escape_cut_in_half_is_dropped(user: User) -> None:
    for half in (b"\x1b", b"\x1b[", b"\x1b[3", b"\x1b]8;;http://x", b"\x1bP1$r"):
        assert user.ctx("truncate", "--strip-ansi", input=b"text" + half).out == b"text"


def test_t12_the_notice_can_be_kept_out_of_the_data(user: User) -> None:
    data = json.dumps(list(range(30_000)), indent=0).encode()
    done = user.ctx("truncate", "--notice", "stderr", "--spill", "never", "-n", "3", input=data)
    assert done.out == b"29998,\n29999\n]"
    assert done.err == b"[Showing lines 30000-30002 of 30002. Full output not saved]\n"
    done = user.ctx("truncate", "--notice", "none", "-n", "3", input=data)
    assert (done.out, done.err) == (b"29998,\n29999\n]", b"")


def test_t13_the_notice_has_range_total_limit_and_place(user: User) -> None:
    rows = b"".join(b"row %03d " % number + b"." * 60 + b"\n" for number in range(556))
    text, notice = cut(user, "-c", str(139 * 69), input=rows)
    assert text.count(b"\n") == 139
    assert notice == "[Showing lines 418-556 of 556 (9.4KB limit). Full output: PATH]"


def test_t20_one_minified_line_does_not_push_out_its_neighbours(user: User) -> None:
    hits = b"a.js:1:needle\nmin.js:1:" + b"needle" * 20_000 + b"\nz.js:9:needle\n"
    text, notice = cut(user, "-w", "500", input=hits)
    first, second, third = text.decode().removesuffix("\n").split("\n")
    assert (first, third) == ("a.js:1:needle", "z.js:9:needle")
    assert second == hits.split(b"\n")[1].decode()[:500] + "... [truncated]"
    assert notice == "[Some lines shortened to 500 characters. Full output: PATH]"


def test_t21_the_marker_is_no_comment_of_any_language(user: User) -> None:
    text, notice = cut(user, "--middle", "-n", "2000", "-c", "none", input=seq(1, 8500))
    lines = text.decode().split("\n")
    assert lines[1000] == "[... 6500 lines (31.7KB) left out ...]"
    assert text.replace(lines[1000].encode() + b"\n", b"") == seq(1, 1000) + seq(7501, 8500)
    assert notice == "[Showing lines 1-1000 and 7501-8500 of 8500. Full output: PATH]"


def test_t22_an_unterminated_last_line(user: User) -> None:
    done = user.ctx("truncate", "--tail", "-n", "2", "--notice", "none", input=b"a\nb\nc\nd\ne")
    assert done.out == b"d\ne"


def test_t23_what_is_printed_of_a_cut_input_is_valid_utf8(user: User) -> None:
    data = b"caf\xe9\n\xff\xfe\n" * 2000
    done = user.ctx("truncate", "--notice", "none", input=data)
    assert done.out.decode() == ("caf\ufffd\n\ufffd\ufffd\n" * 1000)


# -- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "expected"), [("2K", 2048), ("2kB", 2000), ("0", 0), ("none", 5000), ("100", 100), ("1M", 5000)]
)
def test_sizes(user: User, size: str, expected: int) -> None:
    done = user.ctx("truncate", "--notice", "none", "-c", size, input=b"x" * 5000)
    assert len(done.out) == expected


@pytest.mark.parametrize(
    "words", [["-n", "x"], ["-n", "-1"], ["-c", "1X"], ["-c", "1.5K"], ["-w", ""], ["--offset", "0"]]
)
def test_bad_numbers_are_usage_errors(user: User, words: list[str]) -> None:
    done = user.ctx("truncate", *words, input=b"a\n")
    assert (done.out, done.code) == (b"", 2)
    assert words[0].encode() in done.err
    assert done.err.count(b"\n") == 2


def test_options_may_be_spelled_as_users_do(user: User) -> None:
    expected = b"2\n"
    spellings = [["-n1"], ["-n", "1"], ["--lines=1"], ["--lines", "1"], ["-qn", "1"], ["-qn1"], ["-n", "5", "-n", "1"]]
    for words in spellings:
        assert user.ctx("truncate", "--notice", "none", *words, input=b"1\n2\n").out == expected, words


def test_offset_begins_with_a_line(user: User) -> None:
    assert user.ctx("truncate", "--offset", "4", input=seq(1, 5)) == (b"4\n5\n", b"", 0)
    text, notice = cut(user, "--head", "--offset", "2", "-n", "2", input=seq(1, 5))
    assert (text, notice) == (b"2\n3\n", "[Showing lines 2-3 of 5. Full output: PATH]")
    text, notice = cut(user, "--tail", "--offset", "2", "-n", "2", input=seq(1, 5))
    assert (text, notice) == (b"4\n5\n", "[Showing lines 4-5 of 5. Full output: PATH]")


@pytest.mark.parametrize(("data", "there"), [(b"", "0 lines"), (b"1\n", "1 line"), (seq(1, 5), "5 lines")])
def test_an_offset_beyond_the_end_is_said(user: User, data: bytes, there: str) -> None:
    user.file("a\nb", data)
    done = user.ctx("truncate", "--offset", "6", "a\nb")
    assert done == (b"", f"ctx truncate: $'a\\nb': offset 6 is beyond the end ({there})\n".encode(), 3)
    done = user.ctx("truncate", "--offset", "6", input=data)
    assert done == (b"", f"ctx truncate: standard input: offset 6 is beyond the end ({there})\n".encode(), 3)
    assert user.spills == []


def test_exit_code_tells_whether_something_was_cut(user: User) -> None:
    assert user.ctx("truncate", "--exit-code", "-n", "5", input=seq(1, 5)).code == 0
    assert user.ctx("truncate", "--exit-code", "-n", "4", input=seq(1, 5)).code == 1
    assert user.ctx("truncate", "--exit-code", "-w", "1", input=b"ab\n").code == 1
    assert user.ctx("truncate", "-n", "4", input=seq(1, 5)).code == 0
    user.file("short", b"1\n")
    user.file("long", seq(1, 5))
    assert user.ctx("truncate", "--exit-code", "-n", "4", "short", "long", "short").code == 1
    assert user.ctx("truncate", "--exit-code", "-n", "4", "long", "nowhere").code == 3


def test_early_exit_needs_the_head(user: User) -> None:
    done = user.ctx("truncate", "--early-exit", input=b"a\n")
    assert (done.out, done.code) == (b"", 2)
    assert done.err.startswith(b"ctx truncate: --early-exit needs --head")


def test_early_exit_of_an_input_that_fits_says_nothing(user: User) -> None:
    assert user.ctx("truncate", "--head", "--early-exit", "-n", "5", input=seq(1, 5)) == (seq(1, 5), b"", 0)


# -- several files ---------------------------------------------------------------------------------------------------


def test_several_files_have_headers_as_head_prints_them(user: User) -> None:
    files = {"a": b"1\n2\n", "b": b"no newline", "c": b"", "d e": b"3\n"}
    for name, content in files.items():
        user.file(name, content)
    for names in (["a", "b"], ["b", "a"], ["c", "a", "c"], ["a", "a"], ["a", "b", "c", "d e", "a"]):
        expected = user.run("head", *names)
        assert expected.out.startswith(b"==> ")
        assert user.ctx("truncate", *names) == expected, names


def test_the_first_header_is_first_even_if_a_file_is_missing(user: User) -> None:
    user.file("a", b"1\n")
    for names in (["nowhere", "a"], ["nowhere", "a", "nowhere", "a"]):
        assert user.ctx("truncate", *names).out == user.run("head", *names).out


def test_standard_input_among_files_as_head_names_it(user: User) -> None:
    user.file("a", b"1\n")
    expected = user.run("head", "a", "-", input=b"2\n")
    assert user.ctx("truncate", "a", "-", input=b"2\n") == expected


def test_a_name_of_any_bytes_is_a_header(user: User) -> None:
    for name in (b"caf\xe9", "naïve 漢".encode(), b"a b"):
        user.file(name, b"1\n")
        done = user.ctx("truncate", name, name)
        assert done.out == b"==> " + name + b" <==\n1\n\n==> " + name + b" <==\n1\n"


def test_each_file_has_its_own_limits(user: User) -> None:
    user.file("long", seq(1, 9))
    user.file("short", seq(1, 2))
    done = user.ctx("truncate", "-n", "2", "long", "short", "long")
    part = b"==> long <==\n8\n9\n\n[Showing lines 8-9 of 9. Full output: long]\n"
    assert done.out == part + b"\n==> short <==\n1\n2\n\n" + part


# -- JSON ------------------------------------------------------------------------------------------------------------


def test_json_has_the_keys_of_the_contract(user: User) -> None:
    found = as_object(user, "-n", "2", "-c", "1K", input=seq(1, 5))
    assert set(found) >= KEYS
    assert {key: found[key] for key in KEYS - {"fullOutputPath", "notice"}} == {
        "schema": 1,
        "content": "4\n5\n",
        "truncated": True,
        "truncatedBy": "lines",
        "totalLines": 5,
        "totalBytes": 10,
        "outputLines": 2,
        "outputBytes": 4,
        "firstLine": 4,
        "lastLine": 5,
        "lastLinePartial": False,
        "firstLineExceedsLimit": False,
        "maxLines": 2,
        "maxBytes": 1024,
        "maxTokens": None,
    }
    assert found["fullOutputPath"] == str(user.spill)
    assert found["notice"] == f"[Showing lines 4-5 of 5. Full output: {user.spill}]"
    fits = as_object(user, "-n", "none", "-c", "none", input=b"a\n")
    assert (fits["truncated"], fits["truncatedBy"], fits["notice"], fits["fullOutputPath"]) == (False, None, None, None)
    assert (fits["maxLines"], fits["maxBytes"]) == (None, None)


def test_u06_json_is_json_whatever_the_limit(user: User) -> None:
    """The limit applies to the content, never to the envelope."""
    for limit in ("0", "1", "7", "100"):
        for keep in ("--tail", "--head", "--middle"):
            found = as_object(user, keep, "-c", limit, input=b'{"a": [1, 2, 3, "' + b"x" * 1000 + b'"]}')
            assert found["outputBytes"] <= int(limit)


def test_json_of_several_files_is_an_object_a_line(user: User) -> None:
    user.file("a", b"1\n")
    user.file("b", b"2\n")
    done = user.ctx("truncate", "--json", "a", "nowhere", "b")
    found = [json.loads(line) for line in done.out.decode().removesuffix("\n").split("\n")]
    assert [(one["file"], one["content"]) for one in found] == [("a", "1\n"), ("b", "2\n")]
    assert done.code == 3


@settings(max_examples=60)
@given(
    data=st.lists(
        st.sampled_from(
            [b"a", b"\n", b"\0", b"\x1b[1m", b"\x7f", b"\xff", b"\xe2\x80", "\u2028".encode(), b'"\\', b"\r"]
        ),
        max_size=30,
    ).map(b"".join),
    keep=st.sampled_from(["--tail", "--head", "--middle"]),
    limit=st.integers(0, 40),
)
def test_t11_json_can_always_be_parsed(data: bytes, keep: str, limit: int) -> None:
    words = [sys.executable, "-m", "ctxkit", "truncate", "--json", "--spill", "never", keep, "-c", str(limit)]
    environ = {"PYTHONPATH": str(ROOT), "LC_ALL": "C"}
    done = subprocess.run(words, input=data, capture_output=True, env=environ, timeout=30, check=True)
    text = done.stdout.decode()  # valid UTF-8
    assert text.count("\n") == 1 and text.endswith("\n")
    found = json.loads(text)
    if len(data) <= limit:
        assert found["content"] == data.decode("utf-8", "replace")
        assert found["truncated"] is False
    assert found["totalBytes"] == len(data)
    assert found["outputBytes"] <= limit
    assert (found["notice"] is None) == (not found["truncated"])


# -- files -----------------------------------------------------------------------------------------------------------


@linux_only
def test_the_end_of_a_file_of_10_gigabytes_is_there_at_once(user: User) -> None:
    path = user.file("huge", b"")
    with path.open("r+b") as file:
        file.truncate(10 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + seq(1, 100))
    done = finish(user.start_ctx("truncate", "-n", "3", "--notice", "none", "huge"), patience=2)
    assert done == (b"98\n99\n100\n", b"", 0)
    assert user.ctx("truncate", "-n", "3", "--notice", "none", "--exit-code", "huge").code == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 7, 8, 100, 999, 1000, 2999])
@pytest.mark.parametrize("text", ["漢字" * 500, "😀é" * 400, "a\n漢\n" * 500, "\n" * 3000, "ab\n" + "ｘ" * 999])
def test_reading_from_the_end_changes_nothing(user: User, text: str, limit: int) -> None:
    user.file("text", text.encode())
    words = ["truncate", "-c", str(limit)]
    quick = user.ctx(*words, "--notice", "none", "text")
    slow = user.ctx(*words, "--notice", "stderr", "text")
    assert (quick.out, quick.code) == (slow.out, slow.code)


def test_reading_from_the_end_never_goes_back(user: User) -> None:
    """What another program has read of a shared input already is not ours."""
    user.file("text", seq(1, 10_000))
    position = len(seq(1, 10_000)) - 4
    script = (
        f"(python3 -c 'import os; os.lseek(0, {position}, 0)'; ctx truncate --notice none --spill never -c 1K) < text"
    )
    assert user.sh(script).out == seq(1, 10_000)[-4:]


def test_a_file_that_grows_while_it_is_read(user: User) -> None:
    """What is said is true of what was read: some beginning of the file, whole writes or not."""
    path = user.file("log", seq(1, 200_000))
    stop = threading.Event()

    def grow() -> None:
        with path.open("ab", buffering=0) as log:
            number = 200_001
            while not stop.is_set() and number < 3_000_000:
                log.write(seq(number, number + 999))
                number += 1000

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        results = [as_object(user, "-n", "3", "log") for _ in range(3)]
    finally:
        stop.set()
        writer.join()
    for found in results:
        data = path.read_bytes()[: found["totalBytes"]]
        assert found["totalLines"] == data.count(b"\n") + (not data.endswith(b"\n"))
        assert found["content"].encode() == b"\n".join(data.split(b"\n")[-4 if data.endswith(b"\n") else -3 :])


def test_a_file_without_a_size(user: User) -> None:
    if not os.path.exists("/proc/self/status"):
        pytest.skip("no file here says that it is empty and is not")
    assert user.ctx("truncate", "--notice", "none", "-n", "1", "/proc/self/status").out.startswith(b"nonvoluntary")


def test_the_input_is_never_changed(user: User) -> None:
    path = user.file("text", seq(1, 9000))
    before = path.stat()
    user.ctx("truncate", "-n", "1", "text")
    after = path.stat()
    assert path.read_bytes() == seq(1, 9000)
    assert (before.st_mtime_ns, before.st_mode, before.st_ino) == (after.st_mtime_ns, after.st_mode, after.st_ino)


# -- cost ------------------------------------------------------------------------------------------------------------


# A process begins with the peak of the one that started it, so that one must be small.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_memory(user: User, producer: str, *words: str) -> tuple[int, bytes]:
    """Return the most memory that ctx had while it read from a producer, in bytes, and what it printed."""
    launcher = user.start(
        *("bash", "-c", 'producer=$1; shift; bash -c "$producer" | "$@"', "bash", producer),
        *(sys.executable, "-c", MEASURE, sys.executable, "-m", "ctxkit", "truncate", *words),
    )
    done = finish(launcher)
    assert done.code == 0
    return int(done.err) * (1 if sys.platform == "darwin" else 1024), done.out


@pytest.mark.parametrize(
    ("keep", "size", "notice"),
    [
        ("--tail", "1G", "Showing last 50.0KB of line 1 (line is 1024.0MB)"),
        ("--head", "200M", "Showing first 50.0KB of line 1 (line is 200.0MB)"),
        ("--middle", "200M", "200.0MB of 1 line left out"),
    ],
)
def test_one_line_of_a_gigabyte(user: User, keep: str, size: str, notice: str) -> None:
    memory, out = peak_memory(user, rf"head -c {size} /dev/zero | tr '\0' x", keep, "--spill", "never")
    assert memory < 40_000_000
    assert notice.encode() in out
    assert len(out) < 52_000


@pytest.mark.parametrize(
    "words", [["-w", "100"], ["--cr"], ["--strip-ansi"], ["--offset", "2"], ["-n", "5", "-c", "none"]]
)
def test_one_line_of_a_hundred_megabytes(user: User, words: list[str]) -> None:
    """With lines as the only limit, the lines kept are held, as the help says; this one is not kept."""
    producer = r"{ head -c 100M /dev/zero | tr '\0' x; echo; seq 10; }"
    memory, out = peak_memory(user, producer, *words, "--spill", "never")
    assert out.rpartition(b"\n\n[")[0].endswith(b"10") or out.endswith(b"10\n")
    assert memory < (40_000_000 if "none" not in words else 150_000_000)


def test_a_large_spill_is_not_held(user: User) -> None:
    memory, _ = peak_memory(user, "yes | head -c 100M")
    assert memory < 40_000_000
    assert user.spill.stat().st_size == 100 << 20


def test_a_producer_of_tiny_pieces_costs_no_more(user: User) -> None:
    """They come as fast as they are made; a list of them would be thirty times as large."""
    producer = "python3 -uc 'import os\nfor _ in range(500000): os.write(1, b\"xy\")'"
    memory, out = peak_memory(user, producer, "-c", "none", "-n", "1")
    assert out == b"xy" * 500_000
    assert memory < 40_000_000


def is_saved(user: User, data: bytes) -> bool:
    """Say whether there is a spill with exactly this."""
    return bool(user.spills) and user.spill.read_bytes() == data


def test_t18_lines_can_be_seen_in_the_spill_while_the_producer_runs(user: User) -> None:
    running = user.start_ctx("truncate", "-n", "1", stdin=subprocess.PIPE)
    assert running.stdin is not None
    for number in range(1, 6):
        running.stdin.write(b"%d\n" % number)
        running.stdin.flush()
        if number > 1:
            expected = seq(1, number)
            eventually(partial(is_saved, user, expected))
    assert finish(running).code == 0


def test_help_mentions_what_can_be_surprising(user: User) -> None:
    text = user.ctx("truncate", "--help").out.decode()
    for word in (
        "byte for byte",
        "private file",
        "after a week",
        "2 GB",
        "SIGTERM",
        "[default: 2000]",
        "[default: 51200]",
    ):
        assert word in " ".join(text.split()), word


def test_the_file_it_reads_may_be_anywhere(user: User, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 200) / ("e" * 200)
    deep.mkdir(parents=True)
    (deep / "text").write_bytes(seq(1, 5))
    done = user.ctx("truncate", "-n", "1", str(deep / "text"))
    assert done.out == f"5\n\n[Showing lines 5-5 of 5. Full output: {deep}/text]\n".encode()
