"""The clients jar of one release, fetched once into `.cache/releases`.

Knows nothing of what is in it.
"""

from __future__ import annotations

from pathlib import Path

from tools.setup.maven import fetch_jar
from tools.setup.once import locked

__all__ = ["CACHE", "clients_jar"]

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "releases"


def clients_jar(release: str) -> Path:
    """The path of kafka-clients of this release, fetched when it is missing.

    Safe in several processes at once. Raises `MavenError`.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with locked(CACHE / "lock"):
        return fetch_jar(
            CACHE,
            f"org.apache.kafka:kafka-clients:{release}",
            otherwise=f"put kafka-clients-{release}.jar there",
        )
