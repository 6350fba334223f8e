"""Tests SCRAM: examples of the RFCs and of Kafka, false servers and clients, broken tokens."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.protocol.sasl import (
    MAX_ITERATIONS,
    MAX_TOKEN_BYTES,
    MIN_ITERATIONS,
    ClientExchange,
    Credentials,
    SaltedCredential,
    ScramSha256Client,
    ScramSha256Server,
    ScramSha512Client,
    ScramSha512Server,
    client_exchange,
)
from kproto.protocol.sasl.scram import ScramClient, ScramServer
from kproto.wire.errors import AuthenticationError, ConfigurationError
from tests.support.examples import examples
from tests.unit.protocol.sasl.pairs import SECRET, nobody, run, server_for

CREDENTIAL = SaltedCredential.derive(SECRET, salt=b"salt")
SCRAM = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


class ScramSha1Client(ScramClient):
    """Implements SCRAM-SHA-1, which Kafka does not have, for the examples of RFC 5802."""

    mechanism = "SCRAM-SHA-1"
    hash_name = "sha1"


class ScramSha1Server(ScramServer):
    mechanism = "SCRAM-SHA-1"
    hash_name = "sha1"


#: Client class, server class, salt, iterations, user name, whether the name is that of a delegation
#: token, the nonces of client and server, the four messages.
EXAMPLES = [
    pytest.param(  # RFC 5802, 5
        ScramSha1Client,
        ScramSha1Server,
        base64.b64decode("QSXCR+Q6sek8bf92"),
        4096,
        "user",
        False,
        ("fyko+d2lbbFgONRv9qkxdawL", "3rfcNHYJY1ZVvWVs7j"),
        (
            b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
            b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
            b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        ),
        id="RFC 5802",
    ),
    pytest.param(  # RFC 7677, 3
        ScramSha256Client,
        ScramSha256Server,
        base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="),
        4096,
        "user",
        False,
        ("rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"),
        (
            b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            (
                b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
            ),
            (
                b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
            ),
            b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
        id="RFC 7677",
    ),
    pytest.param(  # made with ScramFormatter and ScramMessages of kafka-clients 4.4.0
        ScramSha512Client,
        ScramSha512Server,
        b"sixteen bytes ok",
        8192,
        "us=,er",
        True,
        ("clientnonce", "servernonce"),
        (
            b"n,,n=us=3D=2Cer,r=clientnonce,tokenauth=true",
            b"r=clientnonceservernonce,s=c2l4dGVlbiBieXRlcyBvaw==,i=8192",
            (
                b"c=biws,r=clientnonceservernonce,p=eB/1+d1mEur2UlD2tr/vmqOziyW+Da7cQuCGapqORgjXdc+"
                b"F0Z75hM1azM19jBUGj7YoQIe/P3685J/pQJXsjw=="
            ),
            (
                b"v=K8wHBFqRkmf1x3Wl52rE90vdEr/FjR+POsZHAzxn0pe2efjtg0KI/0df4sratQw0mV0cQxF4NMWw8yHX"
                b"mVi+jQ=="
            ),
        ),
        id="Kafka's classes, SHA-512, delegation token",
    ),
]


@pytest.mark.parametrize(
    ("client_class", "server_class", "salt", "iterations", "user", "token", "nonces", "messages"),
    EXAMPLES,
)
def test_published_exchanges(
    client_class: type[ScramClient],
    server_class: type[ScramServer],
    salt: bytes,
    iterations: int,
    user: str,
    token: bool,
    nonces: tuple[str, str],
    messages: tuple[bytes, bytes, bytes, bytes],
) -> None:
    client = client_class(Credentials(user, "pencil", delegation_token=token), nonce=nonces[0])
    credential = SaltedCredential.derive(
        "pencil", hash_name=server_class.hash_name, iterations=iterations, salt=salt
    )
    known = {user: credential}.get
    server = server_class(
        nobody if token else known, token_lookup=known if token else nobody, nonce=nonces[1]
    )
    client_first, server_first, client_final, server_final = messages

    assert client.first() == client_first
    assert server.next(client_first) == server_first
    assert client.next(server_first) == client_final
    assert (client.done, server.done, server.username) == (False, False, None)
    assert server.next(client_final) == server_final
    assert client.next(server_final) == b""
    assert (client.done, server.done) == (True, True)
    assert (server.username, server.token_auth) == (user, token)


def test_keys_as_kafka_derives_them() -> None:
    """The keys are from ScramFormatter.generateCredential of kafka-clients 4.4.0."""
    credential = SaltedCredential.derive(
        "pencil", hash_name="sha512", iterations=8192, salt=b"sixteen bytes ok"
    )
    assert base64.b64encode(credential.stored_key) == (
        b"6XbDPIsFbTw+NeJy75CZei5z4dnE6GRoxkjwm/eFrh8+JE0OdGADpLU/wCqXocUgXBerXCZsa7YKFmM4b1/lhg=="
    )
    assert base64.b64encode(credential.server_key) == (
        b"YotMqsU0RuTT921Ca5Pqkv5lQxTvQnHYQqCIyk7rziJup89CdcP9MLN8b+5RjONaC34i/S/QeQrT+6SJTTKgUw=="
    )


# --- false servers ---


def begun(**options: Any) -> ScramSha256Client:
    client = ScramSha256Client(Credentials("user", SECRET), nonce="abc", **options)
    client.first()
    return client


@pytest.mark.parametrize(
    ("challenge", "complaint"),
    [
        (b"", "list of attributes"),
        (b"\xff", "not UTF-8"),
        (b"r=abcdef,s=c2FsdA==", "does not begin with r=, s=, i="),
        (b"s=c2FsdA==,r=abcdef,i=4096", "does not begin with r=, s=, i="),
        (b"r=abcdef,,s=c2FsdA==,i=4096", "list of attributes"),
        (b"m=x,r=abcdef,s=c2FsdA==,i=4096", "demands an extension"),
        (b"r=xyzdef,s=c2FsdA==,i=4096", "does not continue the client"),
        (b"r=abc,s=c2FsdA==,i=4096", "does not continue the client"),
        ("r=abcdéf,s=c2FsdA==,i=4096".encode(), "printable ASCII"),
        (b"r=abc def,s=c2FsdA==,i=4096", "printable ASCII"),
        (b"r=abcdef,s=c2Fsd,i=4096", "base64 in s="),
        (b"r=abcdef,s=c2Fs!A==,i=4096", "base64 in s="),
        ("r=abcdef,s=é,i=4096".encode(), "base64 in s="),
        (b"r=abcdef,s=,i=4096", "list of attributes"),
        (b"r=abcdef,s=c2FsdA==,i=4095", "4095 iterations, fewer than the 4096"),
        (b"r=abcdef,s=c2FsdA==,i=262145", "262145 iterations, more than the 262144"),
        (b"r=abcdef,s=c2FsdA==,i=-1", "no number"),
        (b"r=abcdef,s=c2FsdA==,i=+4096", "no number"),
        (b"r=abcdef,s=c2FsdA==,i=4_096", "no number"),
        ("r=abcdef,s=c2FsdA==,i=٤٠٩٦".encode(), "no number"),
        (b"r=abcdef,s=c2FsdA==,i=" + b"9" * 5000, "no number"),
        (b"e=other-error", "refused the SCRAM exchange with 'other-error'"),
        (b"r=" + b"a" * MAX_TOKEN_BYTES, "more than the 524288"),
    ],
)
def test_broken_server_first(challenge: bytes, complaint: str) -> None:
    client = begun()
    with pytest.raises(AuthenticationError, match=complaint):
        client.next(challenge)
    assert not client.done
    with pytest.raises(AuthenticationError, match="unexpected message"):
        client.next(b"r=abcdef,s=c2FsdA==,i=4096")


def test_iteration_bounds_are_inclusive_and_can_be_moved() -> None:
    assert (MIN_ITERATIONS, MAX_ITERATIONS) == (4096, 262_144)
    assert begun().next(b"r=abcdef,s=c2FsdA==,i=4096").startswith(b"c=biws,r=abcdef,p=")
    assert begun(max_iterations=5000).next(b"r=abcdef,s=c2FsdA==,i=5000")
    with pytest.raises(AuthenticationError, match="more than the 5000"):
        begun(max_iterations=5000).next(b"r=abcdef,s=c2FsdA==,i=5001")
    with pytest.raises(ConfigurationError, match="max_iterations is 4095"):
        begun(max_iterations=4095)


def test_unknown_extensions_are_skipped() -> None:
    """The client ignores unknown extensions, but signs them, so its proof differs."""
    plain = begun().next(b"r=abcdef,s=c2FsdA==,i=4096")
    extended = begun().next(b"r=abcdef,s=c2FsdA==,i=4096,x=y,long=value=with=equals")
    assert plain.rpartition(b",p=")[0] == extended.rpartition(b",p=")[0]
    assert plain != extended


def server_final_of(mechanism: str) -> tuple[ClientExchange, bytes]:
    """Returns a client that waits for the last message of the server, and this message."""
    client = client_exchange(mechanism, Credentials("user", SECRET))
    server = server_for(mechanism, "user", SECRET)
    return client, server.next(client.next(server.next(client.first())))


@pytest.mark.parametrize("mechanism", SCRAM)
def test_every_byte_of_the_server_signature_counts(mechanism: str) -> None:
    _, final = server_final_of(mechanism)
    size = len(base64.b64decode(final[2:]))
    for position in (0, size // 2, size - 1):
        client, final = server_final_of(mechanism)
        signature = bytearray(base64.b64decode(final[2:]))
        signature[position] ^= 1
        with pytest.raises(AuthenticationError, match="the server's signature is wrong"):
            client.next(b"v=" + base64.b64encode(signature))
        assert not client.done
        with pytest.raises(AuthenticationError, match="unexpected message"):
            client.next(final)


@pytest.mark.parametrize(
    ("final", "complaint"),
    [
        (b"", "list of attributes"),
        (b"v=", "list of attributes"),
        (b"v=AAAA", "signature is wrong"),
        (b"v=?", "base64 in v="),
        (b"x=AAAA", "does not begin with v="),
        (b"e=invalid-proof", "refused the SCRAM exchange with 'invalid-proof'"),
        (b"e=" + b"x" * 5000, "'x{100}'"),
    ],
)
def test_broken_server_final(final: bytes, complaint: str) -> None:
    client, _ = server_final_of("SCRAM-SHA-256")
    with pytest.raises(AuthenticationError, match=complaint):
        client.next(final)
    assert not client.done


def test_a_server_without_the_keys_is_found_out() -> None:
    """A false server may know the salt and accept every client, but it cannot sign a message."""
    real = SaltedCredential.derive(SECRET, salt=b"salt")
    fake = SaltedCredential.derive("a guess", salt=b"salt")
    client = ScramSha256Client(Credentials("user", SECRET))
    pretender = SaltedCredential(
        real.hash_name, real.iterations, real.salt, real.stored_key, fake.server_key
    )
    with pytest.raises(AuthenticationError, match="the server's signature is wrong"):
        run(client, ScramSha256Server({"user": pretender}.get))


# --- false clients ---


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"", "GS2 header"),
        (b"n,,", "list of attributes"),
        (b"n=user,r=abc", "GS2 header"),
        (b"p=tls-unique,,n=user,r=abc", "channel binding"),
        (b"x,,n=user,r=abc", "must begin with n or y"),
        (b"n,b=user,n=user,r=abc", "in place of a="),
        (b"n,a=other,n=user,r=abc", "act only for itself"),
        (b"n,a=,n=user,r=abc", "list of attributes"),
        (b"n,,m=x,n=user,r=abc", "demands an extension"),
        (b"n,,r=abc,n=user", "does not begin with n=, r="),
        (b"n,,n=us=er,r=abc", "=2C and =3D"),
        (b"n,,n=us=2cer,r=abc", "=2C and =3D"),
        (b"n,,n=user=,r=abc", "=2C and =3D"),
        (b"n,,n=us\0er,r=abc", "list of attributes"),
        (b"n,,n=user,r=a\x7f", "printable ASCII"),
        (b"n,,n=us\x07er,r=abc", "control character"),
        ("n,,n=\u00ad,r=abc".encode(), "is empty once prepared"),
        (b"n,,n=user,r=abc,tokenauth=true", "invalid user name"),
        (b"\x80", "not UTF-8"),
    ],
)
def test_broken_client_first(message: bytes, complaint: str) -> None:
    server = server_for("SCRAM-SHA-256", "user", SECRET)
    with pytest.raises(AuthenticationError, match=complaint):
        server.next(message)
    with pytest.raises(AuthenticationError, match="unexpected message"):
        server.next(b"n,,n=user,r=abc")


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"", "does not end with a proof"),
        (b"c=biws,r=abcdef", "does not end with a proof"),
        (b"c=biws,r=abcdef,p=", "invalid user name or password"),
        (b"c=biws,r=abcdef,p=AAAA", "invalid user name or password"),
        (b"c=biws,r=abcdef,p=A", "base64 in p="),
        (b"c=eSws,r=abcdef,p=AAAA", "channel binding"),
        (b"c=biws,r=abcxyz,p=AAAA", "nonce is not the server"),
        (b"r=abcdef,c=biws,p=AAAA", "does not begin with c=, r="),
    ],
)
def test_broken_client_final(message: bytes, complaint: str) -> None:
    server = server_for("SCRAM-SHA-256", "user", SECRET, nonce="def")
    server.next(b"n,,n=user,r=abc")
    with pytest.raises(AuthenticationError, match=complaint):
        server.next(message)
    assert not server.done


@pytest.mark.parametrize("header", ["n,,", "y,,", "n,a=user,"])
def test_headers_that_ask_for_nothing_more(header: str) -> None:
    """The server accepts a client without channel binding: header `n`, or `y`.

    `y` means that the client supports channel binding, and assumes that the server does not.
    """
    server = server_for("SCRAM-SHA-256", "user", SECRET)
    client = ScramSha256Client(Credentials("user", SECRET))
    server.next(header.encode() + client.first().removeprefix(b"n,,"))
    binding = base64.b64encode(header.encode()).decode()
    with pytest.raises(AuthenticationError, match="channel binding"):
        server.next(b"c=AAAA,r=x,p=AAAA")
    server = server_for("SCRAM-SHA-256", "user", SECRET, nonce="def")
    server.next(f"{header}n=user,r=abc".encode())
    # The binding is accepted; the proof is checked next, and is invalid.
    with pytest.raises(AuthenticationError, match="invalid user name"):
        server.next(f"c={binding},r=abcdef,p=AAAA".encode())


def test_tokens_and_users_are_told_apart() -> None:
    """A delegation token and a user may have equal names and secrets.

    So the client states whether it authenticates with a token.
    """
    credential = SaltedCredential.derive(SECRET)
    users, tokens = {"user": credential}.get, {"token": credential}.get
    for username, is_token in (("user", True), ("token", False)):
        credentials = Credentials(username, SECRET, delegation_token=is_token)
        with pytest.raises(AuthenticationError, match="invalid user name"):
            run(ScramSha256Client(credentials), ScramSha256Server(users, token_lookup=tokens))
    for username, is_token in (("user", False), ("token", True)):
        server = ScramSha256Server(users, token_lookup=tokens)
        run(ScramSha256Client(Credentials(username, SECRET, delegation_token=is_token)), server)
        assert (server.username, server.token_auth) == (username, is_token)


def test_a_credential_of_another_hash_is_the_servers_fault() -> None:
    server = ScramSha512Server({"user": SaltedCredential.derive(SECRET)}.get)
    with pytest.raises(ConfigurationError, match="credential is for sha256"):
        server.next(b"n,,n=user,r=abc")


@pytest.mark.parametrize("nonce", ["", "a,b", "a b", "ä", "a\x7f"])
def test_nonces_that_scram_cannot_carry(nonce: str) -> None:
    with pytest.raises(ConfigurationError, match="nonce"):
        ScramSha256Client(Credentials("user", SECRET), nonce=nonce)
    with pytest.raises(ConfigurationError, match="nonce"):
        ScramSha256Server(nobody, nonce=nonce)


# --- arbitrary tokens ---


attribute = st.builds(
    lambda name, value: f"{name}={value}".encode(),
    st.sampled_from(["r", "s", "i", "v", "e", "m", "c", "p", "n", "tokenauth", "ä"]),
    st.one_of(st.text(max_size=8), st.sampled_from(["abcdef", "c2FsdA==", "4096", "true"])),
)
token = st.one_of(st.binary(max_size=60), st.lists(attribute, max_size=5).map(b",".join))


@st.composite
def damaged(draw: st.DrawFn, original: bytes) -> bytes:
    """Draws a valid token with some bytes replaced, removed or inserted."""
    start = draw(st.integers(0, len(original)))
    end = draw(st.integers(start, min(len(original), start + 4)))
    return original[:start] + draw(st.binary(max_size=4)) + original[end:]


@settings(max_examples=examples(400), deadline=None)
@given(challenge=st.one_of(token, damaged(b"r=abcdef,s=c2FsdA==,i=4096")))
@pytest.mark.slow
def test_any_server_first_is_answered_or_refused(challenge: bytes) -> None:
    client = begun(max_iterations=10_000)
    with suppress(AuthenticationError):
        assert client.next(challenge).startswith(b"c=biws,r=abc")
    assert not client.done


@settings(max_examples=examples(200), deadline=None)
@given(challenge=st.one_of(token, damaged(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")))
@pytest.mark.slow
def test_any_other_server_final_is_refused(challenge: bytes) -> None:
    client = begun()
    client.next(b"r=abcdef,s=c2FsdA==,i=4096")
    with pytest.raises(AuthenticationError):
        client.next(challenge)


@settings(max_examples=examples(400), deadline=None)
@given(message=st.one_of(token, damaged(b"n,,n=user,r=abc,tokenauth=true")))
@pytest.mark.slow
def test_any_client_first_is_answered_or_refused(message: bytes) -> None:
    server = ScramSha256Server({"user": CREDENTIAL}.get, token_lookup={"user": CREDENTIAL}.get)
    with suppress(AuthenticationError):
        assert server.next(message).startswith(b"r=")
    assert not server.done


@settings(max_examples=examples(400), deadline=None)
@given(message=st.one_of(token, damaged(b"c=biws,r=abcdef,p=" + b"A" * 43 + b"=")))
@pytest.mark.slow
def test_any_client_final_without_a_proof_is_refused(message: bytes) -> None:
    server = ScramSha256Server({"user": CREDENTIAL}.get, nonce="def")
    server.next(b"n,,n=user,r=abc")
    with pytest.raises(AuthenticationError):
        server.next(message)
