"""Tests codecs: bounded output, framings, levels, and errors for missing packages."""

from __future__ import annotations

import gzip
import random
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import (
    CODECS,
    BatchBuilder,
    Codec,
    NewRecord,
    RecordBatch,
    codec_for_id,
    codec_for_name,
    encode_batch,
    read_batches,
)
from kproto.records.codecs.compression import level_for
from kproto.records.codecs.gzip import zlib_library
from kproto.records.codecs.zstd import zstandard_package, zstd_of_standard_library
from kproto.records.magic2.batch_header import HEADER_BYTES
from kproto.wire.errors import ConfigurationError, CorruptBatchError, MissingCodecError

from ..batches import COMPILED, T, batch_bytes

COMPRESSING = [codec for codec in CODECS if codec.id]
RECORDS: list[NewRecord] = [(b"key", b"value " * 10, [("h", b"v")], T)] * 50

codecs = pytest.mark.parametrize("codec", COMPRESSING, ids=lambda codec: codec.name)


LOOKED_FOR_ONCE = (zlib_library, zstandard_package, zstd_of_standard_library)


@pytest.fixture(autouse=True, params=["the faster packages", "none of them"])
def packages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs each test with the faster packages (zlib-ng and zstandard) and without them."""
    for look in LOOKED_FOR_ONCE:
        look.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "none of them":
            patch.setitem(sys.modules, "zlib_ng.zlib_ng", None)
            patch.setitem(sys.modules, "zstandard", None)
        yield
    for look in LOOKED_FOR_ONCE:
        look.cache_clear()


def test_ids_are_those_of_kafka() -> None:
    assert [(codec.id, codec.name) for codec in CODECS] == [
        (0, "none"),
        (1, "gzip"),
        (2, "snappy"),
        (3, "lz4"),
        (4, "zstd"),
    ]
    for codec in CODECS:
        assert codec_for_id(codec.id) is codec_for_name(codec.name) is codec


@codecs
@given(st.binary(max_size=3000), st.integers(1, 200))
def test_round_trip(codec: Codec, data: bytes, times: int) -> None:
    whole = data * times
    packed = codec.compress(whole, codec.default_level)
    assert codec.decompress(packed, max(len(whole), 1)) == whole


@codecs
@pytest.mark.parametrize("size", [1000, 100_000, 3_000_000])
def test_the_bound_is_exact(codec: Codec, size: int) -> None:
    packed = codec.compress(b"a" * size, codec.default_level)
    assert len(codec.decompress(packed, size)) == size
    with pytest.raises(ValueError, match=f"bound of {size - 1} bytes"):
        codec.decompress(packed, size - 1)


@codecs
@given(st.binary(min_size=1, max_size=3000), st.integers(1, 50), st.integers(-2, 40))
def test_decompress_into_writes_only_inside_the_buffer(
    codec: Codec, data: bytes, times: int, spare: int
) -> None:
    """`decompress_into` returns None if the buffer is too small for the data.

    If the buffer has exactly the size of the data, `decompress_into` may return None, too.
    """
    whole = data * times
    size = len(whole) + spare
    packed = codec.compress(whole, codec.default_level)
    buffer = bytearray(b"#" * (max(size, 0) + 100))
    written = codec.decompress_into(packed, memoryview(buffer)[: max(size, 0)])
    assert buffer[max(size, 0) :] == b"#" * 100
    if spare < 0:
        assert written is None
    elif spare > 0 or written is not None:
        assert written == len(whole)
        assert buffer[:written] == whole


@codecs
@given(st.binary(max_size=300), st.data())
def test_decompress_into_refuses_the_data_that_decompress_refuses(
    codec: Codec, data: bytes, draws: st.DataObject
) -> None:
    """For changed, cut or doubled input, `decompress_into` agrees with `decompress`, or is None."""
    packed = bytearray(codec.compress(data, codec.default_level) * draws.draw(st.integers(1, 2)))
    if packed and draws.draw(st.booleans()):
        packed[draws.draw(st.integers(0, len(packed) - 1))] = draws.draw(st.integers(0, 255))
    fed = bytes(packed[: draws.draw(st.integers(0, len(packed)))])
    buffer = bytearray(2000)
    written = codec.decompress_into(fed, memoryview(buffer))
    if written is not None:
        assert codec.decompress(fed, 2000) == buffer[:written]


@codecs
def test_a_batch_that_exceeds_the_bound_is_an_error(codec: Codec) -> None:
    data = encode_batch([(None, bytes(1 << 20), (), T)], compression=codec.name)
    [batch] = read_batches(data)
    with pytest.raises(CorruptBatchError, match="bound of 1000000 bytes"):
        batch.records(max_decompressed_bytes=1_000_000)
    assert len(batch.records()) == 1


@codecs
def test_data_cut_short_is_an_error(codec: Codec) -> None:
    packed = codec.compress(bytes(range(256)) * 20, codec.default_level)
    for size in range(len(packed)):
        try:
            whole = codec.decompress(packed[:size], 1 << 20)
        except ValueError:
            continue
        # A cut between two snappy blocks is no error of the codec; the record count finds it.
        assert codec.name == "snappy"
        assert len(whole) < 256 * 20


@codecs
def test_noise_is_an_error_of_the_batch(codec: Codec) -> None:
    for noise in (b"", b"\x00", b"noise, and more of it", b"\xff" * 100):
        batch = RecordBatch(batch_bytes(noise, attributes=codec.id))
        with pytest.raises(CorruptBatchError):
            batch.records()


@codecs
def test_levels_change_the_size_and_nothing_else(codec: Codec) -> None:
    if codec.levels is None:
        return
    lowest, highest = codec.levels
    data = b"".join(b"%d, " % (number * number % 9973) for number in range(5000))
    sizes = set()
    for level in {max(lowest, 1), highest}:
        packed = codec.compress(data, level)
        assert codec.decompress(packed, len(data)) == data
        sizes.add(len(packed))
        built = encode_batch([(None, data, (), T)], compression=codec.name, compression_level=level)
        assert RecordBatch(built).records()[0].value == data
        plain = encode_batch([(None, data, (), T)])[HEADER_BYTES:]
        assert built[HEADER_BYTES:] == codec.compress(plain, level)
    assert len(sizes) == 2
    with pytest.raises(ConfigurationError, match=f"not valid for {codec.name}"):
        BatchBuilder(compression=codec.name, compression_level=highest + 1)


def test_levels_are_those_of_kafka() -> None:
    """The levels must be those of CompressionType in Kafka 4.4; -1 is the default level of gzip."""
    assert {codec.name: codec.levels for codec in CODECS if codec.levels} == {
        "gzip": (1, 9),
        "lz4": (1, 17),
        "zstd": (-131072, 22),
    }
    assert level_for(codec_for_name("gzip"), -1) == -1
    for level in (0, 10, -2):
        with pytest.raises(ConfigurationError, match="not valid for gzip: use 1 to 9"):
            level_for(codec_for_name("gzip"), level)
    wrong: Any = "9"
    with pytest.raises(TypeError if COMPILED else ConfigurationError):
        level_for(codec_for_name("zstd"), wrong)
    for name in ("none", "snappy"):
        with pytest.raises(ConfigurationError, match="has no levels"):
            level_for(codec_for_name(name), 0)


@codecs
def test_nothing_fits_a_bound_below_zero(codec: Codec) -> None:
    packed = codec.compress(b"abc", codec.default_level)
    for bound in (-1, -5):
        with pytest.raises(ValueError, match=f"bound of {bound} bytes"):
            codec.decompress(packed, bound)


def test_a_zstd_frame_without_its_size_does_not_fit_a_bound_below_zero() -> None:
    frame = zstd_frame(b"abc", level=3, declared=False, checksum=False)
    with pytest.raises(ValueError, match="bound of -1 bytes"):
        codec_for_name("zstd").decompress(frame, -1)


def test_an_unknown_codec_is_an_error_of_the_batch() -> None:
    data = batch_bytes(b"x", attributes=5)
    with pytest.raises(CorruptBatchError, match="unknown compression codec 5"):
        next(read_batches(data))
    with pytest.raises(CorruptBatchError, match="unknown compression codec 5"):
        RecordBatch(data).records()


def test_gzip_with_several_members_is_read() -> None:
    packed = gzip.compress(b"one, ") + gzip.compress(b"two")
    assert codec_for_name("gzip").decompress(packed, 8) == b"one, two"
    with pytest.raises(ValueError, match="bound of 7"):
        codec_for_name("gzip").decompress(packed, 7)


@pytest.mark.slow
def test_many_small_gzip_members_take_linear_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If each member copied the rest of the input, 1 MB would take seconds, and 16 MB minutes."""
    fed = 0

    class Counting:
        def __init__(self, wbits: int) -> None:
            self._inflater = begin(wbits)

        def decompress(self, data: bytes, max_length: int) -> bytes:
            nonlocal fed
            fed += len(data)
            return bytes(self._inflater.decompress(data, max_length))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inflater, name)

    library = zlib_library()
    begin = library.decompressobj
    monkeypatch.setattr(library, "decompressobj", Counting)
    parts = [b"", b"x", bytes(100), random.Random(5).randbytes(5000)] * 1000
    packed = b"".join(gzip.compress(part) for part in parts)
    whole = b"".join(parts)
    assert codec_for_name("gzip").decompress(packed, len(whole)) == whole
    assert fed < 4 * len(packed)
    with pytest.raises(ValueError, match=f"bound of {len(whole) - 1} bytes"):
        codec_for_name("gzip").decompress(packed, len(whole) - 1)
    with pytest.raises(ValueError, match="ends before the stream"):
        codec_for_name("gzip").decompress(packed[:-1], len(whole))


def test_snappy_is_written_with_the_framing_of_snappy_java() -> None:
    packed = codec_for_name("snappy").compress(bytes(70_000), 0)
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    sizes, pos = [], 16
    while pos < len(packed):
        block = int.from_bytes(packed[pos : pos + 4], "big")
        sizes.append(len(bytes(cramjam.snappy.decompress_raw(packed[pos + 4 : pos + 4 + block]))))
        pos += 4 + block
    assert sizes == [32768, 32768, 70_000 - 65_536]


def test_snappy_is_read_raw_and_joined_too() -> None:
    snappy = codec_for_name("snappy")
    raw = bytes(cramjam.snappy.compress_raw(b"raw " * 100))
    assert snappy.decompress(raw, 400) == b"raw " * 100
    with pytest.raises(ValueError, match="bound of 399"):
        snappy.decompress(raw, 399)
    joined = snappy.compress(b"one, ", 0) + snappy.compress(b"two", 0)
    assert snappy.decompress(joined, 8) == b"one, two"


def test_a_wrong_snappy_length_is_an_error() -> None:
    header = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    for bad in (
        b"\x00\x00\x00\x09abc",
        b"\x00\x00\x00\x00",
        b"\xff\xff\xff\xff" + b"x" * 20,
        b"\x00",
        header[:9],
    ):
        with pytest.raises(ValueError, match="snappy"):
            codec_for_name("snappy").decompress(header + bad, 1000)


def test_lz4_frames_have_independent_blocks_as_kafka_requires() -> None:
    packed = codec_for_name("lz4").compress(bytes(200_000), 1)
    assert packed[:4] == bytes.fromhex("04224d18")
    version, independent = packed[4] >> 6, packed[4] >> 5 & 1
    assert (version, independent) == (1, 1)


@pytest.mark.parametrize("name", ["snappy", "lz4", "zstd"])
def test_a_missing_package_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = encode_batch(RECORDS, compression=name)
    for package in ("cramjam", "compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, package, None)
    zstandard_package.cache_clear()
    zstd_of_standard_library.cache_clear()
    [batch] = read_batches(data)
    assert batch.record_count == len(RECORDS)
    with pytest.raises(MissingCodecError, match=rf"'{name}'.*kproto\[compression\]"):
        batch.records()
    with pytest.raises(MissingCodecError, match=rf"'{name}'.*kproto\[compression\]"):
        encode_batch(RECORDS, compression=name)


class ZstdError(Exception):
    """The error of the fake `compression.zstd` module."""


class ZstdDecompressor:
    """Fakes `compression.zstd.ZstdDecompressor` with cramjam, as far as the codec uses it."""

    def __init__(self) -> None:
        self.eof = False
        self.unused_data = b""
        self._rest = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        whole = self._rest
        if data:
            try:
                whole = bytes(cramjam.zstd.decompress(data))
            except cramjam.DecompressionError as error:
                if "incomplete" in str(error):
                    return b""
                raise ZstdError(str(error)) from None
        self.eof = bool(whole) and len(whole) <= max_length
        self._rest = whole[max_length:]
        return whole[:max_length]


@pytest.fixture
def zstd_in_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installs a fake of Python 3.14's `compression.zstd` and hides cramjam."""

    def compress(data: bytes, level: int) -> bytes:
        return bytes(cramjam.zstd.compress(data, level))

    module = SimpleNamespace(
        compress=compress, ZstdDecompressor=ZstdDecompressor, ZstdError=ZstdError
    )
    monkeypatch.setitem(sys.modules, "compression", ModuleType("compression"))
    monkeypatch.setitem(sys.modules, "compression.zstd", module)
    monkeypatch.setitem(sys.modules, "cramjam", None)


@pytest.mark.usefixtures("zstd_in_the_standard_library")
def test_zstd_of_the_standard_library_is_used_if_available() -> None:
    data = encode_batch(RECORDS, compression="zstd")
    [batch] = read_batches(data)
    assert [record.value for record in batch.records()] == [row[1] for row in RECORDS]
    zstd = codec_for_name("zstd")
    packed = zstd.compress(b"a" * 1000, 3)
    with pytest.raises(ValueError, match="bound of 999"):
        zstd.decompress(packed, 999)
    with pytest.raises(ValueError, match="ends before the stream"):
        zstd.decompress(packed[:-3], 1000)
    with pytest.raises(ValueError, match="zstd: "):
        zstd.decompress(b"noise and noise", 1000)
    with pytest.raises(ValueError, match="zstd: no data"):
        zstd.decompress(b"", 1000)


def test_the_faster_packages_are_used_if_installed(request: pytest.FixtureRequest) -> None:
    installed = "the faster packages" in request.node.name
    assert (zlib_library().__name__ == "zlib_ng.zlib_ng") is installed
    assert (zstandard_package() is not None) is installed


@given(
    data=st.binary(max_size=3000),
    times=st.integers(1, 100),
    level=st.sampled_from([-5, 1, 3, 19]),
    declared=st.booleans(),
    checksum=st.booleans(),
)
def test_zstd_frames_of_every_form_are_read(
    data: bytes, times: int, level: int, declared: bool, checksum: bool
) -> None:
    """A frame may have a content size or not (as from Java's streams), and a checksum or not."""
    whole = data * times
    frame = zstd_frame(whole, level=level, declared=declared, checksum=checksum)
    zstd = codec_for_name("zstd")
    assert zstd.decompress(frame, max(len(whole), 1)) == whole
    if whole:
        with pytest.raises(ValueError, match=f"bound of {len(whole) - 1} bytes"):
            zstd.decompress(frame, len(whole) - 1)
    buffer = bytearray(len(whole) + 10)
    assert zstd.decompress_into(frame, memoryview(buffer)) == len(whole)
    assert buffer == whole + bytes(10)


def zstd_frame(data: bytes, *, level: int, declared: bool, checksum: bool) -> bytes:
    compressor = zstandard.ZstdCompressor(
        level=level, write_content_size=declared, write_checksum=checksum
    ).compressobj(size=len(data) if declared else -1)
    return compressor.compress(data) + compressor.flush()


def test_zstd_frames_may_be_joined_and_skipped() -> None:
    """Frames may be concatenated, with skippable frames between them (RFC 8878, 3 and 3.1.2)."""
    zstd = codec_for_name("zstd")
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    packed = zstd.compress(b"one, ", 3) + skippable + zstd.compress(b"two", 3)
    assert zstd.decompress(packed, 8) == b"one, two"
    with pytest.raises(ValueError, match="bound of 7"):
        zstd.decompress(packed, 7)


EMPTY, SKIPPABLE = b"", b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([b"one, ", b"two"], id="two frames"),
        pytest.param([EMPTY, b"one"], id="an empty frame in front"),
        pytest.param([b"one", EMPTY, b"two"], id="an empty frame between"),
        pytest.param([SKIPPABLE, b"one", SKIPPABLE, b"two"], id="skippable frames"),
        pytest.param([b"x" * 300_000, b"y" * 300_000], id="frames of several blocks"),
    ],
)
def test_every_zstd_frame_is_read(parts: list[bytes], declared: bool, checksum: bool) -> None:
    """All frames are read, with or without content sizes; other bytes after them are an error."""
    frames = b"".join(
        part
        if part is SKIPPABLE
        else zstd_frame(part, level=3, declared=declared, checksum=checksum)
        for part in parts
    )
    whole = b"".join(part for part in parts if part is not SKIPPABLE)
    zstd = codec_for_name("zstd")
    buffer = memoryview(bytearray(len(whole) + 10))
    assert zstd.decompress(frames, len(whole)) == whole
    written = zstd.decompress_into(frames, buffer)
    assert written is None or buffer[:written] == whole
    for behind in (b"\x00", b"garbage"):
        with pytest.raises(ValueError, match="zstd: "):
            zstd.decompress(frames + behind, len(whole))
        assert zstd.decompress_into(frames + behind, buffer) is None


def test_an_impossible_zstd_size_is_not_allocated() -> None:
    """A frame of a few bytes declares a content of 2 GiB, which is below the bound of the read."""
    frame = bytes.fromhex("28b52ffd") + b"\xa0" + (2**31).to_bytes(4, "little") + b"\x01\x00\x00"
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="zstd"):
            codec_for_name("zstd").decompress(frame, 2**32)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def hostile_zstd(*, declared: int | None, blocks: int = 500) -> bytes:
    """Returns a zstd frame whose blocks are complete and marked as compressed, but are noise."""
    noise = random.Random(blocks)
    if declared is None:
        frame = bytes.fromhex("28b52ffd 00 58")
    else:
        frame = bytes.fromhex("28b52ffd 80 58") + declared.to_bytes(4, "little")
    for index in range(blocks):
        header = 5 << 3 | 2 << 1 | (index == blocks - 1)
        frame += header.to_bytes(3, "little") + noise.randbytes(5)
    return frame


def text_of(size: int) -> bytes:
    noise = random.Random(size)
    return b"".join(b"%d, %d; " % (n % 97, noise.randrange(10)) for n in range(size // 6))


@codecs
def test_broken_data_is_refused_before_much_memory_is_used(codec: Codec) -> None:
    """Reading some kilobytes of broken input must use far less memory than the bound of 128 MiB."""
    packed = codec.compress(text_of(50_000), codec.default_level)
    assert 3000 < len(packed) < 60_000
    draw = random.Random(codec.id)
    broken = [packed[: draw.randrange(len(packed))] for _ in range(20)]
    for _ in range(100):
        changed = bytearray(packed)
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        broken.append(bytes(changed))
    if codec.name == "zstd":
        broken += [hostile_zstd(declared=size) for size in (None, 0, 900_000, 64_000_000)]
        whole = zstd_frame(bytes(50_000_000), level=3, declared=False, checksum=False)
        broken += [whole[:-1], whole[:6] + b"\x00\x00\x07" + whole[9:]]
    for data in broken:
        tracemalloc.start()
        try:
            codec.decompress(data, 1 << 27)
        except ValueError:
            taken = tracemalloc.get_traced_memory()[1]
            assert taken < 5_000_000, f"{len(data)} bytes: {data[:20].hex()}"
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("declared", [True, False])
def test_valid_zstd_data_that_grows_a_lot_is_read(declared: bool) -> None:
    """Data with a high compression ratio is read, and a fault at its end is an error."""
    zstd = codec_for_name("zstd")
    whole = bytes(5_000_000) + text_of(100_000)
    frame = zstd_frame(whole, level=3, declared=declared, checksum=True)
    tracemalloc.start()
    try:
        assert zstd.decompress(frame, 1 << 27) == whole
        assert tracemalloc.get_traced_memory()[1] < 3 * len(whole)
    finally:
        tracemalloc.stop()
    wrong = frame[:-1] + bytes([frame[-1] ^ 1])
    with pytest.raises(ValueError, match="zstd: "):
        zstd.decompress(wrong, 1 << 27)
    for bound in (len(whole) - 1, 1_000_000, 10):
        with pytest.raises(ValueError, match=f"bound of {bound} bytes"):
            zstd.decompress(frame, bound)


def test_a_snappy_block_with_an_impossible_size_is_refused() -> None:
    block = (100_000_000).to_bytes(4, "little")
    declared = bytes([0x80 | 100_000_000 & 0x7F])
    for shift in (7, 14, 21):
        rest = 100_000_000 >> shift
        declared += bytes([rest & 0x7F | (0x80 if rest >> 7 else 0)])
    with pytest.raises(ValueError, match="8 bytes cannot decompress to 100000000"):
        codec_for_name("snappy").decompress(declared + block, 1 << 27)
    longest = cramjam.snappy.compress_raw(bytes(1_000_000))
    assert codec_for_name("snappy").decompress(bytes(longest), 1 << 27) == bytes(1_000_000)


def test_threads_do_not_share_zstd_contexts() -> None:
    zstd = codec_for_name("zstd")

    def round_trips(seed: int) -> bool:
        data = random.Random(seed).randbytes(20_000) * 3
        level = 1 + seed % 5
        return all(
            zstd.decompress(zstd.compress(data, level), len(data)) == data for _ in range(20)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(round_trips, range(16)))


GZIP_HEADER = gzip.compress(b"")[:10]
AFTER_GZIP = {
    "zeros": bytes(40),
    "a byte": b"\0",
    "noise": b"noise " * 7,
    "another method": b"\x1f\x8b\x07" + bytes(40),
    "a header": GZIP_HEADER,
    "a header without its name": b"\x1f\x8b\x08\x08" + b"n" * 40,
    "a header without its comment": b"\x1f\x8b\x08\x18" + bytes(6) + b"name\0" + b"n" * 40,
    "a header with a wrong checksum": b"\x1f\x8b\x08\x02" + bytes(6) + b"\0\0" + b"n" * 40,
    "a header that is too long": b"\x1f\x8b\x08\x04" + bytes(6) + b"\xff\xff" + b"n" * 40,
}


@pytest.mark.parametrize("kind", AFTER_GZIP)
def test_bytes_after_gzip_that_are_no_member_are_ignored(kind: str) -> None:
    """Kafka reads with Java's GZIPInputStream, which ignores these bytes."""
    codec = codec_for_name("gzip")
    for members in ((b"text",), (b"te", b"", b"xt"), (b"x" * 20_000,)):
        content = b"".join(members)
        data = b"".join(map(gzip.compress, members)) + AFTER_GZIP[kind]
        assert codec.decompress(data, 20_000) == content
        output = bytearray(30_000)
        assert codec.decompress_into(data, memoryview(output)) == len(content)
        assert output.startswith(content)


def test_a_broken_gzip_member_after_another_is_an_error() -> None:
    with pytest.raises(ValueError, match="gzip: "):
        codec_for_name("gzip").decompress(gzip.compress(b"text") + GZIP_HEADER + b"\xff" * 20, 100)


@pytest.mark.parametrize("rest", [b"\0", b"abc", b"\x82SNA" + b"x" * 12])
def test_bytes_after_snappy_that_are_no_block_are_ignored(rest: bytes) -> None:
    """Kafka reads with snappy-java, which ignores these bytes."""
    codec = codec_for_name("snappy")
    assert codec.decompress(codec.compress(b"text", 0) + rest, 100) == b"text"


@pytest.mark.parametrize("rest", [b"\0", bytes(8), b"noise", b"\x04\x22\x4d\x18" + b"\xff" * 20])
@pytest.mark.parametrize("content_checksum", [False, True])
def test_bytes_after_an_lz4_frame_are_ignored(rest: bytes, content_checksum: bool) -> None:
    """Kafka's Lz4BlockInputStream reads one frame, and does not verify its content checksum."""
    compressor = cramjam.lz4.Compressor(
        level=1, content_checksum=content_checksum, block_linked=False
    )
    compressor.compress(b"text " * 40_000)
    frame = bytes(compressor.finish())
    codec = codec_for_name("lz4")
    assert codec.decompress(frame + rest, 200_000) == b"text " * 40_000
    with pytest.raises(ValueError, match="bound of 199999"):
        codec.decompress(frame + rest, 199_999)
    if content_checksum:
        wrong = frame[:-1] + bytes([frame[-1] ^ 1])
        assert codec.decompress(wrong, 200_000) == b"text " * 40_000
    with pytest.raises(ValueError, match="lz4"):
        codec.decompress(frame[:-5] + rest[:0], 200_000)


@pytest.mark.parametrize("flags", [0x20, 0x80, 0xE0, 0xE8, 0xFF])
def test_reserved_flags_of_gzip_are_ignored(flags: int) -> None:
    """Java's GZIPInputStream does not check the flags."""
    plain = gzip.compress(b"text " * 100, mtime=0)
    head = plain[:3] + bytes([flags]) + plain[4:10]
    head += b"\x03\0abc" if flags & 0x04 else b""
    head += b"name\0" if flags & 0x08 else b""
    head += b"comment\0" if flags & 0x10 else b""
    if flags & 0x02:
        head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    codec = codec_for_name("gzip")
    assert codec.decompress(head + plain[10:], 500) == b"text " * 100
    with pytest.raises(ValueError, match="gzip"):
        codec.decompress(head + plain[10:-1], 500)
    with pytest.raises(ValueError, match="gzip"):
        codec.decompress(head[:9], 500)


def test_a_cut_zstd_frame_after_another_is_ignored() -> None:
    """Kafka reads with zstd-jni, which ignores a second frame that ends before any content."""
    codec = codec_for_name("zstd")
    frame = codec.compress(b"text " * 1000, 3)
    for size in range(len(frame) - 4):
        assert codec.decompress(frame + frame[:size], 10_000) == b"text " * 1000
    with pytest.raises(ValueError, match="zstd"):
        codec.decompress(frame + b"noise", 10_000)
    raw = codec.compress(random.Random(1).randbytes(100), 3)  # a block that is not compressed
    assert codec.decompress(frame + raw[:9], 10_000) == b"text " * 1000
    with pytest.raises(ValueError, match="ends before"):
        codec.decompress(frame + raw[:-50], 10_000)
    with pytest.raises(ValueError, match="ends before"):
        codec.decompress(frame[:-1], 10_000)
