"""Runs `kproto quotas`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from functools import partial
from typing import Final

from ...client import Client
from ...client.admin import ClientQuotaEntity, ClientQuotaFilter, QuotaName
from ...wire.errors import ConfigurationError
from ..command_error import CommandError
from ..terminal_words import part_text
from .rows import print_rows
from .running import VerbFunction, run_verb

__all__ = ["run"]

#: The name of the default of all names in the output, as Kafka's scripts once wrote it.
_DEFAULT: Final = "<default>"

#: The name `<default>` of a user or client itself, with a backslash more than the name.
_LITERAL: Final = re.compile(r"\\+<default>")


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


def _entity(options: argparse.Namespace) -> ClientQuotaEntity:
    """Returns the entity of the options."""

    def part(name: str) -> str | QuotaName | None:
        if getattr(options, f"{name}_default"):
            return QuotaName.DEFAULT
        return _name(name.replace("_", "-"), getattr(options, name))

    return ClientQuotaEntity(part("user"), part("client_id"), part("ip"))


def _name(option: str, text: str | None) -> str | None:
    """Returns the name that `text` stands for, as `list` prints it: `\\<default>` is `<default>`.

    Raises ConfigurationError for `<default>`, which `list` prints for the default.
    """
    if text == _DEFAULT:
        raise ConfigurationError(
            f"--{option} {_DEFAULT}: --{option}-default is the default; a name {_DEFAULT} is "
            f"written \\{_DEFAULT}"
        )
    return text[1:] if text is not None and _LITERAL.fullmatch(text) else text


def _text(name: str | QuotaName | None) -> str | None:
    if isinstance(name, QuotaName):  # there is no ANY in results
        return _DEFAULT
    if name is not None and (name == _DEFAULT or _LITERAL.fullmatch(name)):
        return f"\\{name}"
    return name


async def _list(client: Client, options: argparse.Namespace) -> int:
    wanted = _entity(options)
    quota_filter = ClientQuotaFilter(wanted.user, wanted.client_id, wanted.ip)
    found = await client.admin.describe_client_quotas(quota_filter)
    rows = [
        {
            "user": _text(entity.user),
            "client_id": _text(entity.client_id),
            "ip": _text(entity.ip),
            "quota": name,
            "value": value,
        }
        for entity, quotas in found.items()
        for name, value in sorted(quotas.items())
    ]
    rows.sort(key=lambda row: [str(cell or "") for cell in row.values()])
    print_rows(options, ("user", "client_id", "ip", "quota", "value"), rows)
    return 0


async def _alter(client: Client, options: argparse.Namespace, *, is_removed: bool) -> int:
    entity = _entity(options)
    if entity == ClientQuotaEntity():
        raise ConfigurationError("name the clients: --user, --client-id or --ip")
    quotas: dict[str, float | None] = {}
    for text in options.quotas:
        name, equals, number = text.partition("=")
        try:
            quotas[name] = None if is_removed and not equals else float(number)
        except ValueError:
            raise ConfigurationError(f"{text!r:.80} is no NAME=NUMBER") from None
        if is_removed and equals:
            raise ConfigurationError(f"{text!r:.80} is no NAME")
    if is_removed:
        await _check_set(client, entity, quotas)
    await client.admin.alter_client_quotas({entity: quotas}, validate_only=options.dry_run)
    return 0


async def _check_set(client: Client, entity: ClientQuotaEntity, names: Iterable[str]) -> None:
    """Raises CommandError for a quota that is not set, which brokers would ignore."""
    found = await client.admin.describe_client_quotas(ClientQuotaFilter(*entity))
    own = found.get(entity, {})
    missing = [name for name in names if name not in own]
    if missing:
        raise CommandError(
            f"{part_text(entity)} has no quota {', '.join(missing)}; it has "
            f"{', '.join(sorted(own)) or 'none'}"
        )


_VERBS: Final[dict[str, VerbFunction]] = {
    "list": _list,
    "set": partial(_alter, is_removed=False),
    "unset": partial(_alter, is_removed=True),
}
