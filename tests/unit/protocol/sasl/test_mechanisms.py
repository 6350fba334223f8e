"""Tests all SASL mechanisms: client against server, secrets in errors, and the table."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.protocol.sasl import (
    MECHANISMS,
    Credentials,
    SaltedCredential,
    client_exchange,
    server_exchange,
)
from kproto.protocol.sasl.saslprep import saslprep
from kproto.wire.errors import AuthenticationError, ConfigurationError, KprotoError
from tests.support.examples import examples
from tests.unit.protocol.sasl.pairs import HASHES, SECRET, nobody, run, server_for

SCRAM = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


# --- client against server ---


text = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=30
)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
@settings(max_examples=examples(40), deadline=None)
@given(username=text, password=text)
@pytest.mark.slow
def test_any_name_and_password_as_they_are(mechanism: str, username: str, password: str) -> None:
    credentials = Credentials(username, password, prepare_strings=False)
    server = server_for(mechanism, username, password, prepare_strings=False)
    run(client_exchange(mechanism, credentials), server)
    assert server.done
    assert server.username == username


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
@settings(max_examples=examples(40), deadline=None)
@given(username=text, password=text)
def test_any_name_and_password_prepared(mechanism: str, username: str, password: str) -> None:
    """The server authenticates the client under the user name that SASLprep returns.

    The test skips names that SASLprep refuses.
    """
    credentials = Credentials(username, password)
    try:
        prepared = saslprep(username, "user name")
        server = server_for(mechanism, prepared, password)
    except AuthenticationError:
        return
    run(client_exchange(mechanism, credentials), server)
    assert server.username == prepared


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_prepared_texts_meet(mechanism: str) -> None:
    """Client and server use different characters that SASLprep (RFC 4013) makes equal.

    SASLprep removes a soft hyphen, and replaces "ª" by "a" and "Ⅸ" by "IX".
    """
    server = server_for(mechanism, "IX", "a\u2168")
    client = client_exchange(mechanism, Credentials("I\u00adX", "\u00aaIX"))
    run(client, server)
    assert server.username == "IX"


@pytest.mark.parametrize("mechanism", SCRAM)
def test_unprepared_password_differs(mechanism: str) -> None:
    """Kafka's broker does not prepare a password with SASLprep, so the client must not, either."""
    as_it_is = {"prepare_strings": False}
    with pytest.raises(AuthenticationError):
        run(
            client_exchange(mechanism, Credentials("user", "\u00aa")),
            server_for(mechanism, "user", "\u00aa", **as_it_is),
        )
    server = server_for(mechanism, "user", "\u00aa", **as_it_is)
    run(client_exchange(mechanism, Credentials("user", "\u00aa", **as_it_is)), server)
    assert server.done


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
@pytest.mark.parametrize(("username", "password"), [("user", "wrong"), ("nobody", SECRET)])
def test_wrong_password_and_unknown_user_look_alike(
    mechanism: str, username: str, password: str
) -> None:
    server = server_for(mechanism, "user", SECRET)
    with pytest.raises(AuthenticationError) as caught:
        run(client_exchange(mechanism, Credentials(username, password)), server)
    assert str(caught.value) == f"{mechanism}: invalid user name or password"
    assert not server.done
    assert server.username is None


@pytest.mark.parametrize("mechanism", SCRAM)
def test_nonces_are_fresh(mechanism: str) -> None:
    credentials = Credentials("user", SECRET)
    firsts = {client_exchange(mechanism, credentials).first() for _ in range(50)}
    assert len(firsts) == 50
    first = firsts.pop()
    answers = {server_for(mechanism, "user", SECRET).next(first) for _ in range(5)}
    assert len(answers) == 5


def test_an_exchange_is_good_for_one_run() -> None:
    for mechanism in MECHANISMS:
        client = client_exchange(mechanism, Credentials("user", SECRET))
        server = server_for(mechanism, "user", SECRET)
        with pytest.raises(AuthenticationError):
            client_exchange(mechanism, Credentials("user", SECRET)).next(b"")
        sent = run(client, server)
        with pytest.raises(AuthenticationError, match="already begun"):
            client.first()
        with pytest.raises(AuthenticationError, match="unexpected message"):
            client.next(b"")
        with pytest.raises(AuthenticationError, match="unexpected message"):
            server.next(sent[0])


# --- secrets ---


def said(error: BaseException) -> Iterator[str]:
    """Yields the texts of an error and of all errors chained to this error."""
    while True:
        yield f"{error!s} {error!r} {error.args!r} {vars(error)!r} {getattr(error, 'object', '')!r}"
        chained = error.__cause__ or error.__context__
        if chained is None:
            return
        error = chained


def test_reprs_hide_what_is_secret() -> None:
    credentials = Credentials("alice", SECRET)
    assert "alice" in repr(credentials)
    salted = SaltedCredential.derive(SECRET, salt=b"a-known-salt")
    shown = [repr(credentials), str(credentials), f"{credentials}", repr([credentials])]
    shown += [repr(salted), str(salted)]
    for mechanism, (client, server) in MECHANISMS.items():
        lookup = {"alice": SaltedCredential.derive(SECRET, hash_name=HASHES[mechanism])}.get
        exchanges = client(credentials), server(lookup)
        run(*exchanges)
        shown += map(repr, exchanges)
    for text_shown in shown:
        assert SECRET not in text_shown
        assert "a-known-salt" not in text_shown
        for key in (salted.stored_key, salted.server_key):
            assert repr(key)[2:-1] not in text_shown
            assert key.hex() not in text_shown
    assert "sha256" in repr(salted)
    assert "4096" in repr(salted)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
@pytest.mark.parametrize(
    "password", [SECRET, f"{SECRET}\ud800", f"{SECRET}\x07", f"\u0627{SECRET}"]
)
@pytest.mark.parametrize("prepare_strings", [True, False])
def test_errors_hide_what_is_secret(
    mechanism: str, password: str, prepare_strings: bool, caplog: pytest.LogCaptureFixture
) -> None:
    credentials = Credentials("user", password, prepare_strings=prepare_strings)
    with caplog.at_level(logging.DEBUG), pytest.raises(AuthenticationError) as caught:
        run(client_exchange(mechanism, credentials), server_for(mechanism, "user", "another"))
    assert not any(SECRET in line for line in said(caught.value))
    assert SECRET not in caplog.text


def test_a_plain_message_that_is_not_utf_8_stays_secret() -> None:
    """The error must not chain a UnicodeDecodeError, which would contain the message's bytes."""
    server = server_for("PLAIN", "user", SECRET)
    with pytest.raises(AuthenticationError) as caught:
        server.next(b"\0user\0" + SECRET.encode() + b"\xff")
    assert caught.value.__context__ is None
    assert not any(SECRET in line for line in said(caught.value))


# --- the table ---


def test_the_table_of_mechanisms() -> None:
    assert list(MECHANISMS) == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    credentials = Credentials("user", SECRET)
    for name in MECHANISMS:
        assert client_exchange(name, credentials).mechanism == name
        assert server_exchange(name, nobody).mechanism == name
    with pytest.raises(ConfigurationError, match="'GSSAPI' is not known: take one of PLAIN, SCRAM"):
        client_exchange("GSSAPI", credentials)
    with pytest.raises(ConfigurationError, match="'plain' is not known"):
        server_exchange("plain", nobody)


def test_authentication_errors_are_kproto_errors() -> None:
    assert issubclass(AuthenticationError, KprotoError)
