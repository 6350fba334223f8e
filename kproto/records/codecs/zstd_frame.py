"""Finds the zstd frames in data, and the most bytes that each can decompress to.

Reads only the headers of frames and blocks, so that the memory for a result is bounded before
decompression: corrupt data cannot declare more bytes than its blocks can hold. Source: RFC 8878,
section 3.1.
"""

from __future__ import annotations

from typing import Final, TypeAlias

__all__ = ["Frame", "frames_in", "with_small_window"]

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_MAGIC_BYTES: Final = 4
#: The magic of a skippable frame without its lowest four bits, as the first byte and the rest.
_SKIPPABLE_FIRST: Final = 0x50
_SKIPPABLE_REST: Final = b"\x2a\x4d\x18"
_SKIPPABLE_HEADER_BYTES: Final = 8

_SINGLE_SEGMENT_FLAG: Final = 0x20
_RESERVED_FLAG: Final = 0x08
_CHECKSUM_FLAG: Final = 0x04
_CHECKSUM_BYTES: Final = 4
_DESCRIPTOR_AT: Final = 4
#: The descriptor bits that `with_small_window` keeps: checksum and dictionary id.
_KEPT_FLAGS: Final = 0x07
#: A window of 8 MiB, which RFC 8878 recommends every decoder to support, and its header byte.
_SMALL_WINDOW_BYTES: Final = 8_388_608
_SMALL_WINDOW: Final = b"\x68"
#: The size of the dictionary id, by the lowest two bits of the descriptor. Then the size of the
#: content size, by the highest two bits of the descriptor.
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
#: Added to a content size that is encoded in two bytes, because smaller sizes take one byte.
_TWO_BYTES_FROM: Final = 256

_BLOCK_HEADER_BYTES: Final = 3
_RAW: Final = 0
_REPEATED_BYTE: Final = 1
_COMPRESSED: Final = 2
_MAX_BLOCK_BYTES: Final = 131_072
#: The largest window with which zstd decompresses by default.
_MAX_WINDOW_BYTES: Final = 1 << 27


Frame: TypeAlias = "tuple[int, int, int | None, int]"
"""The start and end position of a frame, the content size in bytes that its header declares (or
None), and the most bytes that it can decompress to. A plain tuple is the fastest to create.
"""


def frames_in(data: bytes) -> list[Frame]:
    """Returns the frames in `data`, without skippable frames (RFC 8878, section 3.1.2).

    Leaves out the last frame if it follows another frame and is cut before its first content, or if
    it is skippable and is cut. Kafka's reader, zstd-jni, also leaves out such a frame.

    Raises ValueError if `data` is empty, has bytes outside frames, or ends inside a frame; if a
    block has a reserved type or is too large; or if a frame declares more or fewer bytes than its
    blocks can hold.
    """
    if not data:
        raise ValueError("zstd: no data")
    frames: list[Frame] = []
    pos = 0
    while pos < len(data):
        if data.startswith(_MAGIC, pos):
            if frames and _is_cut_before_content(data, pos):
                break
            frame = _frame_at(data, pos)
            frames.append(frame)
            pos = frame[1]
        elif data[pos] & 0xF0 == _SKIPPABLE_FIRST and data.startswith(_SKIPPABLE_REST, pos + 1):
            size = int.from_bytes(data[pos + 4 : pos + 8], "little")
            pos += _SKIPPABLE_HEADER_BYTES + size
            if frames and pos > len(data):
                break
        elif frames and _is_cut_magic(data[pos:]):
            break
        else:
            raise ValueError(f"zstd: no frame begins at byte {pos}")
        if pos > len(data):
            raise _ends_too_early()
    return frames


def _is_cut_magic(rest: bytes) -> bool:
    """Returns True if `rest` is the beginning of the magic of a frame or of a skippable frame."""
    if _MAGIC.startswith(rest):
        return True
    return rest[0] & 0xF0 == _SKIPPABLE_FIRST and _SKIPPABLE_REST.startswith(rest[1:])


def _is_cut_before_content(data: bytes, start: int) -> bool:
    """Returns True if a frame ends before a streaming decoder can output its first content.

    The decoder outputs a compressed block at the end of the block, and any other block from its
    first content byte on. Returns False if the decoder refuses the remaining part of the frame.
    """
    pos = start + _MAGIC_BYTES
    if pos >= len(data):
        return True
    descriptor = data[pos]
    if descriptor & _RESERVED_FLAG:
        return False
    single = bool(descriptor & _SINGLE_SEGMENT_FLAG)
    window_at = pos + 1
    dictionary_at = window_at if single else window_at + 1
    size_at = dictionary_at + _DICTIONARY_ID_BYTES[descriptor & 3]
    pos = size_at + (_CONTENT_SIZE_BYTES[descriptor >> 6] or single)
    if pos > len(data):
        return True
    if single:
        window = int.from_bytes(data[size_at:pos], "little")
        if pos - size_at == 2:
            window += _TWO_BYTES_FROM
    else:
        window = _window_bytes(data[window_at])
    if any(data[dictionary_at:size_at]) or window > _MAX_WINDOW_BYTES:
        return False
    if pos + _BLOCK_HEADER_BYTES > len(data):
        return True
    header = int.from_bytes(data[pos : pos + _BLOCK_HEADER_BYTES], "little")
    kind, size = header >> 1 & 3, header >> 3
    pos += _BLOCK_HEADER_BYTES
    if kind == _REPEATED_BYTE:
        return pos + 1 > len(data)
    if kind not in (_RAW, _COMPRESSED) or size > min(window, _MAX_BLOCK_BYTES):
        return False
    return pos + (size if kind == _COMPRESSED else 1) > len(data)


def _window_bytes(descriptor: int) -> int:
    """Returns the window in bytes of a window descriptor (RFC 8878, section 3.1.1.1.2)."""
    base = 1 << (10 + (descriptor >> 3))
    return base + base // 8 * (descriptor & 7)


def _frame_at(data: bytes, start: int) -> Frame:
    pos = start + _MAGIC_BYTES
    if pos >= len(data):
        raise _ends_too_early()
    descriptor = data[pos]
    pos += 1
    single = descriptor & _SINGLE_SEGMENT_FLAG
    if not single:
        pos += 1  # the window descriptor
    pos += _DICTIONARY_ID_BYTES[descriptor & 3]
    size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6]
    if single and not size_bytes:
        size_bytes = 1
    content_size: int | None = None
    if size_bytes:
        content_size = int.from_bytes(data[pos : pos + size_bytes], "little")
        if size_bytes == 2:
            content_size += _TWO_BYTES_FROM
        pos += size_bytes
    least = most = 0
    is_last = False
    while not is_last:
        if pos + _BLOCK_HEADER_BYTES > len(data):
            raise _ends_too_early()
        header = data[pos] | data[pos + 1] << 8 | data[pos + 2] << 16
        pos += _BLOCK_HEADER_BYTES
        is_last = bool(header & 1)
        kind = header >> 1 & 3
        size = header >> 3
        if kind == _COMPRESSED:
            most += _MAX_BLOCK_BYTES
            pos += size
        elif kind == _RAW:
            least += size
            most += size
            pos += size
        elif kind == _REPEATED_BYTE:
            least += size
            most += size
            pos += 1
        else:
            raise ValueError(f"zstd: a block of a reserved type at byte {pos - 3}")
        if size > _MAX_BLOCK_BYTES:
            raise ValueError(f"zstd: a block of {size} bytes, more than {_MAX_BLOCK_BYTES}")
    if descriptor & _CHECKSUM_FLAG:
        pos += _CHECKSUM_BYTES
    if content_size is not None:
        if content_size > most:
            raise ValueError(
                f"zstd: a frame declares {content_size} bytes and holds {most} at most"
            )
        if content_size < least:
            raise ValueError(
                f"zstd: a frame declares {content_size} bytes and holds {least} at least"
            )
        most = content_size
    return start, pos, content_size, most


def with_small_window(frame: bytes) -> bytes:
    """Returns the frame with a window of 8 MiB and no declared content size.

    Returns the frame unchanged if its window is at most 8 MiB already. A streaming decoder keeps as
    many bytes as the window has. The window of a single-segment frame is its whole content. A
    changed frame cannot be decoded if it refers to bytes further back than 8 MiB.
    """
    descriptor = frame[_DESCRIPTOR_AT]
    blocks_at = _DESCRIPTOR_AT + 1
    dictionary_bytes = _DICTIONARY_ID_BYTES[descriptor & 3]
    size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6]
    if descriptor & _SINGLE_SEGMENT_FLAG:
        size_bytes = size_bytes or 1
        size_at = blocks_at + dictionary_bytes
        window = int.from_bytes(frame[size_at : size_at + size_bytes], "little")
        if window <= _SMALL_WINDOW_BYTES:
            return frame
    else:
        if frame[blocks_at : blocks_at + 1] <= _SMALL_WINDOW:
            return frame
        blocks_at += 1
    dictionary = frame[blocks_at : blocks_at + dictionary_bytes]
    blocks = frame[blocks_at + dictionary_bytes + size_bytes :]
    header = _MAGIC + bytes((descriptor & _KEPT_FLAGS,)) + _SMALL_WINDOW
    return b"".join((header, dictionary, blocks))


def _ends_too_early() -> ValueError:
    return ValueError("zstd: the data ends before the stream does")
