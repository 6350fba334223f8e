"""Tests share consumers on an embedded cluster whose leaders move, in virtual time."""

from __future__ import annotations

from kproto import Client, ClientSettings
from kproto.broker import Cluster, CutFrame, Outcome
from kproto.messages import ShareFetchRequest
from kproto.protocol.connection import ReceivedRequest
from tests.support.share_groups import ShareQueue
from tests.support.virtual_time import LoopClock, run_in_virtual_time

#: Polls raise the error of a broker that fails for this time.
API_TIMEOUT_MS = 4_000
SETTINGS = ClientSettings(api_timeout_ms=API_TIMEOUT_MS, request_timeout_ms=3_000)


async def fail_twice_with_another_leader_between() -> None:
    clock = LoopClock()
    async with (
        Cluster(2, clock=clock) as cluster,
        Client(cluster.bootstrap, SETTINGS, clock=clock) as client,
    ):
        queue = await ShareQueue(client).create()
        first, second = cluster.nodes
        cuts = []

        def fail_and_move(request: ReceivedRequest) -> Outcome:
            cuts.append(clock.monotonic())
            cluster.move_leader(queue.topic, 0, second)
            return CutFrame(0)(request)

        async with queue.consumer(max_wait_ms=100) as consumer:
            for number in range(2):
                cluster.move_leader(queue.topic, 0, first)
                cluster.control(fail_and_move, request=ShareFetchRequest, times=1, node=first)
                assert not await consumer.poll(3 * API_TIMEOUT_MS)
                assert len(cuts) == number + 1
            await queue.produce(7)
            ((record,),) = (await consumer.poll(API_TIMEOUT_MS)).values()
            assert record.value == b"7"


def test_time_without_requests_to_a_broker_is_no_time_of_its_failures() -> None:
    run_in_virtual_time(fail_twice_with_another_leader_between())
