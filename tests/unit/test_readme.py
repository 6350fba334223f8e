"""The README keeps its word: its first program and its first pipeline run as printed.

Only the broker's address is another one, since port 9092 may be taken.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kproto_cloudevents import CloudEvent, to_kafka

import kproto
from kproto.broker import Broker
from tests.support.environment import ROOT
from tests.support.pages import blocks, page_text

PROGRAMS = blocks(page_text("README.md"), "python")

#: What the first program prints: two acknowledgements, then three records.
LINES = [
    r"Ack\(topic='greetings', partition=0, offset=0, timestamp=\d+\)",
    r"Ack\(topic='greetings', partition=0, offset=2, timestamp=\d+\)",
    r"0 b'hello' \[\]",
    r"1 b'good morning' \[\]",
    r"2 b'good night' \[\]",
]


def test_the_example_is_the_program_of_the_readme() -> None:
    example = (ROOT / "examples" / "first_client.py").read_text(encoding="utf-8")
    assert example.partition('"""\n\n')[2] == PROGRAMS[0]


async def test_the_first_program_runs() -> None:
    async with Broker() as broker:
        broker.create_topic("greetings", partitions=1)
        program = PROGRAMS[0].replace("localhost:9092", broker.bootstrap)
        assert program != PROGRAMS[0]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-u",
            "-c",
            program,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(60):
                printed = [await process.stdout.readline() for _ in LINES]
        finally:
            process.kill()
            await process.communicate()
    for line, pattern in zip(printed, LINES, strict=True):
        assert re.fullmatch(pattern, line.decode().rstrip())


async def test_any_request_can_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """The second block, which stands inside a coroutine."""
    body = "".join(f"    {line}\n" for line in PROGRAMS[1].splitlines())
    scope: dict[str, Any] = {}
    exec(f"async def run(client):\n{body}", scope)
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await scope["run"](client)
        assert capsys.readouterr().out == f"{client.cluster.cluster_id} ['127.0.0.1']\n"


@pytest.mark.spark
async def test_the_first_pipeline_runs(tmp_path: Path) -> None:
    async with Broker() as broker:
        broker.create_topic("greetings", partitions=1)
        event = CloudEvent(id="1", source="/readme", type="greeting", data={"hello": "world"})
        record = to_kafka(event)
        async with kproto.Client(broker.bootstrap) as client, client.producer() as producer:
            await producer.send("greetings", record.value, key=record.key, headers=record.headers)
        program = PROGRAMS[2].replace("localhost:9092", broker.bootstrap)
        assert len(PROGRAMS[2].strip().splitlines()) <= 12
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program + "\nprint(spark.read.parquet('events.parquet').toJSON().collect())",
            stdout=subprocess.PIPE,
            cwd=tmp_path,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, *(ROOT / p for p in FOLDERS))))},
        )
        async with asyncio.timeout(180):
            printed, _ = await process.communicate()
    assert process.returncode == 0
    text = printed.decode()
    assert "greeting" in text
    row = json.loads(text[text.rindex("['") + 2 : text.rindex("']")])
    assert row["source"] == "/readme"


FOLDERS = ("cloudevents", "codegen", "pipeline")
