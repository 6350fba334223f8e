"""Runs `kproto tokens`."""

from __future__ import annotations

import argparse
import base64
import sys
from pathlib import Path
from typing import Any, Final

from ...client import Client
from ...client.admin import DelegationTokenInfo
from ...wire.errors import ConfigurationError
from .confirming import confirm
from .rows import print_rows
from .running import VerbFunction, run_verb

__all__ = ["run"]

_COLUMNS: Final = (
    "token_id",
    "owner",
    "requester",
    "renewers",
    "issued_ms",
    "expires_ms",
    "latest_expiry_ms",
)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


def _row(token: DelegationTokenInfo) -> dict[str, Any]:
    return {name: getattr(token, name) for name in _COLUMNS}


async def _list(client: Client, options: argparse.Namespace) -> int:
    found = await client.admin.describe_delegation_token(options.owners or None)
    print_rows(options, _COLUMNS, sorted(map(_row, found), key=lambda row: row["issued_ms"]))
    return 0


async def _create(client: Client, options: argparse.Namespace) -> int:
    token = await client.admin.create_delegation_token(
        renewers=options.renewers, owner=options.owner, max_lifetime_ms=options.lifetime
    )
    # The HMAC is the secret of the token: the brokers do not tell it to every user again.
    row = {**_row(token), "hmac": base64.b64encode(token.hmac).decode()}
    print_rows(options, (*_COLUMNS, "hmac"), [row])
    return 0


def _hmac(options: argparse.Namespace) -> bytes:
    try:
        if options.hmac_file is None:
            text = sys.stdin.readline()
        else:
            text = Path(options.hmac_file).read_text("ascii")
        return base64.b64decode(text.strip(), validate=True)
    except (OSError, ValueError):
        raise ConfigurationError("the HMAC cannot be read, or is no base64") from None


async def _renew(client: Client, options: argparse.Namespace) -> int:
    expiry = await client.admin.renew_delegation_token(
        _hmac(options), renew_period_ms=options.period
    )
    print_rows(options, ("expires_ms",), [{"expires_ms": expiry}])
    return 0


async def _expire(client: Client, options: argparse.Namespace) -> int:
    hmac = _hmac(options)
    if not confirm(options, "end a delegation token"):
        return 1
    expiry = await client.admin.expire_delegation_token(hmac, expiry_period_ms=options.period)
    print_rows(options, ("expires_ms",), [{"expires_ms": expiry}])
    return 0


_VERBS: Final[dict[str, VerbFunction]] = {
    "list": _list,
    "create": _create,
    "renew": _renew,
    "expire": _expire,
}
