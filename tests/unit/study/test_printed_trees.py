"""Tests printed trees: JSON has the documented keys, and text fits the width of the terminal.

docs/how-to/decode.md documents the JSON.
"""

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from kproto.messages import ApiVersionsRequest, MetadataRequest, MetadataResponse
from kproto.protocol.framing import frame
from kproto.protocol.headers import encode_request_header
from kproto.records import encode_batch, encode_message_set
from kproto.study import (
    Node,
    annotate,
    annotate_frame,
    annotate_records,
    nodes,
    to_json,
    to_text,
)
from kproto.testing.instances import Fill, instance
from tests.support.pages import page_text
from tests.unit.messages.catalogue import NAMES, class_of

PAGE = page_text("docs/how-to/decode.md")
BATCH = encode_batch([(b"k", b"v", [("h", None)], 0)], compression="gzip")


@cache
def trees() -> list[Node]:
    """Returns several trees, which together have nodes of every kind."""
    sent = encode_request_header(MetadataRequest, 9, 7, "me")
    sent = frame(sent, MetadataRequest(topics=None).encode(9), b"behind")
    wrapped = encode_message_set([(b"k", b"v", (), 0)], magic=1, compression="gzip")
    metadata = encode_batch([(None, b"\1\2\0\0", (), 0)])
    made = [
        annotate_frame(sent),
        annotate_frame(sent[:-12]),
        annotate_frame(sent[4:]),
        annotate_records(BATCH + wrapped + BATCH[:-1]),
        annotate_records(metadata, records_of="__cluster_metadata"),
    ]
    for name in NAMES:
        cls = class_of(name)
        version = cls.VALID_VERSIONS[-1]
        made.append(annotate(instance(cls, version, Fill.FULL).encode(version), cls, version))
    return made


def test_each_node_has_the_keys_of_the_page() -> None:
    keys = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert len(keys) == 14
    for tree in trees():
        waiting = [to_json(tree)]
        while waiting:
            node = waiting.pop()
            assert list(node) == keys
            waiting += node["children"]


def test_the_page_names_every_kind_and_no_other() -> None:
    section = PAGE.partition("Each node has a kind:\n\n")[2].partition("\n\n")[0]
    told = set(re.findall(r"`([^`]+)`", section))
    found = {node.kind for tree in trees() for node in nodes(tree)}
    assert found == told


def test_json_of_any_value_is_json() -> None:
    for tree in trees():
        json.dumps(to_json(tree), allow_nan=False)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_narrow_lines_fit(width: int) -> None:
    response = MetadataResponse(cluster_id="5L6g3nShT-eMCtK--X86sw", brokers=[])
    for line in to_text(annotate(response.encode(9), MetadataResponse, 9), width=width):
        assert len(line) <= width or "  " not in line.strip()


def test_wide_lines_have_the_bytes() -> None:
    root = annotate(ApiVersionsRequest(client_software_name="kproto").encode(3), "ApiVersions", 3)
    for width, shown in ((90, "07 6b 70 72 6f 74 …"), (120, "07 6b 70 72 6f 74 6f")):
        assert any(shown in line for line in to_text(root, width=width))
    assert not any("07 6b" in line for line in to_text(root, width=89))


def test_offsets_in_what_was_compressed_have_a_tilde() -> None:
    lines = list(to_text(annotate_records(BATCH)))
    assert [line.strip() for line in lines if line.startswith("~") and "offset_delta" in line]
    assert not any(line.startswith("~") for line in lines if "base_offset" in line)
