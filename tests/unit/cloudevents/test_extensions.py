"""Typed extensions: reading, checking, registering."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from kproto_cloudevents import CloudEvent, CloudEventError, types
from kproto_cloudevents.extensions import (
    DISTRIBUTED_TRACING,
    DOCUMENTED,
    PARTITIONING,
    SAMPLED_RATE,
    SEQUENCE,
    Extension,
    ExtensionAttribute,
    ExtensionRegistry,
)

EVENT = CloudEvent(id="1", source="/s", type="t")


def test_text_becomes_the_declared_type() -> None:
    assert SAMPLED_RATE.read(EVENT.replace(sampledrate="30")) == {"sampledrate": 30}
    assert SAMPLED_RATE.read(EVENT.replace(sampledrate=30)) == {"sampledrate": 30}
    assert SAMPLED_RATE.read(EVENT) is None


def test_every_documented_extension() -> None:
    event = EVENT.replace(
        partitionkey="k",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01",
        tracestate="a=b",
        sequence="0001",
        sequencetype="Integer",
        dataref="https://example.com/1",
        sampledrate="7",
        other="x",
    )
    assert DOCUMENTED.read(event) == {**event.extensions, "sampledrate": 7}
    assert isinstance(DOCUMENTED.read(event)["dataref"], types.UriReference)
    assert DOCUMENTED.read(EVENT) == {}


@pytest.mark.parametrize(
    ("extension", "attributes", "message"),
    [
        (SAMPLED_RATE, {"sampledrate": "0"}, 'sampledrate: "0" is not greater than zero'),
        (SAMPLED_RATE, {"sampledrate": "x"}, 'sampledrate: "x" is no whole number in decimal'),
        (PARTITIONING, {"partitionkey": ""}, 'partitionkey: "" must not be empty'),
        (SEQUENCE, {"sequencetype": "Integer"}, "sequence: the extension's required attribute"),
        (DISTRIBUTED_TRACING, {"tracestate": "a=b"}, "traceparent: the extension's required"),
    ],
)
def test_broken_extensions(
    extension: Extension, attributes: Mapping[str, str], message: str
) -> None:
    event = EVENT.replace(attributes)
    with pytest.raises(CloudEventError, match=f'{message}.*Extension "{extension.name}"'):
        extension.read(event)
    with pytest.raises(CloudEventError):
        DOCUMENTED.read(event)


def test_an_attribute_has_one_extension() -> None:
    registry = ExtensionRegistry([PARTITIONING])
    thief = Extension("Thief", ExtensionAttribute("partitionkey", types.INTEGER))
    with pytest.raises(CloudEventError, match="partitionkey: belongs to the extension Partition"):
        registry.register(thief)
    mine = Extension("Mine", ExtensionAttribute("flag", types.BOOLEAN))
    registry.register(mine)
    assert registry.owner("flag") is mine
    assert registry.owner("nothing") is None
    assert registry.read(EVENT.replace(flag="true", partitionkey="k")) == {
        "flag": True,
        "partitionkey": "k",
    }
    assert "flag" in repr(mine)
