"""Runs a task of the bench in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Protocol

from tools.setup.peers import peers_python

__all__ = ["PACKAGE", "ROOT", "WorkerTask", "run_task"]

ROOT: Final = Path(__file__).resolve().parents[3]

#: The environment variable that sets the folder of `kproto`. If the variable is not set, the worker
#: uses the package of this checkout.
PACKAGE: Final = "KPROTO_BENCH_PACKAGE"

WORKER_TIMEOUT_S: Final = 300


class WorkerTask(Protocol):
    """A task for a worker: a NamedTuple, whose fields the worker gets as JSON."""

    @property
    def client(self) -> str:
        """The name of the client that the worker imports."""
        ...

    def _asdict(self) -> dict[str, Any]: ...


def run_task(
    task: WorkerTask, byte_code: Path, worker: str = "tools.bench.clients.worker"
) -> dict[str, Any]:
    """Runs `task` with the module `worker`, and returns the result.

    If the worker fails or takes too long, returns {"fault": stderr or the timeout error}. Python
    caches byte code in the folder `byte_code`.
    """
    python = sys.executable if task.client == "kproto" else str(peers_python())
    folders = [os.environ[PACKAGE], str(ROOT)] if PACKAGE in os.environ else [str(ROOT)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(folders),
        "PYTHONPYCACHEPREFIX": str(byte_code),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        finished = subprocess.run(
            [python, "-P", "-m", worker, json.dumps(task._asdict())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WORKER_TIMEOUT_S,
            check=False,
            cwd=ROOT,
            env=environment,
        )
    except subprocess.TimeoutExpired as late:
        return {"fault": str(late)}
    if finished.returncode:
        return {"fault": finished.stderr}
    told: dict[str, Any] = json.loads(finished.stdout)
    return told
