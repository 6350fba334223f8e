"""Tests and measures kproto after mypyc has compiled its codecs.

    python -m tools.bench.compiled [--rounds N] [--records N] [--tables NAMES] [--no-tests]

Prints the tables of `tools.bench.messages`, of `tools.bench.records`, and the rows of
`tools.bench.client` that produce and consume records with a key or with six headers, each measured
with the compiled modules. Compare the times of kproto with the columns of kio, which reads with
Rust, of aiokafka's C extension, and of confluent-kafka. The table `client` needs Java; `--tables`
selects some of the tables.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from tools.bench import client, messages, records
from tools.bench.clients.processes import PACKAGE
from tools.bench.clients.rows import ROWS
from tools.setup.compiled import CompiledError, compiled_package, run_compiled_tests

TABLES: Final = ("messages", "records", "client")

#: The rows of `tools.bench.client` for which a compiled kproto has a performance goal.
CLIENT_ROWS: Final = (
    "send_many, records with key",
    "send_many, records with key and six headers",
    "consume by record_lists(), key and value",
    "consume by record, key, value and six headers",
)


def main() -> int:
    """Compiles the modules, runs their tests, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each side per case")
    parser.add_argument("--records", type=int, default=1_000_000, help="records of a client's turn")
    parser.add_argument(
        "--tables", default=",".join(TABLES), metavar="NAMES", help=f"some of {', '.join(TABLES)}"
    )
    parser.add_argument(
        "--no-tests", action="store_true", help="measure without running the tests first"
    )
    arguments = parser.parse_args()
    tables = arguments.tables.split(",")
    if not set(tables) <= set(TABLES):
        parser.error(f"--tables: some of {', '.join(TABLES)}, joined by commas")
    try:
        package = compiled_package()
        if not arguments.no_tests:
            print(f"tests of the compiled modules: {run_compiled_tests(package)}", flush=True)
    except CompiledError as error:
        print(error, file=sys.stderr)
        return 1
    rounds = ["--rounds", str(arguments.rounds)]
    done = []
    if "messages" in tables:
        done.append(messages.run_in_peers(rounds, package))
    if "records" in tables:
        done.append(records.run_in_peers(rounds, package))
    if "client" in tables:
        done.append(_client_table(package, arguments.records))
    return max(done)


def _client_table(package: Path, count: int) -> int:
    """Prints the rows of `tools.bench.client` in `CLIENT_ROWS`; returns the exit status."""
    os.environ[PACKAGE] = str(package)
    try:
        options = ["--records", str(count), "--clients", "kproto,confluent_kafka"]
        return client.main(options, [row for row in ROWS if row.name in CLIENT_ROWS])
    finally:
        del os.environ[PACKAGE]


if __name__ == "__main__":
    raise SystemExit(main())
