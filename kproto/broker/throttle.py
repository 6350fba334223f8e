"""What a request and its answer count against the quotas of who sent it, and how long it waits.

KIP-13, KIP-124, KIP-219: the answer goes out at once and says the time; for that time the broker
works on nothing of the connection. Decides; `session` waits.
"""

from __future__ import annotations

from typing import Any

from ..messages.base import Response
from ..messages.fetch_request import FetchRequest
from ..messages.fetch_response import FetchResponse
from ..messages.produce_request import ProduceRequest
from ..protocol.received import ReceivedRequest
from .api_error import refusal
from .context import Context
from .quotas import Metering, MutationQuota

__all__ = ["check_mutations", "most_to_fetch", "mutation_quota", "throttled"]


def throttled(
    context: Context,
    request: ReceivedRequest,
    response: Response | None,
    handled_s: float,
    least_ms: int = 0,
) -> tuple[Response | None, int]:
    """The answer to send, and for how many ms the connection shall rest, `least_ms` or more.

    `handled_s` is how long the request was worked on. A Fetch that has to wait gets no records, so
    that these count when they are sent. A Produce without an answer counts its bytes alone.
    """
    metering, now_ms = _metering(context), context.clock.now_ms()
    who = context.principal.name, context.client_id or ""
    rest_ms = least_ms
    if len(metering.table):
        if isinstance(request.message, ProduceRequest):
            rest_ms = max(rest_ms, metering.produced(*who, request.size, now_ms))
        if response is not None:
            rest_ms = max(rest_ms, metering.worked(*who, handled_s, now_ms))
        if isinstance(response, FetchResponse) and metering.most_to_consume(*who) is not None:
            size = response.size(request.version)
            rest_ms = max(rest_ms, metering.consumed(*who, size, now_ms))
            if rest_ms:
                metering.not_consumed(*who, size, now_ms)
    if response is not None:
        # Quotas that a handler itself asks stand in its answer.
        answer: Any = response
        rest_ms = max(rest_ms, getattr(answer, "throttle_time_ms", 0))
        if rest_ms:
            if isinstance(response, FetchResponse):
                asked = request.message
                session_id = response.session_id
                if isinstance(asked, FetchRequest):
                    session_id = context.fetch_sessions.not_sent(asked, response)
                answer = FetchResponse(error_code=response.error_code, session_id=session_id)
            if hasattr(answer, "throttle_time_ms"):
                answer.throttle_time_ms = rest_ms
        response = answer
    return response, rest_ms


def _metering(context: Context) -> Metering:
    return context.cluster.metering_of(context.endpoint.node_id)


def most_to_fetch(context: Context, most: int) -> int:
    """The bytes that a Fetch may get: no more than would be over the quota by themselves."""
    allowed = _metering(context).most_to_consume(context.principal.name, context.client_id or "")
    return most if allowed is None else min(most, allowed)


def mutation_quota(context: Context, *, strict: bool) -> MutationQuota:
    """The quota on the partitions that a request makes or deletes (KIP-599)."""
    return context.cluster.metering.mutations(
        context.principal.name, context.client_id or "", context.clock.now_ms(), strict=strict
    )


def check_mutations(quota: MutationQuota, partitions: int) -> None:
    """Raises THROTTLING_QUOTA_EXCEEDED."""
    if not quota.take(partitions):
        raise refusal(
            "THROTTLING_QUOTA_EXCEEDED",
            f"controller_mutation_rate is exceeded; try again in {quota.throttle_ms} ms",
        )
