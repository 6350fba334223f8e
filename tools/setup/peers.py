"""The environment of the peers: other Kafka clients, kept apart from what we install ourselves.

`python -m tools.setup.peers` builds `.cache/peers` from tools/peers/requirements.txt when it is
missing or out of date, and prints its interpreter. Knows nothing of what the peers are used for.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from pathlib import Path

from .programs import ProgramError, run_program

__all__ = ["PeersError", "peers_python"]

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "tools" / "peers" / "requirements.txt"
CACHE = ROOT / ".cache"

INSTALL_TIMEOUT_S = 900.0
"""About ten wheels; the slowest line we mean to serve needs minutes."""


class PeersError(RuntimeError):
    """The peers' environment cannot be built here."""


def peers_python() -> Path:
    """Return the interpreter of the peers' environment, building it when it must.

    Safe in several processes at once. Raises `PeersError`.
    """
    folder = CACHE / "peers"
    python = folder / "bin" / "python"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    stamp = folder / "installed.txt"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "peers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = python.exists() and stamp.is_file()
        if not built or stamp.read_text(encoding="utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(folder)])
            _run([str(python), "-m", "pip", "install", "--quiet", "-r", str(REQUIREMENTS)])
            stamp.write_text(wanted, encoding="utf-8")
    return python


def _run(command: list[str]) -> None:
    try:
        run_program(command, timeout_s=INSTALL_TIMEOUT_S)
    except ProgramError as error:
        raise PeersError(f"{' '.join(command)} failed: {error}") from error


def main() -> None:
    """Print the interpreter; end with a plain message when there is none."""
    try:
        print(peers_python())
    except PeersError as error:
        sys.exit(f"peers: {error}")


if __name__ == "__main__":
    main()
