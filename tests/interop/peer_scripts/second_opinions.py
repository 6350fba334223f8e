"""Another implementation reads and re-writes messages: `kafka-python` or `kio` as the argument.

Each line of the input is JSON: {"name", "version", "hex"}. For each, a line comes back: null when
the implementation does not have that message at that version; {"hex", "value"} with the bytes that
it writes after reading, and what it read; or {"error"} when it cannot.

Values are plain data: structs as objects whose keys are field names in small letters without
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
        asked = json.loads(line)
        print(json.dumps(answer(opinion, asked)))


def answer(opinion: KafkaPython | Kio, asked: dict[str, Any]) -> dict[str, Any] | None:
    found = opinion.find(asked["name"], asked["version"])
    if found is None:
        return None
    try:
        written, value = found(bytes.fromhex(asked["hex"]))
        return {"hex": written.hex(), "value": plain(value)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


Codec = Callable[[bytes], "tuple[bytes, Any]"]


class KafkaPython:
    """kafka-python 3: one class a message, made of Kafka's JSON when it is imported."""

    def __init__(self) -> None:
        import kafka.protocol as protocol

        self.classes: dict[str, Any] = {}
        for info in pkgutil.walk_packages(protocol.__path__, "kafka.protocol."):
            if ".old" in info.name or "generate_stubs" in info.name:
                continue
            for held in vars(importlib.import_module(info.name)).values():
                definition = isinstance(held, type) and getattr(held, "_json", None)
                if definition:
                    self.classes[definition["name"]] = held

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
            read._header = None  # decoding leaves it unset, and encoding asks for it
            return read.encode(version=version), read.to_dict(json=False)

        return codec


class Kio:
    """kio: one class a message and version."""

    def __init__(self) -> None:
        from kio.schema.index import schema_name_map

        self.places: dict[tuple[str, int], str] = {}
        for versions in schema_name_map.values():
            for version, places in versions.items():
                for place in places.values():
                    self.places[place.rpartition(":")[2], version] = place

    def find(self, name: str, version: int) -> Codec | None:
        place = self.places.get((name, version))
        if place is None:
            return None
        from kio.serial import entity_reader, entity_writer

        cls = pkgutil.resolve_name(place)
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
        return {key(name): plain(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [plain(held) for held in value]
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, set):  # kafka-python reads a bit field so
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
