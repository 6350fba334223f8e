"""Any bytes of Kafka's protocol, taken apart for people.

`annotate` (a message), `annotate_frame` (with size and header) and `annotate_records` (record
batches) give a tree of `Node`s; `guess` says which messages bytes could be; `read_bytes` makes
bytes of hex, a hexdump or base64; `to_text` and `to_json` show a tree. Stands on the layouts of
`kproto.schema` and on `kproto.protocol`; knows no client, no broker, no socket and no clock.
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
