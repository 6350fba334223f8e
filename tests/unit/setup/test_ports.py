"""Ports to listen on: free, different, and one of them named."""

from __future__ import annotations

import socket

import pytest

from tools.setup.ports import LOOPBACK, free_ports


def test_ports_are_different_and_can_be_listened_on() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    for port in ports:
        with socket.socket() as listener:
            listener.bind((LOOPBACK, port))


def test_a_named_port_comes_first_and_is_checked() -> None:
    (named,) = free_ports(1)
    assert free_ports(2, first=named)[0] == named
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            free_ports(2, first=taken.getsockname()[1])
