"""Writes kproto/broker/configs.jsonl from the answers of a real broker.

`python -m tools.config_facts` runs this program. With `--check`, it only compares the file with the
answers.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from kproto import Client
from tools.kafka import DEFAULT_VERSION, KafkaJarsError, KafkaNode, KafkaStartError
from tools.setup.java import JavaNotFoundError

from .facts import config_facts, format_facts

OUT = Path(__file__).resolve().parents[2] / "kproto" / "broker" / "configs.jsonl"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the file; with --check, only compares it with the broker's answers.

    Returns 1 on failure, or if --check finds a difference.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.config_facts", description=__doc__)
    parser.add_argument("--version", default=DEFAULT_VERSION, help="default: %(default)s")
    parser.add_argument("--check", action="store_true", help="compare, and do not write")
    options = parser.parse_args(arguments)
    try:
        with KafkaNode(options.version) as node:
            text = asyncio.run(read_all(node.bootstrap))
    except (KafkaStartError, KafkaJarsError, JavaNotFoundError) as error:
        print(f"config_facts: {error}", file=sys.stderr)
        return 1
    same = OUT.is_file() and OUT.read_text(encoding="utf-8") == text
    if not (same or options.check):
        OUT.write_text(text, encoding="utf-8")
    print(f"{OUT}: {'is up to date' if same else 'differs' if options.check else 'written'}")
    return 1 if options.check and not same else 0


async def read_all(bootstrap: str) -> str:
    """Returns the content of configs.jsonl, from the answers of the broker at `bootstrap`.

    Changes configs of the broker, so the broker must serve no other program.
    """
    async with Client(bootstrap) as client:
        return format_facts(await config_facts(client))


if __name__ == "__main__":
    sys.exit(main())
