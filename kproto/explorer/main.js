// Shows the view of the address, such as `#/m/FetchRequest/13`. Defines `kproto` for the console.

const VIEWS = {
  "": gridView, apis: gridView, stored: storedView, m: messageView, diff: diffView, errors: errorsView,
  decode: decodeView, search: searchView,
  releases: (parts) => (parts.length === 2 ? releaseDiffView(parts) : releasesView()),
};
const PAGES = [
  ["#/", "APIs"], ["#/stored", DATA.own ? "Other messages" : "Stored records"],
  ...(ERRORS.size ? [["#/errors", "Error codes"]] : []),
  ...(RELEASES.size ? [["#/releases", "Releases"]] : []), ["#/decode", "Decode bytes"],
];

function parseHash() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return [""]; // an address that was truncated inside a character
  }
}

const searchInput = document.getElementById("search");
let drawn = false;

function draw() {
  const [name, ...parts] = parseHash();
  const view = (VIEWS[name] || (() => problemView("There is no such page.")))(parts.map((part) => (name === "decode" && part === "-" ? "" : part)));
  const main = document.getElementById("main");
  main.className = `view-${name || "apis"}`;
  main.replaceChildren(...view.body.flat(Infinity).filter(Boolean));
  if (document.activeElement !== searchInput) searchInput.value = name === "search" ? parts.join("/") : "";
  document.title = `${view.title} · ${DATA.title}`;
  for (const one of document.querySelectorAll("#nav a")) {
    const own = one.getAttribute("href").replace("#/", "");
    if (own === name || (own === "" && ["m", "diff", "apis"].includes(name))) one.setAttribute("aria-current", own === name ? "page" : "true");
    else one.removeAttribute("aria-current");
  }
  if (drawn && !view.keepsFocus) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    announce(view.title);
  }
  drawn = true;
  if (view.after) view.after();
}

searchInput.addEventListener("input", () => {
  const wanted = searchInput.value;
  const hash = wanted.trim() ? to("search", wanted) : "#/";
  // One step back in the history leads to the view before the search.
  if (parseHash()[0] === "search") history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  draw();
  searchInput.focus();
});
document.getElementById("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  document.querySelector("#main .hits a")?.focus();
});
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    searchInput.focus();
  }
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
document.getElementById("nav").append(...PAGES.map(([href, text]) => link(href, text)));
addEventListener("hashchange", draw);
draw();

/** Returns a node as plain data; offset and size are null if its bytes were decompressed. */
function plainNode(node) {
  const placed = node.at !== null && node.at !== undefined;
  return {
    name: node.name, kind: node.kind, offset: placed ? node.at : null, size: placed ? node.end - node.at : null,
    value: node.value instanceof Uint8Array ? hexOf(node.value) : typeof node.value === "bigint" ? `${node.value}` : node.value ?? null,
    note: noteText(node), children: (node.children || []).map(plainNode),
  };
}

async function unpackAll(node) {
  if (node.open) await node.open().catch((error) => { node.note = `broken: ${error.message}`; });
  for (const child of node.children || []) await unpackAll(child);
}

/**
 * For the console. `kproto.decode("FetchRequest", 13, "00ff…")` returns JSON text or a fault.
 * `await kproto.read(kind, "00ff…", name, version)` returns the content of the page as plain data;
 * `kind` is `request`, `response`, `body` or `records`. A response or body needs `name` and `version`.
 */
globalThis.kproto = {
  async read(kind, text, name, version) {
    const parts = decodeAs(kind, bytesOfText(text), messageNamed(name), version);
    for (const part of parts) for (const tree of part.trees) await unpackAll(tree);
    return parts.map((part) => ({ title: part.title, fault: part.fault, trees: part.trees.map(plainNode) }));
  },
  /** Returns the bytes of a text in hex; `form` is a form of `kproto decode --form`. */
  bytes(text, form = "auto") {
    return hexOf(bytesOfText(text, form));
  },
  decode(name, version, text) {
    const read = decodeMessage(messageNamed(name), version, bytesOfText(text));
    return read.fault ? { fault: read.fault } : { json: toJson(read.tree) };
  },
};
