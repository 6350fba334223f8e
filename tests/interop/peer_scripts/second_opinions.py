"""Decodes and re-encodes messages with another implementation: `kafka-python` or `kio`.

Each line of the input is JSON: {"name", "version", "hex"}. Each line of the output is the result:
null if the implementation lacks that message at that version; {"hex", "value"} with the re-encoded
bytes and the decoded value; or {"error"}.

Values are plain data: structs as objects whose keys are field names in lower case without
underscores, bytes and uuids as hex.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import importlib
import io
import json
import pkgutil
import sys
import uuid
from collections.abc import Callable
from typing import Any


def main() -> None:
    opinion = KafkaPython() if sys.argv[1] == "kafka-python" else Kio()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(answer(opinion, request)))


def answer(opinion: KafkaPython | Kio, request: dict[str, Any]) -> dict[str, Any] | None:
    found = opinion.find(request["name"], request["version"])
    if found is None:
        return None
    try:
        written, value = found(bytes.fromhex(request["hex"]))
        return {"hex": written.hex(), "value": plain(value)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


Codec = Callable[[bytes], "tuple[bytes, Any]"]


class KafkaPython:
    """Decodes with kafka-python 3: one class per message, built from Kafka's JSON at import."""

    def __init__(self) -> None:
        import kafka.protocol as protocol

        self.classes: dict[str, Any] = {}
        for info in pkgutil.walk_packages(protocol.__path__, "kafka.protocol."):
            if ".old" in info.name or "generate_stubs" in info.name:
                continue
            for item in vars(importlib.import_module(info.name)).values():
                definition = isinstance(item, type) and getattr(item, "_json", None)
                if definition:
                    self.classes[definition["name"]] = item

    def find(self, name: str, version: int) -> Codec | None:
        cls = self.classes.get(name)
        if cls is None or not cls._valid_versions[0] <= version <= cls._valid_versions[1]:
            return None
        kind = cls._json["type"]

        def codec(data: bytes) -> tuple[bytes, Any]:
            if kind == "header":
                flexible = version >= int(cls._json["flexibleVersions"].rstrip("+"))
                read = cls.decode(io.BytesIO(data), flexible=flexible)
                return read.encode(flexible=flexible), read.to_dict(json=False)
            if kind == "data":
                read = cls.decode(data, version=version, header=False)
                return read.encode(version=version, header=False), read.to_dict(json=False)
            read = cls.decode(data, version=version)
            read._header = None  # encoding needs this attribute, which decoding does not set
            return read.encode(version=version), read.to_dict(json=False)

        return codec


class Kio:
    """Decodes with kio: one class per message and version."""

    def __init__(self) -> None:
        from kio.schema.index import schema_name_map

        self.class_paths: dict[tuple[str, int], str] = {}
        for versions in schema_name_map.values():
            for version, class_paths in versions.items():
                for class_path in class_paths.values():
                    self.class_paths[class_path.rpartition(":")[2], version] = class_path

    def find(self, name: str, version: int) -> Codec | None:
        class_path = self.class_paths.get((name, version))
        if class_path is None:
            return None
        from kio.serial import entity_reader, entity_writer

        cls = pkgutil.resolve_name(class_path)
        read, write = entity_reader(cls), entity_writer(cls)

        def codec(data: bytes) -> tuple[bytes, Any]:
            value, size = read(data, 0)
            if size != len(data):
                raise ValueError(f"{size} of {len(data)} bytes were read")
            out = io.BytesIO()
            write(out, value)
            return out.getvalue(), value

        return codec


def plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {
            key(field.name): plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {key(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, set):  # kafka-python decodes a bit field to a set
        bits = sum(1 << bit for bit in value)
        return bits - (1 << 32) if bits >> 31 else bits
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.datetime):
        epoch = dt.datetime.fromtimestamp(0, dt.UTC)
        return (value - epoch) // dt.timedelta(milliseconds=1)
    return value


def key(name: str) -> str:
    return name.replace("_", "").lower()


if __name__ == "__main__":
    main()
