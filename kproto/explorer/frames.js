// Splits bytes into frames: message, header and body.

const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Returns the header version of a request; ControlledShutdown v0 has no client id. */
function requestHeaderVersion(message, version) {
  if (message.key === 7 && version === 0) return 0;
  return within(message.flexible, version) ? 2 : 1;
}

/** Returns the header version of a response; it is always 0 for ApiVersions (KIP-511). */
function responseHeaderVersion(message, version) {
  return message.key !== 18 && within(message.flexible, version) ? 1 : 0;
}

/** Returns the request with the api key and version at `pos`; null if no definition has it. */
function requestAt(data, pos) {
  if (pos + 4 > data.length) return null;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const api = API_OF_KEY.get(view.getInt16(pos));
  const message = api && api.request ? messageNamed(api.request) : null;
  const version = view.getInt16(pos + 2);
  if (!message || version < 0) return null;
  const headerVersion = message.key === 7 && version === 0 ? 0 : within(message.flexible, version) ? 2 : 1;
  if (headerVersion === 0) return { message, version, headerVersion };
  return within(message.valid, version) ? { message, version, headerVersion } : null;
}

/** Returns the size field of a frame; null if it is 0, negative, or exceeds the data. */
function sizeAt(data, pos) {
  if (pos + 4 > data.length) return null;
  const size = new DataView(data.buffer, data.byteOffset, data.byteLength).getInt32(pos);
  return size > 0 && size <= data.length - pos - 4 ? size : null;
}

/** Returns true if a request begins 4 bytes after `pos` and none at `pos`: the 4 bytes are a wrong size. */
const isWrongSize = (data, pos) => requestAt(data, pos) === null && requestAt(data, pos + 4) !== null;

const MAX_FRAMES = 200; // of one paste: more are too many to read

/**
 * Decodes `data` as `kind`: `request` (one or more requests, with or without size fields),
 * `response` (of `message` at `version`), `body`, or `records`. Returns a list of parts, each with a
 * title, trees, and a fault with its offset in `data`, or null.
 */
function decodeAs(kind, data, message, version) {
  if (data.length === 0) return [];
  if (kind === "records") return [{ title: "Record batches", trees: readRecords(data, 0, data.length), fault: null }];
  if (kind === "body") return [bodyPart(`${message.name} v${version}`, message, version, data, 0, data.length, false)];
  const parts = [];
  let pos = 0;
  while (pos < data.length && parts.length < MAX_FRAMES) {
    const size = sizeAt(data, pos);
    const sized = size !== null && (kind === "request"
      ? requestAt(data, pos + 4) !== null : parts.length > 0 || size === data.length - pos - 4);
    const wrong = kind === "request" && !sized && isWrongSize(data, pos);
    const begin = sized || wrong ? pos + 4 : pos;
    const end = sized ? begin + size : data.length;
    const part = kind === "request" ? requestPart(data, begin, end) : responsePart(data, begin, end, message, version);
    if (begin > pos) {
      const announced = new DataView(data.buffer, data.byteOffset, data.byteLength).getInt32(pos);
      part.trees.unshift({ name: "Size", kind: "int32", at: pos, end: begin, value: announced });
      if (wrong) part.fault = { reason: `the size is ${announced}, but ${plural(end - begin, "byte")} follow it`, path: "size", offset: pos };
    }
    parts.push(part);
    pos = end;
  }
  return parts;
}

function requestPart(data, begin, end) {
  const found = requestAt(data.subarray(0, end), begin);
  if (!found) {
    const key = begin + 2 <= end ? new DataView(data.buffer, data.byteOffset).getInt16(begin) : null;
    const version = begin + 4 <= end ? new DataView(data.buffer, data.byteOffset).getInt16(begin + 2) : null;
    const api = API_OF_KEY.get(key);
    const named = api ? `${api.name} has no request v${version}` : `no API has key ${key}`;
    const reason = version === null ? "a request begins with 4 bytes of api key and version" : named;
    return {
      title: "Request frame", trees: [],
      fault: { reason: `${reason}; if this is a response or a bare body, choose that`, path: "", offset: begin },
    };
  }
  const { message, version, headerVersion } = found;
  return withHeader(`${message.name} v${version}`, "RequestHeader", headerVersion, message, version, data, begin, end);
}

function responsePart(data, begin, end, message, version) {
  const headerVersion = responseHeaderVersion(message, version);
  return withHeader(`${message.name} v${version}`, "ResponseHeader", headerVersion, message, version, data, begin, end);
}

function withHeader(title, headerName, headerVersion, message, version, data, begin, end) {
  if (headerVersion === 0 && headerName === "RequestHeader") { // no definition has this header version
    const names = [["RequestApiKey", "int16", 0, 2], ["RequestApiVersion", "int16", 2, 4], ["CorrelationId", "int32", 4, 8]];
    const decoder = new Decoder(data.subarray(0, end));
    const children = names.filter((one) => begin + one[3] <= end).map(([name, kind, from, to]) => (
      { name, kind, at: begin + from, end: begin + to, value: decoder.number(kind, begin + from), of: headerName }));
    const header = { name: "RequestHeader", kind: "message", at: begin, end: Math.min(begin + 8, end), children };
    if (children.length < 3) {
      return { title, trees: [header], fault: { ...decoder.short(begin, 8), reason: "the header is cut", path: "" } };
    }
    const part = bodyPart(title, message, version, data, begin + 8, end, true);
    part.trees.unshift(header);
    return part;
  }
  const read = decodeMessage(messageNamed(headerName), headerVersion, data.subarray(0, end), begin, true);
  if (read.fault) {
    return { title, trees: [read.tree], fault: { ...read.fault, offset: read.fault.offset + begin } };
  }
  const part = bodyPart(title, message, version, data, read.end, end, true);
  part.trees.unshift(read.tree);
  return part;
}

/** Decodes the body of a message; with `inFrame`, bytes after it are a node, not a fault. */
function bodyPart(title, message, version, data, begin, end, inFrame) {
  if (!within(message.valid, version)) {
    const reason = `${message.name} has versions ${rangeText(message.valid)}, not ${version}`;
    return { title, trees: [], message, version, fault: { reason, path: "", offset: begin } };
  }
  const read = decodeMessage(message, version, data.subarray(0, end), begin, inFrame);
  const trees = [read.tree];
  if (!read.fault && read.end < end) {
    trees.push({ name: "After the body", kind: "bytes", at: read.end, end, value: data.subarray(read.end, end) });
  }
  openRecords(read.tree, data);
  const fault = read.fault && { ...read.fault, offset: read.fault.offset + begin };
  return { title, trees, fault, message, version };
}

/** Adds the batches of each `records` field as its children. */
function openRecords(node, data) {
  if (node.kind === "records" && node.value && node.value.length) {
    node.children = readRecords(data.subarray(0, node.end), node.content, node.end);
  }
  for (const child of node.children || []) {
    if (child.kind !== "batch") openRecords(child, data);
  }
}
