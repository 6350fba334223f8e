"""Whom a request comes from. Plain data, which knows not how that was shown."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ANONYMOUS", "USER", "Principal"]

#: The kind of every principal that Kafka itself makes.
USER: Final = "User"


class Principal(NamedTuple):
    """Whom a client has shown to be; as text `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


#: A client that was not asked who it is.
ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
