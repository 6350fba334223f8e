"""Tests that client and server refuse invalid credentials, and that copies equal the original."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kproto.protocol.sasl import Credentials, SaltedCredential
from kproto.wire.errors import ConfigurationError
from tests.unit.protocol.sasl.pairs import SECRET


@pytest.mark.parametrize("arguments", [("", SECRET), ("user", ""), ("us\0er", SECRET), ("u", "\0")])
def test_credentials_that_cannot_work(arguments: tuple[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"the SASL (user name|password)"):
        Credentials(*arguments)


def test_credentials_travel() -> None:
    """Spark pickles credentials to send them to its executors."""
    credentials = Credentials("user", SECRET, delegation_token=True)
    assert pickle.loads(pickle.dumps(credentials)) == credentials


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"iterations": 4095}, "iterations is 4095"),
        ({"salt": b""}, "without a salt"),
        ({"hash_name": "nonsense"}, "'nonsense' is no hash"),
        ({"hash_name": "shake_128"}, "'shake_128' is no hash"),
    ],
)
def test_salting_that_no_client_would_accept(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        SaltedCredential.derive(SECRET, **options)


def test_keys_must_have_the_length_of_the_hash() -> None:
    with pytest.raises(ConfigurationError, match="have 64 bytes, not 32 and 64"):
        SaltedCredential("sha512", 4096, b"salt", bytes(32), bytes(64))


def test_salts_are_fresh() -> None:
    salts = {SaltedCredential.derive(SECRET).salt for _ in range(5)}
    assert len(salts) == 5
    assert {len(salt) for salt in salts} == {16}
