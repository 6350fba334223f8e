// Record batches (magic 2) and message sets (magic 0 and 1) as nodes of the tree, down to headers.

const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"];
const MAX_RECORDS_SHOWN = 2000; // of one batch: more are too many for a page
const MAX_UNPACKED_BYTES = 16 * 1024 * 1024; // of a gzip batch, so that a small batch cannot fill the memory
const BATCH_HEADER = [
  ["BaseOffset", "int64"], ["BatchLength", "int32"], ["PartitionLeaderEpoch", "int32"], ["Magic", "int8"],
  ["Crc", "uint32"], ["Attributes", "int16"], ["LastOffsetDelta", "int32"], ["BaseTimestamp", "int64"],
  ["MaxTimestamp", "int64"], ["ProducerId", "int64"], ["ProducerEpoch", "int16"], ["BaseSequence", "int32"],
  ["RecordCount", "int32"],
];
const SET_HEADER = [
  ["Offset", "int64"], ["MessageSize", "int32"], ["Crc", "uint32"], ["Magic", "int8"], ["Attributes", "int8"],
];

const CRC32C = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  return value;
});

function crc32c(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = CRC32C[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

const faultNode = (reason, at, end) => ({ name: "Broken", kind: "fault", value: reason, at, end });

/** Returns the batches and messages in `data` from `pos` to `end`; the last may be a fault. */
function readRecords(data, pos, end) {
  const nodes = [];
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  while (pos < end) {
    if (end - pos < 17) {
      nodes.push(faultNode(`a truncated batch: ${end - pos} bytes are left`, pos, end));
      break;
    }
    const size = view.getInt32(pos + 8);
    const magic = view.getInt8(pos + 16);
    const stop = pos + 12 + size;
    if (magic < 0 || magic > 2) {
      nodes.push(faultNode(`magic ${magic}; 0, 1 and 2 are known`, pos, end));
      break;
    }
    if (size < (magic === 2 ? 49 : 14) || stop > end) {
      const reason = stop > end ? `a truncated batch: its length is ${size}, but ${end - pos - 12} bytes are left`
        : `a batch of ${size} bytes is too short`;
      nodes.push(faultNode(reason, pos, end));
      break;
    }
    nodes.push(magic === 2 ? readBatch(data, view, pos, stop) : readMessage(data, view, pos, stop));
    pos = stop;
  }
  return nodes;
}

function headerNodes(table, decoder, pos) {
  return table.map(([name, kind]) => {
    const node = { name, kind, at: pos, end: pos + SIZES[kind], value: decoder.number(kind, pos), of: "RecordBatch" };
    pos = node.end;
    return node;
  });
}

function readBatch(data, view, pos, stop) {
  const children = headerNodes(BATCH_HEADER, new Decoder(data), pos);
  const held = Object.fromEntries(children.map((node) => [node.name, node]));
  const attributes = held.Attributes.value;
  const codec = attributes & 7;
  const words = [CODECS[codec] || `codec ${codec}`, attributes & 8 ? "log append time" : "create time"];
  if (attributes & 16) words.push("transactional");
  if (attributes & 32) words.push("control");
  if (attributes & 64) words.push("delete horizon");
  held.Attributes.note = words.join(", ");
  const sum = crc32c(data.subarray(pos + 21, stop));
  const right = sum === held.Crc.value;
  held.Crc.note = right ? "right" : `wrong: the bytes give ${sum}`;
  const node = { name: "RecordBatch", kind: "batch", at: pos, end: stop, children };
  const count = held.RecordCount.value;
  node.note = `${count} record${count === 1 ? "" : "s"}, ${CODECS[codec] || `codec ${codec}`}${right ? "" : ", wrong CRC"}`;
  const shared = { base: held.BaseOffset.value, time: held.BaseTimestamp.value, count, control: !!(attributes & 32) };
  const payload = data.subarray(pos + 61, stop);
  if (codec === 0) {
    children.push(...recordNodes(data.subarray(0, stop), pos + 61, shared, true));
  } else {
    const packed = { name: "Records", kind: "packed", at: pos + 61, end: stop, value: payload };
    packed.note = codec === 1 ? "gzip" : `${CODECS[codec] || `codec ${codec}`}: this page decompresses only gzip`;
    if (codec === 1) packed.open = async () => {
      const opened = await gunzip(payload);
      packed.children = recordNodes(opened, 0, shared, false);
      packed.note = `gzip, ${opened.length} bytes decompressed`;
    };
    children.push(packed);
  }
  return node;
}

/** Decompresses gzip. Throws an Error with the reason if that fails. */
async function gunzip(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_UNPACKED_BYTES) {
      reader.cancel();
      throw new Error(`more than ${MAX_UNPACKED_BYTES} decompressed bytes`);
    }
    parts.push(value);
  }
  const whole = new Uint8Array(size);
  parts.reduce((at, part) => { whole.set(part, at); return at + part.length; }, 0);
  return whole;
}

/** Returns a signed varint (zigzag) of up to 10 bytes as a BigInt, and the position after it. */
function varlong(data, pos, stop) {
  let value = 0n;
  for (let index = 0; index < 10; index += 1) {
    if (pos + index >= stop) throw new Fault("a truncated varint", pos);
    const byte = data[pos + index];
    value |= BigInt(byte & 127) << BigInt(7 * index);
    if (byte < 128) return [(value >> 1n) ^ -(value & 1n), pos + index + 1];
  }
  throw new Fault("a varint of more than 10 bytes", pos);
}

/** Returns the records of a batch. They have no offsets if the bytes were decompressed (`placed` false). */
function recordNodes(data, pos, shared, placed) {
  const nodes = [];
  const place = (node) => {
    if (!placed) node.at = node.end = null;
    for (const child of node.children || []) place(child);
    return node;
  };
  for (let index = 0; index < shared.count; index += 1) {
    if (index >= MAX_RECORDS_SHOWN) {
      nodes.push({ name: `${shared.count - index} more`, kind: "note", at: null, end: null });
      break;
    }
    const record = { name: `Record [${index}]`, kind: "record", at: pos, end: pos, children: [] };
    try {
      pos = readRecord(data, pos, shared, record);
      nodes.push(place(record));
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      record.end = data.length;
      record.children.push(faultNode(fault.reason, fault.offset, data.length));
      nodes.push(place(record));
      return nodes;
    }
  }
  if (nodes.length === shared.count && pos < data.length) {
    nodes.push(place(faultNode(`${data.length - pos} bytes after the last record`, pos, data.length)));
  }
  return nodes;
}

function readRecord(data, pos, shared, record) {
  let stop = data.length;
  const add = (node) => { (node.into || record).children.push(node); return node; };
  const number = (name, into) => {
    const [value, end] = varlong(data, pos, stop);
    const node = add({ name, kind: "varint", at: pos, end, value, into });
    pos = end;
    return node;
  };
  const bytes = (name, isText, into) => {
    const at = pos;
    const [size, start] = varlong(data, pos, stop);
    const end = start + Number(size < 0n ? 0n : size);
    if (size < -1n || end > stop) throw new Fault(`a length of ${size} for ${name}`, at);
    const value = size < 0n ? null : data.subarray(start, end);
    const asText = isText && value ? UTF8.decode(value) : value;
    pos = end;
    return add({ name, kind: isText ? "string" : "bytes", at, end, value: asText, into });
  };
  const length = number("Length").value;
  if (length < 0n || pos + Number(length) > data.length) throw new Fault(`a record of ${length} bytes`, record.at);
  stop = pos + Number(length);
  if (pos >= stop) throw new Fault("an empty record", pos);
  add({ name: "Attributes", kind: "int8", at: pos, end: pos + 1, value: data[pos] });
  pos += 1;
  const time = number("TimestampDelta");
  if (shared.time >= 0n) time.note = timeText(shared.time + time.value);
  const offset = number("OffsetDelta");
  offset.note = `offset ${shared.base + offset.value}`;
  const key = bytes("Key", false);
  const value = bytes("Value", false);
  if (shared.control && key.value && key.value.length >= 4) {
    key.note = ["abort marker", "commit marker"][key.value[3]] || "control record";
  }
  const count = number("HeaderCount").value;
  if (count < 0n || count > BigInt(stop - pos)) throw new Fault(`${count} headers`, pos);
  for (let index = 0; index < Number(count); index += 1) {
    const header = add({ name: `Header [${index}]`, kind: "struct", at: pos, end: pos, children: [] });
    const name = bytes("Key", true, header);
    bytes("Value", false, header);
    header.end = pos;
    header.note = name.value;
  }
  if (pos !== stop) throw new Fault(`a record of ${length} bytes that ends ${stop - pos} bytes early`, record.at);
  record.end = stop;
  record.note = `offset ${shared.base + offset.value}`;
  if (value.value === null) record.note += ", no value";
  return stop;
}

/** Decodes a message of magic 0 or 1; does not decompress it. */
function readMessage(data, view, pos, stop) {
  const children = headerNodes(SET_HEADER, new Decoder(data), pos);
  const [, , , magic, attributes] = children;
  const node = { name: "Message", kind: "batch", at: pos, end: stop, children };
  const codec = attributes.value & 7;
  node.note = `magic ${magic.value}, ${CODECS[codec] || `codec ${codec}`}`;
  let at = pos + 18;
  if (magic.value === 1 && at + 8 <= stop) {
    const value = view.getBigInt64(at);
    children.push({ name: "Timestamp", kind: "int64", at, end: at + 8, value, note: timeText(value) });
    at += 8;
  }
  for (const name of ["Key", "Value"]) {
    const size = at + 4 <= stop ? view.getInt32(at) : -2;
    const end = at + 4 + Math.max(size, 0);
    if (size < -1 || end > stop) {
      children.push(faultNode(`${name} does not fit into the message`, at, stop));
      break;
    }
    children.push({ name, kind: "bytes", at, end, value: size < 0 ? null : data.subarray(at + 4, end) });
    at = end;
  }
  return node;
}

/** Returns ms since the Unix epoch as ISO 8601; empty if negative or out of range. */
function timeText(value) {
  const date = new Date(Number(value));
  return value < 0n || Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
