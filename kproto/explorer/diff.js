// The views of the changes between two versions of a message, and between two releases.

/** Returns the encoding of a field in a version as text; empty if the version lacks the field. */
function formText(spec, form) {
  if (!form) return "";
  return [form.compact ? `compact ${spec.type}` : spec.type, form.nullable ? "or null" : "", form.tagged ? `in tag ${spec.tag}` : ""]
    .filter(Boolean).join(" ");
}

/** Returns each field of either version, with its encoding in both; `mark` is +, -, ~ or empty. */
function changes(message, older, newer) {
  const rows = [];
  const walk = (fields, depth, path, inBoth) => {
    for (const spec of fields) {
      const forms = [older, newer].map((version) => fieldForm(spec, version, within(message.flexible, version)));
      const [before, after] = forms.map((form) => formText(spec, form));
      if (!before && !after) continue;
      const mark = !before ? "+" : !after ? "-" : before === after ? "" : "~";
      rows.push({ name: spec.name, path: path + spec.name, depth, before, after, mark: inBoth ? mark : "" , spec });
      const struct = message.structs.get(spec.element);
      if (struct) walk(struct.fields, depth + 1, `${path}${spec.name}.`, inBoth && before !== "" && after !== "");
    }
  };
  walk(message.fields, 0, "", true);
  return rows;
}

const MARK_NAMES = { "+": "added", "-": "removed", "~": "changed" };

function diffView([name, olderText, newerText]) {
  const { message, version: older, problem } = chosen(name, olderText);
  if (problem) return problemView(problem);
  const { version: newer, problem: other } = chosen(name, newerText);
  if (other) return problemView(other);
  const rows = changes(message, older, newer);
  const count = rows.filter((row) => row.mark).length;
  const flexible = [older, newer].map((version) => within(message.flexible, version));
  const pairs = versionList(message.valid).map((version) => [version, `v${version}`]);
  return {
    title: `${name} v${older} to v${newer}`,
    body: [
      el("h1", null, `${name} `, el("span", { class: "muted" }, `v${older} → v${newer}`)),
      el("div", { class: "tools" },
        select("From", pairs, older, (value) => { location.hash = to("diff", name, value, newer); }, "older"),
        select("To", pairs, newer, (value) => { location.hash = to("diff", name, older, value); }, "newer"),
        messageLink(name, older), messageLink(name, newer)),
      el("p", null, count ? `${plural(count, "field")} differ${count === 1 ? "s" : ""}. ` : "The fields are the same. ",
        flexible[0] === flexible[1] ? "" : flexible[1] ? "The newer one is flexible: lengths are varints, and each struct ends with tagged fields."
          : "The newer one is not flexible."),
      versionList({ low: Math.min(older, newer) + 1, high: Math.max(older, newer) }).flatMap((version) => kipRows(name, version)
        .map((row) => kipLine(row, `v${version}: `))),
      table(`Fields of ${name} in both versions`, ["", "Field", `v${older}`, `v${newer}`], rows.map((row) => el("tr",
        { class: MARK_NAMES[row.mark] || null },
        el("td", { class: "mark", "aria-label": MARK_NAMES[row.mark] || "the same" }, row.mark === "-" ? "−" : row.mark),
        el("th", { scope: "row", style: { "--depth": row.depth } }, row.name),
        el("td", { class: "mono" }, row.before), el("td", { class: "mono" }, row.after))), { class: "diff" }),
    ],
  };
}

function releasePicker(older, newer) {
  const pairs = [...RELEASES.keys()].map((name) => [name, name]);
  return el("div", { class: "tools" },
    select("From", pairs, older, (value) => { location.hash = to("releases", value, newer); }, "older"),
    select("To", pairs, newer, (value) => { location.hash = to("releases", older, value); }, "newer"),
    link(to("releases", older, newer), "What changed"));
}

/** Shows the APIs whose versions differ between two releases. */
function releaseDiffView([older, newer]) {
  const [before, after] = [RELEASES.get(older), RELEASES.get(newer)];
  if (!before || !after) return problemView(`This page has the releases ${[...RELEASES.keys()].join(", ") || "(none)"}.`);
  const rows = [];
  for (const api of APIS) {
    const [was, is] = [before.get(api.key), after.get(api.key)];
    const texts = [was, is].map((range) => (range ? rangeText(range) : ""));
    if (texts[0] === texts[1]) continue;
    const mark = !was ? "+" : !is ? "-" : "~";
    const links = [api.request, api.response].filter(Boolean).map(messageNamed).map((message) => {
      if (!was || !is || was.high === is.high) return null;
      const known = [was.high, is.high].every((version) => within(message.valid, version));
      return known && link(to("diff", message.name, was.high, is.high), `${message.type} v${was.high} → v${is.high}`);
    });
    const brought = is ? versionList({ low: was ? was.high + 1 : is.low, high: is.high }) : [];
    const notes = brought.flatMap((version) => kipRows(api.name, version).map((row) => kipLine(row, `v${version}: `)));
    rows.push(el("tr", { class: MARK_NAMES[mark] },
      el("td", { class: "mark", "aria-label": MARK_NAMES[mark] }, mark === "-" ? "−" : mark),
      el("th", { scope: "row" }, messageLink(api.request || api.response, latestStable(messageNamed(api.request || api.response)), api.name)),
      el("td", { class: "mono" }, texts[0]), el("td", { class: "mono" }, texts[1]), el("td", { class: "actions" }, links, notes)));
  }
  return {
    title: `${older} to ${newer}`,
    body: [
      el("h1", null, "Releases ", el("span", { class: "muted" }, `${older} → ${newer}`)),
      releasePicker(older, newer),
      el("p", null, rows.length ? `${plural(rows.length, "API")} changed.` : "No API changed its versions."),
      rows.length ? table("APIs that changed", ["", "API", older, newer, "What changed"], rows, { class: "diff" }) : null,
    ],
  };
}
