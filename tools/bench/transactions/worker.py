"""Runs one task of one client, and prints the result as a line of JSON.

    python -m tools.bench.transactions.worker '{"client": "kproto", "work": "produce", …}'

The module runs in the environment of kproto and in that of the other clients, so it imports only
the requested client.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys

from tools.bench.clients.worker import version_of

from .task import MeasuredTransactions, Task, Works


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    works: Works = importlib.import_module(f"{__package__}.with_{task.client}").WORKS
    result = works[task.work](task)
    if asyncio.iscoroutine(result):
        result = asyncio.run(result)
    assert isinstance(result, MeasuredTransactions)
    print(json.dumps(result._asdict() | {"version": version_of(task.client)}))


if __name__ == "__main__":
    main()
