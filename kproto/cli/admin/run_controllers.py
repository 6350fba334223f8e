"""Runs the verbs of `kproto cluster` that change the voters of the metadata quorum (KIP-853)."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Final

from ...client import Address, Client, parse_bootstrap
from ...client.admin import QuorumInfo, RaftVoterEndpoint
from ...wire.errors import ConfigurationError
from ...wire.uuid import ZERO_UUID, Uuid
from ..command_error import CommandError
from .confirming import confirm
from .rows import print_rows

__all__ = ["add_controller", "endpoint_of", "remove_controller"]

_COLUMNS: Final = ("controller", "directory", "endpoints")


async def add_controller(client: Client, options: argparse.Namespace) -> int:
    """Makes a controller a voter; by default with the directory id that it observes with."""
    endpoints = [endpoint_of(each) for each in options.endpoints]
    found = await client.admin.describe_metadata_quorum()
    directory = _directory(options, found, is_voter=False)
    if not _may_change(options, f"add controller {options.controller_id} to the voters"):
        return 1
    if not options.dry_run:
        await client.admin.add_raft_voter(options.controller_id, directory, endpoints)
    _print(options, directory, endpoints)
    return 0


async def remove_controller(client: Client, options: argparse.Namespace) -> int:
    """Removes a voter; by default with the directory id that it votes with."""
    found = await client.admin.describe_metadata_quorum()
    directory = _directory(options, found, is_voter=True)
    if not _may_change(options, f"remove controller {options.controller_id} from the voters"):
        return 1
    if not options.dry_run:
        await client.admin.remove_raft_voter(options.controller_id, directory)
    _print(options, directory, found.nodes.get(options.controller_id, ()))
    return 0


def endpoint_of(text: str) -> RaftVoterEndpoint:
    """Returns the endpoint that `LISTENER://HOST:PORT` names.

    Raises ConfigurationError for other text.
    """
    name, scheme_end, address = text.partition("://")
    if not name or not scheme_end or not address.rpartition(":")[2].isdigit():
        raise ConfigurationError(
            f"{text!r:.80} is no LISTENER://HOST:PORT, such as CONTROLLER://host:9093"
        )
    (found,) = parse_bootstrap([address])
    return RaftVoterEndpoint(name, found.host, found.port)


def _directory(options: argparse.Namespace, found: QuorumInfo, *, is_voter: bool) -> Uuid:
    """Returns the directory id of a replica of the metadata log: the given one, or its own."""
    node = options.controller_id
    if options.controller_directory_id is not None:
        return Uuid.parse(options.controller_directory_id)
    voters = {each.replica_id: each.directory_id for each in found.voters}
    observers = {each.replica_id: each.directory_id for each in found.observers}
    directory = (voters if is_voter else observers).get(node, ZERO_UUID)
    if directory != ZERO_UUID:
        return directory
    if is_voter:
        known = ", ".join(map(str, sorted(voters)))
        problem = f"the voters are {known}" if node not in voters else "its directory is unknown"
    elif node in voters:
        problem = "it is a voter already"
    else:
        known = ", ".join(map(str, sorted(observers))) or "none"
        problem = f"start it first, as an observer of the quorum; the observers are {known}"
    raise CommandError(
        f"controller {node} cannot be {'removed' if is_voter else 'added'}: {problem} "
        "(kproto cluster quorum; --controller-directory-id names its directory)"
    )


def _may_change(options: argparse.Namespace, action: str) -> bool:
    return options.dry_run or confirm(options, f"{action} of the metadata quorum")


def _print(
    options: argparse.Namespace, directory: Uuid, endpoints: Iterable[RaftVoterEndpoint]
) -> None:
    row = {
        "controller": options.controller_id,
        "directory": directory,
        "endpoints": [f"{it.name}://{Address(it.host, it.port)}" for it in endpoints],
    }
    print_rows(options, _COLUMNS, [row])
