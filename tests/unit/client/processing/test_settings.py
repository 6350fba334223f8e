"""Tests that all declarations of the arguments of `run` have equal names and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from kproto import GroupConsumer
from kproto.client.processing.settings import RunSettings, TransactionalRunArguments


def defaults(function: Callable[..., Any]) -> dict[str, object]:
    """Returns the defaults of the keyword arguments, except `decode`, by name."""
    return {
        name: each.default
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY and name != "decode"
    }


def test_arguments_of_run_are_those_of_its_settings() -> None:
    """`run` and `run_batches` pass their arguments to `RunSettings.of`, which has the defaults."""
    names = {"transactional_id", *TransactionalRunArguments.__annotations__}
    assert names == set(defaults(RunSettings.of))


@pytest.mark.parametrize("call", [GroupConsumer.run, GroupConsumer.run_batches])
def test_other_arguments_of_run(call: Callable[..., Any]) -> None:
    own = {"transactional_id"} if call is GroupConsumer.run else {"transactional_id", "batch_size"}
    assert set(defaults(call)) == own
