"""Coordinates transactions: states, decisions, records of `__transaction_state`, and markers.

Source: KIP-98, KIP-360, KIP-447, KIP-588, KIP-890.
"""

from __future__ import annotations

from .transaction_coordinator import TransactionCoordinator
from .transaction_metadata import TransactionMetadata
from .transaction_state import TransactionState

__all__ = ["TransactionCoordinator", "TransactionMetadata", "TransactionState"]
