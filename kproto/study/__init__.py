"""Decodes bytes of Kafka's protocol to a tree that shows the value and the bytes of each field.

`annotate` (a message), `annotate_frame` (a message with size and header) and `annotate_records`
(record batches) return a tree of `Node`s; so do `annotate_key` and `annotate_value` for a record
of one of Kafka's internal topics. `to_text` and `to_json` format a tree. `guess` ranks the
messages that bytes could be. `read_bytes` parses pasted text.

`conversations`, `flows` and `exchanges` read the traffic of captures, recordings and the proxy.
"""

from .frames import annotate, annotate_frame, annotate_frames, annotate_records, find_message_class
from .input_formats import read_bytes
from .json_form import to_json
from .message_guess import Guess, guess
from .node import DEFAULT_MAX_NODES, Fault, Node, faults, nodes
from .stored_parts import annotate_key, annotate_value
from .text_form import to_text

__all__ = [
    "DEFAULT_MAX_NODES",
    "Fault",
    "Guess",
    "Node",
    "annotate",
    "annotate_frame",
    "annotate_frames",
    "annotate_key",
    "annotate_records",
    "annotate_value",
    "faults",
    "find_message_class",
    "guess",
    "nodes",
    "read_bytes",
    "to_json",
    "to_text",
]
