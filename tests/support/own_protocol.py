"""Defines a small protocol that is not Kafka's, in three releases, and generates its package.

The protocol has an api key above Kafka's (1000), two of Kafka's (1 and 3), the name of a message of
Kafka (FetchRequest), a message without api key, and a secret field.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from kproto_codegen.cli import main as codegen

__all__ = ["RELEASES", "imported_package", "make_package", "message", "write_releases"]


def message(kind: str, name: str, versions: str, *fields: dict[str, Any], **more: Any) -> Any:
    """Returns the definition of a message that is flexible from version 1 on."""
    return {
        "type": kind,
        "name": name,
        "validVersions": versions,
        "flexibleVersions": "1+",
        "fields": list(fields),
        **more,
    }


def field(name: str, kind: str, versions: str = "0+", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions, **more}


def _track(newest: int) -> list[Any]:
    versions = f"0-{newest}" if newest else "0"
    asked = [
        field("Token", "string", about="The password of the customer."),
        field("ParcelIds", "[]string"),
        field("TimeoutMs", "int32", about="How long the depot searches."),
    ]
    parcel = [
        field("Id", "string", mapKey=True),
        field("ErrorCode", "int16", about="0 if the parcel was found."),
        field("SeenTimestamp", "int64"),
    ]
    if newest >= 1:
        parcel.append(field("Weight", "int32", "1+", default="-1", about="In grams."))
    told = [field("Parcels", "[]Parcel", fields=parcel)]
    if newest >= 2:
        asked.append(field("Depot", "string", "2+", nullableVersions="2+", default="null"))
        told.append(field("Note", "string", "2+", taggedVersions="2+", tag=0))
    return [
        message("request", "TrackRequest", versions, *asked, apiKey=1000, listeners=["broker"]),
        message("response", "TrackResponse", versions, *told, apiKey=1000),
    ]


def _label(name: str, versions: str) -> list[Any]:
    return [
        message("request", f"{name}Request", versions, field("ParcelId", "string"), apiKey=3),
        message("response", f"{name}Response", versions, field("Label", "bytes"), apiKey=3),
    ]


def _event(versions: str, *more: dict[str, Any]) -> Any:
    return message("data", "ParcelEvent", versions, field("ParcelId", "string"), *more)


#: The definitions of each release, the oldest first.
RELEASES: dict[str, list[Any]] = {
    "v1": [*_track(0), _event("0")],
    "v2": [*_track(1), *_label("Label", "0"), _event("0")],
    "v3": [
        *_track(2),
        *_label("PrintLabel", "0-1"),
        _event("0-1", field("Depot", "string", "1+")),
        message("request", "FetchRequest", "0", field("ReplicaId", "int32"), apiKey=1),
        message("response", "FetchResponse", "0", field("ErrorCode", "int16"), apiKey=1),
    ],
}


def write_releases(folder: Path) -> Path:
    """Writes the definitions of each release to a folder of its own in `folder`; returns it."""
    for release, definitions in RELEASES.items():
        (folder / release).mkdir(parents=True)
        for definition in definitions:
            file = folder / release / f"{definition['name']}.json"
            file.write_text(f"// {release}\n{json.dumps(definition)}", encoding="utf-8")
    return folder


def make_package(schemas: Path, out: Path, *more: str) -> Path:
    """Generates the package `out` from the definitions in `schemas`; returns its folder."""
    arguments = ["--schemas", str(schemas), "--package", out.name, "--out", str(out)]
    assert codegen(["generate", *arguments, *more]) == 0
    return out


@contextmanager
def imported_package(folder: Path) -> Iterator[ModuleType]:
    """Imports the package in `folder` and yields it; then removes it from sys.modules."""
    sys.path.insert(0, str(folder.parent))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(folder.name)
    finally:
        sys.path.remove(str(folder.parent))
        for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
            del sys.modules[name]
