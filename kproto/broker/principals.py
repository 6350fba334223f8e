"""Principals of requests, as Kafka's KafkaPrincipal. Plain data."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ANONYMOUS", "USER", "Principal"]

#: The type of all principals that Kafka itself creates.
USER: Final = "User"


class Principal(NamedTuple):
    """An authenticated principal; as text `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


#: The principal of a client that was not authenticated.
ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
