"""The leader epoch that a client believes in, which several requests carry (KIP-320)."""

from __future__ import annotations

from ..log import LEADER_EPOCH
from ..refusal import refusal

__all__ = ["check_leader_epoch"]


def check_leader_epoch(epoch: int) -> None:
    """Raises UNKNOWN_LEADER_EPOCH for a later one; no epoch is older than the first."""
    if epoch < 0 or epoch == LEADER_EPOCH:
        return  # below 0 the client does not know it, and nothing is checked
    raise refusal("UNKNOWN_LEADER_EPOCH", f"the leader epoch is {LEADER_EPOCH}, not {epoch}")
