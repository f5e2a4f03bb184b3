"""Model names: found under the spellings they go by, never guessed."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest
import tiktoken

from ctxkit import models
from ctxkit.errors import UsageError
from ctxkit.tokens import find_encoding


def map_data(name: str) -> mmap.mmap:
    with (Path(models.__file__).parent / "data" / name).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@pytest.mark.parametrize(
    ("name", "found", "window"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o", 128_000),
        ("openai/gpt-5-mini", "gpt-5-mini", 400_000),
        ("GPT-5-chat-latest", "gpt-5-chat", 128_000),
        ("gpt-4-0613", "gpt-4", 8_192),
        ("gpt-4-1106-preview", "gpt-4-1106-preview", 128_000),
        ("gpt-oss-20b:free", "gpt-oss-20b", 131_072),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5", 200_000),
        ("anthropic/claude-opus-4.6", "claude-opus-4-6", 1_000_000),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", 200_000),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet", 200_000),
    ],
)
def test_models_are_found_under_the_names_they_go_by(name: str, found: str, window: int) -> None:
    model = models.find_model(name)
    assert (model.name, model.window) == (found, window)


@pytest.mark.parametrize("name", ["gpt-4-turbo-fake", "gpt-7", "claude", "", "gpt-5-trubo", "o200k_base"])
def test_an_unknown_model_is_an_error_and_no_guess(name: str) -> None:
    with pytest.raises(UsageError, match="unknown model") as caught:
        models.find_model(name)
    assert models.TABLE_DATE in caught.value.hint


def test_openai_models_have_the_encoding_that_tiktoken_gives_them() -> None:
    for name, model in models._MODELS.items():
        if name.startswith(("gpt-", "o1", "o3", "o4")):
            assert model.encoding == tiktoken.encoding_name_for_model(name), name
            assert not model.estimated


def test_models_without_a_public_vocabulary_are_estimates() -> None:
    model = models.find_model("claude-opus-4-8")
    encoding = models.model_encoding(model, map_data)
    assert model.estimated
    assert encoding.estimated
    text = "Never touch the lock file, said on Monday, is still binding on Friday. " * 9
    true = find_encoding("o200k_base", map_data).count(text)
    assert encoding.count(text) == -(-true * 133 // 100)
    counter = encoding.counter()
    counter.add(text.encode())
    assert counter.total() == encoding.count(text)
    assert models.model_encoding(models.find_model("gpt-4"), map_data).name == "cl100k_base"
