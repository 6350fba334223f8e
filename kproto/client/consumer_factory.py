"""Creates consumers without a group, from arguments of `Client.consumer` and defaults.

`fetch_settings` is also for consumers with a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..records.type_variables import K, U, V
from ..wire.errors import ConfigurationError
from .consumer.consumer import Consumer
from .fetch.fetch_options import DEFAULT_FETCH_OPTIONS, FetchOptions
from .metadata.cluster_view import ClusterView

if TYPE_CHECKING:
    from ..codecs.record_decoder import RecordDecoder
    from .groups.subscription import TopicPattern
    from .metadata.cluster import TopicPartition

__all__ = ["FETCH_ARGUMENTS", "create_consumer", "fetch_settings"]

#: The defaults of consumers; arguments and properties override them.
_DEFAULTS: Final[Mapping[str, Any]] = {
    "start": "earliest",
    **{
        name: default
        for name, default in DEFAULT_FETCH_OPTIONS._asdict().items()
        if name != "reset_policy"  # from `start`
    },
}

#: The arguments of `Client.consumer` for consumers with and without a group.
FETCH_ARGUMENTS: Final = frozenset(_DEFAULTS)


def fetch_settings(
    arguments: Mapping[str, Any], *defaults: Mapping[str, Any]
) -> tuple[Any, FetchOptions]:
    """Returns the start and the fetch options of a consumer.

    `arguments` override `defaults`, and later defaults override earlier ones.
    """
    options = dict(_DEFAULTS)
    for each in (*defaults, arguments):
        options |= {name: value for name, value in each.items() if name in FETCH_ARGUMENTS}
    return options.pop("start"), FetchOptions(**options)


def create_consumer(
    view: ClusterView,
    topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
    arguments: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    stop_at_end: bool,
    decoder: RecordDecoder[K, V, U] | None,
) -> Consumer[K, V, U]:
    """Creates a consumer without a group.

    Raises ConfigurationError for an invalid argument, and for arguments of consumers of a group.
    """
    for name in arguments:
        if name not in FETCH_ARGUMENTS:
            raise ConfigurationError(f"{name} is for a consumer of a group: set group, too")
    start, options = fetch_settings(arguments, defaults)
    return Consumer(
        view,
        topics,  # type: ignore[arg-type]  # it refuses a pattern
        start=start,
        stop_at_end=stop_at_end,
        fetch_options=options,
        decoder=decoder,
    )
