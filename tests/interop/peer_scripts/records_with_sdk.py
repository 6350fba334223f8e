"""Reads and writes events with the official SDK, and prints the results as one JSON object."""

from __future__ import annotations

import json
from typing import Any

from cloudevents.core.bindings import kafka
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

FORMAT = JSONFormat()
REQUIRED = {"ce_specversion": b"1.0", "ce_id": b"1", "ce_source": b"/s", "ce_type": b"t"}
MEMBERS = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


def read(value: bytes | None, key: bytes | None = None, **headers: bytes) -> Any:
    return kafka.from_kafka(kafka.KafkaMessage({**REQUIRED, **headers}, key, value), FORMAT)


def written(event: Any) -> str:
    value: bytes = kafka.to_binary(event, FORMAT).value
    return value.decode()


def event(data: Any = None, **attributes: str) -> Any:
    return CloudEvent({"id": "1", "source": "/s", "type": "t", **attributes}, data)


def document(**members: Any) -> str:
    return json.dumps({**MEMBERS, **members})


def structured(made: Any) -> Any:
    members = json.loads(FORMAT.write(made))
    return members.get("data", members.get("data_base64"))


def error(made: Any) -> str:
    try:
        made()
    except Exception as fault:
        return type(fault).__name__
    return ""


upper_case = {"CE_SpecVersion": b"1.0", "CE_Id": b"1", "ce_Source": b"/s", "CE_TYPE": b"t"}
without_headers = kafka.KafkaMessage(
    {"content-type": b"application/json"}, None, document(data=1).encode()
)
vendor = "application/vnd.x+json"
print(
    json.dumps(
        {
            "empty value": read(b"").get_data(),
            "null value": read(None).get_data(),
            "no data": written(event()),
            "empty data": written(event(b"")),
            "copy of an empty value": written(read(b"")),
            "object of a +json type": FORMAT.read(
                None, document(datacontenttype=vendor, data={"a": 1})
            ).get_data(),
            "base64 of a +json type": FORMAT.read(
                None, document(datacontenttype=vendor, data_base64="eyJhIjoxfQ==")
            )
            .get_data()
            .decode(),
            "bytes of JSON": structured(event(b"{}", datacontenttype="application/json")),
            "object of an unknown type": structured(
                event({"a": 1}, datacontenttype="model/gltf+json")
            ),
            "number": FORMAT.write(
                FORMAT.read(None, document(time="2020-01-01T00:00:00Z")[:-1] + ', "data": 1.10}')
            ).decode()[-4:],
            "dataschema": read(None, ce_dataschema=b"#").get_dataschema(),
            "upper case": kafka.from_kafka(
                kafka.KafkaMessage(upper_case, None, b""), FORMAT
            ).get_type(),
            "added attributes": sorted(set(read(b"x", b"k").get_attributes()) - set(MEMBERS)),
            "key": kafka.to_binary(event(partitionkey="k"), FORMAT).key,
            "leap second": error(lambda: read(None, ce_time=b"2016-12-31T23:59:60Z")),
            "without ce_ headers": kafka.from_kafka(without_headers, FORMAT).get_data(),
        }
    )
)
