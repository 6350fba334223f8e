"""PushTelemetry (72), v0 to v0.

v0      the metrics of a client instance (KIP-714)

The broker validates the subscription, the compression, the size and the interval. ApiVersions lists
the API only if `BrokerSettings.client_telemetry` is set.

Left out: the export of the metrics, which are dropped.
"""

from __future__ import annotations

from ...messages.push_telemetry_request import PushTelemetryRequest
from ...messages.push_telemetry_response import PushTelemetryResponse
from ...wire.errors import BrokerResponseError
from ..context import Context
from ..registry import handles


@handles(PushTelemetryRequest, versions=range(1))
def push_telemetry(
    context: Context, request: PushTelemetryRequest, version: int
) -> PushTelemetryResponse:
    """Accepts or refuses the metrics of a client instance."""
    telemetry = context.cluster.client_telemetry_of(context.node_id)
    try:
        telemetry.push(
            request.client_instance_id,
            request.subscription_id,
            compression=request.compression_type,
            size=len(request.metrics),
            is_terminating=request.terminating,
            now_ms=context.now.ms,
        )
    except BrokerResponseError as error:
        return PushTelemetryResponse(error_code=error.code)
    return PushTelemetryResponse()
