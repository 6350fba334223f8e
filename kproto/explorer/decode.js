// Decodes a message by its layout into a tree, and reports the fault in broken bytes.
// Reasons, field paths and offsets are those of kproto/schema/wire_validation.py.
//
// A node has name, kind, at and end (offsets in the data), value and children. The nodes before a
// fault stay in the tree.

const MAX_STRING_BYTES = 32767;
const MAX_ARRAY_ELEMENTS = 1000000;
const MAX_TAGGED_FIELDS = 10000;
const MAX_TAG = 0x7ffffffe;
const MAX_LENGTH = 0x7fffffff;

/** A fault in the bytes: reason, offset, path. Each field that contains it prepends its name. */
class Fault extends Error {
  constructor(reason, offset, isNull = false) {
    super(reason);
    this.reason = reason;
    this.offset = offset;
    this.path = "";
    this.isNull = isNull;
  }

  inside(name) {
    this.path = `${name}${name && this.path && !this.path.startsWith("[") ? "." : ""}${this.path}`;
    if (this.isNull) this.reason = `null, which ${this.path} may not be in this version`;
  }
}

/** Calls `read`; prepends `name` to the path of a fault. */
function inside(name, read) {
  try {
    return read();
  } catch (fault) {
    if (fault instanceof Fault) fault.inside(name);
    throw fault;
  }
}

/** Calls `read`; prepends `what` to the reason of a fault, because the path does not name it. */
function partOf(what, read) {
  try {
    return read();
  } catch (fault) {
    if (fault instanceof Fault) throw new Fault(`${what}: ${fault.reason}`, fault.offset);
    throw fault;
  }
}

/** Returns the offset and the reason, in Python's words, if bytes are not UTF-8, else null. */
function utf8Fault(data, from, to) {
  const follows = (at, low, high) => data[at] >= low && data[at] <= high;
  let at = from;
  while (at < to) {
    const lead = data[at];
    if (lead < 0x80) { at += 1; continue; }
    if (lead < 0xc2 || lead > 0xf4) return { at, reason: "invalid start byte" };
    const size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    for (let index = 1; index < size; index += 1) {
      if (at + index >= to) return { at, reason: "unexpected end of data" };
      const low = index > 1 ? 0x80 : lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
      const high = index > 1 ? 0xbf : lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      if (!follows(at + index, low, high)) return { at, reason: "invalid continuation byte" };
    }
    at += size;
  }
  return null;
}

const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

class Decoder {
  constructor(data) {
    this.data = data;
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    this.size = data.length;
  }

  short(pos, size) {
    const left = this.size - pos;
    const needed = size === 1 ? "1 byte is" : `${size} bytes are`;
    return new Fault(`${needed} needed and ${left === 1 ? "1 is" : `${left} are`} left`, pos);
  }

  /** Returns an unsigned varint of up to 5 bytes and 32 bits, and the position after it. */
  uvarint(pos) {
    let value = 0;
    for (let index = 0; index < 5; index += 1) {
      if (pos + index >= this.size) throw this.short(this.size, 1);
      const byte = this.data[pos + index];
      value += (byte & 127) * 2 ** (7 * index);
      if (byte < 128) return [value % 2 ** 32, pos + index + 1];
    }
    throw new Fault("an unsigned varint of more than 5 bytes", pos);
  }

  /** Returns a compact or other length, -1 for null, and the position after it. */
  length(type, width, pos) {
    const least = type.nullable ? -1 : 0;
    if (type.compact) {
      const [count, end] = this.uvarint(pos);
      if (count <= least) throw new Fault("null", pos, true);
      return [count - 1, end];
    }
    if (pos + width > this.size) throw this.short(pos, width);
    const count = width === 2 ? this.view.getInt16(pos) : this.view.getInt32(pos);
    if (count < -1) throw new Fault(`a length of ${count}`, pos);
    if (count < least) throw new Fault("null", pos, true);
    return [count, pos + width];
  }

  number(kind, pos) {
    const view = this.view;
    switch (kind) {
      case "bool": return view.getUint8(pos) !== 0;
      case "int8": return view.getInt8(pos);
      case "int16": return view.getInt16(pos);
      case "uint16": return view.getUint16(pos);
      case "int32": return view.getInt32(pos);
      case "uint32": return view.getUint32(pos);
      case "int64": return view.getBigInt64(pos);
      case "float64": return view.getFloat64(pos);
      default: return this.data.subarray(pos, pos + 16); // uuid
    }
  }

  /** Reads a value of `type` at `pos` into `node`; returns the position after it. */
  value(type, pos, node) {
    node.end = this.size; // until it is known
    const end = this.valueInside(type, pos, node);
    node.end = end;
    return end;
  }

  valueInside(type, pos, node) {
    const width = SIZES[type.kind];
    if (width !== undefined) {
      if (pos + width > this.size) throw this.short(pos, width);
      node.value = this.number(type.kind, pos);
      return pos + width;
    }
    if (type.kind === "array") return this.array(type, pos, node);
    if (type.kind !== "struct") return this.textOrBytes(type, pos, node);
    if (type.nullable) {
      let present;
      if (type.compact) {
        let mark;
        [mark, pos] = this.uvarint(pos);
        present = mark > 0 && mark <= MAX_LENGTH;
      } else {
        if (pos >= this.size) throw this.short(pos, 1);
        present = this.data[pos] < 128;
        pos += 1;
      }
      if (!present) {
        node.value = null;
        return pos;
      }
    }
    return this.struct(type.struct, pos, node);
  }

  struct(shape, pos, node) {
    node.children = [];
    for (const field of shape.fields) pos = this.field(field, pos, node);
    return shape.flexible ? this.tags(shape, pos, node) : pos;
  }

  field(field, pos, node) {
    const child = {
      name: field.name, attribute: field.attribute, kind: field.type.kind, type: field.type,
      spec: field.spec, at: pos, end: pos, struct: node.struct,
    };
    if (field.type.struct) child.struct = field.type.struct.name;
    else if (field.type.element && field.type.element.struct) child.struct = field.type.element.struct.name;
    child.of = node.struct;
    node.children.push(child);
    return inside(field.attribute, () => this.value(field.type, pos, child));
  }

  textOrBytes(type, pos, node) {
    const start = pos;
    const isText = type.kind === "string";
    let count;
    [count, pos] = this.length(type, isText ? 2 : 4, pos);
    node.content = pos;
    if (count < 0) node.value = null;
    else if (count === 0) node.value = isText ? "" : new Uint8Array(0);
    if (count <= 0) return pos;
    if (isText && count > MAX_STRING_BYTES) {
      throw new Fault(`a string of ${count} bytes; at most ${MAX_STRING_BYTES} are allowed`, start);
    }
    const end = pos + count;
    if (end > this.size) throw this.short(pos, count);
    const bytes = this.data.subarray(pos, end);
    if (!isText) {
      node.value = bytes;
      return end;
    }
    const fault = utf8Fault(this.data, pos, end);
    if (fault) throw new Fault(`a string that is not UTF-8 (${fault.reason})`, fault.at);
    node.value = UTF8.decode(bytes);
    return end;
  }

  array(type, pos, node) {
    const start = pos;
    let count;
    [count, pos] = this.length(type, 4, pos);
    node.content = pos;
    if (count < 0) {
      node.value = null;
      return pos;
    }
    node.children = [];
    node.count = count;
    const left = this.size - pos;
    if (count > left) throw new Fault(`${count} elements are announced and ${left} bytes are left`, start);
    if (count > MAX_ARRAY_ELEMENTS) {
      throw new Fault(`${count} elements are announced; at most ${MAX_ARRAY_ELEMENTS} are read`, start);
    }
    const element = type.element;
    for (let index = 0; index < count; index += 1) {
      const child = { name: `[${index}]`, kind: element.kind, type: element, at: pos, end: pos, struct: node.struct };
      node.children.push(child);
      pos = inside(child.name, () => this.value(element, pos, child));
    }
    return pos;
  }

  tags(shape, pos, node) {
    const section = { name: "tagged fields", kind: "tags", at: pos, end: pos, children: [] };
    node.children.push(section);
    let count;
    const first = pos;
    [count, pos] = partOf("the number of tagged fields", () => this.uvarint(pos));
    section.value = count;
    section.end = pos;
    if (count > MAX_TAGGED_FIELDS) {
      throw new Fault(`${count} tagged fields are announced; at most ${MAX_TAGGED_FIELDS} are read`, first);
    }
    let previous = -1;
    for (let index = 0; index < count; index += 1) {
      const start = pos;
      let tag;
      [tag, pos] = partOf("the number of a tag", () => this.uvarint(pos));
      if (tag <= previous) throw new Fault(`tag ${tag} comes after tag ${previous}`, start);
      if (tag > MAX_TAG) throw new Fault(`tag ${tag}; the highest that is read is ${MAX_TAG}`, start);
      const others = shape.elsewhere.get(tag);
      if (others) {
        const word = others.high === others.low ? "version" : "versions";
        throw new Fault(`tag ${tag} is a field of ${word} ${rangeText(others)} only`, start);
      }
      previous = tag;
      pos = this.oneTag(tag, start, pos, shape.byTag.get(tag), section, node.struct);
      section.end = pos;
    }
    return pos;
  }

  oneTag(tag, begin, pos, known, section, struct) {
    const [length, start] = partOf(`tag ${tag}`, () => {
      const [size, from] = this.uvarint(pos);
      if (from + size > this.size) throw this.short(from, size);
      return [size, from];
    });
    const end = start + length;
    const child = { name: known ? known.name : `unknown tag ${tag}`, tag, at: begin, end, of: struct };
    section.children.push(child);
    if (!known) {
      child.kind = "unknown";
      child.value = this.data.subarray(start, end);
      return end;
    }
    Object.assign(child, { attribute: known.attribute, kind: known.type.kind, type: known.type, spec: known.spec });
    const nested = known.type.struct || (known.type.element && known.type.element.struct);
    child.struct = nested ? nested.name : struct;
    inside(known.attribute, () => {
      const stopped = this.value(known.type, start, child);
      if (stopped !== end) {
        throw new Fault(`tag ${tag} announces ${length} bytes and holds ${stopped - start}`, start);
      }
    });
    return end;
  }
}

/**
 * Decodes `message` at `version` in `data`, from `pos` on. Returns the tree, the position after it,
 * and the fault (reason, path, and offset from `pos`) or null. With `trailing`, bytes after the
 * message are not a fault.
 */
function decodeMessage(message, version, data, pos = 0, trailing = false) {
  const tree = { name: message.name, kind: "message", at: pos, end: data.length, struct: message.name, message };
  tree.version = version;
  const decoder = new Decoder(data);
  try {
    tree.end = decoder.struct(layout(message, version), pos, tree);
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    return { tree, end: null, fault: { reason: fault.reason, path: fault.path, offset: fault.offset - pos } };
  }
  const behind = data.length - tree.end;
  if (behind && !trailing) {
    const fault = { reason: `${behind} bytes follow the end of the message`, path: "", offset: tree.end - pos };
    return { tree, end: tree.end, fault };
  }
  return { tree, end: tree.end, fault: null };
}

/** Returns bytes as base64; with `url` in the alphabet of uuids, without padding. */
function base64(bytes, url = false) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  const made = btoa(text);
  return url ? made.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "") : made;
}

/** Returns a node as JSON text, as Kafka's JsonConverter classes write it; int64 stays exact. */
function toJson(node) {
  const value = node.value;
  if (value === null) return "null";
  switch (node.kind) {
    case "array": return `[${node.children.map(toJson).join(",")}]`;
    case "struct": case "message": {
      const fields = node.children.flatMap((child) => (child.kind === "tags" ? child.children : [child]));
      const shown = fields.filter((child) => child.kind !== "unknown");
      return `{${shown.map((child) => `"${jsonName(child.name)}":${toJson(child)}`).join(",")}}`;
    }
    case "uuid": return `"${base64(value, true)}"`;
    case "bytes": case "records": return `"${base64(value)}"`;
    case "float64": {
      if (!Number.isFinite(value)) return `"${value}"`;
      if (Object.is(value, -0)) return "-0.0";
      const text = String(value);
      return /^-?[0-9]+$/.test(text) ? `${text}.0` : text;
    }
    case "string": return JSON.stringify(value);
    default: return String(value);
  }
}
