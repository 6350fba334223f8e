"use strict";
// Reads and writes the messages of the package that docs/how-to/definitions.md generates, as an
// adapter for `kproto fuzz --package hello`. Needs no package.

class Refused extends Error {}

class Reader {
  constructor(data) { this.data = data; this.pos = 0; }
  take(count) {
    if (count < 0 || this.pos + count > this.data.length) {
      throw new Refused(`${count} bytes are needed`);
    }
    this.pos += count;
    return this.data.subarray(this.pos - count, this.pos);
  }
  int16() { return this.take(2).readInt16BE(0); }
  int32() { return this.take(4).readInt32BE(0); }
  int64() { return this.take(8).readBigInt64BE(0); }
  uvarint() {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.take(1)[0];
      if (shift === 28 && byte > 15) throw new Refused("a varint over 32 bits");
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
    throw new Refused("a varint of more than 5 bytes");
  }
  text(length) {
    if (length > 32767) throw new Refused("a string that is too long");
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.take(length));
    } catch (error) {
      if (error instanceof Refused) throw error;
      throw new Refused("a string that is not UTF-8");
    }
  }
  string(flexible, nullable = false) {
    const length = flexible ? this.uvarint() - 1 : this.int16();
    if (length === -1 && nullable) return null;
    if (length < 0) throw new Refused("null where it is not allowed");
    return this.text(length);
  }
  count(flexible) {
    const count = flexible ? this.uvarint() - 1 : this.int32();
    if (count < 0 || count > this.data.length - this.pos) throw new Refused("a wrong count");
    return count;
  }
  array(flexible, element) { return Array.from({ length: this.count(flexible) }, () => element()); }
  tags(known = {}) {
    const found = [];
    let previous = -1;
    for (let left = this.uvarint(); left > 0; left -= 1) {
      const tag = this.uvarint();
      if (tag <= previous) throw new Refused("tags out of order");
      previous = tag;
      const size = this.uvarint();
      const end = this.pos + size;
      const raw = this.take(size);
      if (known[tag]) {
        const inner = new Reader(raw);
        known[tag](inner);
        if (inner.pos !== size) throw new Refused("a tag of a wrong size");
      } else found.push([tag, Buffer.from(raw)]);
      this.pos = end;
    }
    return found;
  }
}

class Writer {
  constructor() { this.parts = []; }
  bytes(data) { this.parts.push(data); }
  int16(value) { const b = Buffer.alloc(2); b.writeInt16BE(value); this.bytes(b); }
  int32(value) { const b = Buffer.alloc(4); b.writeInt32BE(value); this.bytes(b); }
  int64(value) { const b = Buffer.alloc(8); b.writeBigInt64BE(value); this.bytes(b); }
  uvarint(value) {
    const out = [];
    while (value > 127) { out.push((value % 128) | 128); value = Math.floor(value / 128); }
    out.push(value);
    this.bytes(Buffer.from(out));
  }
  string(flexible, text) {
    if (text === null) return flexible ? this.uvarint(0) : this.int16(-1);
    const data = Buffer.from(text, "utf8");
    if (flexible) this.uvarint(data.length + 1); else this.int16(data.length);
    return this.bytes(data);
  }
  count(flexible, count) { if (flexible) this.uvarint(count + 1); else this.int32(count); }
  tags(tags) {
    this.uvarint(tags.length);
    for (const [tag, data] of [...tags].sort((a, b) => a[0] - b[0])) {
      this.uvarint(tag);
      this.uvarint(data.length);
      this.bytes(data);
    }
  }
  done() { return Buffer.concat(this.parts); }
}

const MESSAGES = {
  GreetRequest: {
    read(r, v) {
      const f = v >= 1;
      const m = { token: r.string(f) };
      m.guests = r.array(f, () => {
        const guest = { name: r.string(f), visits: v >= 1 ? r.int32() : 1 };
        guest.tags = f ? r.tags() : [];
        return guest;
      });
      m.tags = f ? r.tags() : [];
      return m;
    },
    write(w, m, v) {
      const f = v >= 1;
      w.string(f, m.token);
      w.count(f, m.guests.length);
      for (const guest of m.guests) {
        w.string(f, guest.name);
        if (v >= 1) w.int32(guest.visits);
        if (f) w.tags(guest.tags);
      }
      if (f) w.tags(m.tags);
    },
  },
  GreetResponse: {
    read(r, v) {
      const f = v >= 1;
      const m = { greetings: r.array(f, () => r.string(f)), mood: null, tags: [] };
      if (f) m.tags = r.tags({ 0: (inner) => { m.mood = inner.string(true, true); } });
      return m;
    },
    write(w, m, v) {
      const f = v >= 1;
      w.count(f, m.greetings.length);
      for (const text of m.greetings) w.string(f, text);
      if (!f) return;
      const tags = [...m.tags];
      if (m.mood !== null) {
        const inner = new Writer();
        inner.string(true, m.mood);
        tags.push([0, inner.done()]);
      }
      w.tags(tags);
    },
  },
  GreetingRecord: {
    read(r) { return { id: Buffer.from(r.take(16)), at: r.int64(), tags: r.tags() }; },
    write(w, m) { w.bytes(m.id); w.int64(m.at); w.tags(m.tags); },
  },
};

function answer(asked) {
  const codec = MESSAGES[asked.message];
  if (asked.operation !== "rewrite" || !codec) return { unsupported: asked.operation };
  const reader = new Reader(Buffer.from(asked.hex, "hex"));
  try {
    const message = codec.read(reader, asked.version);
    const writer = new Writer();
    codec.write(writer, message, asked.version);
    return { hex: writer.done().toString("hex"), taken: reader.pos };
  } catch (error) {
    return error instanceof Refused ? { refused: error.message } : { failed: String(error.stack) };
  }
}

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const asked = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ id: asked.id, ...answer(asked) })}\n`);
});
