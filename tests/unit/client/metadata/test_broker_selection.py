"""Tests the choice of a broker for requests that any broker answers, and the rebootstrap."""

from __future__ import annotations

import pytest

from kproto.client.metadata.broker_selection import BrokerSelection, RebootstrapTimer
from kproto.client.settings import Address

A, B, C, VIP = (Address(name, 9092) for name in ("a", "b", "c", "vip"))


def selection(
    *bootstrap: Address, rebootstraps: bool = True, start: float = 0.0
) -> BrokerSelection:
    made = BrokerSelection(bootstrap or (VIP,), rebootstraps=rebootstraps)
    made._start = start
    return made


def closed(_: Address) -> None:
    return None


def test_bootstrap_list_is_used_in_order_before_the_first_metadata() -> None:
    assert selection(B, A, B).candidates([], closed) == [B, A]
    assert selection(B, A, rebootstraps=False).candidates([], closed) == [B, A]


def test_least_loaded_open_connection_comes_first() -> None:
    load = {A: 3, B: 1, C: None, VIP: None}
    assert selection().candidates([C, A, B], load.get) == [B, A, C, VIP]


def test_addresses_of_former_brokers_are_forgotten() -> None:
    chosen = selection()
    for number in range(100):
        moving = Address(f"moving-{number}", 9092)
        chosen.candidates([A, moving], closed)
        for address in (A, moving, VIP):
            chosen.on_request(address)
            chosen.on_failed(address)
    chosen.candidates([A], closed)
    assert chosen._last_used.keys() == chosen._last_failed.keys() == {A, VIP}


def test_equal_brokers_are_used_in_turn() -> None:
    chosen = selection()
    selected = []
    for _ in range(6):
        selected.append(chosen.candidates([A, B, C], lambda _: 0)[0])
        chosen.on_request(selected[-1])
    assert selected == [A, B, C, A, B, C]


def test_brokers_precede_a_bootstrap_address() -> None:
    load = {A: None, B: 5, VIP: 0}
    assert selection().candidates([A, B], load.get) == [B, VIP, A]


@pytest.mark.parametrize(
    ("start", "candidates"), [(0.0, [A, B, C]), (0.4, [B, C, A]), (0.99, [C, A, B])]
)
def test_clients_start_with_different_brokers(start: float, candidates: list[Address]) -> None:
    assert selection(start=start).candidates([A, B, C], closed) == [*candidates, VIP]


def test_failed_broker_comes_last() -> None:
    chosen = selection()
    chosen.on_failed(A)
    assert chosen.candidates([A, B, C], closed) == [B, C, A, VIP]
    chosen.on_failed(B)
    assert chosen.candidates([A, B, C], closed) == [C, A, B, VIP]
    chosen.on_success(A)
    assert chosen.candidates([A, B, C], closed) == [A, C, B, VIP]


def test_bootstrap_list_comes_first_once_all_brokers_failed() -> None:
    chosen = selection()
    for address in (A, B):
        chosen.on_failed(address)
    assert chosen.candidates([A, B], closed) == [VIP, A, B]
    chosen.on_failed(VIP)
    assert chosen.candidates([A, B], closed) == [VIP, A, B]
    chosen.reset()
    assert chosen.candidates([A, B], closed) == [A, B, VIP]


def test_bootstrap_list_follows_the_third_broker_of_a_large_cluster() -> None:
    many = [Address(f"broker-{at}", 9092) for at in range(100)]
    candidates = selection().candidates(many, closed)
    assert candidates.index(VIP) == 3
    assert sorted(candidates) == sorted([*many, VIP])


def test_selection_without_rebootstrap_uses_known_brokers_only() -> None:
    chosen = selection(rebootstraps=False)
    chosen.on_failed(A)
    assert chosen.candidates([A], closed) == [A]


# --- The time since the last metadata ---


def test_rebootstrap_time_starts_with_the_first_unanswered_request() -> None:
    recovery = RebootstrapTimer(300_000, rebootstraps=True)
    assert not recovery.on_request(1_000)
    assert not recovery.on_request(1_299)
    assert recovery.on_request(1_300)
    assert not recovery.on_request(1_301)  # the time starts again
    recovery.on_success()
    assert not recovery.on_request(9_000)
    assert recovery.on_request(9_300)


def test_time_without_requests_is_not_counted() -> None:
    recovery = RebootstrapTimer(300_000, rebootstraps=True)
    assert not recovery.on_request(0)
    assert not recovery.on_request(5_000)
    assert not recovery.on_request(5_200)
    assert recovery.on_request(5_300)


def test_first_failure_triggers_the_rebootstrap_if_the_time_is_0() -> None:
    recovery = RebootstrapTimer(0, rebootstraps=True)
    assert not recovery.on_request(0)
    assert not recovery.on_request(1), "the first request may still be in flight"
    recovery.on_failed()
    assert recovery.on_request(2)
    assert not recovery.on_request(3)
    recovery.on_failed()
    recovery.on_success()
    assert not recovery.on_request(4)


def test_recovery_without_rebootstrap_waits_for_ever() -> None:
    recovery = RebootstrapTimer(1_000, rebootstraps=False)
    assert not recovery.on_request(0)
    assert not recovery.on_request(1_000_000)
