"""Tests that each error code that callers catch has a class of its own, as in Java."""

from __future__ import annotations

import pickle

import pytest

import kproto
from kproto import AuthorizationError, BrokerResponseError, TopicAuthorizationError
from kproto.protocol import broker_errors
from kproto.protocol.broker_errors import BROKER_ERRORS
from kproto.protocol.error_codes import ERRORS, code_of, error_of_code


@pytest.mark.parametrize("name", sorted(BROKER_ERRORS))
def test_code_becomes_an_error_of_its_class(name: str) -> None:
    error = error_of_code(code_of(name), "asking for it")
    assert type(error) is BROKER_ERRORS[name]
    assert (error.name, error.code, error.detail) == (name, code_of(name), "asking for it")
    assert error.retriable == ERRORS[error.code].retriable
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))


def test_any_other_code_is_a_plain_response_error() -> None:
    for code, known in ERRORS.items():
        error = error_of_code(code, "")
        assert isinstance(error, BrokerResponseError)
        if known.name not in BROKER_ERRORS:
            assert type(error) is BrokerResponseError


def test_authorization_errors_have_one_base() -> None:
    failed = [name for name in BROKER_ERRORS if name.endswith("AUTHORIZATION_FAILED")]
    assert failed
    for name in failed:
        assert isinstance(error_of_code(code_of(name), ""), AuthorizationError)
    assert issubclass(TopicAuthorizationError, AuthorizationError)


def test_classes_are_public() -> None:
    for name in broker_errors.__all__:
        if name.endswith("Error"):
            assert getattr(kproto, name) is getattr(broker_errors, name)
            assert name in kproto.__all__
