"""`ctx tokens`: `wc` for tokens, as users type it, on a machine without a network."""

from __future__ import annotations

import json

import pytest
from shell import User

OFFLINE = {"TIKTOKEN_CACHE_DIR": "/nowhere", "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}


def test_one_input_gives_the_number_alone_and_several_their_names(user: User) -> None:
    user.file("a", b"hello world")
    user.file("b c", b"")
    assert user.ctx("tokens", input=b"hello world") == (b"2\n", b"", 0)
    assert user.ctx("tokens", "a") == (b"2\n", b"", 0)
    assert user.ctx("tokens", "a", "b c", "-", input=b"hi") == (b"2 a\n0 b c\n1 standard input\n3 total\n", b"", 0)
    done = user.ctx("tokens", "a", "nope", "b c")
    assert (done.out, done.code) == (b"2 a\n0 b c\n2 total\n", 3)


def test_k01_text_that_spells_a_special_token_is_text(user: User) -> None:
    assert user.ctx("tokens", input=b"<|endoftext|>").out == b"7\n"
    assert user.ctx("tokens", "-e", "cl100k_base", input=b"<|im_start|>").out == b"6\n"


def test_k03_no_network_is_needed_and_a_missing_vocabulary_is_said_in_one_line(user: User) -> None:
    assert user.ctx("tokens", input=b"hello", env=OFFLINE) == (b"1\n", b"", 0)
    done = user.ctx("tokens", "-e", "p50k_base", input=b"hello", env=OFFLINE)
    assert (done.out, done.code) == (b"", 4)
    assert done.err.startswith(b"ctx tokens: no vocabulary for p50k_base: ")
    assert done.err.count(b"\n") == 2, "the error and its hint"


def test_an_estimate_only_when_asked_and_marked(user: User) -> None:
    asked = ["-e", "p50k_base", "--or-estimate", "--json"]
    done = user.ctx("tokens", *asked, input=b"hello world", env=OFFLINE)
    answer = json.loads(done.out)
    assert (answer["estimated"], answer["encoding"]) == (True, "estimate")
    assert b"this is an estimate" in done.err
    assert json.loads(user.ctx("tokens", "--json", input=b"x").out)["estimated"] is False


def test_models(user: User) -> None:
    assert user.ctx("tokens", "-m", "gpt-4o", input=b"hello").out == b"1\n"
    done = user.ctx("tokens", "-m", "claude-opus-5", input=b"hello world " * 50)
    assert int(done.out) > 100
    assert b"not public; this is an estimate" in done.err
    assert user.ctx("tokens", "-m", "no-such-model", input=b"").code == 2
    assert user.ctx("tokens", "-m", "gpt-4o", "-e", "pi", input=b"").code == 2


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcde", 2), ("😀😀", 1), ("😀😀😀", 2)])
def test_pi_is_a_quarter_of_the_utf16_units(user: User, text: str, tokens: int) -> None:
    assert user.ctx("tokens", "-e", "pi", input=text.encode()).out == b"%d\n" % tokens
