"""Collects data about messages: releases, descriptions, KIPs and former names.

The data about Kafka's own messages come from `kproto.schema`. All data are arguments of
`build.page`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..schema import study
from ..schema.glossary import load_glossary
from ..schema.release_table import former_api_names
from ..schema.specs import MessageSpec

__all__ = ["former", "glossary", "kips", "own_glossary", "releases", "stored"]


def releases() -> dict[str, dict[int, tuple[int, int]]]:
    """Returns the lowest and highest version by API key, for each release, oldest first.

    Omits versions that are unstable in a release, because a broker serves such a version only if
    the broker's configuration enables it.
    """
    return {
        release: {
            key: (each.stable.lowest, each.stable.highest)
            for key, each in study.ranges(release).items()
            if each.stable
        }
        for release in study.releases()
    }


def glossary() -> dict[str, dict[str, Any]]:
    """Returns the glossary: under `fields`, `messages` and `structs` a description for each name.

    `overrides` has, by message or struct, the descriptions of field names that apply only in this
    message or struct.
    """
    known = load_glossary()
    return {
        "fields": dict(known.fields),
        "overrides": {scope: dict(texts) for scope, texts in known.overrides.items()},
        "messages": dict(known.messages),
        "structs": dict(known.structs),
    }


def own_glossary(messages: Mapping[str, MessageSpec]) -> dict[str, dict[str, Any]]:
    """Returns the `about` texts of definitions in the form of `glossary`."""
    overrides: dict[str, dict[str, str]] = {}
    for message in messages.values():
        structs = [(message.name, message.fields)]
        structs += [(struct.name, struct.fields) for struct in message.structs()]
        for name, fields in structs:
            abouts = {field.name: field.about for field in fields if field.about}
            if abouts:
                overrides[f"{message.name}.{name}"] = abouts
    return {"fields": {}, "overrides": overrides, "messages": {}, "structs": {}}


def kips() -> list[dict[str, Any]]:
    """Returns a note for each known version of each API: its change and KIPs, as JSON data.

    The notes are in the order of API keys.
    """
    return [note.to_json() for key in study.api_names() for note in study.version_notes(key)]


def stored() -> dict[str, dict[int, str]]:
    """Returns the first release line of each version of each stored message, by its name."""
    return {name: dict(rows) for name, rows in study.stored_releases().items()}


def former() -> dict[str, str]:
    """Returns the present names of renamed APIs, by former name."""
    return former_api_names()
