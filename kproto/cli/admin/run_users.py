"""Runs `kproto users`."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path
from typing import Any, Final

from ...client import Client
from ...client.admin import (
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from ..command_error import CommandError
from .confirming import confirm
from .rows import print_rows
from .running import VerbFunction, run_verb

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


def _mechanism(text: str) -> ScramMechanism:
    return ScramMechanism[text.replace("-", "_")]


async def _list(client: Client, options: argparse.Namespace) -> int:
    found = await client.admin.describe_user_scram_credentials(options.users or None)
    rows = (
        {"user": user, "mechanism": mechanism.name.replace("_", "-"), "iterations": iterations}
        for user, mechanisms in sorted(found.items())
        for mechanism, iterations in mechanisms.items()
    )
    print_rows(options, ("user", "mechanism", "iterations"), rows)
    return 0


async def _set(client: Client, options: argparse.Namespace) -> int:
    more: dict[str, Any] = {}
    if options.iterations is not None:
        more["iterations"] = options.iterations
    password = _password(options)
    await client.admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion(
                options.user, _mechanism(options.mechanism), password, **more
            )
        ]
    )
    return 0


def _password(options: argparse.Namespace) -> str:
    """Returns the password of a file, the terminal or standard input; never of an argument."""
    if options.password_file is not None:
        try:
            password = Path(options.password_file).read_text("utf-8").partition("\n")[0]
        except (OSError, UnicodeDecodeError):
            raise CommandError(f"{options.password_file} cannot be read") from None
    elif sys.stdin.isatty():
        password = getpass.getpass(f"Password of {options.user}: ")
        if getpass.getpass("Repeat it: ") != password:
            raise CommandError("the passwords differ; nothing was changed")
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise CommandError("the password is empty; nothing was changed")
    return password


async def _delete(client: Client, options: argparse.Namespace) -> int:
    if options.mechanism is None:
        found = await client.admin.describe_user_scram_credentials([options.user])
        mechanisms = list(found[options.user])
    else:
        mechanisms = [_mechanism(options.mechanism)]
    names = ", ".join(each.name.replace("_", "-") for each in mechanisms)
    if not confirm(options, f"delete the credentials of {options.user} for {names}"):
        return 1
    await client.admin.alter_user_scram_credentials(
        [UserScramCredentialDeletion(options.user, each) for each in mechanisms]
    )
    return 0


_VERBS: Final[dict[str, VerbFunction]] = {"list": _list, "set": _set, "delete": _delete}
