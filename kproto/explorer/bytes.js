// The view that decodes pasted bytes: the form, the hex pane, and the tree beside it.

const EXAMPLES = [
  ["ApiVersions request", "request", "", "", "AAAAIQASAAQAAAABAAhleHBsb3JlcgAHa3Byb3RvBjAuMS4wAA"],
  ["Produce request, gzip batch", "request", "", "",
    "AAAA1gAAAAkAAAAHAAhleHBsb3JlcgAA__8AAHUwAgpncmVldGluZ3MCAAAAAKgBAAAAAAAAAAAAAACb_____wKN7WGIAAEAAAABAAABi8_laAAAAAGLz-Vo"
    + "-v__________________AAAAAh-LCAAAAAAAAAMrYWBgYMk21KhWSi9KTS3JzEtXslLKSM3JyVeqZZJIzs8rSc0r0S2pLEhVSCwoyMlMTizJzM_TzyrOz9vA"
    + "yPCFmYkl22gOY3p-fopCbn5RXmZeugLFHAYAUKtcj5UAAAAAAAA"],
  ["Metadata response", "response", "MetadataResponse", "12",
    "AAAAtQAAAAcAAAAAAAMAAAABCmxvY2FsaG9zdAAAI4QAAAAAAAIKbG9jYWxob3N0AAAjhQAAFzVMNmczblNoVC1lTUN0Sy0tWDg2c3cAAAABAwAACmdyZWV0"
    + "aW5ncwABAgMEBQYHCAkKCwwNDg8AAgAAAAAAAAAAAAEAAAADAwAAAAEAAAACAwAAAAEAAAACAQCAAAAAAAADCG5vd2hlcmUAAAAAAAAAAAAAAAAAAAAAAAGAAAAAAAA"],
  ["The same with a wrong length", "response", "MetadataResponse", "12",
    "AAAAtQAAAAcAAAAAAAMAAAABCmxvY2FsaG9zdAAAI4QAAAAAAAIKbG9jYWxob3N0AAAjhQAAFzVMNmczblNoVC1lTUN0Sy0tWDg2c3cAAAABAwAAemdyZWV0"
    + "aW5ncwABAgMEBQYHCAkKCwwNDg8AAgAAAAAAAAAAAAEAAAADAwAAAAEAAAACAwAAAAEAAAACAQCAAAAAAAADCG5vd2hlcmUAAAAAAAAAAAAAAAAAAAAAAAGAAAAAAAA"],
];
const KINDS = [
  ["request", "Request frames"], ["response", "Response frame"], ["body", "Message without header"], ["records", "Record batches"],
];
const MAX_LINK_BYTES = 16384; // in the address, because browsers and chats truncate longer addresses
const MAX_HEX_BYTES = 8192; // that are drawn, because each is an element
const MAX_ROWS = 600; // of the tree that are open at first
const MAX_CHILDREN = 200; // of a node that are drawn before "more"
const MAX_SHOWN = 64; // bytes of a value in its row
const MAX_TEXT = 200; // characters of a string in its row
const SECRETS = new Set(DATA.secrets.map(([message, field]) => `${message}.${field}`));

/** Returns a value as one line of text. */
function valueText(node) {
  const { value, kind } = node;
  if (value === null) return "null";
  if (kind === "array" && node.count === undefined) return ""; // broken before the count was known
  if (kind === "array") return plural(node.count, "element");
  if (value === undefined || (kind === "records" && node.children)) return "";
  if (kind === "uuid") return base64(value, true);
  if (value instanceof Uint8Array) {
    const hex = hexOf(value.subarray(0, MAX_SHOWN / 2));
    const text = UTF8.decode(value.subarray(0, MAX_SHOWN));
    const readable = value.length > 0 && !/[\u0000-\u001f\ufffd]/.test(text);
    const more = value.length > (readable ? MAX_SHOWN : MAX_SHOWN / 2) ? "…" : "";
    return value.length === 0 ? "empty" : readable ? `“${text}${more}”` : `${hex}${more}`;
  }
  if (kind === "string") {
    const text = JSON.stringify(value);
    return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
  }
  return String(value);
}

/** Returns a note about a value, such as the name of a code, or a time. */
function noteText(node) {
  if (node.note) return node.note;
  if (node.kind === "int16" && /ErrorCode$/.test(node.name)) return ERRORS.get(node.value)?.name || "";
  if (node.kind === "int16" && /ApiKey$/.test(node.name)) return API_OF_KEY.get(node.value)?.name || "";
  if (node.kind === "int64" && /Time(stamp)?(Ms)?$/.test(node.name) && node.value > 100000000000n) return timeText(node.value);
  if (node.value instanceof Uint8Array && node.kind !== "uuid") return plural(node.value.length, "byte");
  return node.kind === "tags" && node.value === 0 ? "none" : "";
}

function decodeView([kind = "request", name = "", versionText = "", encoded = ""]) {
  const state = { kind: KINDS.some(([one]) => one === kind) ? kind : "request", name, version: versionText, secrets: false };
  state.data = bytesOfBase64(encoded);
  const output = el("div", { id: "decoded" });
  const input = el("textarea", { id: "bytes", rows: 5, spellcheck: false, autocomplete: "off",
    placeholder: "Hex, a dump, a literal, a list of numbers, or base64", oninput: () => read() });
  input.value = hexOf(state.data || []).replace(/(.{64})/g, "$1\n");
  const nameInput = el("input", { id: "message", list: "messages", value: state.name, autocomplete: "off", spellcheck: false,
    oninput: () => { state.name = nameInput.value.trim(); refreshVersions(); draw(); } });
  const versionSelect = el("select", { id: "version", onchange: () => { state.version = versionSelect.value; draw(); } });
  const chooser = el("div", { class: "tools" },
    el("label", { class: "field" }, el("span", null, "Message"), nameInput),
    el("label", { class: "field" }, el("span", null, "Version"), versionSelect));
  const names = el("datalist", { id: "messages" });

  function refreshVersions() {
    const message = messageNamed(state.name);
    const all = message ? versionList(message.valid) : [];
    if (message && !all.includes(Number(state.version || NaN))) state.version = `${latestStable(message)}`;
    versionSelect.replaceChildren(...all.map((one) => el("option", { value: one, selected: `${one}` === state.version }, `v${one}`)));
  }
  function setKind(one) {
    state.kind = one;
    chooser.hidden = one === "request" || one === "records";
    const shown = DATA.messages.filter((raw) => one !== "response" || raw.t === "response");
    names.replaceChildren(...shown.map((raw) => el("option", { value: raw.n })));
    draw();
  }
  function read() {
    try {
      state.data = bytesOfText(input.value);
    } catch (error) {
      state.data = null;
      state.refusal = error.message;
    }
    input.setAttribute("aria-invalid", state.data === null ? "true" : "false");
    draw();
  }
  function draw() {
    if (!ready) return;
    output.replaceChildren(...decoded(state, draw));
    remember(state);
  }
  let ready = false;
  const radios = el("fieldset", { class: "kinds" }, el("legend", null, "Content"), KINDS.map(([value, text]) => el("label", null,
    el("input", { type: "radio", name: "kind", value, checked: value === state.kind, onchange: () => setKind(value) }), text)));
  refreshVersions();
  setKind(state.kind);
  return {
    title: "Decode bytes",
    body: [
      el("h1", null, "Decode bytes"),
      el("div", { class: "paste" }, radios, chooser, names,
        el("label", { class: "field wide" }, el("span", null, "Bytes"), input),
        !DATA.own && el("p", { class: "examples" }, "Examples: ", EXAMPLES.map(([text, ...parts]) => link(to("decode", ...parts.map((part) => part || "-")), text)))),
      output,
    ],
    after: () => { ready = true; draw(); },
  };
}

/** Writes the state into the address, so that it can be shared; leaves out bytes with secrets. */
function remember(state) {
  const data = state.data || new Uint8Array(0);
  const carried = data.length <= MAX_LINK_BYTES && !state.hasSecrets ? base64(data, true) : "";
  const chosenOne = state.kind === "request" || state.kind === "records" ? ["-", "-"] : [state.name || "-", state.version || "-"];
  const hash = to("decode", state.kind, ...chosenOne, ...(carried ? [carried] : []));
  if (location.hash !== hash) history.replaceState(null, "", hash);
}

/** Returns the elements that show the decoded bytes. */
function decoded(state, redraw) {
  state.hasSecrets = false;
  if (state.data === null) return [el("p", { class: "verdict broken" }, `These bytes cannot be read: ${state.refusal || "the link has no base64"}.`)];
  if (!state.data.length) return [el("p", { class: "hint" }, "Pasted bytes are decoded as you type. They do not leave this page.")];
  const message = messageNamed(state.name);
  const named = state.kind === "response" || state.kind === "body";
  if (named && !message) return [el("p", { class: "verdict" }, "Choose the message of the bytes.")];
  if (state.kind === "response" && message.type !== "response") {
    return [el("p", { class: "verdict broken" }, `${message.name} is no response; choose “Message without header”.`)];
  }
  const parts = decodeAs(state.kind, state.data, message, Number(state.version));
  const view = new BytesView(state, parts);
  state.hasSecrets = view.secrets.length > 0;
  const secretBox = state.hasSecrets && el("label", { class: "secret" },
    el("input", { type: "checkbox", checked: state.secrets, onchange: (event) => { state.secrets = event.target.checked; redraw(); } }),
    "Show secrets");
  return [
    ...parts.map((part) => verdict(part, parts.length)), secretBox || null,
    el("div", { class: "panes" }, view.hexPane, view.treePane),
  ].filter(Boolean);
}

function verdict(part, count) {
  const title = part.message ? messageLink(part.message.name, part.version, part.title) : part.title;
  if (!part.fault) return el("p", { class: "verdict whole", role: "status" }, title, count > 1 ? "" : ": read to the end");
  const { path, offset, reason } = part.fault;
  return el("p", { class: "verdict broken", role: "status" }, title,
    `: broken at byte ${offset}${path ? `, field ${path}` : ""}: ${reason}`);
}

/** The hex pane and the tree; both highlight the same node. */
class BytesView {
  constructor(state, parts) {
    this.data = state.data;
    this.state = state;
    this.nodes = [];
    this.items = new Map();
    this.secrets = [];
    this.rows = 0;
    this.cells = [];
    this.faults = parts.filter((part) => part.fault).map((part) => part.fault.offset);
    // Bytes after a fault were not read, whatever field they belong to.
    this.unread = parts.filter((part) => part.fault).map((part) => (
      [part.fault.offset, Math.max(part.fault.offset, ...part.trees.map((tree) => tree.end))]));
    this.owner = new Int32Array(this.data.length).fill(-1);
    for (const part of parts) for (const tree of part.trees) this.index(tree, part.message);
    this.aboutPane = el("div", { class: "lit-about", "aria-hidden": "true" }, "Point at a byte or a field.");
    this.treePane = this.tree(parts);
    this.hexPane = el("div", { class: "left" }, this.hex(), this.aboutPane);
  }

  /** Numbers the nodes, maps each byte to its innermost node, and collects the secrets. */
  index(node, message) {
    node.message = message || node.message;
    node.id = this.nodes.push(node) - 1;
    if (node.at !== null && node.at !== undefined) this.owner.fill(node.id, node.at, node.end);
    const isSecret = message && SECRETS.has(`${message.name}.${node.name}`) && node.value instanceof Object;
    const isText = message && SECRETS.has(`${message.name}.${node.name}`) && typeof node.value === "string";
    if (isSecret || isText) {
      node.secret = true;
      this.secrets.push(node);
    }
    for (const child of node.children || []) {
      child.parent = node;
      this.index(child, message);
    }
  }

  hex() {
    const shown = Math.min(this.data.length, MAX_HEX_BYTES);
    const hidden = new Set();
    if (!this.state.secrets) for (const node of this.secrets) for (let at = node.at; at < node.end; at += 1) hidden.add(at);
    const rows = [];
    for (let at = 0; at < shown; at += 16) {
      const bytes = [];
      for (let pos = at; pos < Math.min(at + 16, shown); pos += 1) {
        const node = this.nodes[this.owner[pos]];
        const text = hidden.has(pos) ? "··" : this.data[pos].toString(16).padStart(2, "0");
        const isUnread = this.unread.some(([from, to]) => from <= pos && pos < to);
        const marks = ["b", isUnread ? "unread" : node ? kindClass(node.kind) : "", this.faults.includes(pos) ? "fault" : ""];
        const cell = el("span", { class: marks.filter(Boolean).join(" "), "data-at": pos }, text);
        this.cells.push(cell);
        bytes.push(cell);
      }
      rows.push(el("div", { class: "line" }, el("span", { class: "offset" }, at.toString(16).padStart(4, "0")), bytes));
    }
    const pane = el("div", { class: "hex", role: "group", tabindex: "0", id: "hex", "aria-label": `${plural(this.data.length, "byte")} in hex; arrow keys move between bytes` },
      rows, shown < this.data.length && el("p", { class: "hint" }, `The first ${shown} of ${this.data.length} bytes.`));
    pane.addEventListener("mouseover", (event) => event.target.dataset.at && this.show(this.owner[event.target.dataset.at]));
    pane.addEventListener("click", (event) => {
      if (!event.target.dataset.at) return;
      this.at = Number(event.target.dataset.at);
      this.reveal(this.nodes[this.owner[this.at]]);
    });
    pane.addEventListener("keydown", (event) => this.overBytes(event));
    return pane;
  }

  overBytes(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -16, ArrowDown: 16 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.at = Math.max(0, Math.min(this.cells.length - 1, this.at === undefined ? 0 : this.at + step));
    const node = this.nodes[this.owner[this.at]];
    this.show(node ? node.id : -1);
    for (const cell of this.cells) cell.classList.toggle("cursor", Number(cell.dataset.at) === this.at);
    this.cells[this.at].scrollIntoView({ block: "nearest" });
    announce(`byte ${this.at}: ${this.cells[this.at].textContent}${node ? `, ${this.label(node)}` : ""}`);
  }

  label(node) {
    const value = node.secret && !this.state.secrets ? "a secret, not shown" : valueText(node);
    return [node.name, value, noteText(node)].filter(Boolean).join(", ");
  }

  /** Highlights a node and its bytes. */
  show(id) {
    if (id === this.shown) return;
    const light = (one, on) => {
      const node = this.nodes[one];
      if (!node) return;
      this.items.get(one)?.firstChild.classList.toggle("lit", on);
      if (node.at === null || node.at === undefined) return;
      for (let at = node.at; at < Math.min(node.end, this.cells.length); at += 1) this.cells[at].classList.toggle("lit", on);
    };
    light(this.shown, false);
    this.shown = id;
    light(id, true);
    if (this.nodes[id]) this.aboutPane.replaceChildren(...this.about(this.nodes[id]));
  }

  /** Returns the path, type, position and glossary text of a node. */
  about(node) {
    const path = [];
    for (let one = node; one; one = one.parent) path.unshift(one.name);
    const placed = node.at !== null && node.at !== undefined;
    const kind = node.type ? typeText(node.type, node.name.startsWith("[") ? null : node.spec) : node.kind;
    const size = placed ? `, ${plural(node.end - node.at, "byte")} from byte ${node.at} on` : "";
    const words = node.of && node.spec && node.message ? meaning(node.message.name, node.of, node.name) : "";
    return [el("b", null, path.join(".").replaceAll(".[", "[")), el("span", null, `${kind}${size}`), words && el("span", null, words)].filter(Boolean);
  }

  tree(parts) {
    const pane = el("ul", { class: "tree", role: "tree", "aria-label": "Fields", id: "tree" });
    for (const part of parts) for (const node of part.trees) pane.append(this.item(node, 1));
    pane.querySelector("li")?.setAttribute("tabindex", "0");
    pane.addEventListener("mouseover", (event) => {
      const row = event.target.closest("li");
      if (row) this.show(Number(row.dataset.id));
    });
    pane.addEventListener("focusin", (event) => this.show(Number(event.target.closest("li").dataset.id)));
    pane.addEventListener("click", (event) => {
      const row = event.target.closest("li");
      if (!row) return;
      if (row.hasAttribute("aria-expanded") && event.target.closest(".toggle")) this.toggle(row);
      this.focus(row);
      const cell = this.cells[this.nodes[row.dataset.id].at];
      if (cell) cell.scrollIntoView({ block: "nearest" });
    });
    pane.addEventListener("keydown", (event) => this.overTree(event, pane));
    return pane;
  }

  item(node, level) {
    const children = node.children || [];
    const opens = children.length > 0 || !!node.open;
    const masked = node.secret && !this.state.secrets;
    const place = node.at === null || node.at === undefined ? "" : `${node.at}`;
    const size = place === "" ? "" : `${node.end - node.at}`;
    const note = masked ? "" : noteText(node);
    const li = el("li", { role: "treeitem", tabindex: "-1", "data-id": node.id, "aria-level": level, "aria-expanded": opens ? "false" : null,
      "aria-label": `${this.label(node)}${place === "" ? "" : `, byte ${place}, ${size} long`}` },
    el("div", { class: `row ${node.kind === "fault" ? "fault" : ""}` },
      el("span", { class: "toggle", "aria-hidden": "true" }, ""),
      el("span", { class: "name" }, node.name),
      el("span", { class: `value ${kindClass(node.kind)}` }, masked ? "a secret, not shown" : valueText(node)),
      el("span", { class: "note" }, note),
      el("span", { class: "place" }, place === "" ? "" : `${place} +${size}`)));
    this.items.set(node.id, li);
    this.rows += 1;
    if (children.length && this.rows + children.length < MAX_ROWS && node.kind !== "packed") this.open(li);
    if (node.open && !node.children) this.unpack(node, li);
    return li;
  }

  async unpack(node, li) {
    try {
      await node.open();
    } catch (error) {
      node.note = `${node.note}, broken: ${error.message}`;
    }
    for (const child of node.children || []) {
      child.parent = node;
      this.index(child, null);
    }
    li.querySelector(".note").textContent = node.note;
    if (node.children && node.children.length) this.open(li);
    document.getElementById("decoded")?.setAttribute("data-unpacked", "true");
  }

  open(li) {
    const node = this.nodes[li.dataset.id];
    li.setAttribute("aria-expanded", "true");
    if (li.lastChild.tagName === "UL") return;
    const group = el("ul", { role: "group" });
    const level = Number(li.getAttribute("aria-level")) + 1;
    const more = (from) => {
      const until = Math.min(node.children.length, from + MAX_CHILDREN);
      for (const child of node.children.slice(from, until)) group.append(this.item(child, level));
      if (until === node.children.length) return;
      const text = `${node.children.length - until} more`;
      const item = el("li", { role: "treeitem", tabindex: "-1", "data-id": node.id, "aria-level": level, "aria-label": text, class: "more" }, el("div", { class: "row" }, text));
      item.more = () => { item.remove(); more(until); };
      item.addEventListener("click", (event) => { event.stopPropagation(); item.more(); });
      group.append(item);
    };
    more(0);
    li.append(group);
  }

  toggle(li) {
    if (li.getAttribute("aria-expanded") === "true") li.setAttribute("aria-expanded", "false");
    else this.open(li);
  }

  focus(li) {
    for (const one of li.closest(".tree").querySelectorAll('li[tabindex="0"]')) one.setAttribute("tabindex", "-1");
    li.setAttribute("tabindex", "0");
    li.focus();
  }

  /** Opens all nodes that contain a node, and moves the focus to it. */
  reveal(node) {
    if (!node) return;
    for (let one = node.parent, above = []; ; one = one.parent) {
      if (one) { above.unshift(one); continue; }
      for (const each of above) if (this.items.has(each.id)) this.open(this.items.get(each.id));
      break;
    }
    const li = this.items.get(node.id);
    if (!li) return;
    this.focus(li);
    li.firstChild.scrollIntoView({ block: "nearest" });
  }

  overTree(event, pane) {
    const li = event.target.closest("li");
    const visible = [...pane.querySelectorAll("li")].filter((one) => !one.parentElement.closest('li[aria-expanded="false"]'));
    const at = visible.indexOf(li);
    const expanded = li.getAttribute("aria-expanded");
    let next = null;
    switch (event.key) {
      case "ArrowDown": next = visible[at + 1]; break;
      case "ArrowUp": next = visible[at - 1]; break;
      case "Home": next = visible[0]; break;
      case "End": next = visible[visible.length - 1]; break;
      case "ArrowRight": if (expanded === "false") this.toggle(li); else if (expanded) next = visible[at + 1]; break;
      case "ArrowLeft": if (expanded === "true") this.toggle(li); else next = li.parentElement.closest("li"); break;
      case "Enter": case " ":
        if (li.more) { next = li.previousElementSibling; li.more(); } else if (expanded) this.toggle(li);
        break;
      default: return;
    }
    event.preventDefault();
    if (next) this.focus(next);
  }
}
