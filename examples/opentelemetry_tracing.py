"""Traces through Kafka: OpenTelemetry spans for records that are sent and read.

    pip install opentelemetry-sdk
    python examples/opentelemetry_tracing.py localhost:9092 orders

The program sends a record, reads it, and prints its spans. Copy the class `Tracing`: its hooks send
the context of a trace in the header `traceparent` (W3C Trace Context). The names and attributes of
the spans follow OpenTelemetry's conventions for messaging.
"""

from __future__ import annotations

import asyncio
import sys

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import kproto

PROPAGATOR = TraceContextTextMapPropagator()


class Tracing(kproto.Hooks):
    """Makes a span for each sent record, from `send` to the ack, and for each traced record read.

    The span of a sent record is a child of the current span at the call of `send`. The span of a
    record that is read is a child of the sender's span and ends at once. A handler passes
    `context_of(record)` as the context of its own spans.
    """

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._in_flight: dict[bytes, trace.Span] = {}  # by traceparent, until acknowledged

    def on_send(self, topic: str, record: kproto.ProducerRecord) -> kproto.ProducerRecord:
        # A record that is sent again or forwarded has an old header: replace it.
        others = [header for header in record.headers if header[0] not in PROPAGATOR.fields]
        span = self._tracer.start_span(
            f"send {topic}", kind=SpanKind.PRODUCER, attributes=attributes("send", topic)
        )
        carrier: dict[str, str] = {}
        PROPAGATOR.inject(carrier, trace.set_span_in_context(span))
        if "traceparent" not in carrier:  # without a configured SDK, there is no context to send
            return record
        self._in_flight[carrier["traceparent"].encode()] = span
        mine = [(name, value.encode()) for name, value in carrier.items()]
        return record._replace(headers=(*others, *mine))

    def on_ack(self, event: kproto.AckEvent) -> None:
        # The record may have had more headers of this name; that of `on_send` is the last.
        values = [header[-1] for header in event.record.headers if header[0] == "traceparent"]
        span = self._in_flight.pop(values[-1] or b"", None) if values else None
        if span is None:
            return
        if event.error is None:
            span.set_attribute("messaging.destination.partition.id", str(event.partition))
            span.set_attribute("messaging.kafka.offset", event.offset)
        else:
            span.record_exception(event.error)
            span.set_status(Status(StatusCode.ERROR, str(event.error)))
        span.end()

    def on_records(
        self, topic: str, partition: int, records: list[kproto.Record]
    ) -> list[kproto.Record]:
        for record in records:
            context = context_of(record)
            if context is not None:
                span = self._tracer.start_span(
                    f"receive {topic}",
                    context,
                    kind=SpanKind.CONSUMER,
                    attributes=attributes("receive", topic)
                    | {
                        "messaging.destination.partition.id": str(partition),
                        "messaging.kafka.offset": record.offset,
                    },
                )
                span.end()
        return records


def attributes(operation: str, topic: str) -> dict[str, str | int]:
    """Returns the attributes of a span for an operation on a topic."""
    return {
        "messaging.system": "kafka",
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
        "messaging.destination.name": topic,
    }


def context_of(record: kproto.Record) -> Context | None:
    """Returns the trace context of a record's sender; None if the record has none."""
    carrier = {
        name: value.decode("ascii", "replace")
        for name, value in record.headers
        if name in PROPAGATOR.fields and value is not None
    }
    return PROPAGATOR.extract(carrier) if "traceparent" in carrier else None


async def main(bootstrap: str, topic: str) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    tracer = provider.get_tracer("kproto")
    settings = kproto.ClientSettings(hooks=Tracing(tracer))
    async with kproto.Client(bootstrap, settings) as client:
        with tracer.start_as_current_span("an order comes in"):
            async with client.producer() as producer:
                ack = await producer.send(topic, b"two apples")
        place = (topic, ack.partition)
        consumer = client.consumer([place], start={place: ack.offset}, stop_at_end=True)
        async for record in consumer:
            with tracer.start_as_current_span("the order is packed", context_of(record)):
                await asyncio.sleep(0)  # the work


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"pass a broker and a topic: python {sys.argv[0]} localhost:9092 orders")
    try:
        asyncio.run(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        pass
    except kproto.KprotoError as error:
        sys.exit(str(error))
