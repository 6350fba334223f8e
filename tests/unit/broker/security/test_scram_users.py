"""Tests requests that set, delete and describe SCRAM credentials (KIP-554)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kproto.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kproto.protocol.error_codes import error_code
from kproto.protocol.sasl.credentials import salted_password
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection
from tests.support.secured_broker import PASSWORDS, of_kind, password, sign_in

HASHES = {1: "sha256", 2: "sha512"}
SALT = b"some salt"


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    listeners = (of_kind("PLAINTEXT"), of_kind("SASL_PLAINTEXT"))
    with threaded_broker(BrokerSettings(listeners=listeners, users=PASSWORDS)) as running:
        yield running


def upsertion(
    name: str,
    mechanism: int = 1,
    *,
    iterations: int = 4096,
    salt: bytes = SALT,
    secret: str = "new",
) -> ScramCredentialUpsertion:
    salted = salted_password(HASHES.get(mechanism, "sha256"), secret.encode(), b"salt", 1)
    if salt and iterations > 0:
        salted = salted_password(
            HASHES.get(mechanism, "sha256"), secret.encode(), salt, min(iterations, 20_000)
        )
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )


def alter(connection: RawConnection, *wanted: Any) -> dict[str, tuple[str, str | None]]:
    """Sends the deletions and upsertions; returns (error name, message or None) by user."""
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in wanted if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in wanted if isinstance(each, ScramCredentialUpsertion)],
    )
    answer = connection.exchange(request, 0)
    return {
        each.user: (error_code(each.error_code).name, each.error_message) for each in answer.results
    }


def describe(connection: RawConnection, *names: str, every: bool = False) -> dict[str, Any]:
    request = DescribeUserScramCredentialsRequest(
        users=None if every else [UserName(name=name) for name in names]
    )
    answer = connection.exchange(request, 0)
    assert (answer.error_code, answer.error_message) == (0, None)
    return {
        each.user: [(info.mechanism, info.iterations) for info in each.credential_infos]
        if not each.error_code
        else (error_code(each.error_code).name, each.error_message)
        for each in answer.results
    }


BOTH = [(1, 4096), (2, 4096)]


def test_the_users_of_the_settings_are_described(broker: ThreadedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        assert describe(connection, every=True) == {"alice": BOTH, "bob": BOTH}
        assert describe(connection) == {"alice": BOTH, "bob": BOTH}
        assert describe(connection, "alice", "eve", "bob", "bob") == {
            "alice": BOTH,
            "eve": (
                "RESOURCE_NOT_FOUND",
                "Attempt to describe a user credential that does not exist: eve",
            ),
            "bob": (
                "DUPLICATE_RESOURCE",
                (
                    "Cannot describe SCRAM credentials for the same user twice in a single"
                    " request: bob"
                ),
            ),
        }


@pytest.mark.parametrize("mechanism", [1, 2])
def test_new_user_authenticates_by_its_mechanism(broker: ThreadedBroker, mechanism: int) -> None:
    with RawConnection(broker.bootstrap) as connection:
        wanted = upsertion("eve", mechanism, iterations=8192)
        assert alter(connection, wanted) == {"eve": ("NONE", None)}
        assert describe(connection, "eve") == {"eve": [(mechanism, 8192)]}
    address = broker.call(lambda it: it.bootstrap_of("SASL_PLAINTEXT"))
    for number, name in ((1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512")):
        with RawConnection(address) as connection:
            code = sign_in(connection, password(name, "eve", "new")).error_code
            assert (code == 0) == (number == mechanism)


def test_changed_and_removed_credentials_take_effect(broker: ThreadedBroker) -> None:
    address = broker.call(lambda it: it.bootstrap_of("SASL_PLAINTEXT"))

    def comes_in(secret: str) -> bool:
        with RawConnection(address) as connection:
            answer = sign_in(connection, password("SCRAM-SHA-256", "alice", secret))
            return answer.error_code == 0

    with RawConnection(broker.bootstrap) as connection:
        assert comes_in(PASSWORDS["alice"])
        assert alter(connection, upsertion("alice")) == {"alice": ("NONE", None)}
        assert comes_in("new")
        assert not comes_in(PASSWORDS["alice"])
        gone = ScramCredentialDeletion(name="alice", mechanism=1)
        assert alter(connection, gone) == {"alice": ("NONE", None)}
        assert not comes_in("new")
        assert describe(connection, "alice") == {"alice": [(2, 4096)]}


def deletion(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


TWICE = ("DUPLICATE_RESOURCE", "A user credential cannot be altered twice in the same request")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ([upsertion("")], ("UNACCEPTABLE_CREDENTIAL", "Username must not be empty")),
        ([deletion("")], ("UNACCEPTABLE_CREDENTIAL", "Username must not be empty")),
        ([upsertion("a", 0)], ("UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism")),
        ([deletion("alice", 3)], ("UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism")),
        ([upsertion("a", iterations=4095)], ("UNACCEPTABLE_CREDENTIAL", "Too few iterations")),
        ([upsertion("a", iterations=16_385)], ("UNACCEPTABLE_CREDENTIAL", "Too many iterations")),
        ([upsertion("a", salt=b"")], ("UNACCEPTABLE_CREDENTIAL", "Salt must not be empty")),
        (
            [deletion("a")],
            ("RESOURCE_NOT_FOUND", "Attempt to delete a user credential that does not exist"),
        ),
        ([deletion("alice"), upsertion("alice")], TWICE),
        ([deletion("alice"), deletion("alice", 2)], TWICE),
        ([upsertion("a"), upsertion("a", 2), upsertion("a")], TWICE),
        (
            [deletion("a"), upsertion("a")],
            ("RESOURCE_NOT_FOUND", "Attempt to delete a user credential that does not exist"),
        ),
    ],
)
def test_invalid_alteration_fails_alone(
    broker: ThreadedBroker, wanted: list[Any], told: tuple[str, str]
) -> None:
    with RawConnection(broker.bootstrap) as connection:
        assert alter(connection, *wanted, upsertion("other")) == {
            wanted[0].name: told,
            "other": ("NONE", None),
        }
        after = describe(connection, every=True)
        assert after == {"alice": BOTH, "bob": BOTH, "other": [(1, 4096)]}
