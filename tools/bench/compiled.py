"""Tests and measures the record modules after mypyc has compiled them unchanged.

    python -m tools.bench.compiled [--rounds N] [--no-tests]

The table is that of `tools.bench.records`, but with compiled modules. Compare the times of kproto
with the column of aiokafka's C extension.
"""

from __future__ import annotations

import argparse
import sys

from tools.bench.records import run_in_peers
from tools.setup.compiled import CompiledError, compiled_package, run_compiled_tests


def main() -> int:
    """Compiles the modules, runs their tests, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each side per case")
    parser.add_argument(
        "--no-tests", action="store_true", help="measure without running the tests first"
    )
    arguments = parser.parse_args()
    try:
        package = compiled_package()
        if not arguments.no_tests:
            print(f"tests of records and wire, compiled: {run_compiled_tests(package)}", flush=True)
    except CompiledError as error:
        print(error, file=sys.stderr)
        return 1
    return run_in_peers(["--rounds", str(arguments.rounds)], package)


if __name__ == "__main__":
    raise SystemExit(main())
