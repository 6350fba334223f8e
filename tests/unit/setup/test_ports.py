"""Tests the choice of ports: they are free, different, and outside of the ephemeral range.

The caller may choose the first port.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

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
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not given.exists():
        pytest.skip("the system does not say which it gives")
    first = int(given.read_text().split()[0])
    if first < chosen.start:
        pytest.skip("the system gives all of them")
    assert first >= chosen.stop


def test_runs_of_one_seed_have_different_ports() -> None:
    state = random.getstate()
    try:
        found = []
        for _ in range(2):
            random.seed(1)
            found.append(free_ports(5))
    finally:
        random.setstate(state)
    assert found[0] != found[1]
