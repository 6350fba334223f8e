// The view that searches messages, fields, error codes and KIPs.

const MAX_HITS = 40; // of each kind; a longer word finds fewer

/** All fields of all messages with their paths; created at the first search. */
const FIELD_INDEX = { rows: null };

function fieldIndex() {
  if (FIELD_INDEX.rows) return FIELD_INDEX.rows;
  const rows = [];
  for (const raw of DATA.messages) {
    const message = messageNamed(raw.n);
    const walk = (fields, path, range) => {
      for (const spec of fields) {
        const own = path ? `${path}.${spec.name}` : spec.name;
        const found = { low: Math.max(range.low, spec.versions.low), high: Math.min(range.high, spec.versions.high) };
        if (found.high < found.low) continue;
        rows.push({ message, spec, path: own, range: found, words: [spec.name, snakeCase(spec.name), ...spec.aliases].join(" ").toLowerCase() });
        const struct = message.structs.get(spec.element);
        if (struct) walk(struct.fields, own, found);
      }
    };
    walk(message.fields, "", message.valid);
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

/** Returns hits by kind; names that begin with the text come first. */
function hits(text) {
  const wanted = text.trim().toLowerCase();
  const number = /^-?[0-9]+$/.test(wanted) ? Number(wanted) : null;
  const rank = (word) => (word === wanted ? 0 : word.startsWith(wanted) ? 1 : 2);
  const among = (rows, words) => rows.filter((row) => words(row).includes(wanted))
    .sort((a, b) => rank(words(a)) - rank(words(b)) || words(a).length - words(b).length);
  const messages = among(DATA.messages, (raw) => [raw.n, ...formerNames(raw)].join(" ").toLowerCase());
  const byKey = number === null ? [] : DATA.messages.filter((raw) => raw.k === number && (raw.t === "request" || raw.t === "response"));
  const errors = [...ERRORS.values()].filter((error) => error.code === number || error.name.toLowerCase().includes(wanted.replace(/[ -]/g, "_")));
  const kips = DATA.kips.filter((row) => [kipWords(row), ...row.kips.map((kip) => kip.title || ""), row.change].join(" ").toLowerCase().includes(wanted));
  return { messages: [...byKey, ...messages.filter((raw) => !byKey.includes(raw))], errors, kips, fields: among(fieldIndex(), (row) => row.words) };
}

function searchView([text = ""]) {
  if (!text.trim()) return gridView([]);
  const found = hits(text);
  const group = (title, list, item) => list.length > 0 && el("section", null,
    el("h2", null, title, el("span", { class: "muted" }, ` ${list.length}`)),
    el("ul", { class: "plain hits" }, list.slice(0, MAX_HITS).map((one) => el("li", null, item(one)))),
    list.length > MAX_HITS && el("p", { class: "hint" }, `The first ${MAX_HITS}; a longer word finds fewer.`));
  const total = found.messages.length + found.errors.length + found.kips.length + found.fields.length;
  announce(plural(total, "hit"));
  return {
    title: `Search: ${text}`,
    keepsFocus: true,
    body: [
      el("h1", null, "Search ", el("span", { class: "muted" }, text)),
      total === 0 && el("p", null, "No name contains this text."),
      group("Messages", found.messages, (raw) => [messageLink(raw.n, versions(raw.v).high - (raw.u ? 1 : 0), raw.n),
        el("span", { class: "muted" }, ` ${raw.t}${raw.k === undefined ? "" : `, key ${raw.k}`}, v${raw.v}`)]),
      group("Error codes", found.errors, (error) => [link(to("errors", error.code), error.name), el("span", { class: "muted" }, ` ${error.code}`)]),
      group("KIPs", found.kips, (row) => [link(to("m", `${row.api}Request`, row.version, WHAT_CHANGED), `${row.api} v${row.version}`), ` ${kipWords(row)} `, el("span", { class: "muted" }, row.change)]),
      group("Fields", found.fields, (row) => [
        link(to("m", row.message.name, Math.max(row.range.low, Math.min(latestStable(row.message), row.range.high)), row.path), row.spec.name),
        el("span", { class: "muted" }, ` ${row.message.name}${row.path.includes(".") ? `, ${row.path}` : ""}, ${row.spec.type}, v${rangeText(row.range)}`)]),
    ],
  };
}
