"""Checks producer settings against brokers of an old release. Plain functions."""

from __future__ import annotations

from typing import Final

from ...messages.produce_request import ProduceRequest
from ...wire.errors import ConfigurationError, EncodeError
from ..producer_record import Headers
from ..release import MAGIC_OF_BATCHES, magic_of_release, version_ranges_of

__all__ = [
    "check_transactions",
    "check_two_phases",
    "resolve_idempotence",
    "unsupported_headers_error",
]

#: The first version of Produce with zstd (KIP-110).
FIRST_ZSTD_VERSION: Final = 7


def resolve_idempotence(release: str | None, compression: str, idempotent: bool | None) -> bool:
    """Returns True if the producer of a client with these settings is idempotent.

    If `idempotent` is None, the producer is idempotent if brokers of the `release` support
    idempotence. If `release` is None, the release is unknown: then the producer is idempotent
    unless `idempotent` is False, and nothing is checked. Raises ConfigurationError for `idempotent`
    True or a `compression` that brokers of the `release` do not support.
    """
    if release is None:
        return idempotent is not False
    supports_batches = magic_of_release(release) >= MAGIC_OF_BATCHES
    if idempotent and not supports_batches:
        raise ConfigurationError(
            f"idempotent=True requires Kafka 0.11, and broker_version is {release!r}; without it "
            "retries may store a record twice"
        )
    if (
        compression == "zstd"
        and version_ranges_of(release)[ProduceRequest.API_KEY].highest < FIRST_ZSTD_VERSION
    ):
        raise ConfigurationError(
            f"compression 'zstd' requires Kafka 2.1, and broker_version is {release!r}"
        )
    return supports_batches and idempotent is not False


def check_transactions(release: str | None, transactional_id: str) -> None:
    """Raises ConfigurationError if brokers of the `release` have no transactions (KIP-98)."""
    if magic_of_release(release) < MAGIC_OF_BATCHES:
        raise ConfigurationError(
            f"transactional_id {transactional_id!r} requires Kafka 0.11, and broker_version is "
            f"{release!r}"
        )


def check_two_phases(*, is_wanted: bool, unstable_versions: bool) -> None:
    """Raises ConfigurationError if two-phase commit is wanted, but unstable versions are off."""
    if is_wanted and not unstable_versions:
        raise ConfigurationError(
            "two_phase_commit is True, and needs InitProducerId v6, which is unstable: set "
            "ClientSettings.unstable_versions, and unstable.api.versions.enable of the brokers"
        )


def unsupported_headers_error(topic: str, headers: Headers) -> EncodeError:
    """Returns the error for a record with headers, which brokers before Kafka 0.11 cannot store."""
    names = ", ".join(repr(name) for name, _ in headers)
    return EncodeError(
        f"a record for topic {topic!r} has headers ({names}), and its brokers are older than Kafka "
        "0.11, so they cannot store headers: leave them out",
        field="headers",
    )
