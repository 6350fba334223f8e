"""Decodes bytes of Kafka's protocol to a tree that shows the value and the bytes of each field.

`annotate` (a message), `annotate_frame` (a message with size and header) and `annotate_records`
(record batches) return a tree of `Node`s. `to_text` and `to_json` format a tree. `guess` ranks the
messages that bytes could be. `read_bytes` parses hex, a hexdump or base64.

`conversations`, `flows` and `exchanges` read the traffic of captures, recordings and the proxy.
"""

from .frames import annotate, annotate_frame, annotate_frames, annotate_records, find_message_class
from .input_formats import read_bytes
from .json_form import to_json
from .message_guess import Guess, guess
from .node import DEFAULT_MAX_NODES, Fault, Node, faults, nodes
from .text_form import to_text

__all__ = [
    "DEFAULT_MAX_NODES",
    "Fault",
    "Guess",
    "Node",
    "annotate",
    "annotate_frame",
    "annotate_frames",
    "annotate_records",
    "faults",
    "find_message_class",
    "guess",
    "nodes",
    "read_bytes",
    "to_json",
    "to_text",
]
