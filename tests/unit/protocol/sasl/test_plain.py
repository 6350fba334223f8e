"""Tests PLAIN: the client's single token, and the server's errors for broken tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.protocol.sasl import (
    MAX_TOKEN_BYTES,
    Credentials,
    PlainClient,
    PlainServer,
    SaltedCredential,
)
from kproto.protocol.sasl.credentials import INVALID_CREDENTIALS
from kproto.wire.errors import AuthenticationError, ConfigurationError
from tests.support.examples import examples
from tests.unit.protocol.sasl.pairs import SECRET, server_for

CREDENTIAL = SaltedCredential.derive(SECRET, salt=b"salt")


def test_plain_message() -> None:
    client = PlainClient(Credentials("tim", "tanstaaftanstaaf"))
    assert client.first() == b"\0tim\0tanstaaftanstaaf"  # RFC 4616, 4
    assert not client.done
    assert client.next(b"") == b""
    assert client.done


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"", "three texts"),
        (b"user\0" + SECRET.encode(), "three texts"),
        (b"\0user\0" + SECRET.encode() + b"\0", "three texts"),
        (b"\0\0" + SECRET.encode(), "empty user name or password"),
        (b"\0user\0", "empty user name or password"),
        (b"other\0user\0" + SECRET.encode(), "act only for itself"),
        (b"other\0user\0x" + SECRET.encode(), INVALID_CREDENTIALS),
        (b"\0user\0\xff" + SECRET.encode(), "not UTF-8"),
        (b"\0user\0" + b"x" * MAX_TOKEN_BYTES, "more than the 524288"),
    ],
)
def test_broken_plain_message(message: bytes, complaint: str) -> None:
    server = server_for("PLAIN", "user", SECRET)
    with pytest.raises(AuthenticationError, match=complaint):
        server.next(message)
    assert server.username is None


def test_plain_accepts_an_authorization_id_that_is_the_user() -> None:
    server = server_for("PLAIN", "user", SECRET)
    assert server.next(b"user\0user\0" + SECRET.encode()) == b""
    assert server.username == "user"


@settings(max_examples=examples(200), deadline=None)
@given(
    message=st.one_of(
        st.binary(max_size=60), st.lists(st.binary(max_size=8), max_size=4).map(b"\0".join)
    )
)
def test_any_plain_message_without_the_password_is_refused(message: bytes) -> None:
    server = PlainServer({"user": CREDENTIAL}.get)
    with pytest.raises(AuthenticationError):
        server.next(message)


@settings(max_examples=examples(50), deadline=None)
@given(password=st.text(min_size=1, max_size=8).filter(lambda text: text != SECRET))
def test_plain_refuses_any_other_password(password: str) -> None:
    server = PlainServer({"user": CREDENTIAL}.get, prepare_strings=False)
    with pytest.raises(AuthenticationError):
        server.next(b"\0user\0" + password.encode("utf-8", "surrogatepass"))


def test_plain_takes_no_delegation_token() -> None:
    with pytest.raises(ConfigurationError, match="use SCRAM-SHA-256"):
        PlainClient(Credentials("id", SECRET, delegation_token=True))
