"""Sends fetches with sessions to a real and to the embedded broker, for comparison."""

from __future__ import annotations

import time
from collections.abc import Iterable

from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.records import read_batches
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.support.batches import batch_bytes
from tests.support.raw_connection import RawConnection
from tests.support.settling import settle

from .conversations import NOBODY, Said
from .talk import PATIENCE_S, Talk, error

__all__ = ["keeping_sessions", "losing_topics"]

_FIRST_BY_ID = 13


class Reader:
    """A client that keeps a fetch session's id and epoch; `ids` maps topic names to topic ids."""

    def __init__(self, talk: Talk, version: int, ids: dict[str, Uuid]) -> None:
        self.talk = talk
        self.version = version
        self.ids = ids
        self.session_id = 0
        self.epoch = 0

    def fetch(
        self,
        *named: tuple[str, int, int],
        forget: Iterable[tuple[str, int]] = (),
        epoch: int | None = None,
        session_id: int | None = None,
        version: int | None = None,
        max_bytes: int = 1 << 20,
    ) -> object:
        """Fetches each (topic, partition, offset) of `named`; returns the fields to compare.

        The fields are the error name, the partitions by topic, and "same", "new" or "none" instead
        of the session id, because session ids differ between brokers. `forget` has each (topic,
        partition) to remove from the session.
        """
        version = self.version if version is None else version
        epoch = self.epoch if epoch is None else epoch
        session_id = self.session_id if session_id is None else session_id
        request = FetchRequest(
            max_wait_ms=10,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=session_id,
            session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic=topic,
                    topic_id=self.ids[topic],
                    partitions=[
                        FetchPartition(
                            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
                        )
                    ],
                )
                for topic, index, offset in named
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic=topic, topic_id=self.ids[topic], partitions=[index])
                for topic, index in forget
            ],
        )
        answer = self.talk.ask(request, version)
        if answer.session_id and not answer.error_code:
            self.epoch = 1 if epoch == 0 else epoch + 1
        same = "same" if answer.session_id == self.session_id else "new"
        said = same if answer.session_id else "none"
        if answer.session_id:
            self.session_id = answer.session_id
        names = {its: name for name, its in self.ids.items()}
        return (
            error(answer.error_code),
            said,
            [
                (
                    (responses.topic or names[Uuid(responses.topic_id)]).partition("-")[0],
                    [
                        (
                            found.partition_index,
                            error(found.error_code),
                            found.high_watermark,
                            found.last_stable_offset,
                            found.log_start_offset,
                            [batch.base_offset for batch in read_batches(found.records or b"")],
                        )
                        for found in responses.partitions
                    ],
                )
                for responses in answer.responses
            ],
        )


def keeping_sessions(talk: Talk) -> Said:
    for version in talk.versions(FetchRequest, 7):
        a, b = talk.create(f"a-{version}", 2), talk.create(f"b-{version}")
        nope = talk.name("nope")
        ids = {a: talk.topic_id(a), b: talk.topic_id(b), nope: NOBODY}
        reader = Reader(talk, version, ids)
        yield (version, "begun"), reader.fetch((a, 0, 0), (b, 0, 0), (a, 1, 0))
        yield (version, "no news"), reader.fetch()
        talk.append(b, batch_bytes(3))
        yield (version, "records"), reader.fetch()
        yield (version, "records again"), reader.fetch()
        yield (version, "read"), reader.fetch((b, 0, 3))
        yield (version, "old epoch"), reader.fetch(epoch=1)
        yield (version, "future epoch"), reader.fetch(epoch=99)
        yield (version, "negative epoch"), reader.fetch(epoch=-2)
        yield (version, "after wrong epochs"), reader.fetch()
        talk.append(a, batch_bytes(2))
        talk.append(b, batch_bytes(2))
        for number in range(4):
            yield (version, "in number", number), reader.fetch(max_bytes=1)
        yield (version, "all at once"), reader.fetch()
        yield (version, "out of range"), reader.fetch((a, 0, 77))
        yield (version, "still out of range"), reader.fetch()
        yield (version, "in range again"), reader.fetch((a, 0, 2), (b, 0, 5))
        yield (version, "no news after errors"), reader.fetch()
        yield (version, "unknown topic"), reader.fetch((nope, 0, 0))
        yield (version, "unknown partition"), reader.fetch((a, 9, 0))
        yield (version, "forgotten"), reader.fetch(forget=[(nope, 0), (a, 9), (a, 1)])
        yield (version, "forgotten again"), reader.fetch(forget=[(nope, 0)])
        yield (version, "taken up again"), reader.fetch((a, 1, 0))
        yield (version, "named twice"), reader.fetch((a, 1, 5), (a, 1, 0))
        yield (version, "named and forgotten"), reader.fetch((b, 0, 0), forget=[(b, 0)])
        if version in (12, 13):
            other = 25 - version
            yield (version, "other version"), reader.fetch(version=other)
        before = reader.session_id
        yield (version, "begun anew"), reader.fetch((a, 0, 0), epoch=0)
        yield (version, "the one before"), reader.fetch(session_id=before, epoch=1)
        reader = Reader(talk, version, ids)
        yield (version, "twice in full"), reader.fetch((a, 0, 0), (a, 1, 0), (a, 0, 1))
        yield (version, "closed"), reader.fetch((a, 0, 0), epoch=-1)
        yield (version, "after it was closed"), reader.fetch(epoch=1)
        reader = Reader(talk, version, ids)
        yield (version, "of nothing"), reader.fetch()
        yield (version, "nothing again"), reader.fetch()
        yield (version, "nothing a third time"), reader.fetch(epoch=2)
        reader = Reader(talk, version, ids)
        yield (version, "of the unknown"), reader.fetch((nope, 0, 0), (a, 0, 0))
        yield (version, "of the unknown again"), reader.fetch()
        yield (version, "all forgotten"), reader.fetch(forget=[(nope, 0), (a, 0)])
        yield (version, "gone"), reader.fetch()


def losing_topics(talk: Talk) -> Said:
    """Yields the responses to fetches of a session while a topic is deleted and recreated."""
    for version in (7, 12, 13, 16):
        kept, lost = talk.create(f"kept-{version}"), talk.create(f"lost-{version}")
        ids = {kept: talk.topic_id(kept), lost: talk.topic_id(lost)}
        reader = Reader(talk, version, ids)
        yield (version, "begun"), reader.fetch((kept, 0, 0), (lost, 0, 0))
        state = DeleteTopicState(name=lost, topic_id=ZERO_UUID)
        talk.ask(DeleteTopicsRequest(topics=[state], timeout_ms=10_000), 6)
        _until_gone(talk, lost)
        yield (version, "deleted"), reader.fetch()
        yield (version, "still deleted"), reader.fetch()
        again = CreatableTopic(name=lost, num_partitions=1, replication_factor=1)
        talk.ask(CreateTopicsRequest(topics=[again], timeout_ms=10_000), 7)
        talk.topic_id(lost)
        yield (version, "another"), reader.fetch()
        reader = Reader(talk, version, ids)
        yield (version, "of another"), reader.fetch((kept, 0, 0), (lost, 0, 0))


def _until_gone(talk: Talk, name: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    wanted.allow_auto_topic_creation = False
    while time.monotonic() < deadline:
        (found,) = talk.ask(wanted, 9).topics
        if found.error_code:
            with RawConnection(talk.bootstrap) as connection:
                settle(connection)  # the broker deletes the log some time after the topic
            return
        time.sleep(0.05)
    raise AssertionError(f"topic {name} was not deleted")
