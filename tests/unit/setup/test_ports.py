"""Ports to listen on: free, different, and one of them named."""

from __future__ import annotations

import socket

import pytest

from tools.setup.ports import LOOPBACK, free_ports, ports_to_choose


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


def test_none_is_one_that_the_system_gives_to_others() -> None:
    chosen = ports_to_choose()
    assert set(free_ports(20)) <= set(chosen)
    with socket.socket() as any_one:
        any_one.bind((LOOPBACK, 0))
        assert any_one.getsockname()[1] not in chosen
