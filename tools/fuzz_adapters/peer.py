"""Answers the questions of `kproto fuzz` with kafka-python, kio or aiokafka.

    python tools/fuzz_adapters/peer.py kafka-python|kio|aiokafka

Runs in the environment of the other libraries. These libraries have only the operation `rewrite`,
from bytes to bytes. The operations `decode` and `encode` need Kafka's JSON form of messages, which
these libraries lack. Every exception counts as a refusal, except MemoryError and RecursionError.
"""

from __future__ import annotations

import importlib
import io
import json
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

#: Decodes bytes; returns the message encoded again, and the number of bytes read (None if unknown).
Rewrite = Callable[[bytes], "tuple[bytes, int | None]"]

#: Finds the `Rewrite` of a question's message and version, or returns an answer without `id`.
Find = Callable[[dict[str, Any]], Rewrite | dict[str, Any]]

_UNKNOWN: dict[str, Any] = {"unsupported": "it does not have this message at this version"}


def main() -> None:
    """Answers each line of the input with a line of the output."""
    find = {"kafka-python": kafka_python, "kio": kio, "aiokafka": aiokafka}[sys.argv[1]]()
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": asked["id"], **answer(find, asked)}), flush=True)


def answer(find: Find, asked: dict[str, Any]) -> dict[str, Any]:
    """Returns the implementation's answer to a question of `kproto fuzz`."""
    if asked["operation"] != "rewrite":
        return {"unsupported": "it does not have Kafka's JSON form"}
    rewrite = find(asked)
    if isinstance(rewrite, dict):
        return rewrite
    try:
        written, taken = rewrite(bytes.fromhex(asked["hex"]))
    except (MemoryError, RecursionError) as error:
        return {"failed": repr(error)}
    except Exception as error:  # noqa: BLE001 - no common class for refused bytes
        return {"refused": f"{type(error).__name__}: {error}"}
    return {"hex": written.hex()} | ({} if taken is None else {"taken": taken})


def kafka_python() -> Find:
    """Returns a function that finds the `Rewrite` of a message and version in kafka-python 3."""
    import kafka.protocol as protocol

    classes: dict[str, Any] = {}
    for info in pkgutil.walk_packages(protocol.__path__, "kafka.protocol."):
        if ".old" in info.name or "generate_stubs" in info.name:
            continue
        for held in vars(importlib.import_module(info.name)).values():
            definition = isinstance(held, type) and getattr(held, "_json", None)
            if definition:
                classes[definition["name"]] = held

    def find(asked: dict[str, Any]) -> Rewrite | dict[str, Any]:
        cls, version = classes.get(asked["message"]), asked["version"]
        if cls is None or not cls._valid_versions[0] <= version <= cls._valid_versions[1]:
            return _UNKNOWN
        kind = cls._json["type"]

        def rewrite(data: bytes) -> tuple[bytes, None]:
            # kafka-python does not report the number of bytes read.
            if kind == "header":
                flexible = version >= int(cls._json["flexibleVersions"].rstrip("+"))
                read = cls.decode(io.BytesIO(data), flexible=flexible)
                return read.encode(flexible=flexible), None
            if kind == "data":
                read = cls.decode(data, version=version, header=False)
                return read.encode(version=version, header=False), None
            read = cls.decode(data, version=version)
            read._header = None  # decoding leaves it unset, but encoding reads it
            return read.encode(version=version), None

        return rewrite

    return find


def kio() -> Find:
    """Returns a function that finds the `Rewrite` of a message and version in kio."""
    from kio.schema.index import schema_name_map
    from kio.serial import entity_reader, entity_writer

    places: dict[tuple[str, int], str] = {}
    for versions in schema_name_map.values():
        for version, held in versions.items():
            for place in held.values():
                places[place.rpartition(":")[2], version] = place

    def find(asked: dict[str, Any]) -> Rewrite | dict[str, Any]:
        place = places.get((asked["message"], asked["version"]))
        if place is None:
            return _UNKNOWN
        cls = pkgutil.resolve_name(place)
        read, write = entity_reader(cls), entity_writer(cls)

        def rewrite(data: bytes) -> tuple[bytes, int | None]:
            value, taken = read(data, 0)
            out = io.BytesIO()
            write(out, value)
            return out.getvalue(), taken

        return rewrite

    return find


def aiokafka() -> Find:
    """Returns a function that finds the `Rewrite` of a message and version in aiokafka.

    aiokafka has a class per version of a message, and never reads headers of requests.
    """
    import aiokafka.protocol as protocol
    from aiokafka.protocol import api

    for info in pkgutil.walk_packages(protocol.__path__, "aiokafka.protocol."):
        importlib.import_module(info.name)
    classes: dict[tuple[str, Any, int], Any] = {
        (kind, cls.API_KEY, cls.API_VERSION): cls
        for kind, base in (("request", api.RequestStruct), ("response", api.Response))
        for cls in base.__subclasses__()
    }
    classes["header", "ResponseHeader", 0] = api.ResponseHeader_v0
    classes["header", "ResponseHeader", 1] = api.ResponseHeader_v1

    def find(asked: dict[str, Any]) -> Rewrite | dict[str, Any]:
        version = asked["version"]
        if asked["message"] == "RequestHeader" and version in (1, 2):
            return {"writeOnly": "aiokafka makes headers of requests only from a request"}
        key = asked["message"] if asked["type"] == "header" else asked["apiKey"]
        cls = classes.get((asked["type"], key, version))
        if cls is None:
            return _UNKNOWN

        def rewrite(data: bytes) -> tuple[bytes, int]:
            stream = io.BytesIO(data)
            read = cls.decode(stream)
            return read.encode(), stream.tell()

        return rewrite

    return find


if __name__ == "__main__":
    main()
