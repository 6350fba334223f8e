"""`OffsetAdmin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/offset_admin.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...client.admin.admin import Admin
from ...client.admin.offsets import ListedOffset, OffsetSpec
from ...client.metadata.cluster import TopicPartition
from ..wrapper import Wrapper

__all__ = ["OffsetAdmin"]


class OffsetAdmin(Wrapper[Admin]):
    """Looks up offsets of partitions."""

    __slots__ = ()

    def list_offsets(
        self,
        partitions: Mapping[TopicPartition, OffsetSpec],
        *,
        read_committed: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Returns an offset of each partition, with its timestamp.

        `partitions` maps a partition to "earliest" (its log start), "latest" (its high watermark;
        its last stable offset with `read_committed`), a time in ms since 1970 (the first record
        with a timestamp at or after it), "max_timestamp" (the record with the largest timestamp,
        KIP-734), "earliest_local" (the local log start of tiered storage, KIP-405), "latest_tiered"
        (the last offset in the remote storage, KIP-1005) or "earliest_pending_upload" (KIP-1023).
        Raises AdminError by partition.
        """
        return self._call(
            self._wrapped.list_offsets,
            partitions,
            read_committed=read_committed,
            timeout_ms=timeout_ms,
        )
