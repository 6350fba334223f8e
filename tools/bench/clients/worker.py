"""Runs one task of one client, and prints the result as a line of JSON.

    python -m tools.bench.clients.worker '{"client": "kproto", "work": "produce", …}'

The line is a `TimePerRecord` with the client's version, or {"skipped": reason}. The module runs in
the environment of kproto and in that of the other clients, so it imports only the requested client.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from importlib.metadata import PackageNotFoundError, version

from .task import SkippedError, Task, TimePerRecord, Works


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    works: Works = importlib.import_module(f"{__package__}.{task.client}").WORKS
    try:
        result = works[task.work](task)
        if asyncio.iscoroutine(result):
            result = asyncio.run(result)
    except SkippedError as why:
        print(json.dumps({"skipped": str(why)}))
        return
    assert isinstance(result, TimePerRecord)
    print(json.dumps(result._asdict() | {"version": version_of(task.client)}))


def version_of(client: str) -> str:
    try:
        return version(client.replace("_", "-"))
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main()
