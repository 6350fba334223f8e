"""Applies the client quotas of a request and its response (KIP-13, KIP-124, KIP-219, KIP-599).

A throttled response is sent at once and contains the throttle time. `session` processes no request
of the connection until the throttle time has passed.
"""

from __future__ import annotations

from typing import Any

from ..messages.base import Response
from ..messages.fetch_request import FetchRequest
from ..messages.fetch_response import FetchResponse
from ..messages.produce_request import ProduceRequest
from ..protocol.connection import ReceivedRequest
from .api_error import api_error
from .context import Context
from .quotas import ClientQuotaManager, ControllerMutationQuota

__all__ = [
    "apply_quotas",
    "limit_fetch_bytes",
    "mutation_quota",
    "record_mutations",
    "with_throttle_time",
]


def apply_quotas(
    context: Context,
    request: ReceivedRequest,
    response: Response | None,
    handled_s: float,
    least_ms: int = 0,
) -> tuple[Response | None, int]:
    """Counts the usage of a request; returns the response to send and the throttle time in ms.

    The throttle time is at least `least_ms`. `handled_s` is the time in seconds for which the
    handler ran, for request_percentage. A throttled Fetch response has no records, and does not
    count for consumer_byte_rate. For a Produce without a response, only its bytes count.
    """
    quota_manager, now_ms = _quota_manager(context), context.clock.now_ms()
    user_and_client = context.principal.name, context.client_id or ""
    throttle_ms = least_ms
    if len(quota_manager.table):
        if isinstance(request.message, ProduceRequest):
            throttle_ms = max(
                throttle_ms, quota_manager.record_produce(*user_and_client, request.size, now_ms)
            )
        if response is not None:
            throttle_ms = max(
                throttle_ms, quota_manager.record_request_time(*user_and_client, handled_s, now_ms)
            )
        if (
            isinstance(response, FetchResponse)
            and quota_manager.max_fetch_bytes(*user_and_client) is not None
        ):
            size = response.size(request.version)
            throttle_ms = max(
                throttle_ms, quota_manager.record_fetch(*user_and_client, size, now_ms)
            )
            if throttle_ms:
                quota_manager.unrecord_fetch(*user_and_client, size, now_ms)
    if response is not None:
        # A handler that applies controller_mutation_rate sets the throttle time in its response.
        answer: Any = response
        throttle_ms = max(throttle_ms, getattr(answer, "throttle_time_ms", 0))
        if throttle_ms:
            if isinstance(response, FetchResponse):
                message = request.message
                session_id = response.session_id
                if isinstance(message, FetchRequest):
                    session_id = context.fetch_sessions.on_throttled(message, response)
                answer = FetchResponse(error_code=response.error_code, session_id=session_id)
            if hasattr(answer, "throttle_time_ms"):
                answer.throttle_time_ms = throttle_ms
        response = answer
    return response, throttle_ms


def with_throttle_time(response: Response, least_ms: int) -> Response:
    """Returns the response with a throttle time of at least `least_ms`.

    If the response has a lower throttle time, returns a changed copy, because a test may send the
    same response repeatedly. Returns a response without the field `throttle_time_ms` unchanged.
    """
    if getattr(response, "throttle_time_ms", least_ms) >= least_ms:
        return response
    answer = response.copy()
    fields: Any = answer  # not every response has the field
    fields.throttle_time_ms = least_ms
    return answer


def _quota_manager(context: Context) -> ClientQuotaManager:
    return context.cluster.quota_manager_of(context.node_id)


def limit_fetch_bytes(context: Context, most: int) -> int:
    """Returns the smaller of `most` and the bytes that consumer_byte_rate allows in a response."""
    allowed = _quota_manager(context).max_fetch_bytes(
        context.principal.name, context.client_id or ""
    )
    return most if allowed is None else min(most, allowed)


def mutation_quota(context: Context, *, strict: bool) -> ControllerMutationQuota:
    """Returns the quota controller_mutation_rate that applies to the client (KIP-599).

    If `strict` is True, mutations are refused while the quota is exceeded. If `strict` is False,
    mutations are accepted, and the client is throttled.
    """
    return context.cluster.quota_manager.mutation_quota(
        context.principal.name, context.client_id or "", context.clock.now_ms(), strict=strict
    )


def record_mutations(quota: ControllerMutationQuota, partitions: int) -> None:
    """Counts created or deleted partitions.

    Raises THROTTLING_QUOTA_EXCEEDED if earlier mutations have exceeded a strict quota.
    """
    if not quota.record(partitions):
        raise api_error(
            "THROTTLING_QUOTA_EXCEEDED",
            f"controller_mutation_rate is exceeded; try again in {quota.throttle_ms} ms",
        )
