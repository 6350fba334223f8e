"""`UnackedConnections`: connections that have records to which the broker sends no response.

With acks=0 a broker closes the connection to report an error, for example that it is not the leader
of a partition. Plain data, without I/O.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["UnackedConnections"]


class _Connection(Protocol):
    """A connection of the client."""

    @property
    def usable(self) -> bool:
        """True until the connection is closed or fails."""
        ...


class UnackedConnections:
    """The connections on which Produce requests with acks=0 were sent, with their nodes."""

    __slots__ = ("_sent_on",)

    def __init__(self) -> None:
        self._sent_on: set[tuple[int, _Connection]] = set()

    def on_sent(self, node: int, connection: _Connection) -> None:
        """Adds a connection to `node`: once the connection is lost, `take_lost` returns `node`.

        Earlier connections to the node are kept, too.
        """
        self._sent_on.add((node, connection))

    def take_lost(self) -> set[int]:
        """Returns the nodes of the connections that were lost since the last call."""
        if not self._sent_on:
            return set()
        lost = {each for each in self._sent_on if not each[1].usable}
        self._sent_on -= lost
        return {node for node, _ in lost}
