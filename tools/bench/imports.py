"""Measures the import of kproto's and of kio's message classes, in fresh interpreters.

    python -m tools.bench.imports [--rounds N]

Measures CPU time with cached byte code, after `import asyncio`, which any client needs. The table
also has the time of `import asyncio`, as a measure of the machine. The rounds of kproto and kio
alternate; the results are medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.setup.peers import peers_python

ROOT: Final = Path(__file__).resolve().parents[2]

#: The APIs whose messages every client needs before its first record.
CORE: Final = ("ApiVersions", "Metadata", "Produce", "Fetch", "ListOffsets", "FindCoordinator")

OURS: Final = """
from kproto import messages
for name in {names}:
    getattr(messages, name)
"""
OUR_CORE: Final = [f"{api}{kind}" for api in CORE for kind in ("Request", "Response")]

#: kio has one class per version, so this script imports the newest version; kproto's classes have
#: every version.
KIO_CORE: Final = """
import importlib
for api in ("api_versions", "metadata", "produce", "fetch", "list_offsets", "find_coordinator"):
    package = importlib.import_module(f"kio.schema.{api}")
    versions = [name for name in importlib.import_module("os").listdir(package.__path__[0])
                if name[0] == "v" and name[1:].isdigit()]
    newest = max(versions, key=lambda name: int(name[1:]))
    for kind in ("request", "response"):
        importlib.import_module(f"kio.schema.{api}.{newest}.{kind}")
"""
KIO_ALL: Final = """
import importlib, pkgutil, kio.schema
for found in pkgutil.walk_packages(kio.schema.__path__, "kio.schema."):
    importlib.import_module(found.name)
"""

TIMED: Final = """
import time
start = time.process_time()
import asyncio
loaded = time.process_time()
{body}
print(time.process_time() - loaded, loaded - start)
"""

#: By row: kproto's imports, kio's imports, and the maximum time of kproto in ms.
ROWS: Final = {
    "core APIs, requests and responses": (OURS.format(names=OUR_CORE), KIO_CORE, 10),
    "all messages": (OURS.format(names="messages.MODULES"), KIO_ALL, 80),
}


def seconds(body: str, cache: str) -> tuple[float, float]:
    """Returns the CPU seconds of `body` and of `import asyncio` in a fresh interpreter."""
    finished = subprocess.run(
        [str(peers_python()), "-c", TIMED.format(body=body)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=ROOT,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": cache},
    )
    own, asyncio = finished.stdout.split()
    return float(own), float(asyncio)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.bench.imports", description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    print("| imported | kproto, ms | target | kio, ms | times kproto | asyncio, ms |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        for row, (our_body, kio_body, most) in ROWS.items():
            for body in (our_body, kio_body):
                seconds(body, cache)  # writes the byte code
            pairs = [(seconds(our_body, cache), seconds(kio_body, cache)) for _ in range(rounds)]
            mine = statistics.median(ours[0] for ours, _ in pairs) * 1000
            theirs = statistics.median(kio[0] for _, kio in pairs) * 1000
            ratio = statistics.median(kio[0] / ours[0] for ours, kio in pairs)
            base = statistics.median(ours[1] for ours, _ in pairs) * 1000
            figures = f"{mine:.1f} | {most} | {theirs:.1f} | {ratio:.1f} | {base:.1f}"
            print(f"| {row} | {figures} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
