"""Sends the request of `kproto request`, and prints the response."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
from typing import Final

from ..client import Client, Hooks, RequestEvent
from ..messages import FindCoordinatorRequest
from ..messages.base import Request, Response
from ..protocol.codes_in_messages import error_codes_in
from ..protocol.error_codes import raise_for_code
from ..protocol.framing import frame
from ..protocol.headers import encode_request_header
from ..study import annotate_frame, find_message_class, to_text
from ..wire.errors import ConfigurationError, DecodeError
from .command_error import CommandError
from .open_client import CLIENT_ID, client_of
from .tables import print_json

__all__ = ["run"]

#: The prefix of a transactional id in `--coordinator-of`.
_TRANSACTIONAL: Final = "transactional:"

#: Columns of `--dry-run` if the output is not a terminal.
_PIPE_COLUMNS: Final = 120


def run(options: argparse.Namespace) -> int:
    """Prints the response as JSON; returns 1 if it has an error code, else 0."""
    request = _request(options)
    if options.dry_run:
        version = options.api_version
        _print_bytes(request, type(request).LATEST_STABLE if version is None else version)
        return 0
    return asyncio.run(_send(options, request))


def _request(options: argparse.Namespace) -> Request[Response]:
    cls = find_message_class(options.name)
    if not issubclass(cls, Request):
        raise ConfigurationError(f"{options.name} is no request, but of type {cls.__name__}")
    text = sys.stdin.read() if options.json == "-" else options.json
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"the fields are no JSON: {error}") from None
    # The newest stable version has nearly all fields. The version that is sent is negotiated later.
    version = cls.LATEST_STABLE if options.api_version is None else options.api_version
    try:
        return cls.from_json(fields, version, fill_defaults=True)
    except DecodeError as error:
        raise ConfigurationError(f"the fields are invalid: {error}") from None


def _print_bytes(request: Request[Response], version: int) -> None:
    header = encode_request_header(type(request), version, 1, CLIENT_ID)
    data = frame(header, request.encode(version))
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_COLUMNS
    for line in to_text(annotate_frame(data), width=columns):
        print(line)
    print(data.hex())


class _LastVersion(Hooks):
    """Keeps the version of the last request of each API."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}

    def on_request(self, event: RequestEvent) -> None:
        self.versions[event.api] = event.version


async def _send(options: argparse.Namespace, request: Request[Response]) -> int:
    hooks = _LastVersion()
    async with client_of(options, hooks=hooks) as client:
        broker = await _broker(client, options)
        response = await client.request(
            request, broker=broker, version=options.api_version, timeout_ms=options.timeout_ms
        )
    version = hooks.versions[type(request).__name__.removesuffix("Request")]
    print_json(response.to_json(version))
    return int(any(error_codes_in(response)))


async def _broker(client: Client, options: argparse.Namespace) -> int | None:
    if options.controller:
        found = client.cluster.controller
        if found < 0:
            raise CommandError("the metadata names no controller now; try again")
        return found
    if options.coordinator_of is None:
        return options.broker  # type: ignore[no-any-return]
    key = options.coordinator_of
    is_transactional = key.startswith(_TRANSACTIONAL)
    key = key.removeprefix(_TRANSACTIONAL)
    asked = FindCoordinatorRequest(key=key, key_type=int(is_transactional))
    answer = await client.request(asked, version=2)
    raise_for_code(answer.error_code, f"finding the coordinator of {key!r}")
    return answer.node_id
