"""Fetches the clients jars of releases once, into `.cache/releases`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.setup.maven import fetch_each
from tools.setup.once import locked

__all__ = ["CACHE", "clients_jar", "clients_jars"]

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "releases"


def clients_jar(release: str) -> Path:
    """Returns the path of the kafka-clients jar of a release; see `clients_jars`."""
    (jar,) = clients_jars([release])
    return jar


def clients_jars(releases: Sequence[str]) -> list[Path]:
    """Returns the paths of the kafka-clients jars of releases; fetches missing ones.

    Safe if several processes call it at once. Raises `MavenError`.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with locked(CACHE / "lock"):
        return fetch_each(
            CACHE,
            [f"org.apache.kafka:kafka-clients:{release}" for release in releases],
            otherwise=f"put kafka-clients-{releases[0]}.jar and the like there",
        )
