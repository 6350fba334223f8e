// The address decides what is shown: `#/m/FetchRequest/13`. What the page is called from the console.

const VIEWS = {
  "": gridView, apis: gridView, stored: storedView, m: messageView, diff: diffView, errors: errorsView,
  decode: decodeView, search: searchView,
  releases: (parts) => (parts.length === 2 ? releaseDiffView(parts) : releasesView()),
};
const PAGES = [
  ["#/", "APIs"], ["#/stored", "Stored records"], ["#/errors", "Error codes"],
  ...(RELEASES.size ? [["#/releases", "Releases"]] : []), ["#/decode", "Decode bytes"],
];

function parseHash() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return [""]; // an address that was cut in a character
  }
}

let drawn = false;

function draw() {
  const [name, ...parts] = parseHash();
  const view = (VIEWS[name] || (() => problemView("There is no such page.")))(parts.map((part) => (name === "decode" && part === "-" ? "" : part)));
  const main = document.getElementById("main");
  main.className = `view-${name || "apis"}`;
  main.replaceChildren(...view.body.flat(Infinity).filter(Boolean));
  document.title = `${view.title} · Kafka’s protocol`;
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

const searchInput = document.getElementById("search");
searchInput.addEventListener("input", () => {
  const wanted = searchInput.value;
  const hash = wanted.trim() ? to("search", wanted) : "#/";
  // One step back in the history leads to where the search began.
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

/** For the console: `kproto.decode("FetchRequest", 13, "00ff…")` gives JSON text or a fault. */
globalThis.kproto = {
  decode(name, version, text) {
    const read = decodeMessage(messageNamed(name), version, bytesOfText(text));
    return read.fault ? { fault: read.fault } : { json: toJson(read.tree) };
  },
};
