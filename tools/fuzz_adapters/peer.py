"""Answers the questions of `kproto fuzz` with kafka-python or kio.

    python tools/fuzz_adapters/peer.py kafka-python|kio

Runs in the environment of the other libraries. Both libraries support only the operation `rewrite`,
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


def main() -> None:
    """Answers each line of the input with a line of the output."""
    find = {"kafka-python": kafka_python, "kio": kio}[sys.argv[1]]()
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": asked["id"], **answer(find, asked)}), flush=True)


def answer(find: Callable[[str, int], Rewrite | None], asked: dict[str, Any]) -> dict[str, Any]:
    """Returns the implementation's answer to a question of `kproto fuzz`."""
    if asked["operation"] != "rewrite":
        return {"unsupported": "it does not have Kafka's JSON form"}
    rewrite = find(asked["message"], asked["version"])
    if rewrite is None:
        return {"unsupported": "it does not have this message at this version"}
    try:
        written, taken = rewrite(bytes.fromhex(asked["hex"]))
    except (MemoryError, RecursionError) as error:
        return {"failed": repr(error)}
    except Exception as error:  # noqa: BLE001 - no common class for refused bytes
        return {"refused": f"{type(error).__name__}: {error}"}
    return {"hex": written.hex()} | ({} if taken is None else {"taken": taken})


def kafka_python() -> Callable[[str, int], Rewrite | None]:
    """Returns a function that finds the `Rewrite` of a message and version in kafka-python 3.

    That function returns None if kafka-python lacks the message or the version.
    """
    import kafka.protocol as protocol

    classes: dict[str, Any] = {}
    for info in pkgutil.walk_packages(protocol.__path__, "kafka.protocol."):
        if ".old" in info.name or "generate_stubs" in info.name:
            continue
        for held in vars(importlib.import_module(info.name)).values():
            definition = isinstance(held, type) and getattr(held, "_json", None)
            if definition:
                classes[definition["name"]] = held

    def find(name: str, version: int) -> Rewrite | None:
        cls = classes.get(name)
        if cls is None or not cls._valid_versions[0] <= version <= cls._valid_versions[1]:
            return None
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


def kio() -> Callable[[str, int], Rewrite | None]:
    """Returns a function that finds the `Rewrite` of a message and version in kio.

    That function returns None if kio lacks the message or the version.
    """
    from kio.schema.index import schema_name_map
    from kio.serial import entity_reader, entity_writer

    places: dict[tuple[str, int], str] = {}
    for versions in schema_name_map.values():
        for version, held in versions.items():
            for place in held.values():
                places[place.rpartition(":")[2], version] = place

    def find(name: str, version: int) -> Rewrite | None:
        place = places.get((name, version))
        if place is None:
            return None
        cls = pkgutil.resolve_name(place)
        read, write = entity_reader(cls), entity_writer(cls)

        def rewrite(data: bytes) -> tuple[bytes, int | None]:
            value, taken = read(data, 0)
            out = io.BytesIO()
            write(out, value)
            return out.getvalue(), taken

        return rewrite

    return find


if __name__ == "__main__":
    main()
