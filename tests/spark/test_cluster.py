"""Tests a real Spark cluster of a master and two workers.

The tests either install the package on the cluster, or ship the package as a zip. The Python of the
cluster is not the Python of the tests, and cannot import from this checkout.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kproto_pipeline.package import write_package

from kproto.broker import BrokerSettings, Listener
from kproto.client import ProducerRecord
from tests.spark.conftest import Topics
from tests.spark.programs.on_a_cluster import MARK
from tests.support.embedded import threaded_broker
from tests.support.environment import ROOT
from tests.support.secured_broker import authority_pem, server_tls
from tools.spark.cluster import SparkCluster, as_options
from tools.spark.environments import NEWEST_PYSPARK, python_with_pyspark

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.exhaustive]

PROGRAM = ROOT / "tests" / "spark" / "programs" / "on_a_cluster.py"

#: The resources of each application: one core and little memory on each worker.
SHARE = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
SECRET = "kestrel-hovers-over-meadow"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="alice" password="{SECRET}";'
)
STEPS = ["batch", "stream", "sink", "stream_sink"]
FOUND = {
    "batch": [3_000, 3 * 499_500, 3],
    "stream": 3_000,
    "sink": 100,
    "stream_sink": 3_000,
}


@pytest.fixture(scope="module")
def cluster(spark_environment: None) -> Iterator[SparkCluster]:
    python = python_with_pyspark(NEWEST_PYSPARK, connect=True)
    with SparkCluster(python, cores=2) as running:
        yield running


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a zip with all packages of this project."""
    target = tmp_path_factory.mktemp("package") / "kproto.zip"
    write_package(target)
    return target


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder of packages into which the wheel is installed."""
    folder = tmp_path_factory.mktemp("installed")
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder), str(ROOT)])
    (wheel,) = folder.glob("*.whl")
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    run([*pip, "--target", str(target), str(wheel)])
    return target


@pytest.fixture(scope="module")
def task(newest_kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Fills the topics for all tests of this module, and returns the task for the application."""
    topic = f"cluster-{tmp_path_factory.getbasetemp().name}-{id(tmp_path_factory)}"
    Topics(newest_kafka.bootstrap).fill(
        topic,
        [ProducerRecord(b"%d" % n, b"k", partition=n % 3) for n in range(3_000)],
        partitions=3,
    )
    for written in ("sink", "stream-sink"):
        Topics(newest_kafka.bootstrap).fill(f"{topic}-{written}", [], partitions=3)
    options = {"kafka.bootstrap.servers": newest_kafka.bootstrap}
    return {"topic": topic, "steps": STEPS, "options": options}


def run(command: list[str], **how: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def found_by(output: str) -> dict[str, Any]:
    (line,) = [line for line in output.splitlines() if line.startswith(MARK)]
    found: dict[str, Any] = json.loads(line.removeprefix(MARK))
    return found


def test_shipped_zip_reads_batches(
    cluster: SparkCluster, package: Path, task: dict[str, Any], tmp_path: Path
) -> None:
    """Reads only a batch, because a stream's planner ignores `--py-files` (see the next test)."""
    own = json.dumps(task | {"folder": str(tmp_path), "register": True, "steps": ["batch"]})
    options = [*as_options(SHARE), "--py-files", str(package)]
    command = cluster.submit_command(PROGRAM, own, options=options)
    found = found_by(run(command, env=cluster.environment(), cwd=tmp_path))
    assert ".zip/" in found.pop("from")
    assert found["batch"] == FOUND["batch"]


@pytest.mark.thorough
def test_data_source_of_a_shipped_zip_is_discovered(
    cluster: SparkCluster, package: Path, task: dict[str, Any], tmp_path: Path
) -> None:
    """The test puts the zip on the Python path of the driver, and into `--py-files`.

    The Python path is needed for two reasons: Spark discovers data sources before it reads
    `--py-files`, and the planner of a stream ignores `--py-files`.
    """
    own = json.dumps(task | {"folder": str(tmp_path)})
    options = [*as_options(SHARE), "--py-files", str(package)]
    command = cluster.submit_command(PROGRAM, own, options=options)
    here = cluster.environment({"PYTHONPATH": str(package)})
    found = found_by(run(command, env=here, cwd=tmp_path))
    assert ".zip/" in found.pop("from")
    assert found == FOUND


@pytest.fixture
def tls_task(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Yields a task that reads over TLS, with the certificate `ca.pem` in the folder `shipped`.

    Each process has its own working directory, which lacks the certificate.
    """
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "ca.pem").write_text(authority_pem())
    settings = BrokerSettings(listeners=(Listener("SSL", tls=server_tls()),))
    with threaded_broker(settings) as broker:
        broker.call(lambda it: it.create_topic("kept", partitions=3))
        options = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": "ca.pem",
        }
        steps = ["batch", "stream"]
        yield {"topic": "kept", "options": options, "steps": steps, "folder": str(tmp_path)}


@pytest.mark.thorough
def test_shipped_files_are_found_by_name(
    cluster: SparkCluster, package: Path, tls_task: dict[str, Any], tmp_path: Path
) -> None:
    certificate = tmp_path / "shipped" / "ca.pem"
    shipped = ["--py-files", str(package), "--files", str(certificate)]
    command = cluster.submit_command(
        PROGRAM, json.dumps(tls_task), options=[*as_options(SHARE), *shipped]
    )
    here = cluster.environment({"PYTHONPATH": str(package)})
    found = found_by(run(command, env=here, cwd=tmp_path))
    assert (found["batch"], found["stream"]) == ([0, None, 0], 0)


@pytest.mark.thorough
def test_file_artifacts_of_connect_are_found_by_name(
    cluster: SparkCluster, package: Path, tls_task: dict[str, Any], tmp_path: Path
) -> None:
    options = as_options(SHARE | {"spark.executorEnv.PYTHONPATH": str(package)})
    with cluster.connect_server(*options, variables={"PYTHONPATH": str(package)}) as remote:
        artifacts = [str(tmp_path / "shipped" / "ca.pem")]
        own = tls_task | {"remote": remote, "artifacts": artifacts}
        command = [str(cluster.python), str(PROGRAM), json.dumps(own)]
        found = found_by(run(command, env=cluster.environment(), cwd=tmp_path))
    assert (found["batch"], found["stream"]) == ([0, None, 0], 0)


@pytest.mark.thorough
def test_package_installed_on_every_node_runs_all_steps(
    cluster: SparkCluster, installed: Path, task: dict[str, Any], tmp_path: Path
) -> None:
    options = as_options(SHARE | {"spark.executorEnv.PYTHONPATH": str(installed)})
    own = json.dumps(task | {"folder": str(tmp_path)})
    command = cluster.submit_command(PROGRAM, own, options=options)
    here = cluster.environment({"PYTHONPATH": str(installed)})
    found = found_by(run(command, env=here, cwd=tmp_path))
    assert found.pop("from").startswith(str(installed))
    assert found == FOUND


@pytest.mark.thorough
def test_connect_with_a_zip_artifact_reads_batches(
    cluster: SparkCluster, package: Path, task: dict[str, Any], tmp_path: Path
) -> None:
    """With a zip as artifact, only batches can be read.

    Also checks that `register` hides secrets in the event log of the server.
    """
    events = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{tmp_path}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    with cluster.connect_server(*as_options(SHARE | events)) as remote:
        own = {"folder": str(tmp_path), "register": True, "artifacts": [str(package)]}
        own |= {"options": task["options"] | {"kafka.sasl.jaas.config": JAAS}, "steps": ["batch"]}
        command = [str(cluster.python), str(PROGRAM), json.dumps(task | own | {"remote": remote})]
        here = cluster.environment({"PYTHONPATH": str(package)})
        assert found_by(run(command, env=here, cwd=tmp_path)) == {"batch": FOUND["batch"]}
    written = [path.read_text() for path in tmp_path.glob("app-*")]
    assert [("kafka.bootstrap.servers" in text, SECRET in text) for text in written] == [
        (True, False)
    ]


@pytest.mark.thorough
def test_connect_with_an_installed_server_runs_all_steps(
    cluster: SparkCluster, installed: Path, task: dict[str, Any], tmp_path: Path
) -> None:
    """The client lacks the package, and requests the data source by name."""
    options = as_options(SHARE | {"spark.executorEnv.PYTHONPATH": str(installed)})
    there = {"PYTHONPATH": str(installed)}
    with cluster.connect_server(*options, variables=there) as remote:
        own = task | {"folder": str(tmp_path), "remote": remote, "artifacts": []}
        command = [str(cluster.python), str(PROGRAM), json.dumps(own)]
        found = found_by(run(command, env=cluster.environment(), cwd=tmp_path))
        assert found == FOUND
