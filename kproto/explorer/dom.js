// Creates elements and links. Inserts text as text, never as markup.

/** Creates an element with attributes and `on…` listeners; leaves out false and null. */
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach(([key, one]) => node.style.setProperty(key, one));
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return node;
}

/** Returns the fragment of an address, such as `#/m/FetchRequest/13`. */
const to = (...parts) => `#/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
const link = (href, text, more) => el("a", { href, ...more }, text);
const messageLink = (name, version, text) => link(to("m", name, version), text || `${name} v${version}`);

/** Announces a text to screen readers. */
function announce(text) {
  document.getElementById("status").textContent = text;
}

/** Creates a labeled `select` from pairs of value and text. */
function select(label, pairs, chosen, onchange, id) {
  const made = el("select", { id, onchange: (event) => onchange(event.target.value) },
    pairs.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
  return el("label", { class: "field" }, el("span", null, label), made);
}

/** Creates a table with a caption for screen readers, heads, and rows of cells. */
function table(caption, heads, rows, more) {
  return el("div", { class: "scroll" }, el("table", more,
    el("caption", { class: "hidden" }, caption),
    el("thead", null, el("tr", null, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", null, rows)));
}

/**
 * Makes arrow keys move the focus inside `container`. `rows()` returns its rows, each a list of
 * elements that can have the focus. The caller sets the Tab stops.
 */
function arrows(container, rows) {
  container.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    const all = rows();
    const row = all.findIndex((one) => one.includes(event.target));
    if (row < 0) return;
    const column = all[row].indexOf(event.target);
    const next = all[row + step[0]];
    const target = next && (step[0] ? next[Math.min(column, next.length - 1)] : next[column + step[1]]);
    if (!target) return;
    event.preventDefault();
    target.focus();
  });
}

/** Returns a line with the change of a version and its KIPs, each with a link if it is known. */
function kipLine(row, lead, mark) {
  const kips = row.kips.map((kip) => (kip.address
    ? link(kip.address, `KIP-${kip.number}`, { title: kip.title || null, rel: "noreferrer", target: "_blank" }) : el("b", null, `KIP-${kip.number}`)));
  return el("p", { class: mark ? `kip ${mark}` : "kip" }, lead, kips.flatMap((kip) => [kip, " "]), row.change);
}

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
