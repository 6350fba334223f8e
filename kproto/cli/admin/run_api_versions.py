"""Runs `kproto cluster api-versions`."""

from __future__ import annotations

import argparse
from typing import Any

from ... import messages
from ...client import Client
from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.base import Request, Response
from ...protocol.error_codes import raise_for_code
from ...protocol.negotiation import ApiRange, broker_ranges, negotiate
from ...version import __version__
from ...wire.errors import UnsupportedVersionError
from .rows import print_rows

__all__ = ["api_versions"]


async def api_versions(client: Client, options: argparse.Namespace) -> int:
    """Prints the versions that each broker supports, and the one that this client uses."""
    nodes = options.brokers or sorted((await client.admin.describe_cluster()).brokers)
    rows: list[dict[str, Any]] = []
    for node in nodes:
        request = ApiVersionsRequest(
            client_software_name="kproto", client_software_version=__version__
        )
        response = await client.request(request, broker=node)
        raise_for_code(response.error_code, f"listing the APIs of broker {node}")
        ranges = broker_ranges(response)
        rows += [
            {
                "broker": node,
                "key": key,
                "api": _name(key),
                "lowest": lowest,
                "highest": highest,
                "usable": _usable(key, ranges),
            }
            for key, (lowest, highest) in sorted(ranges.items())
        ]
    print_rows(options, ("broker", "key", "api", "lowest", "highest", "usable"), rows)
    return 0


def _request(key: int) -> type[Request[Response]] | None:
    names = messages.API_KEYS.get(key)
    return None if names is None else getattr(messages, names[0])


def _name(key: int) -> str | None:
    """Returns the name of an API, such as `Fetch`; None for an API that kproto does not know."""
    names = messages.API_KEYS.get(key)
    return None if names is None else names[0].removesuffix("Request")


def _usable(key: int, ranges: dict[int, ApiRange]) -> int | None:
    """Returns the version that this client would use; None if it has no version of the broker."""
    request = _request(key)
    if request is None:
        return None
    try:
        return negotiate(request, ranges)
    except UnsupportedVersionError:
        return None
