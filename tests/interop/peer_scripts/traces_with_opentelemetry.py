"""Runs the tracing example with OpenTelemetry's SDK: `EXAMPLE BOOTSTRAP`; prints spans as JSON.

Sends the record `own` to topic t without a trace, then three records with a trace. Fails to send a
record to a missing topic, and sends that record to topic t. Fails to send records with invalid
headers. Then reads topic t.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sys

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import kproto


async def main(example: str, bootstrap: str) -> None:
    spec = importlib.util.spec_from_file_location("example", example)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    tracer = provider.get_tracer("test")
    hooks = module.Tracing(tracer)
    settings = kproto.ClientSettings(hooks=hooks, metadata_wait_ms=100)
    async with kproto.Client(bootstrap) as plain, plain.producer() as producer:
        await producer.send("t", b"own", headers=[("own", b"1")])
    async with kproto.Client(bootstrap, settings) as client:
        with tracer.start_as_current_span("work"):
            async with client.producer() as producer:
                await producer.send("t", b"one", headers=[("own", b"1")])
                await producer.send_many("t", [b"two", b"three"])
                try:
                    await producer.send("none", b"four")
                except kproto.DeliveryError as failed:
                    (record,) = failed.records
                await producer.send_many("t", [record])
            await client.create_topics("refused")
            for wrong in ([("short",)], 5):
                with contextlib.suppress(kproto.EncodeError):
                    async with client.producer() as producer:
                        await producer.send("refused", b"five", headers=wrong)  # type: ignore[arg-type]
        read = [record async for record in client.consumer("t", stop_at_end=True)]
    assert not hooks._in_flight
    context = module.context_of(read[1])
    assert context is not None
    with tracer.start_as_current_span("processed", context):
        pass
    told = [
        {
            "name": span.name,
            "kind": span.kind.name,
            "trace": span.context.trace_id,
            "span": span.context.span_id,
            "parent": None if span.parent is None else span.parent.span_id,
            "status": span.status.status_code.name,
            "attributes": dict(span.attributes or {}),
        }
        for span in spans.get_finished_spans()
    ]
    headers = [[name for name, _ in record.headers] for record in read]
    print(json.dumps({"spans": told, "headers": headers}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
