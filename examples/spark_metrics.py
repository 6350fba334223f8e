"""Serves the metrics of a streaming query to Prometheus, with a web server of Python's library.

Usage: python examples/spark_metrics.py BOOTSTRAP TOPIC [PORT]

Reads the topic as a stream, and serves http://localhost:PORT/metrics (9400 by default) until the
query ends. Needs the extra `kproto[spark]`.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryDirectory
from threading import Thread

from kproto_pipeline import register
from kproto_pipeline.metrics import StreamMetrics
from pyspark.sql import SparkSession


def serve(metrics: StreamMetrics, port: int) -> ThreadingHTTPServer:
    """Starts a web server for the metrics in a thread; returns the server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = metrics.prometheus().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_request(self, *arguments: object) -> None:
            """Logs nothing: Prometheus sends a request every few seconds."""

    server = ThreadingHTTPServer(("localhost", port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(bootstrap: str, topic: str, port: str = "9400") -> None:
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    metrics = StreamMetrics()
    spark.streams.addListener(metrics)
    with serve(metrics, int(port)) as server, TemporaryDirectory() as checkpoint:
        query = (
            spark.readStream.format("kproto")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .load()
            .writeStream.format("console")
            .queryName(topic)
            .option("checkpointLocation", checkpoint)
            .start()
        )
        query.awaitTermination()
        server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
