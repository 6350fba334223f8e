"""Runs a Spark standalone cluster: a master, workers and, on request, a Spark Connect server.

All of them run PySpark's own jars on free ports of the loopback address. A cluster ends with the
process that started it. A cluster that was started detached keeps running, and other processes find
it with `running_clusters`. The caller chooses the Python of the tasks and its import path.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from tools.setup.held_folders import is_held, reserve
from tools.setup.ports import LOOPBACK, free_ports
from tools.setup.programs import run_program, supervised

from .environments import CACHE, environment

__all__ = ["RunningCluster", "SparkCluster", "SparkStartError", "as_options", "running_clusters"]

CLUSTERS: Final = CACHE / "clusters"

START_TIMEOUT_S: Final = 120.0
"""In seconds. Master and workers need 6, Connect 10; on a busy machine, ten times as long."""

STOP_TIMEOUT_S: Final = 20.0
"""The longest wait for each process to stop, in seconds; then it is killed."""

POLL_S: Final = 0.1
LOG_TAIL_LINES: Final = 25

DAEMON: Final = {"SPARK_DAEMON_MEMORY": "256m"}
"""The environment of masters and workers, which need little memory: they process no records."""

DEPLOY: Final = "org.apache.spark.deploy"
CONNECT_SERVER: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"


class SparkStartError(RuntimeError):
    """A process of the cluster did not start; the message includes the last lines of its log."""


@dataclass(frozen=True)
class RunningCluster:
    """A running cluster, as `cluster.json` in its folder describes it."""

    folder: Path
    master: str
    connect: str | None
    web: str
    processes: tuple[int, ...]
    detached: bool

    def stop(self) -> None:
        """Stops the cluster's processes, kills those that do not stop, and removes the folder."""
        for each in reversed(self.processes):
            _signal_group(each, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while is_held(self.folder) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        for each in self.processes:
            _signal_group(each, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def running_clusters() -> list[RunningCluster]:
    """Returns all running clusters of this checkout."""
    found = []
    for description in sorted(CLUSTERS.glob("*/cluster.json")):
        if is_held(description.parent):
            facts = json.loads(description.read_text(encoding="utf-8"))
            facts["processes"] = tuple(facts["processes"])
            found.append(RunningCluster(folder=description.parent, **facts))
    return found


class SparkCluster:
    """A master and `workers` workers, each with `cores` and `memory`; tasks run `python`.

    `variables` are environment variables of all processes, in addition to those for Java and
    Python; PYTHONPATH is unset unless `variables` has it. With `own_hosts` each worker has its own
    loopback address (on Linux): Spark runs speculative attempts of a task only on another host. As
    a context manager, the cluster runs during the block; its folder is removed afterwards. Raises
    SparkStartError and JavaNotFoundError.
    """

    def __init__(
        self,
        python: Path | str,
        *,
        workers: int = 2,
        cores: int = 1,
        memory: str = "1g",
        variables: Mapping[str, str] | None = None,
        detached: bool = False,
        own_hosts: bool = False,
    ) -> None:
        self.python = Path(python)
        self._workers = workers
        self._cores = cores
        self._memory = memory
        self._variables = dict(variables or {})
        self._detached = detached
        self._own_hosts = own_hosts
        self._folder: Path | None = None
        self._lock: int | None = None
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._home: str | None = None
        #: `spark://host:port`; empty before `start`.
        self.master = ""
        #: `sc://host:port`; None before `start_connect`.
        self.connect: str | None = None
        #: The URL of the master's web pages; empty before `start`.
        self.web = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        """Returns the folder with logs and work folders, such as `worker-0/app-…/0/stderr`."""
        assert self._folder is not None
        return self._folder

    @property
    def spark_home(self) -> str:
        """Returns the folder of the package pyspark, with its programs and jars."""
        if self._home is None:
            asked = [str(self.python), "-c", "import pyspark; print(pyspark.__path__[0])"]
            self._home = run_program(asked, timeout_s=60).strip()
        return self._home

    def start(self) -> None:
        """Starts the master and the workers, and waits until all workers have registered."""
        CLUSTERS.mkdir(parents=True, exist_ok=True)
        self._folder, self._lock = reserve(CLUSTERS)
        port, web = free_ports(2)
        self.master, self.web = f"spark://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{web}"
        try:
            master = f"--host {LOOPBACK} --port {port} --webui-port {web}"
            self._spawn(
                "master", ["spark-class", f"{DEPLOY}.master.Master", *master.split()], DAEMON
            )
            self._wait("master", lambda: self.state() is not None)
            for number in range(self._workers):
                folder = self.folder / f"worker-{number}"
                folder.mkdir()
                host = f"127.0.0.{number + 2}" if self._own_hosts else LOOPBACK
                worker = f"--host {host} --webui-port 0 --cores {self._cores}"
                worker += f" --memory {self._memory} --work-dir {folder} {self.master}"
                command = ["spark-class", f"{DEPLOY}.worker.Worker", *worker.split()]
                self._spawn(f"worker-{number}", command, DAEMON)
            self._wait("master", self._all_are_there)
        except BaseException:
            self.close()
            raise
        self._describe()

    def start_connect(self, *options: str, variables: Mapping[str, str] | None = None) -> str:
        """Starts a Spark Connect server on this cluster; returns its address, `sc://host:port`.

        `options` are additional arguments of `spark-submit`.
        """
        (port,) = free_ports(1)
        settings = {
            "spark.connect.grpc.binding.port": str(port),
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.host": LOOPBACK,
            "spark.ui.enabled": "false",
        }
        command = f"spark-submit --class {CONNECT_SERVER} --name connect --master {self.master}"
        self._spawn("connect", [*command.split(), *as_options(settings), *options], variables)
        self._wait("connect", lambda: _answers(port))
        self.connect = f"sc://{LOOPBACK}:{port}"
        self._describe()
        return self.connect

    @contextmanager
    def connect_server(
        self, *options: str, variables: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        """Runs a Spark Connect server during the block; yields its address, `sc://host:port`."""
        try:
            yield self.start_connect(*options, variables=variables)
        finally:
            if "connect" in self._processes:
                _end(self._processes.pop("connect"))
            self.connect = None
            self._describe()

    def environment(self, variables: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns the environment of a driver for this cluster; `variables` are added."""
        found = environment(self.python)
        del found["PYTHONPATH"]
        found["SPARK_HOME"] = self.spark_home
        return found | self._variables | dict(variables or {})

    def submit_command(
        self, program: Path, *arguments: str, options: Sequence[str] = ()
    ) -> list[str]:
        """Returns the command that runs a program on this cluster, with a local driver."""
        settings = {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
        command = [f"{self.spark_home}/bin/spark-submit", "--master", self.master]
        return [*command, *as_options(settings), *options, str(program), *arguments]

    def state(self) -> dict[str, Any] | None:
        """Returns the master's state (workers, applications); None if it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.web}/json/", timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Stops all processes, in reverse order of their start, and removes the folder."""
        for process in reversed(self._processes.values()):
            _end(process)
        self._processes.clear()
        self._release()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _all_are_there(self) -> bool:
        state = self.state()
        return state is not None and state["aliveworkers"] == self._workers

    def _spawn(
        self, name: str, words: Sequence[str], variables: Mapping[str, str] | None = None
    ) -> None:
        program, *rest = words
        command = [f"{self.spark_home}/bin/{program}", *rest]
        if not self._detached:
            command = supervised(command, grace_s=STOP_TIMEOUT_S)
        assert self._lock is not None
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if self._detached else subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self.environment(variables),
                pass_fds=(self._lock,),
                start_new_session=True,  # executors belong to the process group, and end with it
            )
        self._processes[name] = process

    def _wait(self, name: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not done():
            if any(process.poll() is not None for process in self._processes.values()):
                raise SparkStartError(self._failure(name, "ended before it answered"))
            if time.monotonic() > deadline:
                raise SparkStartError(self._failure(name, f"did not answer in {START_TIMEOUT_S} s"))
            time.sleep(POLL_S)

    def _failure(self, name: str, how: str) -> str:
        said = (self.folder / f"{name}.log").read_text("utf-8", errors="replace").splitlines()
        return "\n".join([f"the {name} of Spark {how}", *said[-LOG_TAIL_LINES:]])

    def _describe(self) -> None:
        facts = RunningCluster(
            folder=self.folder,
            master=self.master,
            connect=self.connect,
            web=self.web,
            processes=tuple(process.pid for process in self._processes.values()),
            detached=self._detached,
        )
        described = asdict(facts)
        del described["folder"]
        (self.folder / "cluster.json").write_text(json.dumps(described), encoding="utf-8")

    def let_go(self) -> None:
        """Detaches from the cluster; `running_clusters` still finds the cluster.

        Call this only if the cluster was started detached: any other cluster ends with this
        process.
        """
        self._processes.clear()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def as_options(settings: Mapping[str, str]) -> list[str]:
    """Returns Spark properties as arguments of `spark-submit`."""
    return [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    _signal_group(process.pid, signal.SIGKILL)  # for other processes of the group
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
