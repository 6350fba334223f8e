"""Runs one Kafka node: formats its storage, starts it, waits for it, stops it.

A node ends with the process that started it. A node that was started detached keeps running, and
other processes find it with `running_nodes`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.setup import java
from tools.setup.ports import free_ports
from tools.setup.programs import supervised

from . import folders
from .class_archive import class_archive
from .in_block import ServerContextManager
from .jars import resolve_jars
from .old_releases import (
    OLD_JVM_OPTIONS,
    SESSION_TIMEOUT_MS,
    has_topic_requests,
    needs_zookeeper,
    old_server_properties,
    write_log_settings,
    zookeeper_properties,
)
from .probe import accepts, answers_api_versions, answers_metadata
from .properties import HOST, VOTERS, Ports, render, server_properties
from .storage import has_own_features, new_id, storage_of, write_storage

__all__ = ["KafkaNode", "KafkaStartError", "RunningNode", "running_nodes"]

JVM_OPTIONS = (
    "-XX:+UseSerialGC",  # starts fastest; the node shares two cores with the tests
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
WITH_ZOOKEEPER = Path(__file__).with_name("with_zookeeper.py")
ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

JVM_VARIABLE = "KPROTO_JVM_OPTIONS"
"""The environment variable with further JVM options of each node, for the brokers of tests."""

HEAP = "512m"
"""Enough for the largest test topics, because a broker keeps its records in files."""

START_TIMEOUT_S = 90.0
"""In seconds. A start takes about three; a busy machine may take ten times as long."""

STOP_TIMEOUT_S = 20.0
"""The longest wait for a clean stop, in seconds; then the node is killed."""

POLL_S = 0.05
ARCHIVE_TIMEOUT_S = 90.0
"""The longest wait for a stopping node to write its class archive, in seconds."""

LOG_TAIL_LINES = 25


class KafkaStartError(RuntimeError):
    """A node or cluster cannot run; if a node failed, the message has the last lines of its log."""


@dataclass(frozen=True)
class RunningNode:
    """A running node, as `node.json` in its folder describes it."""

    folder: Path
    version: str
    bootstrap: str
    process_group: int
    detached: bool

    @property
    def voters(self) -> str:
        """Returns the node's setting of controllers, which is equal for all nodes of a cluster.

        Returns the bootstrap address if the node lacks the setting.
        """
        lines = (self.folder / "server.properties").read_text(encoding="utf-8").splitlines()
        return next((line for line in lines if line.startswith(VOTERS)), self.bootstrap)

    def stop(self) -> None:
        """Stops the node cleanly, or kills it if it does not end; removes its folder."""
        _signal_group(self.process_group, signal.SIGTERM)
        if not self._released(STOP_TIMEOUT_S):
            _signal_group(self.process_group, signal.SIGKILL)
            self._released(STOP_TIMEOUT_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _released(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while folders.is_held(self.folder):
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True


def running_nodes() -> list[RunningNode]:
    """Returns all running nodes of this checkout."""
    found = []
    for description in sorted(folders.NODES.glob("*/node.json")):
        if folders.is_held(description.parent):
            facts = json.loads(description.read_text(encoding="utf-8"))
            found.append(RunningNode(folder=description.parent, **facts))
    return found


class KafkaNode(ServerContextManager):
    """A combined broker and controller on free ports of the loopback address.

    A release before 3.3 runs as a broker with its own ZooKeeper, which listens on the port of the
    controller.

    `config` overrides settings of server.properties; `format_arguments` are further arguments of
    `kafka-storage format`. For a node of a cluster, pass its `ports` and the `cluster_id`. As a
    context manager, the node runs during the block; its data is removed afterwards. The methods
    `start`, `stop` and `kill` keep ports and data, and may be called in any order before `close`.
    Raises `KafkaStartError`, `KafkaJarsError` or `JavaNotFoundError` if the node cannot run.
    """

    def __init__(
        self,
        version: str,
        *,
        port: int | None = None,
        ports: Ports | None = None,
        cluster_id: str | None = None,
        config: Mapping[str, str] | None = None,
        format_arguments: Sequence[str] = (),
        heap: str = HEAP,
        detached: bool = False,
    ) -> None:
        self.version = version
        self.ports = ports or _ports(port)
        self.cluster_id = cluster_id or new_id()
        self.bootstrap = f"{HOST}:{self.ports.broker}"
        self._config = dict(config or {})
        self._format_arguments = tuple(format_arguments)
        self._heap = heap
        self._detached = detached
        self._folder: Path | None = None
        self._lock: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._class_options: tuple[str, ...] | None = None

    @property
    def folder(self) -> Path | None:
        """Returns the folder of settings, data and logs; None before `start` and after `close`."""
        return self._folder

    @property
    def log(self) -> str:
        """Returns the content of the log so far."""
        path = self._folder and self._folder / "broker.log"
        return path.read_text("utf-8", errors="replace") if path and path.exists() else ""

    @property
    def running(self) -> bool:
        """Returns True if the process runs; the node may still be starting."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the node unless it runs, and waits until it answers.

        The first start formats the node's storage.
        """
        if self.running:
            return
        folder = self._folder or self._format()
        try:
            self._spawn(folder)
            self._wait_until_ready()
        except BaseException:
            self.kill()
            if self._detached:
                self.close()
            raise
        if self._detached:
            self._release()

    def stop(self) -> None:
        """Stops the node cleanly, and waits for its end; data and ports stay."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the node, like a crash; data and ports stay."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stops the node, and removes its data."""
        self.stop()
        self._release()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _java(self, jars: Path, *command: str) -> list[str]:
        program = java.java_home() / "bin" / "java"
        if needs_zookeeper(self.version):
            self._class_options = OLD_JVM_OPTIONS
        elif self._class_options is None:
            classes = class_archive(self.version, program, self._write_classes)
            self._class_options = (f"-XX:SharedArchiveFile={classes}",) if classes else ()
        options = (*JVM_OPTIONS, *self._class_options, *os.environ.get(JVM_VARIABLE, "").split())
        return [str(program), f"-Xmx{self._heap}", *options, "-cp", f"{jars.resolve()}/*", *command]

    def _write_classes(self, path: Path) -> None:
        """Starts and stops another node of the same release, which writes the class archive."""
        node = KafkaNode(self.version)
        with contextlib.closing(node), contextlib.suppress(KafkaStartError):
            node._class_options = ()
            node._format()
            node._class_options = (f"-XX:ArchiveClassesAtExit={path}",)
            node.start()
            node._end(signal.SIGTERM, ARCHIVE_TIMEOUT_S)

    def _format(self) -> Path:
        """Writes the settings and formats the storage; returns the node's folder."""
        self._folder, self._lock = folders.reserve()
        is_old = needs_zookeeper(self.version)
        settings = self._folder / "server.properties"
        settings_of = old_server_properties if is_old else server_properties
        properties = settings_of(self.version, self._folder, self.ports, self._config)
        settings.touch(mode=0o600)  # the settings may have passwords
        settings.write_text(render(properties), encoding="utf-8")
        if is_old:
            zookeeper = render(zookeeper_properties(self._folder, self.ports))
            (self._folder / "zookeeper.properties").write_text(zookeeper, encoding="utf-8")
            return self._folder
        try:
            if self._format_arguments or has_own_features(self._config):
                self._run_format(settings, self.cluster_id, *self._format_arguments)
            else:
                write_storage(
                    storage_of(self.version, self._format_another),
                    Path(properties["log.dirs"]),
                    node_id=properties["node.id"],
                    cluster_id=self.cluster_id,
                )
        except BaseException:
            self.close()
            raise
        return self._folder

    def _format_another(self, folder: Path) -> None:
        """Formats `folder` with Kafka's tool, for a node of the same release that never runs.

        Runs the tool without the class archive: to write the archive, a node must start, and this
        start needs `folder`.
        """
        node = KafkaNode(self.version, ports=self.ports)
        node._class_options = ()
        with TemporaryDirectory() as temporary:
            settings = Path(temporary) / "server.properties"
            properties = server_properties(
                self.version, Path(temporary), self.ports, {"log.dirs": str(folder)}
            )
            settings.write_text(render(properties), encoding="utf-8")
            node._run_format(settings, new_id())

    def _run_format(self, settings: Path, cluster_id: str, *further: str) -> None:
        """Runs `kafka-storage format`. Raises `KafkaStartError`."""
        # With `=`, because an id may begin with a dash.
        arguments = ["format", f"--cluster-id={cluster_id}", "-c", str(settings), *further]
        jars = resolve_jars(self.version)
        command = self._java(jars, "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", *arguments)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            said = done.stdout + done.stderr
            raise KafkaStartError(f"the storage of Kafka {self.version} was not formatted:\n{said}")

    def _command(self, folder: Path) -> list[str]:
        """Returns the command that runs the node whose settings are in `folder`."""
        jars, settings = resolve_jars(self.version), str(folder / "server.properties")
        if not needs_zookeeper(self.version):
            return self._java(jars, "kafka.Kafka", settings)
        log_option = write_log_settings(folder)
        wait_s = SESSION_TIMEOUT_MS / 1000 + 1 if (folder / "zookeeper").exists() else 0
        return [
            *(sys.executable, str(WITH_ZOOKEEPER), HOST, str(self.ports.controller), str(wait_s)),
            *self._java(jars, log_option, ZOOKEEPER, str(folder / "zookeeper.properties")),
            "--",
            *self._java(jars, log_option, "kafka.Kafka", settings),
        ]

    def _spawn(self, folder: Path) -> None:
        command = self._command(folder)
        if not self._detached:
            command = supervised(command, grace_s=STOP_TIMEOUT_S)
        assert self._lock is not None
        with (folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if self._detached else subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                pass_fds=(self._lock,),
                start_new_session=True,  # Ctrl-C must reach only the tests, which stop the node
            )
        facts = {
            "version": self.version,
            "bootstrap": self.bootstrap,
            "process_group": self._process.pid,
            "detached": self._detached,
        }
        (folder / "node.json").write_text(json.dumps(facts), encoding="utf-8")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if not self.running:
                raise KafkaStartError(self._failure("ended before it answered"))
            if time.monotonic() > deadline:
                raise KafkaStartError(self._failure(f"did not answer in {START_TIMEOUT_S:.0f} s"))
            time.sleep(POLL_S)
        if not self.running:  # another process has the port, and answered
            raise KafkaStartError(self._failure("ended, while another process answered"))

    def _answers(self) -> bool:
        """Returns True if the node answers and its listeners, opened one by one, are all open."""
        if needs_zookeeper(self.version):
            # Before 0.10.1, metadata has no broker until the first topic exists.
            least = 1 if has_topic_requests(self.version) else 0
            return answers_metadata(HOST, self.ports.broker, timeout_s=1.0, least_brokers=least)
        if not answers_api_versions(HOST, self.ports.broker, timeout_s=1.0):
            return False
        listeners = self._config.get("advertised.listeners", "")
        ports = [int(each.rpartition(":")[2]) for each in listeners.split(",") if each]
        return all(accepts(HOST, port, timeout_s=1.0) for port in ports)

    def _failure(self, what: str) -> str:
        tail = "\n".join(self.log.splitlines()[-LOG_TAIL_LINES:])
        return f"Kafka {self.version} at {self.bootstrap} {what}; its log ends with:\n{tail}"

    def _end(self, number: signal.Signals, timeout_s: float = STOP_TIMEOUT_S) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            _signal_group(process.pid, number)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _ports(broker: int | None) -> Ports:
    """Returns two free ports; the broker's port is `broker`, unless `broker` is None.

    Raises `KafkaStartError` if the port `broker` is not free.
    """
    try:
        first, second = free_ports(2, host=HOST, first=broker or 0)
    except OSError as error:
        raise KafkaStartError(
            f"port {broker} of {HOST} cannot be used: {error.strerror}; "
            "name another one, or see `python -m tools.kafka status`"
        ) from error
    return Ports(broker=first, controller=second)


def _signal_group(process_group: int, number: signal.Signals) -> None:
    try:
        os.killpg(process_group, number)
    except ProcessLookupError:
        return
