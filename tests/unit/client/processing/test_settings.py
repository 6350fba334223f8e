"""Tests that the arguments of `run` are declared alike wherever they are declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from kproto import GroupConsumer
from kproto.client.processing.settings import RunArguments, RunSettings


def defaults(function: Callable[..., Any]) -> dict[str, object]:
    """Returns the defaults of the keyword arguments, except `decode`, by name."""
    return {
        name: each.default
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY and name != "decode"
    }


def test_run_and_run_batches_have_the_same_defaults() -> None:
    """`run_batches` has the defaults of `RunSettings.of`."""
    assert defaults(GroupConsumer.run) == defaults(RunSettings.of)


def test_arguments_of_run_batches_are_those_of_run() -> None:
    assert set(RunArguments.__annotations__) == set(defaults(GroupConsumer.run))
