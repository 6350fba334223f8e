"""Provides small definitions for the tests of the generator, and writes jars."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kproto_codegen.reading.parser import Definition, parse_definition
from kproto_codegen.rules.finding import CheckStrictness, Finding
from kproto_codegen.rules.table import check_definition

from kproto.schema.specs import FieldSpec, MessageSpec

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "schemas"


def field(name: str, kind: str = "int32", versions: str | None = "0+", **keys: Any) -> Any:
    """Returns a field as JSON data; if `versions` is None, the field has no key `versions`."""
    stated = {} if versions is None else {"versions": versions}
    return {"name": name, "type": kind, **stated, **keys}


def message(*fields: Any, **keys: Any) -> dict[str, Any]:
    """Returns a message as JSON data, by default SampleRequest 0-2, which is flexible from 1 on."""
    base = {
        "apiKey": 900,
        "type": "request",
        "name": "SampleRequest",
        "validVersions": "0-2",
        "flexibleVersions": "1+",
        "fields": list(fields),
    }
    return {key: value for key, value in {**base, **keys}.items() if value is not None}


def data(*fields: Any, **keys: Any) -> dict[str, Any]:
    """Returns a message that is neither request nor response."""
    return message(*fields, **{"type": "data", "name": "Sample", "apiKey": None, **keys})


def parsed(source: Mapping[str, Any] | str, *, lenient: bool = False) -> Definition:
    """Returns the definition that is parsed from JSON data or text; its file is "sample.json"."""
    text = source if isinstance(source, str) else json.dumps(source, indent=1)
    return parse_definition(text, file="sample.json", module="clients", lenient=lenient)


def spec(*fields: Any, **keys: Any) -> MessageSpec:
    """Returns the spec of a message with `fields`."""
    return parsed(message(*fields, **keys)).spec


def findings(source: Mapping[str, Any] | str, *, legacy: bool = False) -> list[Finding]:
    """Returns the findings of the generator's rules about a definition."""
    profile = CheckStrictness.LEGACY if legacy else CheckStrictness.STRICT
    return check_definition(parsed(source, lenient=legacy), profile=profile)


def faults(source: Mapping[str, Any] | str) -> list[str]:
    """Returns the reasons for which a definition is refused, one text each."""
    return [str(found.error) for found in findings(source) if not found.accepted]


def notes(source: Mapping[str, Any] | str, *, legacy: bool = False) -> list[str]:
    """Returns the notes on a definition: the findings that do not make it invalid."""
    return [str(found.error) for found in findings(source, legacy=legacy) if found.accepted]


def wire(found: FieldSpec) -> tuple[str, str]:
    """Returns a field's name and versions."""
    return found.name, str(found.versions)


def write_jar(path: Path, entries: Mapping[str, str | bytes], version: str | None = None) -> Path:
    """Writes a jar with these entries; `version` adds a file that contains Kafka's version."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        if version is not None:
            jar.writestr("kafka/kafka-version.properties", f"commitId=0\nversion={version}\n")
        for name, data in entries.items():
            jar.writestr(name, data)
    return path
