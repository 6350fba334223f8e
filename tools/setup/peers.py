"""The environment of the peers: other Kafka clients, kept apart from what we install ourselves.

`python -m tools.setup.peers` builds `.cache/peers` from tools/peers/requirements.txt when it is
missing or out of date, and prints its interpreter. Knows nothing of what the peers are used for.
"""

from __future__ import annotations

from pathlib import Path

from .environments import InstallError, python_with
from .programs import print_found

__all__ = ["PeersError", "peers_python"]

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "tools" / "peers" / "requirements.txt"
CACHE = ROOT / ".cache"


class PeersError(RuntimeError):
    """The peers' environment cannot be built here."""


def peers_python() -> Path:
    """Return the interpreter of the peers' environment, building it when it must.

    Safe in several processes at once. Raises `PeersError`.
    """
    try:
        return python_with(
            CACHE / "peers",
            install=["-r", str(REQUIREMENTS)],
            wanted=REQUIREMENTS.read_text(encoding="utf-8"),
        )
    except InstallError as error:
        raise PeersError(str(error)) from error


def main() -> None:
    """Print the interpreter; end with a plain message when there is none."""
    print_found("peers", peers_python, PeersError)


if __name__ == "__main__":
    main()
