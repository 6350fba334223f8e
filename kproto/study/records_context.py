"""Holds the context of the records in one tree: their topic, and the limits of decompression.

Knows no format: those are in `record_batches`, `message_sets` and `stored_records`.
"""

from __future__ import annotations

from typing import Final

from ..records.codecs.compression import MAX_DECOMPRESSED_BYTES, Codec
from ..wire.errors import MissingCodecError
from .node import Budget

__all__ = ["RecordsContext"]

#: Topics whose records hold credentials: bytes of them that are not dissected are hidden.
_TOPICS_WITH_SECRETS: Final = frozenset({"__cluster_metadata"})


class RecordsContext:
    """Holds the topic of the records in one tree, and the remaining limit of decompression.

    `topic` is "" if it is not known. All compressed batches together may decompress to
    `remaining_bytes` more bytes. With `whole` a truncated batch is a fault: in a Produce request,
    but not in a Fetch response, which a broker may truncate.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        topic: str = "",
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
        whole: bool = False,
    ) -> None:
        self.budget = budget
        self.topic = topic
        self.remaining_bytes = max_decompressed_bytes
        self.whole = whole

    @property
    def has_secrets(self) -> bool:
        """Returns whether the records of the topic hold credentials."""
        return self.topic in _TOPICS_WITH_SECRETS

    def decompress(self, codec: Codec, data: bytes) -> bytes:
        """Returns `data` decompressed. Raises ValueError, MissingCodecError."""
        try:
            data = codec.decompress(data, self.remaining_bytes)
        except MissingCodecError:
            raise
        except ValueError as error:
            if "bound" in str(error):
                self.remaining_bytes = 0
            raise
        self.remaining_bytes -= len(data)
        return data
