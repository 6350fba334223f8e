"""The settings of `run`, and their validation."""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias, TypedDict, get_args

from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError

__all__ = [
    "Order",
    "Retries",
    "RetryTopic",
    "RunArguments",
    "RunSettings",
    "ShareRunArguments",
    "TransactionalRunArguments",
    "run_settings",
    "share_run_settings",
]

#: The largest `max_offset_gap` whose processed offsets certainly fit into the metadata of a commit,
#: with the brokers' default of `offset.metadata.max.bytes` (4,096).
MOST_TRANSACTIONAL_GAP: Final = 24_000

#: The order of processing: one record at a time of each partition, of each key of a partition, or
#: no order.
Order: TypeAlias = Literal["partition", "key", "none"]

#: The longest delay of a retry topic, in ms: a week, after which brokers delete records by default
#: (log.retention.hours).
_LONGEST_DELAY_MS: Final = 7 * 86_400_000

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SUFFIX: Final = re.compile(r"(?:^|.*[._-])([0-9]{1,9})(ms|s|m|h|d)")


@dataclass(frozen=True, slots=True)
class Retries:
    """The number of retries of a failed record, their backoff, and the exceptions to retry."""

    #: The most retries, after the first attempt.
    attempts: int = 3
    #: The backoff before the first retry; the backoff doubles with each further retry.
    backoff_ms: int = 100
    #: The longest backoff, before jitter: use a retry topic for faults that last longer.
    backoff_max_ms: int = 10_000
    #: The largest share of a backoff that is added or subtracted at random, so that members do not
    #: retry at the same time.
    jitter: float = 0.2
    #: The exceptions after which a record is retried; after other exceptions the record skips the
    #: retry topics, too.
    exceptions: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        check_whole_number("attempts of retries", self.attempts, 0)
        check_whole_number("backoff_ms", self.backoff_ms, 0)
        check_whole_number("backoff_max_ms", self.backoff_max_ms, 0)
        if not isinstance(self.jitter, int | float) or not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"jitter is {self.jitter!r}; it is a share between 0 and 1")
        kinds = self.exceptions
        if not isinstance(kinds, tuple) or not all(
            isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds
        ):
            raise ConfigurationError(f"exceptions is {kinds!r:.80}; it is a tuple of their types")

    def wait_ms(self, attempt: int, chance: float) -> float:
        """Returns the backoff in ms before retry number `attempt`, counted from 1.

        `chance` is a random number for the jitter, 0 <= chance < 1.
        """
        wait = min(self.backoff_ms * 2.0 ** min(attempt - 1, 30), self.backoff_max_ms)
        return wait * (1 + self.jitter * (2 * chance - 1))


@dataclass(frozen=True, slots=True)
class RetryTopic:
    """A topic for failed records; `run` reads it, and retries a record after `delay_ms`."""

    topic: str
    delay_ms: int

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise ConfigurationError(f"{self.topic!r} is no name of a retry topic")
        check_whole_number(f"delay_ms of {self.topic}", self.delay_ms, 0, _LONGEST_DELAY_MS)

    @classmethod
    def from_name(cls, name: str) -> RetryTopic:
        """Returns the retry topic of a name that ends with its delay: `orders.retry.5s`.

        Raises ConfigurationError for a name without a delay, and for a delay of more than a week.
        """
        found = _SUFFIX.fullmatch(name)
        if found is None:
            raise ConfigurationError(
                f"retry topic {name!r} has no delay in its name: end the name with one, such as "
                f"{name}.5s (ms, s, m, h, d), or pass RetryTopic({name!r}, delay_ms=5000)"
            )
        return cls(name, int(found[1]) * _UNITS[found[2]])


def _checked_retries(retries: int | Retries | None, *, has_topics: bool) -> Retries:
    if retries is None:
        return Retries(0) if has_topics else Retries()
    if isinstance(retries, Retries):
        return retries
    if isinstance(retries, bool) or not isinstance(retries, int):
        raise ConfigurationError(f"retries is {retries!r:.80}; it is a number, or Retries(...)")
    return Retries(retries)


def _checked_topics(topics: Sequence[str | RetryTopic]) -> tuple[RetryTopic, ...]:
    if isinstance(topics, str) or not isinstance(topics, Sequence):
        raise ConfigurationError(f"retry_topics is {topics!r:.80}; it is a list of topics")
    found = []
    for each in topics:
        if not isinstance(each, str | RetryTopic):
            raise ConfigurationError(f"{each!r:.80} is no retry topic: pass a name, or RetryTopic")
        found.append(RetryTopic.from_name(each) if isinstance(each, str) else each)
    for before, after in pairwise(found):
        if after.delay_ms < before.delay_ms:
            raise ConfigurationError(
                f"retry_topics: {after.topic} has a shorter delay than {before.topic} has"
            )
    if len({each.topic for each in found}) < len(found):
        raise ConfigurationError("retry_topics names a topic twice")
    return tuple(found)


class RunArguments(TypedDict, total=False):
    """The arguments that `run` and `run_batches` share; `RunSettings.of` has their defaults."""

    workers: int
    order: Order
    retries: int | Retries | None
    retry_topics: Sequence[str | RetryTopic]
    dead_letter_topic: str | None
    max_offset_gap: int
    commit_interval_ms: int
    drain_timeout_ms: int
    cancel_lost: bool
    stop_on: Collection[int] | None


class ShareRunArguments(TypedDict, total=False):
    """The arguments of `ShareConsumer.run`; `RunSettings.of` has their defaults."""

    workers: int
    retries: int | Retries | None
    dead_letter_topic: str | None
    drain_timeout_ms: int
    stop_on: Collection[int] | None


class TransactionalRunArguments(RunArguments, total=False):
    """The arguments of `run` and `run_batches` with a transactional id."""

    transaction_timeout_ms: int


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The validated arguments of `run`; `of` validates them."""

    workers: int
    order: Order
    retries: Retries
    retry_topics: tuple[RetryTopic, ...]
    dead_letter_topic: str | None
    max_offset_gap: int
    #: The longest time from processing to the commit: after a kill, records that were processed in
    #: the last `commit_interval_ms` may be redelivered.
    commit_interval_ms: int
    drain_timeout_ms: int
    cancel_lost: bool
    stop_on: tuple[int, ...] | None
    transactional_id: str | None = None
    #: Has the same default as Kafka's producer (transaction.timeout.ms). A transaction of `run` is
    #: far shorter: it ends after `commit_interval_ms`, and does not wait for handlers.
    transaction_timeout_ms: int = 60_000

    @classmethod
    def of(
        cls,
        *,
        workers: int = 16,
        order: Order = "partition",
        retries: int | Retries | None = None,
        retry_topics: Sequence[str | RetryTopic] = (),
        dead_letter_topic: str | None = None,
        max_offset_gap: int = 10_000,
        commit_interval_ms: int = 100,
        drain_timeout_ms: int = 20_000,
        cancel_lost: bool = True,
        stop_on: Collection[int] | None = None,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
    ) -> RunSettings:
        """Returns the validated settings; the defaults are those of `run`.

        Raises ConfigurationError for an invalid argument.
        """
        check_whole_number("workers", workers, 1)
        check_whole_number("max_offset_gap", max_offset_gap, 1)
        check_whole_number("commit_interval_ms", commit_interval_ms, 0)
        check_whole_number("drain_timeout_ms", drain_timeout_ms, 0)
        if order not in get_args(Order):
            raise ConfigurationError(f"order is {order!r:.80}; it is 'partition', 'key' or 'none'")
        if dead_letter_topic is not None and (
            not isinstance(dead_letter_topic, str) or not dead_letter_topic
        ):
            raise ConfigurationError(
                f"dead_letter_topic is {dead_letter_topic!r:.80}; it is a topic's name, or None"
            )
        if not isinstance(cancel_lost, bool):
            raise ConfigurationError(f"cancel_lost is {cancel_lost!r:.80}; it is True or False")
        check_whole_number("transaction_timeout_ms", transaction_timeout_ms, 1)
        if transactional_id is not None and 2 * commit_interval_ms > transaction_timeout_ms:
            raise ConfigurationError(
                f"commit_interval_ms is {commit_interval_ms}, and transaction_timeout_ms "
                f"{transaction_timeout_ms}: a transaction lasts for commit_interval_ms, and needs "
                "the rest of its timeout to end. Set at most half of it"
            )
        if transactional_id is not None and max_offset_gap > MOST_TRANSACTIONAL_GAP:
            raise ConfigurationError(
                f"max_offset_gap is {max_offset_gap}; with transactional_id it is at most "
                f"{MOST_TRANSACTIONAL_GAP}, because the metadata of a commit has no space for more "
                "processed offsets, and their records would be processed again"
            )
        topics = _checked_topics(retry_topics)
        if dead_letter_topic in [each.topic for each in topics]:
            raise ConfigurationError(f"{dead_letter_topic!r} is retry and dead letter topic")
        return cls(
            workers,
            order,
            _checked_retries(retries, has_topics=bool(topics)),
            topics,
            dead_letter_topic,
            max_offset_gap,
            commit_interval_ms,
            drain_timeout_ms,
            cancel_lost,
            _checked_signals(stop_on),
            transactional_id,
            transaction_timeout_ms,
        )

    @property
    def forward_topics(self) -> list[str]:
        """The topics to which records are forwarded."""
        dead = [] if self.dead_letter_topic is None else [self.dead_letter_topic]
        return [each.topic for each in self.retry_topics] + dead


def run_settings(transactional_id: str | None, arguments: TransactionalRunArguments) -> RunSettings:
    """Returns the settings of a call of `run` or `run_batches`.

    Raises ConfigurationError for an invalid argument, and for `transaction_timeout_ms` without a
    transactional id.
    """
    if transactional_id is None and "transaction_timeout_ms" in arguments:
        raise ConfigurationError("transaction_timeout_ms needs a transactional_id")
    return RunSettings.of(transactional_id=transactional_id, **arguments)


def share_run_settings(arguments: ShareRunArguments) -> RunSettings:
    """Returns the settings of a call of `run` of a share consumer.

    Raises ConfigurationError for an invalid argument, and for an argument that only `run` of a
    consumer has.
    """
    known = ShareRunArguments.__annotations__
    for name in arguments:
        if name not in known:
            raise ConfigurationError(
                f"run() of a share consumer has no argument {name!r}; it has {', '.join(known)}"
            )
    return RunSettings.of(order="none", **arguments)


def _checked_signals(stop_on: Collection[int] | None) -> tuple[int, ...] | None:
    if stop_on is None:
        return None
    if not isinstance(stop_on, Collection) or isinstance(stop_on, str | bytes):
        raise ConfigurationError(f"stop_on is {stop_on!r:.80}; it is a tuple of signals")
    try:
        return tuple(dict.fromkeys(signal.Signals(each) for each in stop_on))
    except ValueError as error:
        raise ConfigurationError(f"stop_on is {stop_on!r:.80}: {error}") from None
