"""Runs the client side and the server side of a SASL exchange against each other."""

from __future__ import annotations

from typing import Any, Final

from kproto.protocol.sasl import MECHANISMS, ClientExchange, SaltedCredential, ServerExchange

#: A password that must appear in no repr, error or log.
SECRET: Final = "pa55-w0rd"

HASHES: Final = {"PLAIN": "sha256", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def nobody(username: str) -> SaltedCredential | None:
    """Returns None: a credential lookup that finds no user."""


def run(client: ClientExchange, server: ServerExchange) -> list[bytes]:
    """Runs an exchange until the client is done; returns the tokens of both sides, in order."""
    sent = [client.first()]
    while not client.done:
        sent.append(server.next(sent[-1]))
        answer = client.next(sent[-1])
        if not client.done:
            sent.append(answer)
    return sent


def server_for(mechanism: str, username: str, password: str, **options: Any) -> ServerExchange:
    """Returns a server that knows one user; passes `options` to the server's class."""
    credential = SaltedCredential.derive(
        password,
        hash_name=HASHES[mechanism],
        prepare_strings=options.get("prepare_strings", True),
    )
    return MECHANISMS[mechanism].server({username: credential}.get, **options)
