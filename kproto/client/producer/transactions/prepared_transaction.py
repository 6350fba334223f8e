"""`PreparedTransactionState`: names a prepared transaction, in a form that a database can store."""

from __future__ import annotations

from typing import NamedTuple

from ....wire.errors import ConfigurationError

__all__ = ["PreparedTransactionState"]

#: The largest producer id (int64) and epoch (int16).
_LARGEST = (0x7FFF_FFFF_FFFF_FFFF, 0x7FFF)


class PreparedTransactionState(NamedTuple):
    """The producer id and epoch of a prepared transaction (KIP-939).

    `str` returns both as text, `producer_id:epoch`, as PreparedTxnState of Java's client does.
    """

    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}"

    @classmethod
    def parse(cls, text: str) -> PreparedTransactionState:
        """Returns the state whose `str` is `text`. Raises ConfigurationError for other text."""
        parts = text.split(":")
        if len(parts) == 2 and all(part.isascii() and part.isdecimal() for part in parts):
            producer_id, epoch = map(int, parts)
            if producer_id <= _LARGEST[0] and epoch <= _LARGEST[1]:
                return cls(producer_id, epoch)
        raise ConfigurationError(
            f"{text!r:.80} is no prepared transaction; it is written as producer_id:epoch"
        )
