"""Tests records with header names that are no UTF-8, as `kproto.records` returns them."""

from __future__ import annotations

import pytest
from kproto_cloudevents import CloudEvent, CloudEventError, from_kafka
from kproto_cloudevents.kafka.record import KafkaRecord

EVENT = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"t")]


@pytest.mark.parametrize("name", ["x\udcff", "\udcff\udcfe", "content-type\udc80"])
def test_other_header_with_an_odd_name_does_not_matter(name: str) -> None:
    event = from_kafka(None, b"v", [*EVENT, (name, b"1")])
    assert isinstance(event, CloudEvent)
    assert event.id == "1"


def test_attribute_with_an_odd_name_is_an_error_that_can_be_printed() -> None:
    with pytest.raises(CloudEventError, match="attribute name") as raised:
        from_kafka(None, b"v", [*EVENT, ("ce_\udcff", b"1")])
    assert str(raised.value).encode()


def test_record_with_an_odd_header_name_can_be_printed() -> None:
    assert repr(KafkaRecord(None, None, (("x\udcff", b""),))).encode().endswith(b'["x\\udcff"])')
