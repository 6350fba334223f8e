"""Tests the job command: repeated kills, the printed counts, and an error without a traceback."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import Topics
from tests.spark.test_job import RECORDS
from tools.job_kills import kill_the_job

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.exhaustive]

COMMAND = [sys.executable, "-m", "kproto_pipeline.job", "run"]


@pytest.mark.thorough
def test_killed_at_random_moments(embedded: str, tmp_path: Path) -> None:
    result = kill_the_job(embedded, tmp_path, rounds=3, seed=3)
    assert result.rounds == 3
    assert result.exact, result


@pytest.mark.parametrize(
    "output",
    [
        "",
        # Without partition folders and a header, only their order identifies the columns.
        """
        format = "csv"
        partition_by = []
        columns = ["id", "status", "source", "type", "timestamp"]
        """,
    ],
    ids=["parquet", "csv"],
)
def test_output_of_the_command(
    embedded_topics: Topics, topic_name: str, tmp_path: Path, output: str
) -> None:
    embedded_topics.fill(topic_name, RECORDS)
    file = tmp_path / "pipeline.toml"
    file.write_text(
        f"""
        mode = "incremental"
        [source]
        kafka.bootstrap.servers = "{embedded_topics.bootstrap}"
        subscribe = "{topic_name}"
        [output]
        path = "{tmp_path}/lake"
        {output}
        [spark]
        spark.master = "local[1]"
        """
    )
    done = subprocess.run([*COMMAND, file], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "each valid event is in the output exactly once" in done.stderr
    assert "increment 1: 9 read, 3 valid, 3 invalid, 3 duplicates, 6 written" in done.stderr
    told = {line.split()[0]: line.split()[-1] for line in done.stdout.splitlines() if line.strip()}
    assert (told["read"], told["valid"], told["written"]) == ("9", "3", "6")
    assert (told["org.example.a"], told["org.example.b"]) == ("2", "1")

    (tmp_path / "lake" / "mine").write_text("")
    done = subprocess.run([*COMMAND, file], capture_output=True, text=True, timeout=200)
    assert done.returncode == 1
    assert "kproto-pipeline: error: " in done.stderr
    assert "holds mine, which is no increment" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--output", "s3a://bucket/lake"],
            "fs.s3a.S3AFileSystem not found",
        ),
        (["--set", "output.options.compression=zzz"], r"[CODEC_NOT_AVAILABLE.WITH_AVAILABLE_"),
        *(
            pytest.param(*each, marks=pytest.mark.thorough)
            for each in (
                (["--spark", "spark.sql.shuffle.partitions=x"], "INVALID_CONF_VALUE"),
                (
                    ["--spark", "spark.master=nowhere"],
                    "Master must either be yarn or start with spark",
                ),
                (
                    ["--output", "/proc/nowhere/lake"],
                    "No such file or directory: '/proc/nowhere'",
                ),
            )
        ),
    ],
)
def test_error_of_spark_is_one_line(
    embedded_topics: Topics, topic_name: str, tmp_path: Path, arguments: list[str], words: str
) -> None:
    embedded_topics.fill(topic_name, RECORDS)
    source = (f"kafka.bootstrap.servers={embedded_topics.bootstrap}", f"subscribe={topic_name}")
    options = [word for each in source for word in ("--source", each)]
    command = [*COMMAND, "--output", f"{tmp_path}/lake", *options, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 1
    (line,) = re.findall("^kproto-pipeline: error: .*", done.stderr, re.MULTILINE)
    assert words in line
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
