"""Tests the cache of salted passwords: it is limited, and never copied or pickled."""

from __future__ import annotations

import copy
import hashlib
import pickle
import threading

import pytest

from kproto.protocol.sasl import Credentials, PasswordSalter, ScramSha256Client, credentials
from kproto.protocol.sasl.credentials import MAX_CACHED_PASSWORDS


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Returns a list to which each derivation of a key appends its salt."""
    salts: list[bytes] = []

    def note(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        salts.append(salt)
        return hashlib.pbkdf2_hmac(name, password, salt, iterations)

    monkeypatch.setattr(credentials, "salted_password", note)
    return salts


def test_the_same_is_derived_once(derived: list[bytes]) -> None:
    salting = PasswordSalter()
    first = salting("sha256", b"pw", b"salt", 4096)
    assert first == salting("sha256", b"pw", b"salt", 4096)
    assert first == hashlib.pbkdf2_hmac("sha256", b"pw", b"salt", 4096)
    assert derived == [b"salt"]


def test_other_arguments_derive_another_key(derived: list[bytes]) -> None:
    salting = PasswordSalter()
    found = {
        salting("sha256", b"pw", b"salt", 4096),
        salting("sha512", b"pw", b"salt", 4096),
        salting("sha256", b"other", b"salt", 4096),
        salting("sha256", b"pw", b"salt", 4097),
    }
    assert len(found) == len(derived) == 4


def test_the_least_used_is_forgotten(derived: list[bytes]) -> None:
    salting = PasswordSalter()
    salts = [b"%d" % number for number in range(MAX_CACHED_PASSWORDS + 1)]
    for salt in salts:
        salting("sha256", b"pw", salts[0], 1)
        salting("sha256", b"pw", salt, 1)
    assert derived == salts
    salting("sha256", b"pw", salts[1], 1)
    assert derived == [*salts, salts[1]]


def test_threads_share_the_work(derived: list[bytes]) -> None:
    salting = PasswordSalter()
    threads = [
        threading.Thread(target=salting, args=("sha256", b"pw", b"salt", 100_000)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert derived == [b"salt"]


def test_copies_begin_empty(derived: list[bytes]) -> None:
    salting = PasswordSalter()
    kept = salting("sha256", b"pw", b"salt", 4096)
    data = pickle.dumps(salting)
    assert kept not in data
    for other in (pickle.loads(data), copy.deepcopy(salting)):
        other("sha256", b"pw", b"salt", 4096)
    assert len(derived) == 3


def test_a_client_derives_by_what_it_is_given() -> None:
    asked: list[int] = []

    def salting(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        asked.append(iterations)
        return bytes(32)

    client = ScramSha256Client(Credentials("al", "pw"), nonce="mine", salting=salting)
    client.first()
    assert b"r=minetheirs" in client.next(b"r=minetheirs,s=c2FsdA==,i=4096")
    assert asked == [4096]
