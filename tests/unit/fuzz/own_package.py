"""Generates a package of messages that Kafka does not have, for the tests of the fuzzer."""

from __future__ import annotations

import json
from pathlib import Path

from kproto_codegen.cli import main as codegen

#: A request that Kafka does not have, and a data message.
DEFINITIONS = {
    "Greeting": {
        "type": "data",
        "name": "Greeting",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [
            {"name": "Text", "type": "string", "versions": "0+", "nullableVersions": "1+"},
            {
                "name": "Volume",
                "type": "int32",
                "versions": "1+",
                "taggedVersions": "1+",
                "tag": 0,
                "default": "7",
            },
        ],
    },
    "ShoutRequest": {
        "apiKey": 12,
        "type": "request",
        "listeners": ["broker"],
        "name": "ShoutRequest",
        "validVersions": "0",
        "flexibleVersions": "none",
        "fields": [
            {"name": "Loudness", "type": "int32", "versions": "0+"},
            {"name": "Words", "type": "[]string", "versions": "0+"},
            {
                "name": "Guests",
                "type": "[]Guest",
                "versions": "0+",
                "fields": [{"name": "Age", "type": "int8", "versions": "0+"}],
            },
        ],
    },
}


def make_package(folder: Path, name: str) -> None:
    """Generates the package `name` into `folder`; the working directory must be `folder`."""
    schemas = folder / f"{name}_definitions"
    schemas.mkdir()
    for message, definition in DEFINITIONS.items():
        (schemas / f"{message}.json").write_text(json.dumps(definition))
    assert codegen(["generate", "--schemas", schemas.name, "--package", name, "--out", name]) == 0
