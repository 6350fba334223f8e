"""Tests that `take_lost` returns each node with a lost connection of a producer with acks=0."""

from __future__ import annotations

from dataclasses import dataclass

from kproto.client.producer.unacked_connections import UnackedConnections


@dataclass(eq=False)
class Connection:
    """The state of a connection."""

    usable: bool = True


def test_lost_connections_are_taken_once() -> None:
    connections = UnackedConnections()
    first, second = Connection(), Connection()
    connections.on_sent(1, first)
    connections.on_sent(2, second)
    assert connections.take_lost() == set()
    first.usable = False
    assert connections.take_lost() == {1}
    assert connections.take_lost() == set()
    second.usable = False
    assert connections.take_lost() == {2}


def test_a_newer_connection_does_not_hide_a_lost_one() -> None:
    """A waiting request can be sent on the newer connection before `take_lost` is called."""
    connections = UnackedConnections()
    lost, newer = Connection(), Connection()
    connections.on_sent(1, lost)
    lost.usable = False
    connections.on_sent(1, newer)
    assert connections.take_lost() == {1}
    newer.usable = False
    assert connections.take_lost() == {1}
