"""Runs one Pulsar node on free ports; it ends with this process."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.setup import java
from tools.setup.maven import MavenError, fetch_jars
from tools.setup.ports import LOOPBACK, free_ports
from tools.setup.programs import supervised

__all__ = ["PulsarError", "PulsarNode"]

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "pulsar"
POM_TEMPLATE = Path(__file__).with_name("pom.xml.template")
VERSION = "3.0.7"
"""A long-term release with all jars on Maven Central, which lacks some jars of 4.0."""

START_TIMEOUT_S = 120.0
"""In seconds. A start takes about 15; a busy machine may need several times as long."""

STOP_TIMEOUT_S = 5.0
"""In seconds. Short, because the data is deleted anyway."""

SETTINGS = {
    "clusterName": "standalone",
    "bindAddress": LOOPBACK,
    "advertisedAddress": LOOPBACK,
    "allowAutoTopicCreation": "true",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    # Features that tests of messages do not need, disabled for a quick start.
    "loadBalancerEnabled": "false",
    "systemTopicEnabled": "false",
    "topicLevelPoliciesEnabled": "false",
    "transactionCoordinatorEnabled": "false",
    "webSocketServiceEnabled": "false",
}

#: The packages that Pulsar's start script opens for reflection.
OPENED = (
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/java.util.zip",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.base/sun.net",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)


class PulsarError(RuntimeError):
    """Pulsar cannot run on this machine; the message has the reason."""


class PulsarNode:
    """A standalone Pulsar on free ports of the loopback address, which runs during the block."""

    def __init__(self) -> None:
        self._broker_port, self._web_port, self._bookie_port = free_ports(3)
        self.service_url = f"pulsar://{LOOPBACK}:{self._broker_port}"
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        with self._resources:
            folder = Path(self._resources.enter_context(tempfile.TemporaryDirectory()))
            process = self._started(folder)
            self._wait_until_ready(process, folder / "log")
            self._resources = self._resources.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    def _started(self, folder: Path) -> subprocess.Popen[bytes]:
        try:
            program = str(java.java_home() / "bin" / "java")
        except java.JavaNotFoundError as error:
            raise PulsarError(str(error)) from error
        settings = {
            **SETTINGS,
            "brokerServicePort": str(self._broker_port),
            "webServicePort": str(self._web_port),
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (folder / "standalone.conf").write_text(text, encoding="utf-8")
        command = [program, "-Xmx512m"]
        command += [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED]
        command += ["-cp", f"{_jars()}/*", "org.apache.pulsar.PulsarStandaloneStarter"]
        command += ["--no-functions-worker", "--no-stream-storage", "--config", "standalone.conf"]
        command += ["--metadata-dir", "metadata", "--bookkeeper-dir", "bookkeeper"]
        command += ["--bookkeeper-port", str(self._bookie_port)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                supervised(command, grace_s=STOP_TIMEOUT_S),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,  # Ctrl-C must reach only the tests, which stop the node
            )
        self._resources.callback(_end, process)
        return process

    def _wait_until_ready(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Waits for the namespace `public/default`, which Pulsar creates last."""
        deadline = time.monotonic() + START_TIMEOUT_S
        url = f"http://{LOOPBACK}:{self._web_port}/admin/v2/namespaces/public"
        while "public/default" not in _answer(url):
            if process.poll() is not None or time.monotonic() > deadline:
                said = "\n".join(log.read_text("utf-8", errors="replace").splitlines()[-25:])
                raise PulsarError(f"Pulsar {VERSION} did not start; its log ends with:\n{said}")
            time.sleep(0.2)


def _answer(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            body: bytes = response.read()
    except (OSError, urllib.error.URLError):
        return ""
    return body.decode("utf-8", errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Closes the supervisor's input, which ends the JVM; waits until both have ended."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(2 * STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _jars() -> Path:
    """Returns the folder with all jars; fetches them if missing. Raises PulsarError."""
    try:
        return fetch_jars(
            CACHE / VERSION,
            POM_TEMPLATE,
            name=f"Pulsar {VERSION}",
            sign="pulsar-broker-[0-9]*.jar",
            otherwise="name a running broker in KPROTO_PULSAR",
            version=VERSION,
        )
    except MavenError as error:
        raise PulsarError(str(error)) from error
