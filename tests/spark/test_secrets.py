"""Tests that Spark shows no secret of the options in plans, pages, logs, errors or files.

All tests use one Spark session, which shows as much as possible: a UI, an event log, and logging at
DEBUG.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kproto.broker import BrokerSettings, Listener
from tests.support.embedded import threaded_broker
from tests.support.secured_broker import authority_pem, pem_of, server_tls
from tests.support.spark_programs import spark_programs

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.exhaustive]

PASSWORD = "kestrel-hovers-over-meadow"
WRONG = "kestrel-misses-the-meadow"
STEPS = ["stream", "sink", "stream_sink", "view"]

#: Logs everything to a file, except the statements that Spark's SQL parser logs at DEBUG; Spark's
#: default configuration logs to the console.
LOG4J = """
rootLogger.level = debug
rootLogger.appenderRef.file.ref = file
logger.parser.name = org.apache.spark.sql.execution.SparkSqlParser
logger.parser.level = info
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
"""

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="alice" password="{}";'
)


@dataclass
class Shown:
    """All texts that Spark showed, by the place where it showed them, and the secrets to find."""

    texts: dict[str, str]
    secrets: dict[str, str]
    registered: bool

    def leaks(self) -> dict[str, list[str]]:
        """Returns the names of the secrets that Spark showed, by the place where it showed them."""
        found = {
            where: [name for name, secret in self.secrets.items() if secret in text]
            for where, text in self.texts.items()
        }
        return {where: names for where, names in found.items() if names}


@pytest.fixture(scope="module")
def broker() -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """Yields a broker with TLS, client certificates and passwords; client options; and secrets."""
    pem = pem_of("alice@example.org", common_name="alice")
    certificates = pem.index("-----BEGIN CERTIFICATE")
    key, chain = pem[:certificates], pem[certificates:]
    listener = Listener("SASL_SSL", tls=server_tls("required"), mechanisms=("PLAIN",))
    settings = BrokerSettings(listeners=(listener,), users={"alice": PASSWORD})
    with threaded_broker(settings) as running:
        running.call(lambda it: it.create_topic("kept", partitions=2))
        running.call(lambda it: it.create_topic("kept-copy", partitions=2))
        options = {
            "kafka.bootstrap.servers": running.bootstrap,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": JAAS.format(PASSWORD),
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": authority_pem(),
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.certificate.chain": chain,
            "kafka.ssl.keystore.key": key,
        }
        secrets = {"password": PASSWORD, "wrong password": WRONG, "key": key.splitlines()[1][:40]}
        yield running.bootstrap, options, secrets


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(True, id="registered", marks=pytest.mark.thorough),
        pytest.param(False, id="found by itself"),
    ],
)
def shown(
    request: pytest.FixtureRequest,
    spark_environment: None,
    broker: tuple[str, dict[str, str], dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Shown:
    _, options, secrets = broker
    folder = tmp_path_factory.mktemp("shown")
    (folder / "events").mkdir()
    (folder / "work").mkdir()
    (folder / "log4j2.properties").write_text(LOG4J.format(file=folder / "spark.log"))
    config = {
        "spark.ui.enabled": "true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}/events",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={folder}/log4j2.properties",
        "spark.log.level": "DEBUG",
        "spark.sql.ui.explainMode": "extended",
        "spark.sql.planChangeLog.level": "INFO",
    }
    failing = {
        "password": {"kafka.sasl.jaas.config": JAAS.format(WRONG)},
        "quotes": {"kafka.sasl.jaas.config": JAAS.format(PASSWORD)[:-2]},
        "option": {"kafka.sasl.password.typo": PASSWORD},
        "key": {"kafka.ssl.keystore.key": options["kafka.ssl.keystore.key"][:90]},
    }
    task = {
        "register": request.param,
        "topic": "kept",
        "options": options,
        "steps": STEPS,
        "failing": failing,
        "folder": str(folder / "work"),
    }
    with (
        (folder / "errors.log").open("wb") as errors,
        spark_programs(Path(sys.executable), config, errors=errors) as programs,
    ):
        texts = programs.run("what_is_shown", task)
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "log4j2.properties":
            texts[f"file {path.relative_to(folder)}"] = path.read_text("utf-8", errors="replace")
    return Shown(texts, secrets, registered=request.param)


#: Sources in which Spark shows options with `spark.sql.ui.explainMode=extended` and
#: `spark.sql.planChangeLog`. It hides only options whose name or value looks like a password's:
#: docs/how-to/spark-cluster.md names these sources.
SHOWN_BY_SPARK = ("file events/", "file spark.log", "page SQL/execution/", "page api/v1/appl")


def test_no_secret_is_shown(shown: Shown) -> None:
    """With `register`, Spark shows no secret; without `register`, it shows only the private key.

    Spark itself hides only values that look like a password.
    """
    leaks = shown.leaks()
    if shown.registered:
        assert leaks == {}
    else:
        assert set(map(tuple, leaks.values())) == {("key",)}
        assert [source for source in leaks if not source.startswith(SHOWN_BY_SPARK)] == []


def test_every_inspected_text_is_shown_by_spark(shown: Shown) -> None:
    """Checks that the texts have content, because a search in empty texts would find no secret."""
    assert "kproto" in shown.texts["explain formatted"]
    assert [name for name in shown.texts if name.startswith("failing ")] == [
        f"failing {name}" for name in ("password", "quotes", "option", "key")
    ]
    assert not [text for name, text in shown.texts.items() if name.startswith("error of ")]
    (events,) = [text for name, text in shown.texts.items() if name.startswith("file events/")]
    assert "SparkListenerSQLExecutionStart" in events
    assert " DEBUG " in shown.texts["file spark.log"]
    assert [name for name in shown.texts if name.startswith("page SQL/execution/")]
