"""Kills, stalls and stops members that process 200,000 records; prints the result of the checks."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import get_args

from kproto.client.processing.settings import Order

from .proof import Plan, prove


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.handling", description=__doc__)
    parser.add_argument("--records", type=int, default=Plan.records)
    parser.add_argument("--orders", nargs="*", choices=get_args(Order), default=get_args(Order))
    parser.add_argument("--seed", type=int, default=Plan.seed)
    chosen = parser.parse_args()
    is_right = True
    print("| order | records | dead letters | commits | redelivered | wrong | took |")
    print("|---|---|---|---|---|---|---|")
    for order in chosen.orders:
        began = time.monotonic()
        plan = Plan(records=chosen.records, order=order, seed=chosen.seed)
        with tempfile.TemporaryDirectory() as folder:
            its = asyncio.run(prove(plan, Path(folder)))
        took = time.monotonic() - began
        told = [its.records, its.dead_letters, its.commits, its.again, len(its.wrong)]
        print(f"| {order} | {' | '.join(f'{each:,}' for each in told)} | {took:.0f} s |")
        for wrong in its.wrong[:20]:
            print(wrong, file=sys.stderr)
        is_right &= not its.wrong
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
