// The views of all APIs: the versions of each, and the versions that each Kafka release supports.

const LISTENERS = { broker: "broker", controller: "controller", zkBroker: "broker with ZooKeeper" };
const RELEASES = new Map(DATA.releases.map(([name, ranges]) => (
  [name, new Map(ranges.map(([key, low, high]) => [key, { low, high }]))])));

/** Returns the oldest release that supports a version of an API; empty if none is known. */
function firstRelease(key, version) {
  for (const [name, ranges] of RELEASES) if (ranges.has(key) && within(ranges.get(key), version)) return name;
  return "";
}

/** Returns the release that dropped a version of an API; empty if none did, or none had it. */
function droppedIn(key, version) {
  let [gone, stood] = ["", false];
  for (const [name, ranges] of RELEASES) {
    if (ranges.has(key) && within(ranges.get(key), version)) [gone, stood] = ["", true];
    else if (stood && !gone) gone = name;
  }
  return gone;
}

/** Returns the releases whose versions differ from those of the release before, oldest first. */
function changedReleases() {
  let before = "";
  return [...RELEASES.keys()].filter((name) => {
    const said = JSON.stringify([...RELEASES.get(name)]);
    const differs = said !== before;
    before = said;
    return differs;
  });
}

/** Returns the marks of a version, for the color of its cell and for its label. */
function versionMarks(message, version, supported) {
  const marks = [];
  if (within(message.flexible, version)) marks.push("flexible");
  if (within(message.deprecated, version)) marks.push("deprecated");
  if (message.unstable && version === message.valid.high) marks.push("unstable");
  if (supported && !within(supported, version)) marks.push("unsupported");
  return marks;
}
const MARK_WORDS = { flexible: "flexible", deprecated: "deprecated", unstable: "unstable", unsupported: "not in this release" };

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
  const supported = ranges && (ranges.get(api.key) || versions("none"));
  const cells = columns.map((version) => {
    if (!within(message.valid, version)) return el("td");
    const marks = versionMarks(message, version, supported);
    const words = [`${api.name} v${version}`, ...marks.map((mark) => MARK_WORDS[mark])].join(", ");
    return el("td", null, link(to("m", message.name, version), `${version}`,
      { class: `v ${marks.join(" ")}`, tabindex: "-1", title: words, "aria-label": words }));
  });
  const by = message.listeners.map((name) => name[0].toUpperCase()).join(" ");
  const names = message.listeners.map((name) => LISTENERS[name] || name).join(", ");
  return el("tr", { class: supported && supported.high < supported.low ? "gone" : null },
    el("td", { class: "number" }, `${api.key}`),
    el("th", { scope: "row" }, link(to("m", message.name, latestStable(message)), api.name)),
    el("td", { class: "by", title: names }, by), cells);
}

/** Shows the version range of each API in each release; highlights changes. */
function releasesView() {
  const all = [...RELEASES.keys()];
  const names = changedReleases();
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
    body: [el("h1", null, "Versions of each release"),
      names.length ? releasePicker(names[Math.max(0, names.length - 2)], all[all.length - 1]) : null,
      names.length ? el("p", { class: "hint" }, `${plural(all.length, "release")}; a release with the versions of the release before has no column. Changed ranges are highlighted; each links to the changes.`) : null,
      names.length ? grid : el("p", null, "This page was built without data about releases.")],
    after: () => { grid.scrollLeft = grid.scrollWidth; }, // to the newest
  };
}

/** Shows the messages that are neither requests nor responses. */
function storedView() {
  const groups = new Map();
  for (const raw of DATA.messages) {
    if (raw.t === "request" || raw.t === "response") continue;
    const group = raw.m ? `${raw.m}: ${raw.t}` : raw.t;
    groups.set(group, [...(groups.get(group) || []), raw]);
  }
  return {
    title: DATA.own ? "Other messages and headers" : "Stored records and headers",
    body: [
      el("h1", null, DATA.own ? "Other messages and headers" : "Stored records and headers"),
      el("p", { class: "hint" }, DATA.own
        ? "Messages that are neither requests nor responses, and the headers of requests and responses."
        : "Messages in the records that Kafka itself writes, and the headers of requests and responses."),
      el("div", { class: "groups" }, [...groups].map(([name, raws]) => el("section", null, el("h2", null, name),
        el("ul", { class: "plain" }, raws.map((raw) => el("li", null,
          messageLink(raw.n, versions(raw.v).high, raw.n), el("span", { class: "muted" },
            ` v${raw.v}${raw.k === undefined ? "" : `, key ${raw.k}`}`))))))),
    ],
  };
}

/** Links a text such as `Produce 4+` to the response of the API at the lowest of the versions. */
function responseLink(text) {
  const [api, range] = text.split(" ");
  const message = messageNamed(`${api}Response`);
  if (!message) return text;
  return link(to("m", message.name, range ? versions(range).low : latestStable(message)), text);
}

function errorsView([wanted]) {
  const rows = [...ERRORS.values()].map((error) => el("tr",
    { id: `error-${error.code}`, class: String(error.code) === wanted ? "target" : null },
    el("td", { class: "number" }, link(to("errors", error.code), `${error.code}`)),
    el("td", null, el("span", { class: "mono" }, error.name),
      el("span", { class: "note" }, `since ${error.since}`, error.formerly.length > 0 && `, at first ${error.formerly.join(", ")}`)),
    el("td", null, error.retriable ? "yes" : ""),
    el("td", { class: "meant" }, error.meant, el("span", { class: "note" }, `Client: ${error.client}`),
      error.responses.length > 0 && el("span", { class: "note" }, "Responses: ", error.responses.flatMap((text, index) => [index > 0 && ", ", responseLink(text)])))));
  return {
    title: "Error codes",
    body: [el("h1", null, "Error codes"), table("Error codes", ["Code", "Name", "Retriable", "Meaning, action of a client, responses with the code"], rows, { class: "errors" })],
    after: () => wanted && document.getElementById(`error-${wanted}`)?.scrollIntoView({ block: "center" }),
  };
}
