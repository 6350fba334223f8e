"""Formats tables of settings, from the classes and signatures that declare them.

A row has the name, type, default, unit and meaning of a setting, and Kafka's names for the setting.
The meaning is an entry of `meanings.toml`, or else the comment (`#:`) above the field.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, get_overloads

from kproto import Client, ClientSettings, GroupConsumer, ShareConsumer
from kproto.broker import BrokerSettings
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.share.settings import ShareGroupSettings
from kproto.client.processing.settings import RunSettings, ShareRunArguments
from kproto.client.producer.settings import ProducerSettings
from kproto.security.property_table import ROWS

from .tables import code, table

__all__ = ["TABLES", "Setting", "settings", "settings_table"]

HEADS: Final = ("setting", "type", "default", "unit", "Kafka's name", "meaning")

#: By suffix of a setting's name: its unit.
_UNITS: Final = {"_ms": "ms", "_seconds": "s", "_minutes": "min", "_bytes": "bytes"}

#: Arguments that are not settings.
_NO_SETTINGS: Final = frozenset({"self", "topics", "handler"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of a table of settings."""

    name: str
    type: str
    default: str
    unit: str
    kafka: tuple[str, ...]
    meaning: str


def settings_table(of: str) -> str:
    """Returns the settings table `of`, a key of `TABLES`."""
    return table(
        HEADS,
        (
            (
                code(each.name),
                code(each.type),
                code(each.default),
                each.unit,
                ", ".join(map(code, each.kafka)),
                each.meaning,
            )
            for each in settings(of)
        ),
    )


def settings(of: str) -> list[Setting]:
    """Returns the rows of the settings table `of`, in the table's order.

    Raises LookupError if a setting has no meaning.
    """
    return list(TABLES[of](of))


def _of_fields(cls: Any, part: str) -> Iterator[Setting]:
    comments = _comments(cls)
    for each in dataclasses.fields(cls):
        if each.default is not dataclasses.MISSING:
            default = each.default
        elif each.default_factory is not dataclasses.MISSING:
            default = each.default_factory()
        else:
            continue
        yield _setting(part, each.name, str(each.type), default, comments)


def _of_arguments(
    call: Callable[..., Any], part: str, but: frozenset[str], comments: Mapping[str, str]
) -> Iterator[Setting]:
    for name, each in inspect.signature(call).parameters.items():
        if name not in _NO_SETTINGS | but and each.kind is not each.VAR_KEYWORD:
            yield _setting(part, name, str(each.annotation), each.default, comments)


def _of_consumer(part: str) -> Iterator[Setting]:
    return _of_arguments(_overload("None"), part, frozenset({"group"}), {})


def _of_group(part: str) -> Iterator[Setting]:
    shared = frozenset(
        {
            "group",
            "key",
            "value",
            "undecodable",
            "max_partition_fetch_bytes",
            "max_wait_ms",
            "read_committed",
            "fetch_min_bytes",
            "fetch_max_bytes",
            "queued_max_bytes",
            "max_poll_records",
            "allow_auto_create_topics",
        }
    )
    return _of_arguments(_overload("str"), part, shared, _comments(GroupSettings))


def _of_run(part: str) -> Iterator[Setting]:
    passed_on = frozenset({"settings", "transactional_id"})
    yield from _of_arguments(GroupConsumer.run, part, passed_on, {})
    yield from _of_arguments(RunSettings.of, part, frozenset(), {})


def _of_share(part: str) -> Iterator[Setting]:
    comments = _comments(ShareGroupSettings)
    yield from _of_fields(ShareGroupSettings, part)
    yield _setting(part, "on_acknowledged", "ResultCallback | None", None, comments)


def _of_share_run(part: str) -> Iterator[Setting]:
    others = frozenset(inspect.signature(RunSettings.of).parameters) - frozenset(
        ShareRunArguments.__annotations__
    )
    yield from _of_arguments(ShareConsumer.run, part, frozenset({"settings"}), {})
    yield from _of_arguments(RunSettings.of, part, others, {})


TABLES: Final[dict[str, Callable[[str], Iterator[Setting]]]] = {
    "client": lambda part: _of_fields(ClientSettings, part),
    "producer": lambda part: _of_fields(ProducerSettings, part),
    "consumer": _of_consumer,
    "group": _of_group,
    "run": _of_run,
    "share": _of_share,
    "share-run": _of_share_run,
    "broker": lambda part: _of_fields(BrokerSettings, part),
}


def _overload(group: str) -> Callable[..., Any]:
    """Returns the overload of `Client.consumer` that annotates its parameter `group` as `group`."""
    (found,) = [
        each
        for each in get_overloads(Client.consumer)
        if each.__annotations__.get("group") == group
    ]
    return found


def _setting(
    part: str, name: str, type_: str, default: object, comments: Mapping[str, str]
) -> Setting:
    meaning = _meanings().get(part, {}).get(name) or comments.get(name)
    if not meaning:
        raise LookupError(
            f"no meaning of {name} ({part}): write a comment `#:` above the field, or a line in "
            "tools/docs/meanings.toml"
        )
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
    return Setting(name, type_, _shown(default), unit, _kafka_names(part, name), meaning)


def _kafka_names(part: str, name: str) -> tuple[str, ...]:
    parts = {
        "client": ("settings",),
        "group": ("group", "consumer"),
        "share": ("share", "group", "consumer"),
    }.get(part, (part,))
    return tuple(
        other for row in ROWS if row.part in parts and row.name == name for other in row.names
    )


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if type(value) is int:
        return f"{value:,}"
    if value == {}:
        return "{}"
    return str(value)


def _comments(cls: Any) -> dict[str, str]:
    """Returns the comments (`#:`) above the fields of a class, by field."""
    source = inspect.getsource(cls)
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.ClassDef)
    lines = source.splitlines()
    found: dict[str, str] = {}
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            above: list[str] = []
            line = each.lineno - 2
            while line >= 0 and (match := re.match(r"\s*#: ?(.*)", lines[line])):
                above.insert(0, match[1])
                line -= 1
            found[each.target.id] = " ".join(above)
    return found


@cache
def _meanings() -> dict[str, dict[str, str]]:
    path = Path(__file__).with_name("meanings.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))
