// The view that searches messages, fields, error codes, KIPs and descriptions.

const MAX_HITS = 40; // of each kind; a longer word finds fewer
const MIN_MEANT = 3; // characters of a text that is searched in descriptions

/** All fields of all messages with their paths; created at the first search. */
const FIELD_INDEX = { rows: null };

function fieldIndex() {
  if (FIELD_INDEX.rows) return FIELD_INDEX.rows;
  const rows = [];
  for (const raw of DATA.messages) {
    const message = messageNamed(raw.n);
    const walk = (fields, path, range, holder) => {
      for (const spec of fields) {
        const own = path ? `${path}.${spec.name}` : spec.name;
        const found = { low: Math.max(range.low, spec.versions.low), high: Math.min(range.high, spec.versions.high) };
        if (found.high < found.low) continue;
        rows.push({ message, spec, path: own, range: found, meant: meaning(message.name, holder, spec.name), words: [spec.name, snakeCase(spec.name), ...spec.aliases].join(" ").toLowerCase() });
        const struct = message.structs.get(spec.element);
        if (struct) walk(struct.fields, own, found, struct.name);
      }
    };
    walk(message.fields, "", message.valid, message.name);
  }
  FIELD_INDEX.rows = rows;
  return rows;
}

/** Returns the former names of a message, and those from former names of its API. */
function formerNames(raw) {
  const kind = /Request$|Response$/.exec(raw.n)?.[0] || "";
  const ofApi = Object.entries(DATA.former).filter(([, newest]) => kind && raw.n === newest + kind);
  return [...(raw.fo || []).map(([old]) => old), ...ofApi.map(([old]) => old + kind)];
}

/** Returns hits by kind; names that begin with the text come first. Spaces may part the words of a name. */
function hits(text) {
  const wanted = text.trim().toLowerCase();
  const number = /^-?[0-9]+$/.test(wanted) ? Number(wanted) : null;
  const joined = wanted.replace(/[ _-]/g, "");
  const rank = (word) => (word === wanted ? 0 : word.startsWith(wanted) || word.startsWith(joined) ? 1 : 2);
  const has = (words) => words.includes(wanted) || (joined !== "" && words.split(" ").some((word) => word.includes(joined)));
  const among = (rows, words) => rows.filter((row) => has(words(row)))
    .sort((a, b) => rank(words(a)) - rank(words(b)) || words(a).length - words(b).length);
  const messages = among(DATA.messages, (raw) => [raw.n, ...formerNames(raw)].join(" ").toLowerCase());
  const byKey = number === null ? [] : DATA.messages.filter((raw) => raw.k === number && (raw.t === "request" || raw.t === "response"));
  const inName = (error) => error.code === number || [error.name, ...error.formerly].some((name) => name.toLowerCase().includes(wanted.replace(/[ -]/g, "_")));
  const errors = [...ERRORS.values()].filter(inName);
  const kips = DATA.kips.filter((row) => [kipWords(row), ...row.kips.map((kip) => kip.title || ""), row.change].join(" ").toLowerCase().includes(wanted));
  const found = { messages: [...byKey, ...messages.filter((raw) => !byKey.includes(raw))], errors, kips, fields: among(fieldIndex(), (row) => row.words) };
  return { ...found, meanings: meant(wanted, found) };
}

/**
 * Returns the messages, error codes and fields whose description has every word of the text, and
 * whose name does not have the text. A field that is in several messages is a hit for each.
 */
function meant(wanted, found) {
  const words = wanted.split(/\s+/);
  if (wanted.length < MIN_MEANT) return [];
  const has = (text) => { const low = text.toLowerCase(); return words.every((word) => low.includes(word)); };
  const named = new Set([...found.messages, ...found.errors, ...found.fields]);
  const rows = [
    ...DATA.messages.filter((raw) => has(messageMeaning(raw.n))).map((raw) => ({ raw, of: raw, text: messageMeaning(raw.n) })),
    ...[...ERRORS.values()].filter((error) => has(`${error.meant} ${error.client}`)).map((error) => ({ error, of: error, text: error.meant })),
    ...fieldIndex().filter((row) => has(row.meant)).map((row) => ({ row, of: row, text: row.meant })),
  ];
  const exact = (row) => (row.text.toLowerCase().includes(wanted) ? 0 : 1);
  return rows.filter((row) => !named.has(row.of)).sort((a, b) => exact(a) - exact(b));
}

const meantItem = ({ raw, error, row, text }) => {
  const [place, note] = raw ? [messageLink(raw.n, versions(raw.v).high - (raw.u ? 1 : 0), raw.n), raw.t]
    : error ? [link(to("errors", error.code), error.name), `error code ${error.code}`] : [fieldLink(row), fieldNote(row)];
  return [place, el("span", { class: "muted" }, ` ${note}`), el("span", { class: "note" }, text)];
};
const fieldLink = (row) => link(to("m", row.message.name, Math.max(row.range.low, Math.min(latestStable(row.message), row.range.high)), row.path), row.spec.name);
const fieldNote = (row) => `${row.message.name}${row.path.includes(".") ? `, ${row.path}` : ""}, ${row.spec.type}, v${rangeText(row.range)}`;

function searchView([text = ""]) {
  if (!text.trim()) return gridView([]);
  const found = hits(text);
  const group = (title, list, item) => list.length > 0 && el("section", null,
    el("h2", null, title, el("span", { class: "muted" }, ` ${list.length}`)),
    el("ul", { class: "plain hits" }, list.slice(0, MAX_HITS).map((one) => el("li", null, item(one)))),
    list.length > MAX_HITS && el("p", { class: "hint" }, `The first ${MAX_HITS}; a longer word finds fewer.`));
  const total = found.messages.length + found.errors.length + found.kips.length + found.fields.length + found.meanings.length;
  announce(plural(total, "hit"));
  return {
    title: `Search: ${text}`,
    keepsFocus: true,
    body: [
      el("h1", null, "Search ", el("span", { class: "muted" }, text)),
      total === 0 && el("p", null, "No name and no description contains this text."),
      group("Messages", found.messages, (raw) => [messageLink(raw.n, versions(raw.v).high - (raw.u ? 1 : 0), raw.n),
        el("span", { class: "muted" }, ` ${raw.t}${raw.k === undefined ? "" : `, key ${raw.k}`}, v${raw.v}`)]),
      group("Error codes", found.errors, (error) => [link(to("errors", error.code), error.name), el("span", { class: "muted" }, ` ${error.code}`)]),
      group("KIPs", found.kips, (row) => [link(to("m", `${row.api}Request`, row.version, WHAT_CHANGED), `${row.api} v${row.version}`), ` ${kipWords(row)} `, el("span", { class: "muted" }, row.change)]),
      group("Fields", found.fields, (row) => [fieldLink(row), el("span", { class: "muted" }, ` ${fieldNote(row)}`)]),
      group("Descriptions", found.meanings, meantItem),
    ],
  };
}
