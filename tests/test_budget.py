"""How full the window is: Pi's recorded results, and what Pi's rules leave open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxkit import budget

GOLDEN = Path(__file__).parent / "golden"
MEGABYTE = 1_000_000

PI = json.loads((GOLDEN / "tokens.json").read_text("utf-8"))
CONTEXTS = {case["name"]: case["messages"] for case in PI["estimateContextTokens"]}


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in cases]


@pytest.mark.parametrize("case", named(PI["estimateTokens"]))
def test_pi_estimate_of_a_message(case: dict[str, Any]) -> None:
    assert budget.estimate_message(case["message"]) == case["tokens"]


@pytest.mark.parametrize(
    "case", named(json.loads((GOLDEN / "serialize_conversation.json").read_text("utf-8"))["rawArguments"])
)
def test_pi_estimate_of_arguments(case: dict[str, Any]) -> None:
    call = {"type": "toolCall", "name": case["toolName"], "arguments": json.loads(case["argumentsJson"])}
    assert budget.estimate_message({"role": "assistant", "content": [call]}) == case["tokens"]


@pytest.mark.parametrize("case", named(PI["estimateContextTokens"]))
def test_pi_size_of_a_context(case: dict[str, Any]) -> None:
    found = budget.measure_context(CONTEXTS[case["name"]])
    wanted = case["result"]
    assert found == (wanted["tokens"], wanted["usageTokens"], wanted["trailingTokens"], wanted["lastUsageIndex"])


@pytest.mark.parametrize("case", named(PI["getLastAssistantUsage"]))
def test_pi_last_usage(case: dict[str, Any]) -> None:
    messages = CONTEXTS[case["name"]]
    index = budget.find_last_usage(messages)
    assert (None if index is None else messages[index]["usage"]) == case["result"]


def test_pi_usage_and_trigger() -> None:
    assert PI["defaults"]["reserveTokens"] == budget.RESERVE
    for case in PI["calculateContextTokens"]:
        assert budget.usage_tokens(case["usage"]) == case["result"]
    for case in PI["shouldCompact"]:
        must = budget.must_compact(case["contextTokens"], case["contextWindow"], case["settings"]["reserveTokens"])
        assert (must and case["settings"]["enabled"]) == case["result"]


def test_usage_from_before_a_compaction_does_not_count() -> None:
    messages = CONTEXTS["last usage wins"]
    assert budget.measure_context(messages, since=len(messages)).last_usage is None
    assert budget.measure_context(messages, since=len(messages)).tokens == sum(map(budget.estimate_message, messages))


def test_an_image_costs_the_same_in_every_role() -> None:
    # K06
    image = {"type": "image", "data": "A" * MEGABYTE, "mimeType": "image/png"}
    for role in ("user", "toolResult", "custom"):
        assert budget.estimate_message({"role": role, "content": [image, {"type": "text", "text": "abcd"}]}) == 1201
