"""Tests the SASL mechanism classes: what they send and refuse, and that they show no secret."""

from __future__ import annotations

import asyncio
import copy
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from kproto import (
    BearerToken,
    ClientSettings,
    DelegationToken,
    OAuthBearer,
    Plain,
    Sasl,
    ScramSha256,
    ScramSha512,
)
from kproto.protocol.sasl import SaltedCredential, ScramSha512Server
from kproto.wire.errors import AuthenticationError, BrokerConnectionError, ConfigurationError

SECRET = "open-sesame-4711"


async def first(sasl: Sasl) -> bytes:
    return (await sasl.exchange("b1")).first()


async def test_first_token_of_each_mechanism() -> None:
    assert await first(Plain("al", SECRET)) == f"\0al\0{SECRET}".encode()
    assert (await first(ScramSha256("a=l", SECRET))).startswith(b"n,,n=a=3Dl,r=")
    assert (await first(ScramSha512("al", SECRET))).startswith(b"n,,n=al,r=")
    token = await first(DelegationToken("id", SECRET))
    assert token.startswith(b"n,,n=id,r=")
    assert token.endswith(b",tokenauth=true")


async def test_a_delegation_token_is_known_to_a_broker() -> None:
    salted = SaltedCredential.derive(SECRET, hash_name="sha512", prepare_strings=False)
    server = ScramSha512Server(
        lambda name: None, token_lookup={"id": salted}.get, prepare_strings=False
    )
    client = await DelegationToken("id", SECRET, "SCRAM-SHA-512").exchange("b1")
    token = client.first()
    while not client.done:
        token = client.next(server.next(token))
    assert server.username == "id"
    assert server.token_auth


async def test_scram_takes_strings_as_kafka_does_unless_told() -> None:
    assert (await first(ScramSha256("K\u212a", SECRET))).startswith("n,,n=K\u212a,".encode())
    prepared = ScramSha256("K\u212a", SECRET, prepare_strings=True)
    assert (await first(prepared)).startswith(b"n,,n=KK,")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Plain("", SECRET),
        lambda: Plain("al", ""),
        lambda: ScramSha256("a\0l", SECRET),
        lambda: ScramSha512("al", ""),
        lambda: DelegationToken("id", SECRET, "PLAIN"),
        lambda: DelegationToken("", SECRET),
    ],
)
def test_invalid_credentials_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError) as told:
        make()
    assert SECRET not in "".join(traceback.format_exception(told.value))


async def async_token() -> str:
    await asyncio.sleep(0)
    return "abc"


@pytest.mark.parametrize(
    ("function", "token"),
    [
        (lambda: "abc", b"n,,\x01auth=Bearer abc\x01cluster=c\x01\x01"),
        (async_token, b"n,,\x01auth=Bearer abc\x01cluster=c\x01\x01"),
        (lambda: BearerToken("abc", {"own": "o"}), b"n,,\x01auth=Bearer abc\x01own=o\x01\x01"),
    ],
)
async def test_functions_that_give_tokens(function: Any, token: bytes) -> None:
    assert await first(OAuthBearer(function, {"cluster": "c"})) == token


def raising(error: BaseException) -> Callable[[], str]:
    def function() -> str:
        raise error

    return function


@pytest.mark.parametrize(
    ("function", "error", "told"),
    [
        (raising(ValueError(SECRET)), AuthenticationError, "the token function raised ValueError"),
        (raising(ConnectionResetError(SECRET)), BrokerConnectionError, "raised ConnectionResetErr"),
        (raising(TimeoutError(SECRET)), BrokerConnectionError, "function raised TimeoutError"),
        (raising(PermissionError(SECRET)), AuthenticationError, "function raised PermissionError"),
        (raising(AuthenticationError("mine")), AuthenticationError, "^mine$"),
        (raising(BrokerConnectionError("away")), BrokerConnectionError, "^away$"),
        (lambda: None, ConfigurationError, "returned a NoneType: return a str or a BearerToken"),
        (lambda: "", ConfigurationError, "or is empty"),
        (lambda: f"Bearer {SECRET}", ConfigurationError, "without 'Bearer'"),
    ],
)
async def test_functions_that_do_not(function: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told) as raised:
        await OAuthBearer(function).exchange("b1")
    assert SECRET not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "sasl",
    [
        Plain("al", SECRET),
        ScramSha256("al", SECRET),
        ScramSha512("al", SECRET),
        DelegationToken("al", SECRET),
    ],
)
async def test_settings_can_be_copied_and_show_no_secret(sasl: Sasl) -> None:
    settings = ClientSettings(sasl=sasl)
    other: ClientSettings
    for other in (pickle.loads(pickle.dumps(settings)), copy.deepcopy(settings)):
        assert other == settings
        assert other.sasl is not None
        assert (await first(other.sasl))[:8] == (await first(sasl))[:8]
        assert SECRET not in f"{other!r} {other.sasl!r} {other.sasl}"
