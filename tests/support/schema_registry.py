"""A schema registry in memory: the requests by which clients register and look up schemas."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["schema_registry"]


class _Schemas:
    """The registered schemas; the id of a schema is its index plus 1."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    def register(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        """Returns the registered schema, as an answer of a registry."""
        text, kind = body["schema"], body.get("schemaType", "AVRO")
        with self.lock:
            for each in self.bodies:
                if (each["schema"], each["schemaType"]) == (text, kind):
                    return {**each, "subject": subject, "version": 1}
            number = len(self.bodies) + 1
            found = {
                "id": number,
                "guid": str(uuid.UUID(int=number)),
                "schema": text,
                "schemaType": kind,
            }
            self.bodies.append(found)
            return {**found, "subject": subject, "version": 1}

    def find(self, name: str, value: str) -> dict[str, Any] | None:
        return next((each for each in self.bodies if str(each[name]) == value), None)


def _handler(schemas: _Schemas) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Prints nothing."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            subject = self.path.partition("?")[0].split("/")[2]
            self._answer(schemas.register(subject, body))

        def do_GET(self) -> None:
            match self.path.partition("?")[0].split("/")[1:]:
                case ["schemas", "ids", number]:
                    self._answer(schemas.find("id", number))
                case ["schemas", "guids", guid]:
                    self._answer(schemas.find("guid", guid))
                case _:
                    self._answer(None)

        def _answer(self, body: dict[str, Any] | None) -> None:
            data = json.dumps(body or {"error_code": 40403, "message": "not found"}).encode()
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


@contextmanager
def schema_registry() -> Iterator[str]:
    """Yields the URL of a registry that runs in a thread of this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(_Schemas()))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
