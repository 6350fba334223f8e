"""Builds the environments of "peers" (other Kafka clients), separate from our own environment.

`python -m tools.setup.peers` builds `.cache/peers` from tools/peers/requirements.txt if it is
missing or out of date, and prints its interpreter. `python -m tools.setup.peers opentelemetry` does
the same for OpenTelemetry's SDK, which the tracing example needs; `python -m tools.setup.peers
schema_registries` for the clients of schema registries.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .environments import InstallError, python_with
from .programs import print_found

__all__ = ["PeersError", "opentelemetry_python", "peers_python", "schema_registries_python"]

ROOT = Path(__file__).resolve().parents[2]
PINNED = ROOT / "tools" / "peers"
CACHE = ROOT / ".cache"


class PeersError(RuntimeError):
    """An environment cannot be built on this machine."""


def peers_python() -> Path:
    """Returns the interpreter of the environment with the other Kafka clients.

    Builds the environment if it is missing or out of date. Safe if several processes call it at
    once. Raises `PeersError`.
    """
    return _python("peers", PINNED / "requirements.txt")


def opentelemetry_python() -> Path:
    """Returns the interpreter of the environment with OpenTelemetry's SDK.

    Builds the environment if it is missing or out of date. Safe if several processes call it at
    once. Raises `PeersError`.
    """
    return _python("opentelemetry", PINNED / "opentelemetry.txt")


def schema_registries_python() -> Path:
    """Returns the interpreter of the environment with the clients of schema registries.

    Builds the environment if it is missing or out of date. Safe if several processes call it at
    once. Raises `PeersError`.
    """
    return _python("schema_registries", PINNED / "schema_registries.txt")


def _python(name: str, requirements: Path) -> Path:
    try:
        return python_with(
            CACHE / name,
            install=["-r", str(requirements)],
            wanted=requirements.read_text(encoding="utf-8"),
        )
    except InstallError as error:
        raise PeersError(str(error)) from error


def main() -> None:
    """Prints the interpreter, or ends with an error message."""
    if sys.argv[1:] == ["opentelemetry"]:
        print_found("OpenTelemetry", opentelemetry_python, PeersError)
    elif sys.argv[1:] == ["schema_registries"]:
        print_found("clients of schema registries", schema_registries_python, PeersError)
    else:
        print_found("peers", peers_python, PeersError)


if __name__ == "__main__":
    main()
