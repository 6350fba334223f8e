"""Message formats 0 and 1, which have no headers."""

from __future__ import annotations

import pytest
from kproto_cloudevents import (
    CloudEventError,
    to_json,
    to_kafka,
)

from .samples import EVENT, STRUCTURED, event_of


def test_message_formats_without_headers() -> None:
    for message_format in (0, 1):
        record = to_kafka(EVENT, "structured", key=b"k", message_format=message_format)
        assert record == (b"k", to_json(EVENT), ())
        assert event_of(record, mode="structured") == EVENT
        read = to_kafka(event_of(STRUCTURED), message_format=message_format)
        assert read == STRUCTURED._replace(headers=())
        with pytest.raises(CloudEventError, match=r"has no headers.*Kafka binding 1\.3"):
            to_kafka(EVENT, "binary", message_format=message_format)
        with pytest.raises(CloudEventError, match=r"trace: .*1 would be lost"):
            to_kafka(EVENT, "structured", headers=[("trace", b"1")], message_format=message_format)
    assert to_kafka(EVENT, "binary", message_format=2).headers
