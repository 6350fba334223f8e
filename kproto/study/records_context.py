"""Defines `RecordsContext`, which the functions that decode records share."""

from __future__ import annotations

from typing import Final

from ..records.codecs.compression import MAX_DECOMPRESSED_BYTES, Codec
from ..wire.errors import MissingCodecError
from .node import TreeSizeLimit

__all__ = ["RecordsContext"]

#: Topics whose records contain credentials; undecoded bytes of their records are hidden.
_TOPICS_WITH_SECRETS: Final = frozenset({"__cluster_metadata"})


class RecordsContext:
    """The topic of the records that are being decoded, and the limits of the tree.

    `topic` is "" if unknown. `budget` limits the nodes of the tree. The batches that are decoded
    from now on may together decompress to `remaining_bytes` bytes. If `whole` is True, a truncated
    batch is a fault. `whole` is True for a Produce request, and False for a Fetch response, because
    a broker may truncate the last batch of a Fetch response.
    """

    def __init__(
        self,
        budget: TreeSizeLimit,
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
        """Returns True if the records of the topic contain credentials."""
        return self.topic in _TOPICS_WITH_SECRETS

    def decompress(self, codec: Codec, data: bytes) -> bytes:
        """Returns `data` decompressed, and subtracts the size of the result from `remaining_bytes`.

        Raises ValueError if the data is broken or exceeds `remaining_bytes`, and MissingCodecError
        if the codec is not installed.
        """
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
