"""Selects the broker for requests that any broker can answer, and decides when to rebootstrap.

Does no I/O; `any_broker` opens the connections.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ..settings import Address

__all__ = ["BrokerSelection", "RebootstrapTimer"]

#: The number of brokers without a connection that are tried before the bootstrap list. It is small:
#: if no broker responds, each attempt takes `connect_timeout_ms`.
_BEFORE_BOOTSTRAP: Final = 3


class BrokerSelection:
    """Orders the brokers by preference.

    `bootstrap` are the configured servers. `rebootstraps` is True if the client may connect to them
    again after the first metadata.
    """

    def __init__(self, bootstrap: Sequence[Address], *, rebootstraps: bool) -> None:
        self._bootstrap = list(dict.fromkeys(bootstrap))
        self._rebootstraps = rebootstraps
        self._start = random.random()  # noqa: S311 - spreads clients over brokers, no secret
        self._sequence = 0
        self._last_used: dict[Address, int] = {}
        self._last_failed: dict[Address, int] = {}

    def on_request(self, address: Address) -> None:
        """Stores the last use of `address`: other brokers with the same load now come first."""
        self._sequence += 1
        self._last_used[address] = self._sequence

    def on_success(self, address: Address) -> None:
        """Resets the failures of a broker that can be reached."""
        self._last_failed.pop(address, None)

    def on_failed(self, address: Address) -> None:
        """Stores that a broker cannot be reached, or that its connection was lost."""
        self._sequence += 1
        self._last_failed[address] = self._sequence

    def reset(self) -> None:
        """Forgets the last use and the last failure of every broker."""
        self._last_used.clear()
        self._last_failed.clear()

    def candidates(
        self, brokers: Iterable[Address], load: Callable[[Address], int | None]
    ) -> list[Address]:
        """Returns the brokers to try, best first.

        `load` returns the number of requests in flight to a broker; None if no connection to the
        broker is open.

        The order is:
        - brokers with an open connection, then bootstrap addresses with an open connection, each
          sorted by load, and by last use if their load is equal;
        - a few of the other known brokers; a broker that failed recently comes last;
        - the bootstrap addresses without a connection;
        - the remaining known brokers.

        Once all known brokers without a connection have failed, the bootstrap addresses come before
        these brokers (KIP-899). If the client does not rebootstrap, it opens connections to
        bootstrap addresses only before the first metadata.
        """
        known = list(dict.fromkeys(brokers))
        self._forget_all_but({*known, *self._bootstrap})
        others = [each for each in self._bootstrap if each not in known]
        loads = {each: load(each) for each in (*known, *others)}

        def is_open(address: Address) -> bool:
            return loads[address] is not None

        def busy(address: Address) -> tuple[bool, int, int]:
            # A bootstrap address may be a load balancer: the brokers themselves come first.
            return address in others, loads[address] or 0, self._last_used.get(address, 0)

        connected = sorted(filter(is_open, loads), key=busy)
        start = int(self._start * len(known))
        turned = known[start:] + known[:start]
        closed = self._by_failure(each for each in turned if not is_open(each))
        bootstrap = self._by_failure(each for each in others if not is_open(each))
        if known and not self._rebootstraps:
            bootstrap = []
        if closed and all(each in self._last_failed for each in closed):
            return [*connected, *bootstrap, *closed]
        return [*connected, *closed[:_BEFORE_BOOTSTRAP], *bootstrap, *closed[_BEFORE_BOOTSTRAP:]]

    def _forget_all_but(self, addresses: set[Address]) -> None:
        """Forgets the last use and the last failure of each address that is not in `addresses`."""
        for outcomes in (self._last_used, self._last_failed):
            for gone in outcomes.keys() - addresses:
                del outcomes[gone]

    def _by_failure(self, addresses: Iterable[Address]) -> list[Address]:
        """Sorts addresses by last failure: the address that failed most recently comes last."""
        return sorted(addresses, key=lambda each: self._last_failed.get(each, 0))


class RebootstrapTimer:
    """Decides when to rebootstrap for lack of metadata (KIP-1102).

    A rebootstrap is due `trigger_ms` after the first Metadata request if no Metadata request has
    succeeded since then. If `trigger_ms` is 0, it is due after the first failure. If no Metadata
    request starts for longer than `trigger_ms`, the time restarts with the next request. All other
    times are in seconds of the client's clock.
    """

    def __init__(self, trigger_ms: int, *, rebootstraps: bool) -> None:
        self._trigger_s = trigger_ms / 1000
        self._rebootstraps = rebootstraps
        self._since: float | None = None
        self._last = float("-inf")
        self._has_failed = False

    def on_request(self, now: float) -> bool:
        """Stores that a Metadata request starts at `now`.

        Returns True if the client must rebootstrap before it sends the request.
        """
        if self._since is None or now - self._last > self._trigger_s:
            self._since = now
        self._last = now
        had_time = self._trigger_s > 0 or self._has_failed
        is_due = had_time and now - self._since >= self._trigger_s
        if not self._rebootstraps or not is_due:
            return False
        self._since = now
        self._has_failed = False
        return True

    def on_failed(self) -> None:
        """Stores that a Metadata request has failed."""
        self._has_failed = True

    def on_success(self) -> None:
        """Resets the timer, because metadata has arrived."""
        self._since = None
        self._has_failed = False
