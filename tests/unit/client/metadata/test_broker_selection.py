"""Which broker is asked where any will do, and when the client begins anew."""

from __future__ import annotations

import pytest

from kproto.client.metadata.broker_selection import BrokerSelection, Recovery
from kproto.client.settings import Address

A, B, C, VIP = (Address(name, 9092) for name in ("a", "b", "c", "vip"))


def choosing(*bootstrap: Address, goes_back: bool = True, start: float = 0.0) -> BrokerSelection:
    made = BrokerSelection(bootstrap or (VIP,), goes_back=goes_back)
    made._start = start
    return made


def closed(_: Address) -> None:
    return None


def test_before_the_first_metadata_the_bootstrap_list_in_its_order() -> None:
    assert choosing(B, A, B).order([], closed) == [B, A]
    assert choosing(B, A, goes_back=False).order([], closed) == [B, A]


def test_the_least_loaded_of_those_that_are_open() -> None:
    load = {A: 3, B: 1, C: None, VIP: None}
    assert choosing().order([C, A, B], load.get) == [B, A, C, VIP]


def test_addresses_that_no_broker_has_any_more_are_forgotten() -> None:
    chosen = choosing()
    for number in range(100):
        moving = Address(f"moving-{number}", 9092)
        chosen.order([A, moving], closed)
        for address in (A, moving, VIP):
            chosen.asked(address)
            chosen.failed(address)
    chosen.order([A], closed)
    assert chosen._asked.keys() == chosen._failed.keys() == {A, VIP}


def test_of_those_that_are_as_good_the_one_that_was_asked_longest_ago() -> None:
    chosen = choosing()
    asked = []
    for _ in range(6):
        asked.append(chosen.order([A, B, C], lambda _: 0)[0])
        chosen.asked(asked[-1])
    assert asked == [A, B, C, A, B, C]


def test_the_brokers_themselves_before_what_may_be_a_load_balancer() -> None:
    load = {A: None, B: 5, VIP: 0}
    assert choosing().order([A, B], load.get) == [B, VIP, A]


@pytest.mark.parametrize(
    ("start", "order"), [(0.0, [A, B, C]), (0.4, [B, C, A]), (0.99, [C, A, B])]
)
def test_clients_begin_with_different_brokers(start: float, order: list[Address]) -> None:
    assert choosing(start=start).order([A, B, C], closed) == [*order, VIP]


def test_one_that_just_failed_comes_behind_the_others() -> None:
    chosen = choosing()
    chosen.failed(A)
    assert chosen.order([A, B, C], closed) == [B, C, A, VIP]
    chosen.failed(B)
    assert chosen.order([A, B, C], closed) == [C, A, B, VIP]
    chosen.answered(A)
    assert chosen.order([A, B, C], closed) == [A, C, B, VIP]


def test_the_bootstrap_list_comes_first_once_all_have_failed() -> None:
    chosen = choosing()
    for address in (A, B):
        chosen.failed(address)
    assert chosen.order([A, B], closed) == [VIP, A, B]
    chosen.failed(VIP)
    assert chosen.order([A, B], closed) == [VIP, A, B]
    chosen.begin_anew()
    assert chosen.order([A, B], closed) == [A, B, VIP]


def test_of_a_large_cluster_that_is_silent_not_every_broker_is_tried_first() -> None:
    many = [Address(f"broker-{at}", 9092) for at in range(100)]
    order = choosing().order(many, closed)
    assert order.index(VIP) == 3
    assert sorted(order) == sorted([*many, VIP])


def test_who_does_not_go_back_tries_the_known_ones_alone() -> None:
    chosen = choosing(goes_back=False)
    chosen.failed(A)
    assert chosen.order([A], closed) == [A]


# --- The time without metadata ---


def test_the_time_runs_from_the_first_request_without_an_answer() -> None:
    recovery = Recovery(300_000, goes_back=True)
    assert not recovery.asked(1_000)
    assert not recovery.asked(1_299)
    assert recovery.asked(1_300)
    assert not recovery.asked(1_301)  # it begins to run anew
    recovery.answered()
    assert not recovery.asked(9_000)
    assert recovery.asked(9_300)


def test_time_in_which_nobody_asked_does_not_count() -> None:
    recovery = Recovery(300_000, goes_back=True)
    assert not recovery.asked(0)
    assert not recovery.asked(5_000)
    assert not recovery.asked(5_200)
    assert recovery.asked(5_300)


def test_without_a_time_the_first_failure_is_enough() -> None:
    recovery = Recovery(0, goes_back=True)
    assert not recovery.asked(0)
    assert not recovery.asked(1), "the answer to the first may be under way"
    recovery.failed()
    assert recovery.asked(2)
    assert not recovery.asked(3)
    recovery.failed()
    recovery.answered()
    assert not recovery.asked(4)


def test_who_does_not_go_back_waits_for_ever() -> None:
    recovery = Recovery(1_000, goes_back=False)
    assert not recovery.asked(0)
    assert not recovery.asked(1_000_000)
