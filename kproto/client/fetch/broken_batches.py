"""Names the partition in the errors of batches that cannot be decoded, and logs these errors."""

from __future__ import annotations

import logging
from typing import TypeAlias

from ...wire.errors import CorruptBatchError, MissingCodecError
from ..observing.log_lines import log
from .partition_state import TopicPartitionState

__all__ = ["BrokenBatchError", "locate_broken_batch"]

#: The errors of a batch that cannot be decoded.
BrokenBatchError: TypeAlias = CorruptBatchError | MissingCodecError


def locate_broken_batch(error: BrokenBatchError, state: TopicPartitionState) -> None:
    """Puts the partition and its position, the offset to read next, into the text of `error`.

    Logs the error as a WARNING, once for each position, because every later poll raises the same
    error again. A CorruptBatchError also gets the fields `topic` and `partition`.
    """
    error.args = (f"{state.topic}[{state.partition}] at offset {state.position}: {error}",)
    if isinstance(error, CorruptBatchError):
        error.topic, error.partition = state.tp
    if state.broken_at != state.position:
        state.broken_at = state.position
        log(logging.WARNING, "the consumer cannot read %s", error)
