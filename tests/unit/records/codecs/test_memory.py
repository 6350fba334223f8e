"""Tests how much memory Python and the process use to read a valid or broken batch.

Each batch is read in a process of its own, because compression libraries allocate memory that
Python does not count, and keep this memory.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cramjam
import pytest
import zstandard

from kproto.records import codec_for_name
from kproto.records.codecs.zstd_frame import frames_in, with_small_window
from kproto.records.varints import encode_varint
from tests.support.selection import rest_slow

from ..batches import batch_bytes

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc"
)

MB = 1 << 20
BLOCK = 131_072
BLOCKS = 990
WHOLE = BLOCK * BLOCKS  # just below the default bound of 128 MiB
NOISE = random.Random(1).randbytes(60)

READER = """
import json, sys, tracemalloc
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
from kproto.records import RecordBatch, encode_batch
from kproto.wire.errors import CorruptBatchError

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

data = sys.stdin.buffer.read()
batch = RecordBatch(data)
small = encode_batch([(b"k", b"v", (), 1)], compression=batch.compression)
RecordBatch(small).records()
tracemalloc.start()
before = peak()
try:
    said = f"{len(batch.records())} records"
except CorruptBatchError as error:
    said = str(error)
taken = peak() - before
print(json.dumps([said, tracemalloc.get_traced_memory()[1], taken]))
"""


class Read(NamedTuple):
    """The outcome of reading a batch, and the peak memory in bytes of Python and the process."""

    said: str
    traced: int
    resident: int


def read_in_a_process(data: bytes, codec: str, count: int, missing: list[str]) -> Read:
    batch = batch_bytes(
        data,
        attributes=codec_for_name(codec).id,
        record_count=count,
        last_offset_delta=count - 1,
    )
    command = [sys.executable, "-c", READER, json.dumps(missing)]
    done = subprocess.run(command, input=batch, stdout=subprocess.PIPE, check=True)
    return Read(*json.loads(done.stdout))


def header(descriptor: int, declared: int | None) -> bytes:
    """Returns the header of a zstd frame.

    The header declares the content size `declared`; if `declared` is None, it declares only a
    window of 2 MiB.
    """
    rest = b"\x58" if declared is None else declared.to_bytes(8, "little")
    return b"\x28\xb5\x2f\xfd" + bytes([descriptor]) + rest


def zeros(count: int, *, is_last: bool = True) -> bytes:
    """Returns `count` zstd blocks; each has four bytes and decompresses to `BLOCK` zeros."""
    block = (BLOCK << 3 | 2).to_bytes(3, "little") + b"\0"
    last = (BLOCK << 3 | 3).to_bytes(3, "little") + b"\0"
    return block * (count - 1) + (last if is_last else block)


def broken_block() -> bytes:
    return (len(NOISE) << 3 | 5).to_bytes(3, "little") + NOISE


def large_record(size: int) -> bytes:
    """Returns a record of zeros of about `size` bytes."""
    body = b"\0\0\0\1" + encode_varint(size - 20)
    return encode_varint(len(body) + size - 20 + 1) + body + bytes(size - 20) + b"\0"


def broken_lz4() -> bytes:
    return bytes(cramjam.lz4.compress(bytes(WHOLE)))[:-30] + NOISE[:30]


def broken_gzip() -> bytes:
    return gzip.compress(bytes(WHOLE))[:-8] + b"abcdefgh"


#: Each codec, and a function that makes the data, which may take a second.
BROKEN: dict[str, tuple[str, Callable[[], bytes]]] = {
    "zstd, the last block": ("zstd", lambda: header(0xE0, WHOLE + BLOCK)
                             + zeros(BLOCKS, is_last=False) + broken_block()),
    "zstd, the checksum": ("zstd", lambda: header(0xE4, WHOLE) + zeros(BLOCKS) + b"abcd"),
    "zstd, the size": ("zstd", lambda: header(0xE0, WHOLE - 1) + zeros(BLOCKS)),
    "zstd of a window, the checksum": (
        "zstd", lambda: header(0x04, None) + zeros(BLOCKS) + b"abcd"),
    "zstd of many frames, the last": ("zstd", lambda: (header(0x00, None) + zeros(30)) * 33
                                      + header(0x04, None) + zeros(1) + b"abcd"),
    "gzip, the checksum": ("gzip", broken_gzip),
    "lz4, the last block": ("lz4", broken_lz4),
}  # fmt: skip

FASTER = ["zstandard", "zlib_ng", "zlib_ng.zlib_ng"]


@pytest.mark.parametrize("name", rest_slow(BROKEN, 0, 5))
def test_data_broken_at_its_end_uses_little_memory(name: str) -> None:
    """Most inputs have about 4 KB, and decompress to a hundred megabytes before the fault."""
    codec, make = BROKEN[name]
    read = read_in_a_process(make(), codec, 1, [])
    assert f"{codec}: " in read.said
    assert read.traced < 24 * MB
    assert read.resident < 24 * MB


@pytest.mark.parametrize(
    "name", rest_slow(["zstd of a window, the checksum", "gzip, the checksum"], 0, 1)
)
def test_broken_data_uses_little_memory_without_the_faster_packages(name: str) -> None:
    codec, make = BROKEN[name]
    read = read_in_a_process(make(), codec, 1, FASTER)
    assert f"{codec}: " in read.said
    assert read.traced < 24 * MB
    assert read.resident < 24 * MB


@pytest.mark.parametrize("missing", [[], FASTER], ids=["faster", "plain"])
@pytest.mark.parametrize("codec", rest_slow(["zstd", "gzip", "lz4"], 0, 1))
def test_a_bad_record_is_found_before_good_records_are_copied(
    codec: str, missing: list[str]
) -> None:
    """Until the bad record is found, the reader uses memory only for the decompressed data."""
    whole = large_record(WHOLE)
    compress = codec_for_name(codec).compress
    read = read_in_a_process(compress(whole + b"\0", 1), codec, 2, missing)
    assert "record 1" in read.said
    assert read.traced < 1.2 * WHOLE
    assert read.resident < 1.2 * WHOLE


@pytest.mark.parametrize("missing", [[], FASTER], ids=["faster", "plain"])
@pytest.mark.parametrize("codec", rest_slow(["zstd", "gzip", "snappy", "lz4"], 0, 1))
def test_a_valid_batch_uses_twice_its_size(codec: str, missing: list[str]) -> None:
    """The reader uses memory for the decompressed data, and as much again for the record values."""
    read = read_in_a_process(
        codec_for_name(codec).compress(large_record(WHOLE), 1), codec, 1, missing
    )
    assert read.said == "1 records"
    assert read.traced < 2.2 * WHOLE
    assert read.resident < 2.2 * WHOLE


def far_reference(near: int, far: int) -> tuple[bytes, bytes]:
    """Returns data in which noise repeats after `far` zeros, and a zstd frame of the data.

    The noise has `near` bytes, so the frame refers far back in its window.
    """
    noise = random.Random(near).randbytes(near)
    whole = noise + bytes(far) + noise
    parameters = zstandard.ZstdCompressionParameters.from_level(
        19, window_log=25, enable_ldm=True, write_content_size=True
    )
    return whole, zstandard.ZstdCompressor(compression_params=parameters).compress(whole)


@pytest.mark.slow
def test_zstd_references_beyond_8_mib_are_read_unless_data_grows_a_thousandfold() -> None:
    zstd = codec_for_name("zstd")
    whole, frame = far_reference(50_000, 20_000_000)
    assert 64 * len(frame) < len(whole) < 1000 * len(frame)
    assert len(frame) < 60_000  # the second noise refers to the first
    assert zstd.decompress(frame, 1 << 27) == whole
    whole, frame = far_reference(12_000, 20_000_000)
    assert 1000 * len(frame) < len(whole)
    assert len(frame) < 18_000
    with pytest.raises(ValueError, match="zstd: "):
        zstd.decompress(frame, 1 << 27)
    with pytest.raises(ValueError, match="bound of 19999999"):
        zstd.decompress(frame, 19_999_999)


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("window_log", [20, 23, 24])
def test_frames_with_a_small_window_are_read(
    declared: bool, checksum: bool, window_log: int
) -> None:
    whole = b"".join(b"%d, " % number for number in range(1_000)) * 3_000
    parameters = zstandard.ZstdCompressionParameters.from_level(
        1, window_log=window_log, write_checksum=checksum
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj(
        size=len(whole) if declared else -1
    )
    frame = compressor.compress(whole) + compressor.flush()
    small = with_small_window(frame)
    assert (small is frame) is (window_log <= 23)
    [(start, end, _, _)] = frames_in(small)
    assert (start, end) == (0, len(small))
    with zstandard.ZstdDecompressor(max_window_size=1 << 23).stream_reader(small) as reader:
        assert reader.read(len(whole) + 1) == whole
    assert codec_for_name("zstd").decompress(frame, 1 << 27) == whole


def test_a_zstd_block_of_more_than_128_kib_is_refused() -> None:
    block = ((BLOCK + 1) << 3 | 3).to_bytes(3, "little") + b"\0"
    with pytest.raises(ValueError, match="a block of 131073 bytes, more than 131072"):
        codec_for_name("zstd").decompress(header(0x00, None) + block, 1 << 27)
