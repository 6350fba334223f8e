// The view of one message version: its bytes drawn to scale, and all fields.

/** In an address, replaces a field's path: the line with the change and the KIPs is highlighted. */
const WHAT_CHANGED = "KIP";

const KIND_CLASS = { string: "text", bytes: "blob", records: "blob", uuid: "id", float64: "number", bool: "number" };
const kindClass = (kind) => KIND_CLASS[kind] || (kind.includes("int") ? "number" : "group");

/** Returns message and version; for an unknown name or version, the problem as text. */
function chosen(name, versionText) {
  const message = messageNamed(name);
  if (!message) return { problem: `There is no message ${name}.` };
  const version = versionText === undefined ? latestStable(message) : Number(versionText);
  if (!within(message.valid, version)) return { problem: `${name} has versions ${rangeText(message.valid)}, not ${versionText}.` };
  return { message, version };
}

const problemView = (problem) => ({ title: "Not found", body: [el("h1", null, "Not found"), el("p", null, problem), link("#/", "All APIs")] });

function messageView([name, versionText, wanted]) {
  const { message, version, problem } = chosen(name, versionText);
  if (problem) return problemView(problem);
  const shape = layout(message, version);
  const api = message.type === "request" || message.type === "response" ? API_OF_KEY.get(message.key) : null;
  const other = api && (message.type === "request" ? api.response : api.request);
  const facts = [
    message.key === null ? null : `${api ? "API key" : "key"} ${message.key}`, message.module ? `${message.type} of ${message.module}` : message.type,
    shape.flexible ? "flexible" : "fixed lengths",
    message.listeners.length ? `served by ${message.listeners.map((one) => LISTENERS[one] || one).join(", ")}` : null,
    within(message.deprecated, version) ? "deprecated" : null,
    api && firstRelease(message.key, version) && `first in ${firstRelease(message.key, version)}`,
    api && droppedIn(message.key, version) && `dropped in ${droppedIn(message.key, version)}`,
    (DATA.stored[message.name] || {})[version] && `first in ${DATA.stored[message.name][version]}`,
    message.unstable && version === message.valid.high ? "unstable" : null,
    message.formerly.length ? `formerly ${message.formerly.map(([old, range]) => `${old} v${range}`).join(", ")}` : null,
  ].filter(Boolean);
  const all = versionList(message.valid);
  const before = version > message.valid.low ? version - 1 : version + 1;
  return {
    title: `${message.name} v${version}`,
    body: [
      el("h1", null, message.name, el("span", { class: "muted" }, ` v${version}`)),
      messageMeaning(message.name) && el("p", null, messageMeaning(message.name)),
      el("p", { class: "facts" }, facts.map((fact) => el("span", null, fact))),
      kipRows(message.name, version).map((row) => kipLine(row, "", wanted === WHAT_CHANGED ? "target" : "")),
      el("nav", { class: "strip", "aria-label": "Versions" },
        all.map((one) => link(to("m", message.name, one), `${one}`, {
          class: `v ${versionMarks(message, one).join(" ")}`, "aria-current": one === version ? "page" : null,
          "aria-label": `version ${one}` }))),
      el("p", { class: "actions" },
        other && messageNamed(other) && within(messageNamed(other).valid, version) && messageLink(other, version),
        all.length > 1 && link(to("diff", message.name, Math.min(before, version), Math.max(before, version)),
          `What changed from v${Math.min(before, version)} to v${Math.max(before, version)}`),
        link(to("decode", message.type === "request" ? "body" : message.type === "response" ? "response" : "body", message.name, version), "Decode bytes of it")),
      el("h2", null, "Bytes"),
      headerNote(message, version),
      boxesOf(shape, message.name, ""),
      el("h2", null, "Fields"),
      fieldTable(message, shape, wanted),
    ],
    after: () => wanted && document.querySelector(".target")?.scrollIntoView({ block: "center" }),
  };
}

function headerNote(message, version) {
  if (message.type !== "request" && message.type !== "response") return null;
  const header = message.type === "request"
    ? ["RequestHeader", requestHeaderVersion(message, version)] : ["ResponseHeader", responseHeaderVersion(message, version)];
  const known = within(messageNamed(header[0]).valid, header[1]);
  return el("p", { class: "hint" }, "On a connection, an int32 size and ",
    known ? messageLink(header[0], header[1]) : `${header[0]} v${header[1]}`, " precede it.", headerCaveat(message, header));
}

/** Returns what is odd about the header of a message version; empty for most. */
function headerCaveat(message, [name, version]) {
  if (name === "RequestHeader" && version === 0) return " This header has no client id.";
  if (name === "ResponseHeader" && message.key === 18) return " This header has no tagged fields in any version (KIP-511).";
  return "";
}

const BYTE = 22; // pixels of one byte in the drawing
const VARIES = 118; // pixels of content without a fixed size

/** Returns how many bytes of a field are the length before its content; 0 if it has none. */
function prefixBytes(type) {
  if (type.kind in SIZES) return 0;
  if (type.kind === "struct") return type.nullable ? 1 : 0;
  return type.compact ? 1 : type.kind === "string" ? 2 : 4;
}

function sizeText(type) {
  const width = fixedWidth(type);
  if (width !== null) return `${width}`;
  const prefix = prefixBytes(type);
  if (type.kind === "struct") return prefix ? "1 + …" : "…";
  return `${type.compact ? "1–5" : prefix} + …`;
}

/** Draws the boxes of a struct, and below them the boxes of its inner structs. */
function boxesOf(shape, title, count) {
  const nested = [];
  const box = (field, label) => {
    const type = field.type;
    const width = type.kind === "struct" ? null : fixedWidth(type);
    const prefix = prefixBytes(type);
    const inner = type.struct || (type.element && type.element.struct);
    if (inner) nested.push([inner, field.name, type.kind === "array" ? "for each element" : type.nullable ? "if not null" : ""]);
    const words = `${field.name}: ${typeText(type, field.spec)}, ${sizeText(type)} bytes`;
    const pixels = width !== null ? width * BYTE : prefix * BYTE + VARIES;
    return el("li", { class: `box ${kindClass(type.kind)}${width === null ? " varies" : ""}`, title: words,
      style: { width: `${pixels}px`, "--prefix": `${prefix * BYTE}px` } },
    el("span", { class: "name" }, label || field.name), el("span", { class: "size" }, sizeText(type)));
  };
  const boxes = shape.fields.map((field) => box(field));
  if (shape.flexible) {
    boxes.push(el("li", { class: "box tags varies", style: { width: `${BYTE + VARIES}px`, "--prefix": `${BYTE}px` },
      title: "Tagged fields: a varint count, then number, size and content of each" },
    el("span", { class: "name" }, shape.tagged.length ? `${plural(shape.tagged.length, "tagged field")}` : "tagged fields"),
    el("span", { class: "size" }, "1–5 + …")));
  }
  const tagged = shape.tagged.length === 0 ? null : el("div", { class: "nested" },
    el("p", { class: "of" }, "tagged fields of ", el("b", null, title)),
    el("ol", { class: "boxes" }, shape.tagged.map((field) => box(field, `${field.tag}: ${field.name}`))));
  return el("div", { class: "struct" },
    el("p", { class: "of" }, el("b", null, title), count && ` ${count}`),
    boxes.length ? el("ol", { class: "boxes" }, boxes) : el("p", { class: "muted" }, "no bytes at all"),
    tagged, nested.map(([inner, name, how]) => el("div", { class: "nested" }, boxesOf(inner, name, how))));
}

/** Shows each field as a row; offsets count from the start of the message or of the struct. */
function fieldTable(message, shape, wanted) {
  const rows = [];
  const walk = (struct, structName, depth, path) => {
    let offset = 0;
    for (const field of [...struct.fields, ...struct.tagged]) {
      const place = field.tag === null ? offset : null;
      const own = path ? `${path}.${field.name}` : field.name;
      const spec = field.spec;
      const notes = [
        field.tag === null ? null : `tag ${field.tag}`, spec.mapKey ? "key" : null, spec.ignorable ? "ignorable" : null,
        spec.aliases.length ? `formerly ${spec.aliases.join(", ")}` : null,
      ].filter(Boolean).join(", ");
      const about = meaning(message.name, structName, field.name);
      rows.push(el("tr", { class: wanted === own ? "target" : null },
        el("td", { class: "number" }, place === null ? "" : `${depth ? "+" : ""}${place}`),
        el("th", { scope: "row", style: { "--depth": depth } }, field.name,
          about && el("span", { class: "about" }, about)),
        el("td", null, el("span", { class: `kind ${kindClass(field.type.kind)}` }, typeText(field.type, spec))),
        el("td", { class: "number" }, sizeText(field.type)),
        el("td", { class: "mono" }, spec.default === null ? "" : spec.default),
        el("td", { class: "number" }, rangeText(spec.versions)),
        el("td", { class: "muted" }, notes)));
      if (field.tag === null) {
        const width = fixedWidth(field.type);
        offset = offset === null || width === null ? null : offset + width;
      }
      const inner = field.type.struct || (field.type.element && field.type.element.struct);
      if (inner) walk(inner, inner.name, depth + 1, own);
    }
  };
  walk(shape, message.name, 0, "");
  if (!rows.length) return el("p", { class: "muted" }, "This version has no fields.");
  return table(`Fields of ${message.name}`, ["Offset", "Field", "Type", "Bytes", "Default", "Versions", ""], rows, { class: "fields" });
}
