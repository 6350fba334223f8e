"""What is known of the records of one tree, and what opening them may take.

Knows no format: those are `record_batches`, `message_sets` and `stored_records`.
"""

from __future__ import annotations

from typing import Final

from ..records.codecs.compression import MAX_DECOMPRESSED_BYTES, Codec
from ..wire.errors import MissingCodecError
from .node import Budget

__all__ = ["RecordsContext"]

#: Topics whose records hold credentials: what of them is not taken apart is hidden.
_TOPICS_WITH_SECRETS: Final = frozenset({"__cluster_metadata"})


class RecordsContext:
    """What opening records of one tree may take, and what is known of them.

    `topic` is where they were read, "" where that is not known. `left` bytes may come of all
    compressed batches together. `whole` says that a batch that is cut off is a fault, as it is in
    what a producer sends and not in what a broker answers.
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
        self.left = max_decompressed_bytes
        self.whole = whole

    @property
    def has_secrets(self) -> bool:
        """Whether the records of the topic hold credentials."""
        return self.topic in _TOPICS_WITH_SECRETS

    def decompress(self, codec: Codec, data: bytes) -> bytes:
        """What `data` decompresses to. Raises ValueError, MissingCodecError."""
        try:
            made = codec.decompress(data, self.left)
        except MissingCodecError:
            raise
        except ValueError as error:
            if "bound" in str(error):
                self.left = 0
            raise
        self.left -= len(made)
        return made
