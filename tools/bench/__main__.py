"""Prints the benchmark tables with the given names: `python -m tools.bench [NAME …]`.

Prints all tables if the command has no name.

Each table is a module or a package in this package, with its own `main` and options.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Final

#: Maps the name of each table to its title. The tables are printed in this order.
TABLES: Final = {
    "messages": "Messages: decode and encode",
    "explanations": "Messages: explanation of broken bytes",
    "imports": "Importing messages",
    "records": "Record batches and CRC-32C",
    "compiled": "Messages, record batches and the client, compiled by mypyc",
    "columnar": "A fetch response into Arrow arrays",
    "client": "Produce and consume, one partition of a real broker",
    "partitions": "Produce and consume, 1 to 9,000 partitions of a real broker",
    "memory": "Memory of producers and consumers with 10,000 partitions of a real broker",
    "areas": "CPU time of a record by area of the client, 1 to 1,000 partitions",
    "groups": "Consumer groups: cost, and time to start and to move partitions",
    "share": "Share groups: rate, CPU time and first record, one and four members",
    "transactions": "Transactions: rate, time and CPU time",
    "terminal": "kproto produce and consume, compared with kcat",
    "proxy": "Clients with and without kproto proxy",
    "cloudevents": "CloudEvents in Kafka records",
    "metrics": "Cost of the metrics in the client",
    "sync": "Cost of the blocking client over the asyncio client",
    "security": "TLS and SASL: cost in the client",
    "spark": "Spark: reads, streams, writes and the job, compared with the JVM connector",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    names = parser.parse_args().names or list(TABLES)
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        parser.error(f"there is no table {unknown[0]}; the tables are {', '.join(TABLES)}")
    failed = []
    for name in names:
        print(f"\n## {TABLES[name]}\n", flush=True)
        start = time.monotonic()
        if subprocess.run([sys.executable, "-m", f"tools.bench.{name}"], check=False).returncode:
            failed.append(name)
        print(f"\n({time.monotonic() - start:.0f} s)", flush=True)
    if failed:
        print(f"these benchmarks failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
