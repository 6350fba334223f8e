"""Tests that the programs of the README and of the start pages run as printed.

Only the address of the broker is replaced, because port 9092 may be in use.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kproto
from kproto.broker import Broker
from tests.support.environment import ROOT
from tests.support.pages import blocks, page_text

#: The program that sends and reads records.
(FIRST,) = blocks(page_text("README.md"), "python")

#: The programs of the start pages. GROUP is the body of a coroutine; PIPELINE needs Spark.
(PRODUCER,) = blocks(page_text("docs/start/producer.md"), "python")
(CONSUMER,) = blocks(page_text("docs/start/consumer.md"), "python")
MEMBER, GROUP = blocks(page_text("docs/start/group.md"), "python")
(EVENT,) = blocks(page_text("docs/start/cloudevent.md"), "python")
(PIPELINE,) = blocks(page_text("docs/start/spark.md"), "python")

#: The body of a coroutine that sends any request; and clients of a secured cluster.
REQUEST = blocks(page_text("docs/how-to/requests.md"), "python")[0]
SECURED = blocks(page_text("docs/how-to/security.md"), "python")[0]

#: The output of the first program: three acknowledgements, then three events as records.
LINES = [
    *(rf"Ack\(topic='greetings', partition=0, offset={n}, timestamp=\d+\)" for n in range(3)),
    *(
        rf"{n} b'{{\"text\":\"{text}\"}}' \[\('ce_specversion', b'1.0'\), \('ce_id', b'{n}'\), .*\]"
        for n, text in enumerate(("hello", "good morning", "good night"))
    ),
]

PATHS = (ROOT, *(ROOT / folder for folder in ("cloudevents", "codegen", "pipeline")))
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, PATHS))}


def test_the_example_equals_the_program_of_the_readme() -> None:
    example = (ROOT / "examples" / "first_client.py").read_text(encoding="utf-8")
    assert example.partition('"""\n\n')[2] == FIRST


async def test_the_first_program_runs() -> None:
    async with Broker() as broker:
        broker.create_topic("greetings", partitions=1)
        printed = await run_first_program(broker)
    for line, pattern in zip(printed, LINES, strict=True):
        assert re.fullmatch(pattern, line)


async def run_first_program(broker: Broker) -> list[str]:
    """Runs the first program; returns the lines that it prints before it waits for more records."""
    program = FIRST.replace("localhost:9092", broker.bootstrap)
    assert program != FIRST
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-u",
        "-c",
        program,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            return [(await process.stdout.readline()).decode().rstrip() for _ in LINES]
    finally:
        process.kill()
        await process.communicate()


async def test_the_start_pages_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the programs in a reader's order, because each needs the records of earlier programs."""
    async with Broker() as broker:
        broker.create_topic("greetings", partitions=1)
        broker.create_topic("orders", partitions=3)

        async def printed(program: str) -> list[str]:
            text = program.replace("localhost:9092", broker.bootstrap)
            assert text != program
            await asyncio.to_thread(exec, text, {"__name__": "__main__"})
            return capsys.readouterr().out.splitlines()

        sent = await printed(PRODUCER)
        assert re.fullmatch(r"Ack\(topic='orders', partition=\d, offset=0, .*\)", sent[0])
        assert sent[1:] == ["2 more"]
        read = await printed(CONSUMER)
        assert sorted(line.split(" ", 2)[2] for line in read) == [
            "None b'three'",
            "None b'two'",
            "b'k' b'one'",
        ]
        processed = await printed(MEMBER)
        assert sorted(line.rpartition(" ")[2] for line in processed) == [
            "b'one'",
            "b'three'",
            "b'two'",
        ]
        async with kproto.Client(broker.bootstrap) as client:
            partitions = [("orders", number) for number in range(3)]
            async with client.consumer(partitions, group="billing") as manual:
                committed = await manual.committed()
        assert sum(each.offset for each in committed.values() if each is not None) == 3
        assert await printed(EVENT) == ["1 /shop order.placed {'total': 12}"]


async def test_a_member_of_a_group_reads_and_commits() -> None:
    """Runs the block for a service in a task, and cancels the task after three records."""
    body = "".join(f"    {line}\n" for line in GROUP.splitlines())
    scope: dict[str, Any] = {}
    exec(f"async def run(client, handle):\n{body}", scope)
    handled: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def handle(record: kproto.Record) -> None:
        handled.put_nowait(record.value)

    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("orders", partitions=2)
        async with client.producer() as producer:
            await producer.send_many("orders", [b"one", b"two", b"three"])
        member = asyncio.create_task(scope["run"](client, handle))
        got = {await handled.get() for _ in range(3)}
        member.cancel()
        await asyncio.wait([member])
        assert got == {b"one", b"two", b"three"}
        async with client.consumer([("orders", 0), ("orders", 1)], group="billing") as manual:
            committed = await manual.committed()
    # The record in process when the member was cancelled may be uncommitted.
    assert sum(each.offset for each in committed.values() if each is not None) >= 2


async def test_any_request_can_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the README's code block that sends requests, in a coroutine."""
    body = "".join(f"    {line}\n" for line in REQUEST.splitlines())
    scope: dict[str, Any] = {}
    exec(f"async def run(client):\n{body}", scope)
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await scope["run"](client)
        assert capsys.readouterr().out == f"{client.cluster.cluster_id} ['127.0.0.1']\n"


def test_clients_of_a_secured_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the README's block of secured clients, without a broker.

    Other tests check clients with TLS and SASL.
    """
    monkeypatch.chdir(tmp_path)
    properties = "bootstrap.servers=b:9093\nsecurity.protocol=SSL\n"
    Path("client.properties").write_text(properties, encoding="ascii")
    made: list[kproto.Client] = []

    class Kept(kproto.Client):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)

    exec(SECURED, {"kproto": SimpleNamespace(Client=Kept, ScramSha512=kproto.ScramSha512)})
    assert [client.settings.tls for client in made] == [True, True]
    assert isinstance(made[0].settings.sasl, kproto.ScramSha512)
    assert made[1].settings.sasl is None


@pytest.mark.spark
@pytest.mark.exhaustive
async def test_the_first_pipeline_shows_the_events_of_the_first_program(tmp_path: Path) -> None:
    async with Broker() as broker:
        broker.create_topic("greetings", partitions=1)
        await run_first_program(broker)
        program = PIPELINE.replace("localhost:9092", broker.bootstrap)
        assert len(PIPELINE.strip().splitlines()) <= 12
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program + "\nprint(spark.read.parquet('events.parquet').toJSON().collect())",
            stdout=subprocess.PIPE,
            cwd=tmp_path,
            env=ENVIRONMENT,
        )
        async with asyncio.timeout(600):
            printed, _ = await process.communicate()
    assert process.returncode == 0
    text = printed.decode()
    assert re.findall(r"\| *(\w+) *\| *(\w+) *\|", text) == [("type", "count"), ("greeting", "3")]
    rows = [json.loads(row) for row in ast.literal_eval(text[text.rindex("[") :])]
    assert [(row["id"], row["source"]) for row in rows] == [(str(n), "/readme") for n in range(3)]


def test_the_install_page_names_existing_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = page_text("docs/start/install.md")
    install = text.partition("# Install\n")[2].partition("\n| extra")[0]
    assert "pip install ." in install
    wheel = f"{project['name']}-{project['version']}-py3-none-any.whl"
    assert wheel in install
    extras = set(re.findall(r"[a-z-]+", " ".join(re.findall(r"\[([a-z,-]+)\]", install))))
    assert extras
    assert extras <= set(project["optional-dependencies"])
    for name in project["optional-dependencies"]:
        assert f"kproto[{name}]" in text, "the table below"
