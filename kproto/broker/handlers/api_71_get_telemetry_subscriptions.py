"""GetTelemetrySubscriptions (71), v0 to v0.

v0      the metrics that a client instance must push (KIP-714)

The configs of client metrics subscriptions whose patterns match the client determine the metrics
and the push interval. ApiVersions lists the API only if `BrokerSettings.client_telemetry` is set.

Left out: matches of the client's software, whose name and version are empty.
"""

from __future__ import annotations

from ...messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from ...messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from ...wire.errors import BrokerResponseError
from ..client_telemetry import ACCEPTED_COMPRESSIONS, TELEMETRY_MAX_BYTES
from ..context import Context
from ..registry import handles


@handles(GetTelemetrySubscriptionsRequest, versions=range(1))
def get_telemetry_subscriptions(
    context: Context, request: GetTelemetrySubscriptionsRequest, version: int
) -> GetTelemetrySubscriptionsResponse:
    """Returns the subscription of a client instance, and a new id for a new instance."""
    labels = {"client_id": context.client_id or "", "client_source_address": context.host}
    telemetry = context.cluster.client_telemetry_of(context.node_id)
    try:
        instance_id, subscription = telemetry.subscribe(
            request.client_instance_id, labels, context.now.ms
        )
    except BrokerResponseError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=subscription.subscription_id,
        accepted_compression_types=ACCEPTED_COMPRESSIONS,
        push_interval_ms=subscription.push_interval_ms,
        telemetry_max_bytes=TELEMETRY_MAX_BYTES,
        delta_temporality=True,
        requested_metrics=subscription.metrics,
    )
