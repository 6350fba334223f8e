"""Tests that unpickling a reader or writer in a Spark worker disables socket delays."""

from __future__ import annotations

import pickle
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pyarrow as pa
import pytest
from kproto_pipeline.spark.options.option_table import parse_read_options, parse_write_options
from kproto_pipeline.spark.reading.batch_reader import KprotoReader
from kproto_pipeline.spark.sink.writers import KprotoStreamWriter, KprotoWriter
from kproto_pipeline.spark.streaming.stream_reader import KprotoStreamReader
from kproto_pipeline.spark.worker_sockets import WorkerSocketTuning, disable_socket_delays

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the open files")

BROKER = {"kafka.bootstrap.servers": "localhost:1"}
READ = parse_read_options({**BROKER, "subscribe": "t"})
WRITE = parse_write_options({**BROKER, "topic": "t"})
SCHEMA = pa.schema([("value", pa.binary())])


@contextmanager
def connected() -> Iterator[socket.socket]:
    """Yields one end of a local TCP connection; the other end stays open during the test."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
    ):
        yield one
        one.sendall(b"still open")
        assert other.recv(10) == b"still open"


def is_told(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def test_socket_delays_are_disabled_and_connections_stay_open() -> None:
    of_unix, other = socket.socketpair()
    with connected() as connection, of_unix, other, socket.socket(type=socket.SOCK_DGRAM):
        assert not is_told(connection)
        disable_socket_delays()
        assert is_told(connection)


@pytest.mark.parametrize(
    "sent",
    [
        KprotoReader(READ, SCHEMA),
        KprotoStreamReader(READ, SCHEMA),
        KprotoWriter(WRITE, SCHEMA),
        KprotoStreamWriter(WRITE, SCHEMA),
    ],
    ids=lambda sent: type(sent).__name__,
)
@pytest.mark.parametrize("in_worker", [True, False])
def test_unpickling_in_a_worker_sets_socket_options(
    sent: WorkerSocketTuning, in_worker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pyspark.worker", raising=False)
    if in_worker:
        monkeypatch.setitem(sys.modules, "pyspark.worker", ModuleType("pyspark.worker"))
    with connected() as connection:
        arrived = pickle.loads(pickle.dumps(sent))
        assert type(arrived) is type(sent)
        assert arrived._options == sent._options  # type: ignore[attr-defined]
        assert is_told(connection) is in_worker
