"""Tests that file names in options resolve to files that Spark has shipped."""

from __future__ import annotations

from pathlib import Path

import pytest
from kproto_pipeline.spark.data_source import KprotoDataSource
from kproto_pipeline.spark.shipped_files import resolve_shipped_files
from pyspark import SparkFiles

from tests.support.secured_broker import authority_pem

OPTIONS = {
    "kafka.bootstrap.servers": "localhost:9092",
    "kafka.security.protocol": "SSL",
    "kafka.ssl.truststore.type": "PEM",
    "kafka.ssl.truststore.location": "ca.pem",
    "subscribe": "flights",
}


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns Spark's folder of shipped files, which is not the working directory."""
    folder, here = tmp_path / "shipped", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    (folder / "ca.pem").write_text("shipped")
    monkeypatch.chdir(here)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(folder))
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", True)
    return folder


def test_file_name_is_resolved_to_the_shipped_file(shipped: Path) -> None:
    given = {"ssl.truststore.location": "ca.pem", "https.ca.location": "ca.pem", "acks": "ca.pem"}
    there = str(shipped / "ca.pem")
    assert resolve_shipped_files(given) == given | dict.fromkeys(list(given)[:2], there)


def test_file_in_the_working_directory_has_precedence(shipped: Path) -> None:
    Path("ca.pem").write_text("here")
    assert resolve_shipped_files({"ssl.ca.location": "ca.pem"}) == {"ssl.ca.location": "ca.pem"}


def test_planner_of_a_stream_finds_files_in_the_folder_of_the_driver(
    shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark Connect ships files to a folder of the session, and the planner has another folder."""
    monkeypatch.setattr(SparkFiles, "_root_directory", str(shipped / "session"))
    (shipped / "session").mkdir()
    (shipped / "session" / "ca.pem").write_text(authority_pem())
    source = KprotoDataSource(OPTIONS)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(shipped / "streaming_job"))
    found = source.streamReader(source.schema())._options.client
    assert dict(found.properties)["ssl.truststore.location"] == "ca.pem"
    assert resolve_shipped_files(dict(found.properties), found.driver_folder)[
        "ssl.truststore.location"
    ] == str(shipped / "session" / "ca.pem")


@pytest.mark.parametrize("value", ["/from/the/root.pem", "nowhere.pem", "probe"])
def test_other_values_are_unchanged(shipped: Path, value: str) -> None:
    assert resolve_shipped_files({"ssl.ca.location": value}) == {"ssl.ca.location": value}


def test_names_are_unchanged_outside_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", False)
    monkeypatch.setattr(SparkFiles, "_sc", None)
    assert resolve_shipped_files({"ssl.ca.location": "ca.pem"}) == {"ssl.ca.location": "ca.pem"}
