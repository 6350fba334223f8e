"""Provides fetch responses that end at offset 1, and invalid batch headers to append to them."""

from __future__ import annotations

from tests.support.message_sets import message
from tests.unit.pipeline.columns.record_bytes import PlainRecord, batch_bytes

__all__ = ["GOOD", "HEADERS_OF_NONE", "one_record"]


def one_record(offset: int) -> bytes:
    """Returns a batch of one record."""
    return batch_bytes([PlainRecord(0, 0, b"k", b"v")], base_offset=offset, last_offset_delta=0)


GOOD = {
    "batches": one_record(0) + one_record(1),
    "messages": message(offset=0) + message(offset=1),
    "an empty batch": batch_bytes([], last_offset_delta=1),
}
HEADERS_OF_NONE = {
    "an unknown magic": bytes(16) + b"\x09" + bytes(50),
    "a length below zero": bytes(8) + b"\xff" * 4 + bytes(50),
}
