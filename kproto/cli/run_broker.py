"""Runs the embedded broker or cluster of `kproto broker` until SIGINT or SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from pathlib import Path
from typing import Any

from ..broker import BrokerSettings, Cluster, Listener, ServerTls
from ..wire.counted import counted
from ..wire.errors import ConfigurationError
from .broker import ListenerToOpen, TopicToCreate

__all__ = ["run"]

_HOST = "127.0.0.1"
_PORT = 9092
_MECHANISMS_OF_USERS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def run(options: argparse.Namespace) -> int:
    """Runs the cluster until SIGINT or SIGTERM; returns 0.

    Raises ConfigurationError for invalid options.
    """
    users = _users(options)
    settings = BrokerSettings(
        listeners=tuple(_listener(each, options) for each in options.listeners),
        users=users,
        **_address(options),
        advertised_host=options.advertised_host,
        advertised_port=options.advertised_port,
        num_partitions=options.partitions,
        max_stored_bytes=options.max_stored_bytes,
        auto_create_topics=options.auto_create_topics,
        replica_selector=options.replica_selector,
        release=options.release,
        authorizer=bool(options.acls or options.super_users),
        super_users=tuple(options.super_users),
        acls=tuple(options.acls),
    )
    if options.verbose:
        logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    if options.racks and len(options.racks) != options.brokers:
        raise ConfigurationError(
            f"--rack is given {counted(len(options.racks), 'time')}, and --brokers is "
            f"{options.brokers}; pass --rack once for each broker"
        )
    cluster = Cluster(options.brokers, racks=options.racks or None, settings=settings)
    asyncio.run(_serve(cluster, options.topics))
    return 0


def _address(options: argparse.Namespace) -> dict[str, Any]:
    """Returns host and port as settings; empty if `--listener` sets the addresses.

    Raises ConfigurationError if `--listener` is given together with `--host` or `--port`.
    """
    if not options.listeners:
        return {
            "host": _HOST if options.host is None else options.host,
            "port": _PORT if options.port is None else options.port,
        }
    for name in ("host", "port"):
        if getattr(options, name) is not None:
            raise ConfigurationError(
                f"--{name} and --listener are both given; pass only one of them"
            )
    return {}


def _users(options: argparse.Namespace) -> dict[str, str]:
    """Returns the passwords by user.

    Raises ConfigurationError if a user is given twice, if a SASL listener has neither `--user` nor
    `--unsecured-tokens`, or if `--user` or `--unsecured-tokens` is given without a SASL listener.
    """
    users = dict(options.users)
    if len(users) < len(options.users):
        raise ConfigurationError("--user names a user twice; a user has one password")
    needs_users = any(each.protocol.startswith("SASL") for each in options.listeners)
    for option, given in (("--user", users), ("--unsecured-tokens", options.unsecured_tokens)):
        if given and not needs_users:
            raise ConfigurationError(
                f"{option} is given, and no listener has SASL: add --listener "
                "SASL_PLAINTEXT://… or SASL_SSL://…"
            )
    if needs_users and not users and not options.unsecured_tokens:
        raise ConfigurationError("a listener has SASL, and no user can authenticate; add --user")
    return users


def _mechanisms(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns the SASL mechanisms of the broker.

    `--user` adds PLAIN and SCRAM; `--unsecured-tokens` adds OAUTHBEARER.
    """
    users = _MECHANISMS_OF_USERS if options.users else ()
    return (*users, "OAUTHBEARER") if options.unsecured_tokens else users


def _listener(opened: ListenerToOpen, options: argparse.Namespace) -> Listener:
    tls = None
    if opened.protocol.endswith("SSL"):
        if options.tls_certificate is None:
            raise ConfigurationError(f"a listener of {opened.protocol} requires --tls-certificate")
        tls = ServerTls(
            certificate=Path(options.tls_certificate),
            key=None if options.tls_key is None else Path(options.tls_key),
            client_ca=None if options.tls_client_ca is None else Path(options.tls_client_ca),
            client_auth="none" if options.tls_client_ca is None else "required",
        )
    return Listener(
        opened.protocol,
        opened.host,
        opened.port,
        tls=tls,
        mechanisms=_mechanisms(options) if opened.protocol.startswith("SASL") else (),
    )


async def _serve(cluster: Cluster, topics: list[TopicToCreate]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    for topic in topics:
        cluster.create_topic(topic.name, topic.partitions)
    async with cluster:
        addresses = ",".join(cluster.broker(node).listens_at for node in cluster.nodes)
        listeners = cluster.settings.listeners
        if listeners:
            addresses = ", ".join(
                f"{each.name}://{cluster.bootstrap_of(each.name)}" for each in listeners
            )
        elif cluster.bootstrap != addresses:
            addresses += f"; clients connect to {cluster.bootstrap}"
        print(f"kproto broker, in memory, listens on {addresses}", flush=True)
        await stop.wait()
