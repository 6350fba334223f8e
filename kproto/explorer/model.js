// The definitions as data: version ranges, structs, and the layout of one version of a message.
// Follows kproto/schema/layout.py, so that both decode bytes in the same way.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** Bytes of each type of fixed width. */
const SIZES = { bool: 1, int8: 1, int16: 2, uint16: 2, int32: 4, uint32: 4, int64: 8, float64: 8, uuid: 16 };
const PRIMITIVES = new Set([...Object.keys(SIZES), "string", "bytes", "records"]);
const MAX_VERSION = 32767;

/** Parses a range of versions: `3`, `1-4`, `2+` or `none`. */
function versions(text) {
  if (!text || text === "none") return { low: 0, high: -1 };
  const [low, high] = text.replace("+", `-${MAX_VERSION}`).split("-").map(Number);
  return { low, high: high === undefined ? low : high };
}
const within = (range, version) => range.low <= version && version <= range.high;

function rangeText({ low, high }) {
  if (high < low) return "none";
  return high === MAX_VERSION ? `${low}+` : low === high ? `${low}` : `${low}-${high}`;
}

const WHOLE_WORDS = /KRaft|2Pc/g;
const WORD = /[A-Z]+[0-9]*(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+/g;

/** Converts `TopicId` to `topic_id`. The data has the attribute names that break this rule. */
function snakeCase(name) {
  const parted = name.replace(WHOLE_WORDS, (f) => `_${f[0].toUpperCase()}${f.slice(1).toLowerCase()}_`);
  return (parted.match(WORD) || []).join("_").toLowerCase();
}
const jsonName = (name) => name[0].toLowerCase() + name.slice(1);

function makeField([name, type, range, extras, fields]) {
  const more = extras || {};
  const isArray = type.startsWith("[]");
  return {
    name, type, isArray, element: isArray ? type.slice(2) : type,
    versions: versions(range), nullable: versions(more.n), tagged: versions(more.tv),
    tag: more.t === undefined ? null : more.t,
    flexible: more.f === undefined ? null : versions(more.f),
    default: more.d === undefined ? null : more.d,
    ignorable: !!more.i, mapKey: !!more.k, entity: more.e || null, aliases: more.al || [],
    attribute: more.a || snakeCase(name),
    fields: (fields || []).map(makeField),
  };
}

function makeMessage(raw) {
  const message = {
    name: raw.n, key: raw.k === undefined ? null : raw.k, type: raw.t, module: raw.m,
    listeners: raw.l || [], valid: versions(raw.v), flexible: versions(raw.fl),
    deprecated: versions(raw.dv), unstable: !!raw.u, formerly: raw.fo || [],
    fields: raw.f.map(makeField), common: new Map(), structs: new Map(),
  };
  for (const [name, range, fields] of raw.c || []) {
    message.common.set(name, { name, versions: versions(range), fields: fields.map(makeField) });
  }
  const walk = (fields) => {
    for (const field of fields) {
      const name = field.element;
      if (PRIMITIVES.has(name) || message.structs.has(name)) continue;
      const struct = message.common.get(name) || { name, versions: field.versions, fields: field.fields };
      message.structs.set(name, struct);
      walk(struct.fields);
    }
  };
  walk(message.fields);
  return message;
}

const MESSAGES = new Map(); // by name; created on demand, because most views show one
const RAW = new Map(DATA.messages.map((raw) => [raw.n, raw]));

function messageNamed(name) {
  if (!MESSAGES.has(name) && RAW.has(name)) MESSAGES.set(name, makeMessage(RAW.get(name)));
  return MESSAGES.get(name) || null;
}

/** The APIs by api key: key, name, and the names of request and response. */
const APIS = (() => {
  const apis = new Map();
  for (const raw of DATA.messages) {
    if (raw.t !== "request" && raw.t !== "response") continue;
    const api = apis.get(raw.k) || { key: raw.k };
    api[raw.t] = raw.n;
    api.name = raw.n.replace(/Request$|Response$/, "");
    apis.set(raw.k, api);
  }
  return [...apis.values()].sort((a, b) => a.key - b.key);
})();
const API_OF_KEY = new Map(APIS.map((api) => [api.key, api]));
const ERRORS = new Map(DATA.errors.map(([code, name, retriable, since, meant, client, responses, formerly]) => (
  [code, { code, name, retriable, since, meant, client, responses, formerly }])));

const latestStable = (message) => message.valid.high - (message.unstable ? 1 : 0);
const versionList = (range) => Array.from({ length: range.high - range.low + 1 }, (_, i) => range.low + i);

/** Returns the encoding of a field at a version; null if the version does not have it. */
function fieldForm(field, version, flexible) {
  if (!within(field.versions, version)) return null;
  const tagged = within(field.tagged, version);
  if (field.flexible) flexible = within(field.flexible, version);
  const isStruct = !PRIMITIVES.has(field.element) && !field.isArray;
  const varies = !(field.type in SIZES) && (tagged || !isStruct);
  return {
    tagged, compact: flexible && varies,
    nullable: within(field.nullable, version) && !(field.type in SIZES),
  };
}

const LAYOUTS = new Map();

/** Returns the layout of a message version: fields in wire order, tagged fields by tag. */
function layout(message, version) {
  const key = `${message.name} ${version}`;
  if (!LAYOUTS.has(key)) {
    const flexible = within(message.flexible, version);
    LAYOUTS.set(key, structLayout(message, message, version, flexible));
  }
  return LAYOUTS.get(key);
}

function structLayout(struct, message, version, flexible) {
  const shape = { name: struct.name, flexible, fields: [], tagged: [], elsewhere: new Map() };
  for (const spec of struct.fields) {
    const form = fieldForm(spec, version, flexible);
    if (!form || !form.tagged) {
      if (spec.tag !== null) {
        const low = Math.max(spec.versions.low, spec.tagged.low);
        const high = Math.min(spec.versions.high, spec.tagged.high);
        shape.elsewhere.set(spec.tag, low <= high ? { low, high } : versions("none"));
      }
      if (!form) continue;
    }
    const type = wireType(spec, form, message, version, flexible);
    const field = { name: spec.name, attribute: spec.attribute, type, tag: form.tagged ? spec.tag : null, spec };
    (form.tagged ? shape.tagged : shape.fields).push(field);
  }
  shape.tagged.sort((a, b) => a.tag - b.tag);
  shape.byTag = new Map(shape.tagged.map((field) => [field.tag, field]));
  return shape;
}

function wireType(field, form, message, version, flexible) {
  const name = field.element;
  const { compact, nullable } = form;
  const primitive = PRIMITIVES.has(name);
  const struct = primitive ? null : structLayout(message.structs.get(name), message, version, flexible);
  if (!field.isArray) return { kind: primitive ? name : "struct", compact, nullable, struct };
  const element = primitive
    ? { kind: name, compact: flexible && !(name in SIZES), nullable: false, struct: null }
    : { kind: "struct", compact: false, nullable: false, struct };
  return { kind: "array", compact, nullable, element, struct: null };
}

/** Returns the size in bytes of all values of a type; null if the size varies. */
function fixedWidth(type) {
  if (type.kind in SIZES) return SIZES[type.kind];
  if (type.kind !== "struct" || type.nullable || type.struct.flexible) return null;
  return type.struct.fields.reduce((sum, field) => {
    const width = fixedWidth(field.type);
    return sum === null || width === null ? null : sum + width;
  }, 0);
}

/** Returns a type as text, such as `[]int32` or `compact string or null`. */
function typeText(type, spec) {
  const name = spec ? spec.type : type.kind;
  return `${type.compact && type.kind !== "struct" ? "compact " : ""}${name}${type.nullable ? " or null" : ""}`;
}

/** Returns the glossary text of a field: for its struct first, then for its message, then for all. */
function meaning(message, struct, name) {
  const glossary = DATA.glossary;
  if (!glossary) return "";
  const own = (glossary.overrides || {})[`${message}.${struct}`] || {};
  const whole = (glossary.overrides || {})[message] || {};
  return own[name] || whole[name] || (glossary.fields || {})[name] || "";
}
const messageMeaning = (name) => ((DATA.glossary || {}).messages || {})[name] || "";

/** Returns the rows of the table of KIPs for a version of an API (request and response together). */
function kipRows(message, version) {
  const api = message.replace(/Request$|Response$/, "");
  return DATA.kips.filter((row) => row.api === api && row.version === version);
}
const kipWords = (row) => row.kips.map((kip) => `KIP-${kip.number}`).join(", ");
