"""Tests the error classes: one base class, positions in messages, and pickling."""

from __future__ import annotations

import pickle

import pytest

from kproto.wire import errors
from kproto.wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    CorruptBatchError,
    DecodeError,
    EncodeError,
    KprotoError,
    RequestTimeoutError,
)


def test_every_error_is_a_kproto_error() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), KprotoError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DecodeError("odd"), "odd"),
        (DecodeError("odd", message="X", version=0), "X v0: odd"),
        (DecodeError("odd", message="X"), "X: odd"),
        (
            DecodeError("odd", message="X", version=3, field="a[0].b", offset=0),
            "X v3, field a[0].b, at byte 0: odd",
        ),
        (EncodeError("odd", message="X", version=3, field="a"), "X v3, field a: odd"),
        (EncodeError("odd", message="X", version=3, field=""), "X v3: odd"),
        (CorruptBatchError("odd", offset=9, base_offset=4), "at byte 9: odd (batch base offset 4)"),
        (BrokerConnectionError("gone", address="h:1"), "h:1: gone"),
        (BrokerResponseError(3, "UNKNOWN_TOPIC", "no such"), "UNKNOWN_TOPIC (3): no such"),
    ],
)
def test_the_text_says_where(error: KprotoError, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize(
    "error",
    [
        DecodeError("odd", message="X", version=3, field="a[0].b", offset=0),
        EncodeError("odd", message="X", version=3, field="a"),
        CorruptBatchError("odd", offset=9, base_offset=4),
        BrokerConnectionError("gone", address="h:1"),
        BrokerResponseError(3, "UNKNOWN_TOPIC", "no such", retriable=True),
        ConfigurationError("odd"),
    ],
)
def test_an_error_survives_the_way_to_another_process(error: KprotoError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_errors_are_also_what_python_calls_them() -> None:
    assert issubclass(BrokerConnectionError, ConnectionError)
    assert issubclass(RequestTimeoutError, TimeoutError)
    assert issubclass(ConfigurationError, ValueError)


def test_an_error_for_one_who_has_more_bytes_in_front() -> None:
    error = DecodeError("gone", message="Name", version=3, field="a[0]", offset=7).shifted(2)
    assert str(error) == "Name v3, field a[0], at byte 9: gone"
    assert (error.offset, error.reason) == (9, "gone")
    assert str(DecodeError("gone", message="Name").shifted(2)) == "Name: gone"
