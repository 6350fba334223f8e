"""Tests OAUTHBEARER: the client's message (RFC 7628, KIP-342), refusals, and invalid input."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.protocol.sasl import (
    MAX_TOKEN_BYTES,
    BearerIdentity,
    BearerToken,
    OAuthBearerClient,
    OAuthBearerServer,
)
from kproto.wire.errors import AuthenticationError, ConfigurationError, KprotoError

TOKEN = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="  # the token of RFC 7628, 4.1


def alice(token: BearerToken) -> BearerIdentity:
    if token.value != TOKEN:
        raise AuthenticationError("another token")
    return BearerIdentity("alice", 5000)


def test_the_message_of_a_client() -> None:
    client = OAuthBearerClient(BearerToken(TOKEN, {"traceId": "123", "logicalCluster": "lkc-1"}))
    # KIP-342: extensions follow the token, each after a byte 1.
    expected = f"n,,\1auth=Bearer {TOKEN}\1traceId=123\1logicalCluster=lkc-1\1\1"
    assert client.first() == expected.encode()
    assert not client.done
    assert client.next(b"") == b""
    assert client.done


def test_a_message_of_the_rfc_is_read() -> None:
    server = OAuthBearerServer(alice)
    # RFC 7628, 4.1, with Kafka's header; host and port are extensions.
    message = f"n,a=alice,\1host=server.example.com\1port=143\1auth=Bearer {TOKEN}\1\1"
    assert server.next(message.encode()) == b""
    assert (server.username, server.expires_at_ms) == ("alice", 5000)


def test_a_refusal_is_told_acknowledged_and_ends_it() -> None:
    client = OAuthBearerClient(BearerToken("wrong"))
    server = OAuthBearerServer(alice)
    told = server.next(client.first())
    assert told == b'{"status":"invalid_token"}'
    acknowledged = client.next(told)
    assert acknowledged == b"\1"
    with pytest.raises(AuthenticationError, match="invalid_token"):
        server.next(acknowledged)
    with pytest.raises(AuthenticationError, match="status invalid_token"):
        client.next(b"")
    assert not client.done
    assert server.username is None


@pytest.mark.parametrize(
    "refusal", [b"no", b"[1]", b"{}", b'{"status":"\\u001b[2J"}', b"[" * 100_000, b"1" * 5000]
)
def test_any_refusal_is_one_error(refusal: bytes) -> None:
    client = OAuthBearerClient(BearerToken(TOKEN))
    client.first()
    assert client.next(refusal) == b"\1"
    with pytest.raises(AuthenticationError) as caught:
        client.next(b"")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"", "does not begin"),
        (b"p=tls,,\1auth=Bearer x\1\1", "does not begin"),
        (b"n,,auth=Bearer x\1\1", "pairs with a byte 1"),
        (b"n,,\1auth=Bearer x\1", "pairs with a byte 1"),
        (b"n,,\1\1", "is malformed"),
        (b"n,,\1auth=Bearer x\1auth=Bearer y\1\1", "key occurs twice"),
        (b"n,,\1auth=Bearer x\1k1=v\1\1", "is malformed"),
        (b"n,,\1auth=Bearer x\1key=\1\1", "is malformed"),
        (b"n,,\1key=value\1\1", "no 'auth=Bearer"),
        (b"n,,\1auth=Basic x\1\1", "no 'auth=Bearer"),
        (b"n,,\1auth=Bearer\1\1", "no 'auth=Bearer"),
        (b"n,a=bob,\1auth=Bearer " + TOKEN.encode() + b"\1\1", "only for itself"),
        (b"n,,\1auth=Bearer \xff\1\1", "not UTF-8"),
        (b"n" * (MAX_TOKEN_BYTES + 1), "more than the 524288"),
    ],
)
def test_a_broken_message(message: bytes, complaint: str) -> None:
    server = OAuthBearerServer(alice)
    with pytest.raises(AuthenticationError, match=complaint):
        server.next(message)
    assert not server.done
    with pytest.raises(AuthenticationError):
        server.next(b"")


@given(st.one_of(st.binary(), st.text(alphabet="n,a=\1Ber autha1 ").map(str.encode)))
def test_any_message_is_taken_or_refused(message: bytes) -> None:
    server = OAuthBearerServer(lambda token: BearerIdentity(token.value))
    with contextlib.suppress(KprotoError):
        server.next(message)
        assert server.done


@given(
    st.from_regex(r"[A-Za-z0-9\-._~+/]+=*", fullmatch=True),
    st.dictionaries(
        st.from_regex(r"[A-Za-z]+", fullmatch=True).filter(lambda key: key != "auth"),
        st.from_regex(r"[\x21-\x7e \t\r\n]+", fullmatch=True),
        max_size=4,
    ),
)
def test_server_reads_the_message_of_a_client(value: str, extensions: dict[str, str]) -> None:
    seen: list[BearerToken] = []

    def validate(token: BearerToken) -> BearerIdentity:
        seen.append(token)
        return BearerIdentity("someone")

    server = OAuthBearerServer(validate)
    server.next(OAuthBearerClient(BearerToken(value, extensions)).first())
    assert seen[0].value == value
    assert dict(seen[0].extensions) == extensions


@pytest.mark.parametrize("value", ["", "two words", "Bearer x", "a\1b", "ü", "a=b"])
def test_a_token_that_cannot_be_sent(value: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        BearerToken(value)
    assert not value or value not in str(caught.value)


@pytest.mark.parametrize(
    "extensions", [{"auth": "x"}, {"": "x"}, {"k-1": "x"}, {"key": ""}, {"key": "a\1b"}]
)
def test_an_extension_that_cannot_be_sent(extensions: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="cannot be sent"):
        BearerToken(TOKEN, extensions)


def test_no_repr_shows_the_token() -> None:
    token = BearerToken(TOKEN, {"traceId": "hush"})
    assert TOKEN not in repr(token)
    assert "hush" not in repr(token)


def test_out_of_turn() -> None:
    client = OAuthBearerClient(BearerToken(TOKEN))
    with pytest.raises(AuthenticationError, match="unexpected message of the server"):
        client.next(b"")
    client.first()
    with pytest.raises(AuthenticationError, match="already begun"):
        client.first()
