"""Sends JSON lines to another topic with `kproto produce` and `consume`, on real brokers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import random
import subprocess
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import kproto
from tests.support.any_broker import real_broker
from tests.support.brokers import Brokers
from tests.support.environment import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.exhaustive]

PARTITIONS: Final = 3

#: Values whose JSON has an escape, another form, or more bytes than the value.
ODD: Final = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b'"\\\n\r\t\x7f',
    "\N{SNOWMAN}\U0001f600 é".encode(),
    b"\xed\xa0\x80",
    b"\xc3",
    "\u2028\u0085\ufeff".encode(),
    b"{}",
    b" ",
)


def lines(count: int) -> Iterator[bytes]:
    """Yields lines for `kproto produce --json`, with odd bytes, headers and tombstones."""
    draw = random.Random(7)
    for number in range(count):
        record: dict[str, Any] = {"partition": number % PARTITIONS, "timestamp": number * 1000}
        for field in ("key", "value"):
            kind = draw.randrange(4)
            data = draw.choice(ODD) if kind == 0 else draw.randbytes(draw.randrange(30))
            if kind == 1:
                record[field] = None
            elif kind == 2:
                record[field] = f"{field} {number} ü"
            else:
                record[f"{field}_base64"] = base64.b64encode(data).decode()
        if number % 5 == 0:
            record["headers"] = [["h", "1"], ["h", None], ["ü", str(number)]]
        yield json.dumps(record, ensure_ascii=bool(number % 2)).encode() + b"\n"


def digests(path: Path, topic: str | None = None) -> dict[int, str]:
    """Returns a digest of the records of each partition, in order.

    With `topic`, each line must name this topic.
    """
    found: dict[int, Any] = defaultdict(hashlib.sha256)
    with path.open("rb") as file:
        for line in file:
            record = json.loads(line)
            assert topic is None or record["topic"] == topic
            content = (
                record["timestamp"],
                *(_bytes_of(record, field) for field in ("key", "value")),
                record.get("headers", []),
            )
            found[record["partition"]].update(repr(content).encode())
    return {partition: digest.hexdigest() for partition, digest in found.items()}


def _bytes_of(record: dict[str, Any], field: str) -> bytes | None:
    if f"{field}_base64" in record:
        return base64.b64decode(record[f"{field}_base64"])
    text = record[field]
    return None if text is None else str(text).encode()


@pytest.mark.parametrize(
    "count", [20_000, pytest.param(1_000_000, marks=pytest.mark.thorough)], ids=str
)
def test_json_lines_come_back_from_a_second_topic(
    count: int, kafka_brokers: Brokers, tmp_path: Path
) -> None:
    bootstrap = real_broker("4.4.0", kafka_brokers).bootstrap
    first, second = (f"round-trip-{uuid.uuid4().hex}" for _ in range(2))

    async def create() -> None:
        async with kproto.Client(bootstrap) as client:
            await client.create_topics(
                *(kproto.NewTopic(t, PARTITIONS, 1) for t in (first, second))
            )

    asyncio.run(create())
    given, printed, again = (tmp_path / name for name in ("given", "printed", "again"))
    with given.open("wb") as file:
        file.writelines(lines(count))
    run(bootstrap, "produce", first, "--json", "--file", str(given))
    run(bootstrap, "consume", first, "--json", "--from-beginning", "--until-end", to=printed)
    piped(bootstrap, first, second)
    run(bootstrap, "consume", second, "--json", "--from-beginning", "--until-end", to=again)
    expected = digests(given)
    assert len(expected) == PARTITIONS
    assert digests(printed, first) == expected
    # The pipe has sent the topic of each line to `second`, because the command names it.
    assert digests(again, second) == expected


def run(bootstrap: str, *words: str, to: Path | None = None) -> None:
    """Runs a command; its output goes to the file `to`."""
    command = [sys.executable, "-m", "kproto", *words, "-q", "--bootstrap", bootstrap]
    with (to or Path(os.devnull)).open("wb") as output:
        subprocess.run(command, stdout=output, cwd=ROOT, check=True)


def piped(bootstrap: str, first: str, second: str) -> None:
    """Runs `kproto consume --json FIRST | kproto produce --json SECOND`."""
    end = ["-q", "--bootstrap", bootstrap]
    reading = [sys.executable, "-m", "kproto", "consume", first, "--json", "--from-beginning", "-e"]
    writing = [sys.executable, "-m", "kproto", "produce", second, "--json"]
    with subprocess.Popen([*reading, *end], stdout=subprocess.PIPE, cwd=ROOT) as reader:
        subprocess.run([*writing, *end], stdin=reader.stdout, cwd=ROOT, check=True)
        assert reader.wait() == 0
