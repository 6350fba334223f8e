// The APIs at a glance: which versions each has, and what each release of Kafka speaks.

const LISTENERS = { broker: "broker", controller: "controller", zkBroker: "broker with ZooKeeper" };
const RELEASES = new Map(DATA.releases.map(([name, ranges]) => (
  [name, new Map(ranges.map(([key, low, high]) => [key, { low, high }]))])));

/** The oldest release that speaks a version of an API; empty where none is known. */
function firstRelease(key, version) {
  for (const [name, ranges] of RELEASES) if (ranges.has(key) && within(ranges.get(key), version)) return name;
  return "";
}

/** The release since which no release speaks a version of an API; empty while it stands, or never was. */
function goneSince(key, version) {
  let [gone, stood] = ["", false];
  for (const [name, ranges] of RELEASES) {
    if (ranges.has(key) && within(ranges.get(key), version)) [gone, stood] = ["", true];
    else if (stood && !gone) gone = name;
  }
  return gone;
}

/** The releases that brought or took a version, in their order: the others are as those before. */
function telling() {
  let before = "";
  return [...RELEASES.keys()].filter((name) => {
    const said = JSON.stringify([...RELEASES.get(name)]);
    const differs = said !== before;
    before = said;
    return differs;
  });
}

/** What a version is: for the colour of its cell, and in words. */
function versionMarks(message, version, spoken) {
  const marks = [];
  if (within(message.flexible, version)) marks.push("flexible");
  if (within(message.deprecated, version)) marks.push("deprecated");
  if (message.unstable && version === message.valid.high) marks.push("unstable");
  if (spoken && !within(spoken, version)) marks.push("unspoken");
  return marks;
}
const MARK_WORDS = { flexible: "flexible", deprecated: "deprecated", unstable: "unstable", unspoken: "not in this release" };

function gridView([release]) {
  const ranges = RELEASES.get(release);
  const highest = Math.max(...APIS.map((api) => messageNamed(api.request || api.response).valid.high));
  const columns = versionList({ low: 0, high: highest });
  const rows = APIS.map((api) => apiRow(api, columns, ranges));
  const count = el("span", { class: "muted", role: "status" }, "");
  const filter = (text) => {
    const wanted = text.trim().toLowerCase();
    let shown = 0;
    for (const [index, row] of rows.entries()) {
      const api = APIS[index];
      row.hidden = wanted !== "" && !api.name.toLowerCase().includes(wanted) && String(api.key) !== wanted;
      shown += !row.hidden;
    }
    count.textContent = wanted ? `${plural(shown, "API")} of ${APIS.length}` : "";
  };
  const grid = table("APIs and the versions of their requests",
    ["Key", "API", "By",
      ...columns.map((one) => `${one}`)], rows, { class: "grid" });
  arrows(grid, () => rows.filter((row) => !row.hidden).map((row) => [...row.querySelectorAll("a")]));
  return {
    title: "APIs",
    body: [
      el("h1", null, "APIs and versions"),
      el("div", { class: "tools" },
        el("label", { class: "field" }, el("span", null, "Filter"),
          el("input", { type: "search", id: "filter", placeholder: "name or key", oninput: (event) => filter(event.target.value) })),
        RELEASES.size > 0 && select("Release", [["", "all of them"], ...[...RELEASES.keys()].reverse().map((name) => [name, name])],
          release || "", (name) => { location.hash = name ? to("apis", name) : "#/"; }, "release"),
        count,
        el("ul", { class: "legend" },
          [["", "fixed lengths"], ["flexible", "flexible (tags, varints)"], ["deprecated", "deprecated"], ["unstable", "unstable"]]
            .map(([name, text]) => el("li", null, el("i", { class: `v ${name}` }), text)))),
      el("p", { class: "hint" }, "A box is a version of the request; arrow keys go from one to the next. By: B broker, C controller, Z broker with ZooKeeper."),
      grid,
    ],
  };
}

function apiRow(api, columns, ranges) {
  const message = messageNamed(api.request || api.response);
  const spoken = ranges && (ranges.get(api.key) || versions("none"));
  const cells = columns.map((version) => {
    if (!within(message.valid, version)) return el("td");
    const marks = versionMarks(message, version, spoken);
    const words = [`${api.name} v${version}`, ...marks.map((mark) => MARK_WORDS[mark])].join(", ");
    return el("td", null, link(to("m", message.name, version), `${version}`,
      { class: `v ${marks.join(" ")}`, tabindex: "-1", title: words, "aria-label": words }));
  });
  const by = message.listeners.map((name) => name[0].toUpperCase()).join(" ");
  const names = message.listeners.map((name) => LISTENERS[name] || name).join(", ");
  return el("tr", { class: spoken && spoken.high < spoken.low ? "gone" : null },
    el("td", { class: "number" }, `${api.key}`),
    el("th", { scope: "row" }, link(to("m", message.name, latestStable(message)), api.name)),
    el("td", { class: "by", title: names }, by), cells);
}

/** APIs by releases: the range of each; what a release changed stands out. */
function releasesView() {
  const all = [...RELEASES.keys()];
  const names = telling();
  const rows = APIS.map((api) => el("tr", null,
    el("td", { class: "number" }, `${api.key}`), el("th", { scope: "row" }, api.name),
    names.map((name, index) => {
      const range = RELEASES.get(name).get(api.key);
      const before = index ? RELEASES.get(names[index - 1]).get(api.key) : undefined;
      const text = range ? rangeText(range) : "";
      const changed = index > 0 && text !== (before ? rangeText(before) : "");
      const cell = text || (changed ? "gone" : "");
      return el("td", { class: changed ? (text ? "changed" : "lost") : "range" },
        changed ? link(to("releases", names[index - 1], name), cell, { tabindex: "-1" }) : cell);
    })));
  const grid = table("API versions by release", ["Key", "API",
    ...names.map((name, index) => (index ? link(to("releases", names[index - 1], name), name) : name))], rows, { class: "grid releases" });
  arrows(grid, () => [...grid.querySelectorAll("tr")].map((row) => [...row.querySelectorAll("a")]).filter((row) => row.length));
  return {
    title: "Releases",
    body: [el("h1", null, "What each release speaks"),
      names.length ? releasePicker(names[Math.max(0, names.length - 2)], all[all.length - 1]) : null,
      names.length ? el("p", { class: "hint" }, `${plural(all.length, "release")}; those that speak what the one before speaks have no column. What a release changed stands out, and leads to what that was.`) : null,
      names.length ? grid : el("p", null, "This page was built without the facts of the releases.")],
    after: () => { grid.scrollLeft = grid.scrollWidth; }, // to the newest
  };
}

/** The messages that are no requests and responses. */
function storedView() {
  const groups = new Map();
  for (const raw of DATA.messages) {
    if (raw.t === "request" || raw.t === "response") continue;
    const group = `${raw.m}: ${raw.t}`;
    groups.set(group, [...(groups.get(group) || []), raw]);
  }
  return {
    title: "Stored records and headers",
    body: [
      el("h1", null, "Stored records and headers"),
      el("p", { class: "hint" }, "What Kafka keeps in records of its own, and the headers in front of requests and responses."),
      el("div", { class: "groups" }, [...groups].map(([name, raws]) => el("section", null, el("h2", null, name),
        el("ul", { class: "plain" }, raws.map((raw) => el("li", null,
          messageLink(raw.n, versions(raw.v).high, raw.n), el("span", { class: "muted" },
            ` v${raw.v}${raw.k === undefined ? "" : `, key ${raw.k}`}`))))))),
    ],
  };
}

function errorsView([wanted]) {
  const rows = [...ERRORS.values()].map((error) => el("tr",
    { id: `error-${error.code}`, class: String(error.code) === wanted ? "target" : null },
    el("td", { class: "number" }, link(to("errors", error.code), `${error.code}`)),
    el("td", { class: "mono" }, error.name),
    el("td", null, error.retriable ? "may succeed later" : "")));
  return {
    title: "Error codes",
    body: [el("h1", null, "Error codes"), table("Error codes", ["Code", "Name", "Again"], rows, { class: "errors" })],
    after: () => wanted && document.getElementById(`error-${wanted}`)?.scrollIntoView({ block: "center" }),
  };
}
