"""Tests the defaults of the fetch settings: the overloads of `Client.consumer` repeat them."""

from __future__ import annotations

import inspect
from typing import get_overloads

from kproto import Client
from kproto.client.fetch.fetch_options import DEFAULT_FETCH_OPTIONS


def test_defaults_of_the_overloads_are_those_of_the_settings() -> None:
    overloads = get_overloads(Client.consumer)
    assert len(overloads) == 2
    defaults = DEFAULT_FETCH_OPTIONS._asdict()
    del defaults["reset_policy"]  # follows from `start`
    for overload in overloads:
        parameters = inspect.signature(overload).parameters
        assert {name: parameters[name].default for name in defaults} == defaults


def test_implementation_has_no_defaults_of_its_own() -> None:
    parameters = inspect.signature(Client.consumer).parameters
    for name in DEFAULT_FETCH_OPTIONS._fields:
        assert name == "reset_policy" or parameters[name].default is None
