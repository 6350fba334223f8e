"""Defines the principal of a request, as Kafka's KafkaPrincipal."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ANONYMOUS", "USER", "Principal"]

#: The type of all principals that Kafka itself creates.
USER: Final = "User"


class Principal(NamedTuple):
    """Holds a principal's type (`kind`) and name; `str` returns text such as `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


#: The principal of a client that was not authenticated.
ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
