// Reads pasted text of bytes: literals, lists, dumps, hex digits, base64. The rules are those of
// kproto/study/pasted_text.py and hex_dumps.py; tests/vectors/pasted_text.json has cases for both.

/** A text cannot be read; `at` is the index of the wrong character, null for the whole text. */
class PastedTextError extends Error {
  constructor(reason, at = null) {
    super(reason);
    this.at = at;
  }
}

/** Returns the bytes of a text. Throws an Error, with line and column, for text without a form. */
function bytesOfText(given, form = "auto") {
  const text = withoutSurroundings(given.normalize("NFKC"));
  try {
    return bytesInForm(text, form);
  } catch (error) {
    if (!(error instanceof PastedTextError) || error.at === null) throw error;
    const before = text.slice(0, error.at).split("\n");
    throw new Error(`line ${before.length}, column ${before.at(-1).length + 1}: ${error.message}`);
  }
}

const PROMPT = /^[ \t]*(?:[\w@:~/.()[\]-]*\$|>>>|In \[\d+\]:|Out\[\d+\]:)(?:[ \t]+|$)/;

function blank(text) {
  return text.replace(/[^\r\n]/g, " ");
}

/** Returns the text without prompts and commands, and with Python's brackets; characters keep their places. */
function withoutSurroundings(given) {
  const lines = given.match(/[^\n]*\n|[^\n]+$/g) || [];
  const lastLine = () => Math.max(0, lines.findLastIndex((line) => line.trim()));
  const promptOf = (line) => PROMPT.exec(line.replace(/[\r\n]+$/, ""));
  for (let prompt; lastLine() && (prompt = promptOf(lines[lastLine()])) && !lines[lastLine()].slice(prompt[0].length).trim();) {
    lines[lastLine()] = blank(lines[lastLine()]);
  }
  const last = lastLine();
  for (const [at, line] of lines.entries()) {
    const prompt = promptOf(line);
    const end = prompt ? (at < last ? line.length : prompt[0].length) : 0;
    lines[at] = blank(line.slice(0, end)) + line.slice(end);
  }
  const text = lines.join("").replace(/<Buffer(?=[ >])/g, "<      ");
  const erlang = /^(\s*)<<([^]*)>>(\.?\s*)$/.exec(text);
  if (!erlang) return text;
  const [opened, closed] = erlang[2].trimStart()[0] === '"' ? [" b", "  "] : [" [", "] "];
  return `${erlang[1]}${opened}${erlang[2]}${closed}${blank(erlang[3])}`;
}

function bytesInForm(text, form) {
  if (form === "hex") return literalOf(text) || dumpOf(text, form) || hexIn(text, true);
  if (form === "decimal") return decimalIn(text);
  if (form === "words") return wordsIn(text);
  if (form === "base64") return base64In(text, true);
  if (form === "dump" || form === "literal") {
    const found = form === "dump" ? dumpOf(text, form) : literalOf(text);
    if (found === null) throw new PastedTextError(`the input is no ${form}`);
    return found;
  }
  const found = literalOf(text) || listOf(text) || dumpOf(text);
  if (found !== null) return found;
  try {
    return hexIn(text);
  } catch (noHex) {
    if (!(noHex instanceof PastedTextError) || noHex.at === null) throw noHex;
    const packed = isHexLike(text) ? null : base64OrNull(text);
    if (packed !== null) return packed;
    throw new PastedTextError(`${noHex.message}, and the input is no dump, no list and no base64`, noHex.at);
  }
}

/** Returns true for hex digits, of which base64 would make other bytes; 2 of 16 characters may be none. */
function isHexLike(text) {
  const packed = text.replace(/\s/g, "");
  const wrong = packed.replace(/[0-9a-fA-F]/g, "").length;
  return wrong === 0 || (packed.length >= 16 && wrong <= 2);
}

// --- literals ------------------------------------------------------------------------------------

const ESCAPES = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, e: 27, "\\": 92, "'": 39, '"': 34, "?": 63 };

/** Matches a pattern with the flag y at an index; null if it does not match. */
function matchAt(pattern, text, index) {
  pattern.lastIndex = index;
  return pattern.exec(text);
}

/** Reads `b'\x00a'`, `"\x00a"`, several in a row; null for text that is no literal. */
function literalOf(text) {
  const bytea = /^\s*(['"])\\{1,2}x((?:[0-9a-fA-F]{2}){2,})\1\s*$/.exec(text);
  if (bytea) return bytesOfPairs(bytea[2]);
  if (/^\s*(?:\\x[0-9a-fA-F]{2}\s*)+$/.test(text)) return bytesOfPairs(text.replace(/\\x|\s/g, ""));
  let position = matchAt(/\s*(?:(?:bytearray|bytes|memoryview|\[\]byte)?\s*\(\s*)?/y, text, 0)[0].length;
  const found = [];
  let isLiteral = false;
  for (let quote; (quote = matchAt(/(?:[bB][rR]?)?(['"])/y, text, position)) !== null;) {
    const start = position + quote[0].length;
    const { bytes, end, hasEscapes } = unescaped(text, start, quote[1]);
    if (quote[0].length === 1 && !hasEscapes && !isLiteral) return null;
    isLiteral = true;
    found.push(...bytes);
    position = end + matchAt(/(?:\s|\\\r?\n|\/\*[^]*?\*\/)*/y, text, end)[0].length;
  }
  if (!isLiteral) return null;
  if (!/^\s*\)?\s*;?\s*$/.test(text.slice(position))) {
    throw new PastedTextError(`“${text[position]}” follows a literal`, position);
  }
  return Uint8Array.from(found);
}

function unescaped(text, start, quote) {
  const bytes = [];
  let hasEscapes = false;
  for (let at = start; at < text.length;) {
    if (text[at] === quote) return { bytes, end: at + 1, hasEscapes };
    if (text[at] !== "\\") {
      if (text[at] < " " || text[at] > "~") throw new PastedTextError(`“${text[at]}” is not ASCII`, at);
      bytes.push(text.charCodeAt(at));
      at += 1;
      continue;
    }
    hasEscapes = true;
    const rest = text.slice(at + 1, at + 6);
    const hex = /^(?:x([0-9a-fA-F]{2})|u(00[0-7][0-9a-fA-F]))/.exec(rest);
    const octal = /^(?:([0-3][0-7]{2})|(0)(?![0-9]))/.exec(rest);
    if (hex) {
      bytes.push(parseInt(hex[1] || hex[2], 16));
      at += 1 + hex[0].length;
    } else if (octal) {
      bytes.push(parseInt(octal[1] || octal[2], 8));
      at += 1 + octal[0].length;
    } else if (rest && Object.hasOwn(ESCAPES, rest[0])) {
      bytes.push(ESCAPES[rest[0]]);
      at += 2;
    } else {
      throw new PastedTextError(`\\${rest[0] || ""} is no escape of one byte`, at);
    }
  }
  throw new PastedTextError("a literal has no closing quote", text.length - 1);
}

// --- lists of numbers ----------------------------------------------------------------------------

const DECIMAL = /^(?:0|-?[1-9]\d{0,2})$/;
const PREFIXED = /^0[xX][0-9a-fA-F]{1,2}$/;
const ONE_PAIR = /^[0-9a-fA-F]{2}$/;

/** Reads numbers between brackets or braces; null for other text. */
function listOf(text) {
  const plain = text.replace(/\/\*[^]*?\*\/|\/\/[^\n]*/g, (found) => " ".repeat(found.length));
  const match = /^([\w\s[\]<>=&*.:,?()!]{0,200}?)([[{])([^[\]{}]*)[\]}]\s*\)?\s*;?\s*(?:[\w\s]*_len\s*=\s*(\d+)\s*;)?\s*$/.exec(plain);
  if (!match) return null;
  const [, head, open, inside, count] = match;
  if (head.trim() && !/\bbyte|\bu?int8|\bchar\b|\bu8\b|Uint8Array|\w\s*\[\d*\]\s*=/.test(head + open)) return null;
  const start = head.length + 1;
  const elements = inside.replace(/\(\s*byte\s*\)\s*/g, (found) => " ".repeat(found.length));
  const tokens = [...elements.matchAll(/[^,\s]+/g)].map((found) => [found[0], start + found.index]);
  if (!tokens.length) return elements.trim() ? null : new Uint8Array(0);
  checkCommas(elements, start);
  const bytes = numbersOf(tokens, elements.includes(","), head.trim() !== "");
  const declared = [/(?:\[|Uint8Array\()\s*(\d+)\s*[\])]/.exec(head), /\/\*[^*]*\((\d+) bytes\)\s*\*\//.exec(text)];
  for (const found of declared) {
    if (found && Number(found[1]) !== bytes.length) {
      throw new PastedTextError(`the array has ${bytes.length} bytes, and declares ${found[1]}`, found.index + found[0].indexOf(found[1]));
    }
  }
  if (count !== undefined && Number(count) !== bytes.length) {
    throw new PastedTextError(`the array has ${bytes.length} bytes, and declares ${count}`, plain.lastIndexOf(count));
  }
  return bytes;
}

/** Throws if some numbers are separated by a comma, and others are not. */
function checkCommas(elements, start) {
  if (!elements.includes(",")) return;
  const wrong = /[^,\s]\s+[^,\s]/.exec(elements) || /(?:,|^)\s*,/.exec(elements);
  if (wrong) {
    throw new PastedTextError("the numbers of a list are not separated by one comma each", start + wrong.index + wrong[0].length - 1);
  }
}

/** Throws if one number has a single digit, and others are padded to two. */
function checkPadding(tokens) {
  const digits = tokens.map(([token, at]) => [token.replace(/^0x/i, ""), at]);
  if (!digits.some(([each]) => each.length === 2 && each[0] === "0")) return;
  const short = digits.find(([each]) => each.length === 1);
  if (short) throw new PastedTextError("a number has one digit, and others have two", short[1]);
}

function numbersOf(tokens, hasCommas, hasHead) {
  if (tokens.every(([token]) => PREFIXED.test(token))) {
    checkPadding(tokens);
    return Uint8Array.from(tokens, ([token]) => parseInt(token, 16));
  }
  const isDecimal = tokens.every(([token]) => DECIMAL.test(token));
  const arePairs = tokens.every(([token]) => ONE_PAIR.test(token));
  if (arePairs && !isDecimal && !hasHead) return Uint8Array.from(tokens, ([token]) => parseInt(token, 16));
  if (arePairs && isDecimal && tokens.length > 1 && !hasCommas && !hasHead) {
    throw new PastedTextError("the numbers in brackets may be hex or decimal");
  }
  return Uint8Array.from(tokens, ([token, at]) => decimalOf(token, at));
}

function decimalOf(token, at) {
  if (PREFIXED.test(token)) return parseInt(token, 16);
  const value = DECIMAL.test(token) ? Number(token) : NaN;
  if (!(value >= -128 && value <= 255)) throw new PastedTextError(`“${token.slice(0, 20)}” is no byte, from -128 to 255`, at);
  return value & 0xff;
}

function decimalIn(text) {
  return Uint8Array.from([...text.matchAll(/[^,\s[\]{}()]+/g)], (found) => decimalOf(found[0], found.index));
}

// --- hex digits and base64 -----------------------------------------------------------------------

function bytesOfPairs(digits) {
  return Uint8Array.from(digits.match(/../g) || [], (pair) => parseInt(pair, 16));
}

const OFFSET_LINE = /^[ \t]*((?:0[xX])?[0-9a-fA-F]{4,16})(?::\s|[ \t]+[0-9a-fA-F]{2}(?=\s|$))/m;

/** Returns the index of the first line that cannot begin with an offset; null if there is none. */
function lineWithoutOffset(text) {
  let at = 0;
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) || []) {
    if (line.trim() && line.trim() !== "*" && !OFFSET_LINE.test(line)) return at + line.length - line.trimStart().length;
    at += line.length;
  }
  return null;
}

/** Reads pairs of hex digits, or groups of pairs, with separators. */
function hexIn(text, isNamed = false) {
  const offset = isNamed ? null : OFFSET_LINE.exec(text);
  if (offset) {
    throw new PastedTextError(`“${offset[1]}” may be the offset of a dump, and this line has none`,
      lineWithoutOffset(text) ?? offset.index + offset[0].indexOf(offset[1]));
  }
  const words = text.split(/\s+/).filter(Boolean);
  if (words.length && words.every((word) => /^(?:[0-9a-fA-F]{2})+$/.test(word))) return bytesOfPairs(words.join(""));
  let begin = 0;
  let inside = text;
  for (const wrapper of [/^(\s*[xXhH]?')([^']*)'\s*$/, /^(\s*[xXhH]?")([^"]*)"\s*$/, /^(\s*<)([^<>]*)>\s*$/]) {
    const match = wrapper.exec(text);
    if (match) {
      begin = match[1].length;
      inside = match[2];
      break;
    }
  }
  if (isNamed) inside = inside.replace(/[[\]{}()<>"']/g, " ");
  const digits = [];
  const tokens = [];
  const prefixed = [];
  let hasCommas = false;
  for (let at = 0; ;) {
    const skipped = matchAt(/[\s:,;_\-]*/y, inside, at)[0];
    hasCommas = hasCommas || skipped.includes(",");
    at += skipped.length;
    if (at === inside.length) break;
    const match = matchAt(/(?:0[xX]|\\x)?([0-9a-fA-F]+)/y, inside, at);
    const end = match ? at + match[0].length : at;
    if (!match || (end < inside.length && !/[\s:,;_\-]/.test(inside[end]))) {
      throw new PastedTextError(`“${inside[end]}” is no hex digit`, begin + end);
    }
    const isShort = match[1].length === 1 && match[1].length < match[0].length;
    if (match[1].length % 2 && !isShort) {
      throw new PastedTextError(`“${match[1].slice(0, 40)}” has an odd number of digits, and hex has two digits a byte`,
        begin + end - match[1].length);
    }
    digits.push(isShort ? `0${match[1]}` : match[1]);
    tokens.push(match[0]);
    if (match[1].length <= 2 && match[1].length < match[0].length) prefixed.push([match[1], begin + at]);
    at = end;
  }
  checkPadding(prefixed);
  if (!isNamed && tokens.length > 1 && hasCommas && tokens.every((token) => DECIMAL.test(token))) {
    throw new PastedTextError("the numbers may be hex or decimal");
  }
  return bytesOfPairs(digits.join(""));
}

function base64In(text, isNamed = false) {
  const packed = (isNamed ? text.split(/\s+/) : text.split(/\r?\n/).map((line) => line.trim())).join("");
  const isWrong = packed.endsWith("=") && packed.length % 4;
  const bytes = isWrong || !/^(?:[A-Za-z0-9+/_-]+={0,2})?$/.test(packed) ? null : bytesOfBase64(packed);
  if (bytes === null) throw new PastedTextError("the input is no base64");
  return bytes;
}

function base64OrNull(text) {
  try {
    return base64In(text);
  } catch (error) {
    if (error instanceof PastedTextError) return null;
    throw error;
  }
}

/** Parses base64 or base64url, even if all letters are hex digits; null for other text. */
function bytesOfBase64(text) {
  const plain = text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  if (!/^[A-Za-z0-9+/]*$/.test(plain) || plain.length % 4 === 1) return null;
  return Uint8Array.from(atob(plain), (letter) => letter.charCodeAt(0));
}

// --- dumps with offsets --------------------------------------------------------------------------

const MAX_DUMPED_BYTES = 104_857_600;
const READABLE = "hexdump -C, xxd, od -t x1 and tcpdump -x print the bytes in order";
const OF_WORDS = `the input is a dump of words in the byte order of a machine; ${READABLE}`;
const SEVERAL_LINES = "the input is either a dump with offsets, or hex whose lines begin with numbers that could be offsets: " +
  "leave out the offsets, or choose the form hex";
const NOT_WHOLE = `the input is a dump whose offsets do not match its bytes; ${READABLE}`;

/** Returns the bytes of a dump; null for text that is no dump. */
function dumpOf(text, form = "auto") {
  const lines = dumpLines(text);
  if (lines === null) return null;
  const rows = lines.filter((line) => line !== null);
  if (!rows.some((row) => row.groups.length)) return null;
  if (!haveOffsets(rows)) {
    if (form === "auto" && mayHaveOffsets(rows)) throw new PastedTextError(SEVERAL_LINES, rows[1].at);
    return null;
  }
  rows.forEach(checkBytes);
  if (form !== "dump" && rows.length === 1 && mayBeHex(rows[0])) {
    if (form === "hex") return null;
    throw new PastedTextError("the input is either a line of a dump with its offset, or hex in groups: leave out the offset", rows[0].at);
  }
  checkGroups(rows);
  let wrong = 0;
  for (const base of basesOf(rows)) {
    const found = dumpByBase(lines, base);
    if (found instanceof Uint8Array) return found;
    wrong = Math.max(wrong, found.at);
  }
  if (rows.some(isSwapped)) throw new PastedTextError(OF_WORDS);
  throw new PastedTextError(NOT_WHOLE, wrong);
}

/** Returns the lines of a dump, with null for a line `*`; null if a line has no offset. */
function dumpLines(text) {
  const found = [];
  let at = 0;
  for (const whole of text.match(/[^\n]*\n|[^\n]+$/g) || []) {
    const line = whole.replace(/[\r\n]+$/, "");
    if (line.trim() === "*") {
      found.push(null);
    } else if (line.trim()) {
      const match = /^\s*((?:0[xX])?[0-9a-fA-F]{4,16})(:?)(\s+|$)/.exec(line);
      if (!match) return null;
      const hasColon = match[2] !== "";
      found.push({ at, text: line, offset: match[1], hasColon, gap: match[3].length, start: match[0].length,
        groups: groupsOf(line, match[0].length, hasColon) });
    }
    at += whole.length;
  }
  return found.length ? found : null;
}

/** Returns the groups of a line that may be bytes; the wide gap before the text ends them. */
function groupsOf(line, start, hasColon) {
  const groups = [];
  for (let at = start, match; (match = matchAt(/([0-9a-fA-F]+)(\s+|(?=[|>])|$)/y, line, at)) !== null;) {
    at += match[0].length;
    groups.push({ digits: match[1], gap: match[2].length, end: at });
    if (match[2].length > (hasColon ? 1 : 2)) break;
  }
  return groups;
}

function haveOffsets(rows) {
  if (rows.every((row) => row.hasColon)) return true;
  if (rows.some((row) => row.hasColon) || new Set(rows.map((row) => row.offset.length)).size > 1) return false;
  if (/^0x/i.test(rows[0].offset)) return false;
  return rows.every((row) => !row.groups.length || row.groups[0].digits.length !== row.offset.length);
}

/** Returns true if the first groups of hex text count the bytes behind them, as offsets do. */
function mayHaveOffsets(rows) {
  const first = parseInt(rows[0].offset, 16);
  let expected = first;
  for (const row of rows) {
    if (parseInt(row.offset, 16) !== expected) return false;
    expected += row.groups.reduce((digits, group) => digits + group.digits.length, 0) >> 1;
  }
  return rows.length > 1 && expected > first;
}

/** Throws if the first group of a line, without colons, is not one byte. */
function checkGroups(rows) {
  if (rows[0].hasColon) return;
  const filled = rows.filter((row) => row.groups.length);
  const wrong = filled.filter((row) => row.groups[0].digits.length !== 2);
  if (wrong.length === filled.length) throw new PastedTextError(OF_WORDS);
  if (wrong.length) throw new PastedTextError(`“${wrong[0].groups[0].digits.slice(0, 20)}” is no byte of two digits`, wrong[0].at);
}

/** Throws for a line whose offset is followed by something else than bytes. */
function checkBytes(row) {
  if (row.groups.length || !row.text.slice(row.start).trim()) return;
  const at = row.start + matchAt(/[0-9a-fA-F]*/y, row.text, row.start)[0].length;
  throw new PastedTextError(`“${row.text[at]}” is no hex digit`, row.at + at);
}

/** Returns the bases that the program of the dump writes, so that a lost line is noticed. */
function basesOf(rows) {
  if (rows[0].hasColon) return [16, 10];
  return [4, 8].includes(rows[0].offset.length) ? [16] : [16, 8, 10];
}

/** Returns true if the only line may be hex whose first group is no offset. */
function mayBeHex(row) {
  const rest = row.text.slice(row.groups.at(-1).end).trimStart();
  return !(row.hasColon || /^[|>]/.test(rest) || row.gap > 1);
}

function offsetIn(row, base) {
  const digits = base === 16 ? row.offset.replace(/^0x/i, "") : row.offset;
  const isNumber = { 16: /^[0-9a-fA-F]+$/, 10: /^[0-9]+$/, 8: /^[0-7]+$/ }[base].test(digits);
  return isNumber ? parseInt(digits, base) : NaN;
}

/** Returns the bytes, or the line at fault. */
function dumpByBase(lines, base) {
  const rows = lines.filter((line) => line !== null);
  const parts = [];
  let size = 0;
  let last = new Uint8Array(0);
  let first = null;
  let repeats = false;
  for (const [number, line] of lines.entries()) {
    if (line === null) {
      if (!last.length) return rows[0];
      repeats = true;
      continue;
    }
    const offset = offsetIn(line, base);
    if (Number.isNaN(offset)) return line;
    first ??= offset;
    if (repeats) {
      const missing = offset - first - size;
      if (missing < 0 || missing % last.length) return line;
      if (offset - first > MAX_DUMPED_BYTES) {
        throw new PastedTextError(`a dump of ${offset - first} bytes; at most ${MAX_DUMPED_BYTES} are read`);
      }
      for (let left = missing; left > 0; left -= last.length) parts.push(last);
      size += missing;
      repeats = false;
    }
    if (offset - first !== size) return line;
    const following = lines[number + 1];
    const wanted = following ? offsetIn(following, base) - offset : null;
    const found = contentOf(line, Number.isNaN(wanted) ? -1 : wanted);
    if (found === null) return line;
    parts.push(found);
    size += found.length;
    if (found.length) last = found;
  }
  if (repeats) return rows.at(-1);
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Returns the bytes of a line; null if it cannot have `size` bytes. Without `size` its text decides. */
function contentOf(line, size) {
  if (!line.groups.length) return size === null || size === 0 ? new Uint8Array(0) : null;
  const found = [];
  let digits = "";
  for (const [index, group] of line.groups.entries()) {
    digits += group.digits;
    if (!line.hasColon && digits.length !== 2 * (index + 1)) break;
    if (digits.length % 2) continue;
    const bytes = bytesOfPairs(digits);
    if ((size === null || size === bytes.length) && isTextOf(bytes, line.text.slice(group.end))) found.push([bytes, group.gap]);
  }
  if (!found.length) return null;
  const [bytes, gap] = found[0];
  if (found.length > 1 && gap < 2) {
    throw new PastedTextError("the end of the line may be bytes or their text: separate the text by two spaces, or leave it out", line.at);
  }
  return bytes;
}

function shownText(bytes) {
  return Array.from(bytes, (byte) => byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".").join("");
}

function isTextOf(bytes, after) {
  const rest = after.trim();
  if (!rest) return true;
  const shown = shownText(bytes).trim();
  const isEnclosed = /^(?:\|[^]*\||>[^]*<)$/.test(rest);
  return shown === rest || (isEnclosed && shown === rest.slice(1, -1).trim());
}

function isSwapped(line) {
  let shown = "";
  let unswapped = "";
  for (let at = line.start, match; (match = matchAt(/([0-9a-fA-F]+)(\s+|(?=[|>])|$)/y, line.text, at)) !== null;) {
    if (match[1].length % 2) return false;
    unswapped += shownText(bytesOfPairs(match[1]));
    shown += shownText(bytesOfPairs(match[1]).reverse());
    at += match[0].length;
    const rest = line.text.slice(at).trim();
    if (rest && shown.trim() === rest) return unswapped.trim() !== rest;
  }
  return false;
}

/** Reads a dump of two-byte words of a little-endian machine, as `hexdump` and `od -x` print it. */
function wordsIn(text) {
  const lines = dumpLines(text);
  if (lines === null || lines.includes(null) || lines.length < 2 || lines.at(-1).groups.length) {
    throw new PastedTextError("the input is no dump of words: the last line is the offset of the end");
  }
  const bytes = [];
  for (const row of lines) {
    for (const group of row.groups) {
      if (group.digits.length !== 4) throw new PastedTextError(`“${group.digits.slice(0, 20)}” is no word of four digits`, row.at);
      bytes.push(...bytesOfPairs(group.digits).reverse());
    }
  }
  for (const base of [16, 8, 10]) {
    const size = offsetIn(lines.at(-1), base) - offsetIn(lines[0], base);
    if (size === bytes.length || (size === bytes.length - 1 && bytes.at(-1) === 0)) return Uint8Array.from(bytes.slice(0, size));
  }
  throw new PastedTextError(NOT_WHOLE, lines.at(-1).at);
}
