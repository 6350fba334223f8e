"""Provides a broker with scripted answers, over real sockets.

The broker uses `ServerConnection`, handles one request of a connection at a time as brokers do, and
keeps the requests in `asked`. By default the broker offers every API and leads every partition of
its topics. A test sets `answers[SomeRequest]` to a function from the received request to a
response, to raw bytes, to `HANG_UP` or to None for no answer; the function may be async.

A client of another process can connect if its broker had the same port before. The broker closes
such a connection: the client ids of the test's own clients begin with "kproto".
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Self

from kproto import ClientSettings, messages
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.base import Request, Response
from kproto.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.messages.produce_response import PartitionProduceResponse, TopicProduceResponse
from kproto.protocol.connection import ReceivedRequest, ServerConnection
from kproto.protocol.framing import FrameReader
from kproto.protocol.headers import request_class
from kproto.records import RecordBatch, read_batches

__all__ = ["HANG_UP", "Answer", "ScriptedBroker", "Stored", "produced", "quick"]

#: As an answer: the broker closes the connection.
HANG_UP: Final = "hang up"

Answer = Callable[[ReceivedRequest], Any]


def quick(*, metadata_wait_ms: int, delivery_timeout_ms: int, **others: int) -> ClientSettings:
    """Returns client settings that retry within milliseconds, with these timeouts."""
    return ClientSettings(
        retry_backoff_ms=1,
        retry_backoff_max_ms=5,
        reconnect_backoff_ms=1,
        reconnect_backoff_max_ms=5,
        metadata_wait_ms=metadata_wait_ms,
        delivery_timeout_ms=delivery_timeout_ms,
        api_timeout_ms=delivery_timeout_ms,
        **others,  # type: ignore[arg-type]  # numeric settings
    )


class ScriptedBroker:
    """The only node, 0, of a cluster; `bootstrap` is its address within `async with`."""

    def __init__(self, topics: dict[str, int] | None = None) -> None:
        self.topics = topics or {}
        self.asked: list[ReceivedRequest] = []
        self.connections = 0
        self.answers: dict[type[Request[Any]], Answer] = {
            ApiVersionsRequest: lambda asked: api_versions(),
            MetadataRequest: self.metadata,
            InitProducerIdRequest: lambda asked: InitProducerIdResponse(producer_id=7),
            ProduceRequest: lambda asked: produced(asked),
        }
        self.writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Closes the listener and every connection."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def start_again(self) -> None:
        """Listens on the same port as before."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    def hang_up(self) -> None:
        """Closes every connection; the listener stays open."""
        for writer in self.writers:
            writer.transport.abort()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until `condition` holds; only the test's own timeout limits the wait."""
        while not condition():  # noqa: ASYNC110 - the condition is no event of this loop
            await asyncio.sleep(0.001)

    def count(self, request: type[Request[Any]]) -> int:
        """Returns how many requests of this class were received."""
        return sum(isinstance(asked.message, request) for asked in self.asked)

    def metadata(self, asked: ReceivedRequest) -> MetadataResponse:
        """Returns topics by name, or all topics; unknown topics have UNKNOWN_TOPIC_OR_PARTITION."""
        request = asked.message
        assert isinstance(request, MetadataRequest)
        wanted = request.topics
        names = list(self.topics) if wanted is None else [topic.name or "" for topic in wanted]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=0, host="127.0.0.1", port=self.port)],
            controller_id=0,
            cluster_id="scripted" if asked.version >= 2 else None,
            topics=[
                MetadataResponseTopic(
                    name=name,
                    error_code=0 if name in self.topics else 3,
                    partitions=[
                        MetadataResponsePartition(partition_index=at, leader_id=0)
                        for at in range(self.topics.get(name, 0))
                    ],
                )
                for name in names
            ],
        )

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        frames, connection = FrameReader(), ServerConnection()
        try:
            while data := await reader.read(65_536):
                for content in frames.feed(data):
                    if not await self._answer(connection, connection.receive(content), writer):
                        return
        except ConnectionError:
            pass
        finally:
            self.writers.discard(writer)
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()  # retrieves the error of a connection that was reset

    async def _answer(
        self, connection: ServerConnection, asked: ReceivedRequest, writer: asyncio.StreamWriter
    ) -> bool:
        if not (asked.client_id or "kproto").startswith("kproto"):
            return False
        self.asked.append(asked)
        cls = request_class(asked.api_key)
        assert cls is not None
        answer = self.answers[cls](asked)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer == HANG_UP:
            return False
        if isinstance(answer, Response):
            answer = connection.send(asked, answer)
        if answer is not None:
            writer.write(answer)
            await writer.drain()
        return True


def api_versions() -> ApiVersionsResponse:
    """Returns an ApiVersions response with every version of every request."""
    ranges = []
    for api_key in messages.API_KEYS:
        cls = request_class(api_key)
        assert cls is not None
        valid = cls.VALID_VERSIONS
        ranges.append(
            ApiVersion(api_key=api_key, min_version=valid.start, max_version=valid.stop - 1)
        )
    return ApiVersionsResponse(api_keys=ranges)


def produced(asked: ReceivedRequest, error_code: int = 0, base_offset: int = 0) -> ProduceResponse:
    """Returns a Produce response in which every partition has this error code; 0 is no error."""
    request = asked.message
    assert isinstance(request, ProduceRequest)
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name if asked.version < 13 else "",
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=part.index,
                        error_code=error_code,
                        base_offset=base_offset,
                    )
                    for part in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


class Stored:
    """Stores the batches that a broker receives, and assigns their offsets."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.batches: list[tuple[str, int, RecordBatch]] = []
        self.ends: dict[tuple[str, int], int] = {}
        broker.answers[ProduceRequest] = self.answer

    def answer(self, asked: ReceivedRequest) -> Any:
        response = produced(asked)
        request = asked.message
        assert isinstance(request, ProduceRequest)
        for topic, told in zip(request.topic_data, response.responses, strict=True):
            for part, answer in zip(topic.partition_data, told.partition_responses, strict=True):
                (batch,) = read_batches(part.records or b"")
                self.batches.append((topic.name, part.index, batch))
                answer.base_offset = self.ends.get((topic.name, part.index), 0)
                self.ends[topic.name, part.index] = answer.base_offset + batch.record_count
        return response

    def values(self, partition: int = 0) -> list[bytes | None]:
        found = [batch.records() for _, at, batch in self.batches if at == partition]
        return [record.value for records in found for record in records]
