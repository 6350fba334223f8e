"""The leader epoch that a client believes in, which several requests carry (KIP-320)."""

from __future__ import annotations

from typing import Final

from ..log import LEADER_EPOCH
from ..refusal import refusal

__all__ = ["check_leader_epoch"]

#: The client does not know the epoch, and nothing is checked.
_UNKNOWN: Final = -1


def check_leader_epoch(epoch: int) -> None:
    """Raises FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH."""
    if epoch in (_UNKNOWN, LEADER_EPOCH):
        return
    name = "FENCED_LEADER_EPOCH" if epoch < LEADER_EPOCH else "UNKNOWN_LEADER_EPOCH"
    raise refusal(name, f"the leader epoch is {LEADER_EPOCH}, not {epoch}")
