"""`python -m tools.bench [NAME …]`: prints all tables, or the named ones.

Each table is a module here with its own `main`; run it by itself for its options.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Final

#: Name -> title of the table, in the order of printing.
TABLES: Final = {
    "messages": "Messages: decode and encode",
    "explanations": "Messages: where broken bytes are broken",
    "imports": "Importing messages",
    "records": "Record batches and CRC-32C",
    "compiled": "Record batches, the modules compiled by mypyc",
    "columnar": "A fetch response into Arrow arrays",
    "client": "Produce and consume, one partition of a real broker",
    "groups": "Consumer groups: what they cost, and how fast they begin and hand over",
    "proxy": "Clients through kproto proxy, beside the same ones without it",
    "cloudevents": "CloudEvents in Kafka records",
    "metrics": "What counting costs the client",
    "security": "TLS and SASL: what they cost the client",
    "spark": "Spark reads, streams, writes and runs the job, beside the JVM connector",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    names = parser.parse_args().names or list(TABLES)
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        parser.error(f"no table is called {unknown[0]}; there are {', '.join(TABLES)}")
    failed = []
    for name in names:
        print(f"\n## {TABLES[name]}\n", flush=True)
        start = time.monotonic()
        if subprocess.run([sys.executable, "-m", f"tools.bench.{name}"], check=False).returncode:
            failed.append(name)
        print(f"\n({time.monotonic() - start:.0f} s)", flush=True)
    if failed:
        print(f"no table from: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
