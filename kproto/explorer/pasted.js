// Reads pasted text of bytes: literals, lists, hex digits, base64; dumps.js reads dumps. The rules are those of
// kproto/study/pasted_text.py and number_lists.py; tests/vectors/pasted_text.json has cases for both.

/** A text cannot be read; `at` is the index of the wrong character. */
class PastedTextError extends Error {
  constructor(reason, at) {
    super(reason);
    this.at = at;
  }
}

/** A text has two readings with different bytes. */
class AmbiguousTextError extends PastedTextError {}

/** Returns the bytes of a text. Throws an Error, with line and column, for text without a form. */
function bytesOfText(given, form = "auto") {
  const text = normalized(given);
  try {
    checkVisible(text);
    return bytesInForm(withoutSurroundings(text), form);
  } catch (error) {
    if (!(error instanceof PastedTextError)) throw error;
    const before = text.slice(0, error.at).split("\n");
    throw new Error(`line ${before.length}, column ${before.at(-1).length + 1}: ${error.message}`);
  }
}

/** Returns the text with ASCII for compatibility characters, one kind of line end, and no byte order mark. */
function normalized(given) {
  const text = given.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  return text.replace(/[^\x00-\x7f]/gu, (character) => {
    const same = character.normalize("NFKC");
    return /^[\x00-\x7f]$/.test(same) ? same : character;
  });
}

/** Throws for a character that is not visible, except spaces, tabs and line ends. */
function checkVisible(text) {
  const found = /(?![ \t\n])[\p{C}\p{Z}]/u.exec(text);
  if (!found) return;
  const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  throw new PastedTextError(`U+${code} is invisible, and no part of a text of bytes`, found.index);
}

// A prompt of a shell, of Python or of IPython. Hex digits before a `$` are no prompt.
const PROMPT = /^[ \t]*(?:(?![0-9a-fA-F:.-]+\$)[\w@:~/.()[\]-]*\$|>>>|In \[\d+\]:|Out\[\d+\]:)(?:[ \t]+|$)/;

function linesOf(text) {
  return text.match(/[^\n]*\n|[^\n]+$/g) || [];
}

function blank(text) {
  return text.replace(/[^\n]/g, " ");
}

/** Returns the text without prompts and commands, and with Python's brackets; characters keep their places. */
function withoutSurroundings(given) {
  const lines = linesOf(given);
  const promptOf = (line) => PROMPT.exec(line.replace(/\n$/, ""));
  let last = Math.max(0, lines.length - 1);
  for (; last; last -= 1) {
    const prompt = promptOf(lines[last]);
    if (lines[last].trim() && (!prompt || lines[last].slice(prompt[0].length).trim())) break;
    lines[last] = blank(lines[last]);
  }
  let position = 0;
  let hasOutput = false;
  let ended = null; // the index of a prompt after output
  for (const [at, line] of lines.entries()) {
    const prompt = promptOf(line);
    if (prompt) {
      const end = at < last && !prompt[0].includes("Out") ? line.length : prompt[0].length;
      lines[at] = blank(line.slice(0, end)) + line.slice(end);
      if (hasOutput) ended ??= position;
    }
    if (lines[at].trim()) {
      hasOutput = true;
      if (ended !== null) throw new PastedTextError("the text has outputs of several commands, of which another one begins here", ended);
    }
    position += line.length;
  }
  const text = lines.join("").replace(/<Buffer(?=[ >])/g, "<      ");
  const erlang = /^(\s*)<<([^]*)>>(\.?\s*)$/.exec(text);
  if (!erlang) return text;
  const inside = erlang[2].trim();
  // a comma makes a single number decimal, as all numbers of Erlang are
  const [opened, closed] = inside.startsWith('"') ? [" b", "  "] : [" [", inside && !inside.endsWith(",") ? ",]" : "] "];
  return `${erlang[1]}${opened}${erlang[2]}${closed}${blank(erlang[3])}`;
}

function bytesInForm(text, form) {
  if (form === "hex") return literalOf(text, form) || dumpOf(text, form) || hexIn(text, true);
  if (form === "decimal") return decimalIn(text);
  if (form === "words") return wordsIn(text);
  if (form === "base64") return base64In(text, true);
  if (form === "dump" || form === "literal") {
    const found = form === "dump" ? dumpOf(text, form) : literalOf(text, form);
    if (found === null) throw new PastedTextError(`the input is no ${form}`, 0);
    return found;
  }
  const found = literalOf(text) || listOf(text) || dumpOf(text);
  if (found !== null) return found;
  try {
    return hexIn(text);
  } catch (noHex) {
    if (!(noHex instanceof PastedTextError) || noHex instanceof AmbiguousTextError) throw noHex;
    let packed;
    try {
      packed = base64In(text);
    } catch (noBase64) {
      if (!(noBase64 instanceof PastedTextError) || noBase64 instanceof AmbiguousTextError || text.trimEnd().endsWith("=")) throw noBase64; // hex never has =
      throw new PastedTextError(`${noHex.message}, and the input is no dump, no list and no base64`, noHex.at);
    }
    if (isHexLike(text)) throw new AmbiguousTextError(`${noHex.message}, and the input may be base64`, noHex.at);
    return packed;
  }
}

/** Returns true for hex digits with at most two mistakes, of which base64 would make other bytes. */
function isHexLike(text) {
  const packed = text.replace(/\s/g, "");
  return !packed.endsWith("=") && packed.replace(/[0-9a-fA-F]/g, "").length <= 2;
}

// --- literals ------------------------------------------------------------------------------------

const ESCAPES = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, e: 27, "\\": 92, "'": 39, '"': 34, "?": 63 };

/** Matches a pattern with the flag y at an index; null if it does not match. */
function matchAt(pattern, text, index) {
  pattern.lastIndex = index;
  return pattern.exec(text);
}

/** Reads `b'\x00a'`, `"\x00a"`, several in a row; null for text that is no literal. */
function literalOf(text, form = "auto") {
  const bytea = /^\s*(['"])(\\{1,2})x((?:[0-9a-fA-F]{2}){2,})\1\s*$/.exec(text);
  if (bytea && (form === "hex" || bytea[2].length === 2)) return bytesOfPairs(bytea[3]);
  if (bytea && form === "auto") {
    throw new AmbiguousTextError("the text may be a literal, or a bytea of Postgres, whose digits all are hex", text.indexOf("\\"));
  }
  if (/^\s*(?:\\x[0-9a-fA-F]{2}\s*)+$/.test(text)) return bytesOfPairs(text.replace(/\\x|\s/g, ""));
  const begin = matchAt(/\s*(?:(?:bytearray|bytes|memoryview|\[\]byte)?\s*\(\s*)?/y, text, 0)[0].length;
  const found = [];
  let position = begin;
  let isLiteral = false;
  for (let quote; (quote = matchAt(/[bB]?(['"])/y, text, position)) !== null;) {
    const start = position + quote[0].length;
    const { bytes, end, hasEscapes } = unescaped(text, start, quote[1]);
    if (quote[0].length === 1 && !hasEscapes && !isLiteral) return null;
    isLiteral = true;
    for (const byte of bytes) found.push(byte);
    if (text[end] === quote[1]) {
      throw new AmbiguousTextError("two quotes in a row may be one quote (SQL, CSV), or the end of a literal and the start of the next", end - 1);
    }
    position = end + matchAt(/(?:\s|\\\r?\n|\/\*[^]*?\*\/)*/y, text, end)[0].length;
  }
  if (!isLiteral) return null;
  if (!/^\s*\)?\s*;?\s*$/.test(text.slice(position))) {
    throw new PastedTextError(`“${text[position]}” follows a literal`, position);
  }
  const isInner = found.length > 2 && found[0] === 0x62 && [0x22, 0x27].includes(found[1]) && found.at(-1) === found[1];
  if (form !== "literal" && isInner) {
    throw new AmbiguousTextError("the literal has another literal inside (JSON, CSV): leave out the outer quotes", begin);
  }
  return Uint8Array.from(found);
}

function unescaped(text, start, quote) {
  const bytes = [];
  let hasEscapes = false;
  for (let at = start; at < text.length;) {
    if (text[at] === quote) return { bytes, end: at + 1, hasEscapes };
    if (text[at] !== "\\") {
      if (text[at] === "\n") throw new PastedTextError("a line ends inside a literal", at);
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

const HEAD_MARK = /\bbyte|\bu?int8|\bchar\b|\bu8\b|Uint8Array|\w\s*\[\d*\]\s*=/;
// The parts of a declaration. Numbers are only in brackets, and declare the length.
const HEAD_PART = new RegExp("\\s+|\\[\\s*(?:(?<count>\\d+)|\\.\\.\\.|u8)?\\s*\\]|\\bUint8Array\\s*\\(\\s*(?<js>\\d+)\\s*\\)" +
  "|<\\s*[A-Za-z_][\\w:]*\\s*(?:,\\s*(?<template>\\d+)\\s*)?>|(?<word>[A-Za-z_]\\w*)|:=|::|[=&*:.(]", "y");
// The end of what may precede `[`: a type of JavaScript, or no name at all.
const BEFORE_LIST = /(?:\bUint8Array(?:\s*\(\s*\d+\s*\))?|(?:^|[=(&:]))\s*$/;
const ARRAY = new RegExp("^([\\w\\s[\\]<>=&*.:,?()!]{0,200}?)(?:\\[([^[\\]{}]*)\\]|\\{([^[\\]{}]*)\\})([\\w\\s);=]*)$");
// The end of an array, such as the length that `xxd -i` declares.
const TAIL = new RegExp("^(?:\\)\\s*)?(?:;\\s*)?(?:(?:(?:static|const|unsigned|int|long|size_t)\\s+)*" +
  "[A-Za-z_]\\w*_len\\s*=\\s*(\\d+)\\s*;)?$");

/** Reads numbers between brackets or braces; null for other text. */
function listOf(text) {
  const plain = withoutComments(text);
  const match = ARRAY.exec(plain);
  if (!match) return null;
  const [, head, list, block, after] = match;
  const tail = TAIL.exec(after.trim());
  if (!tail) return null;
  const count = tail[1];
  const counts = declaredIn(head, list !== undefined);
  if (counts === null) return null;
  const start = head.length + 1;
  const elements = (list ?? block).replace(/\(\s*byte\s*\)\s*/g, (found) => " ".repeat(found.length));
  const tokens = [...elements.matchAll(/[^,\s]+/g)].map((found) => [found[0], start + found.index]);
  if (!tokens.length && elements.trim()) return null;
  checkCommas(elements, start);
  const bytes = numbersOf(tokens, elements, start, head.trim() !== "");
  const frame = /\/\*[^*]*\((\d+) bytes\)\s*\*\//.exec(text);
  if (frame) counts.push([frame[1], frame.index]);
  if (count !== undefined) counts.push([count, plain.lastIndexOf(count)]);
  for (const [declared, at] of counts) {
    if (Number(declared) !== bytes.length) {
      throw new PastedTextError(`the array has ${bytes.length} bytes, and declares ${declared.slice(0, 20)}`, at);
    }
  }
  return bytes;
}

/** Returns the text with spaces for the comments of C, Go, Java and JavaScript. */
function withoutComments(text) {
  const parts = [];
  const comment = /\/\*|\/\//g;
  let copied = 0;
  for (let match; (match = comment.exec(text)) !== null;) {
    const isBlock = match[0] === "/*";
    const found = text.indexOf(isBlock ? "*/" : "\n", match.index + 2);
    if (isBlock && found < 0) break;
    const end = found < 0 ? text.length : found + (isBlock ? 2 : 0);
    parts.push(text.slice(copied, match.index), " ".repeat(end - match.index));
    copied = end;
    comment.lastIndex = end;
  }
  return parts.join("") + text.slice(copied);
}

/** Returns the lengths that a declaration has, with their indexes; null for other text. */
function declaredIn(head, isList) {
  if (!head.trim()) return [];
  if (!HEAD_MARK.test(head) || (isList && !BEFORE_LIST.test(head))) return null;
  const counts = [];
  for (let at = 0; at < head.length;) {
    const part = matchAt(HEAD_PART, head, at);
    if (!part) return null;
    at += part[0].length;
    const { word, count, js, template } = part.groups;
    // hex digits in a declaration are its name, which a length or a value follows
    if (word && /^[0-9a-fA-F]+$/.test(word) && !/^\s*[[=:]/.test(head.slice(at))) return null;
    const declared = count ?? js ?? template;
    if (declared !== undefined) counts.push([declared, part.index + part[0].lastIndexOf(declared)]);
  }
  return counts;
}

/** Throws if a line may end inside a number. Numbers that have a line each are whole. */
function checkWrapped(text, start) {
  if (!/\d[ \t,]+-?\d/.test(text)) return;
  for (const found of text.matchAll(/(?<![^\s,[\](){}])(-?\d+)\n(\d+)/g)) {
    const joined = found[1] + found[2];
    if (DECIMAL.test(joined) && Number(joined) <= 255) {
      throw new AmbiguousTextError(`${found[1]} and ${found[2]} may be one number, which the end of the line parts`, start + found.index);
    }
  }
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

function numbersOf(tokens, text, start, hasHead) {
  const prefixed = tokens.filter(([token]) => PREFIXED.test(token));
  if (prefixed.length === tokens.length) {
    checkPadding(tokens);
    return Uint8Array.from(tokens, ([token]) => parseInt(token, 16));
  }
  const isDecimal = tokens.every(([token]) => DECIMAL.test(token));
  const arePairs = tokens.every(([token]) => ONE_PAIR.test(token));
  if (arePairs && !isDecimal && !hasHead) return Uint8Array.from(tokens, ([token]) => parseInt(token, 16));
  if (!(text.includes(",") || hasHead) && ((arePairs && isDecimal) || prefixed.length)) {
    throw new AmbiguousTextError("the numbers in brackets may be hex or decimal", tokens[0][1]);
  }
  checkWrapped(text, start);
  return Uint8Array.from(tokens, ([token, at]) => decimalOf(token, at));
}

function decimalOf(token, at) {
  if (PREFIXED.test(token)) return parseInt(token, 16);
  const value = DECIMAL.test(token) ? Number(token) : NaN;
  if (!(value >= -128 && value <= 255)) throw new PastedTextError(`“${token.slice(0, 20)}” is no byte, from -128 to 255`, at);
  return value & 0xff;
}

function decimalIn(text) {
  checkWrapped(text, 0);
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
  for (const line of linesOf(text)) {
    if (line.trim() && line.trim() !== "*" && !OFFSET_LINE.test(line)) return at + line.length - line.trimStart().length;
    at += line.length;
  }
  return null;
}

const HEX_OR_DECIMAL = "the numbers may be hex or decimal";
// Between two groups: spaces, or one mark. Commas and semicolons may have spaces around them.
const ONE_SEPARATOR = /^(?:\s+|\s*[,;]\s*|[:_-](?:[ \t]*\n\s*)?)$/;

/** Reads pairs of hex digits, or groups of pairs, with separators. */
function hexIn(text, isNamed = false) {
  const offset = isNamed ? null : OFFSET_LINE.exec(text);
  if (offset) {
    throw new PastedTextError(`“${offset[1]}” may be the offset of a dump, and this line has none`,
      lineWithoutOffset(text) ?? offset.index + offset[0].indexOf(offset[1]));
  }
  if (!isNamed && /^(?: {2,}[1-9][0-9](?:[ \t]*\n)?)+\s*$/.test(text)) {
    throw new AmbiguousTextError(HEX_OR_DECIMAL, text.length - text.trimStart().length);
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
  const tokens = [];
  let hasCommas = false;
  for (let at = 0; ;) {
    const skipped = matchAt(/[\s:,;_\-]*/y, inside, at)[0];
    const atEnd = at + skipped.length === inside.length;
    checkSeparator(skipped, begin + at, !tokens.length, atEnd);
    hasCommas = hasCommas || skipped.includes(",");
    at += skipped.length;
    if (atEnd) break;
    const match = matchAt(/(0[xX]|\\x)?([0-9a-fA-F]+)/y, inside, at);
    const end = match ? at + match[0].length : at;
    if (!match || (end < inside.length && !/[\s:,;_\-]/.test(inside[end]))) {
      throw new PastedTextError(`“${inside[end]}” is no hex digit`, begin + end);
    }
    const [, prefix = "", digits] = match;
    if (digits.length % 2 && !(prefix && digits.length === 1)) {
      throw new PastedTextError(`“${digits.slice(0, 40)}” has an odd number of digits, and hex has two digits a byte`,
        begin + end - digits.length);
    }
    tokens.push({ at: begin + at, prefix, digits });
    at = end;
  }
  checkPadding(tokens.filter((token) => token.prefix).map((token) => [token.digits, token.at]));
  if (!isNamed && hasCommas) checkHexIsNotDecimal(tokens);
  return bytesOfPairs(tokens.map((token) => token.digits.padStart(2, "0")).join(""));
}

/** Throws for marks between which a number is missing, or that may be signs. */
function checkSeparator(skipped, at, isFirst, isLast) {
  const allowed = isFirst ? /^\s*$/ : isLast ? /^\s*[,;]?\s*$/ : ONE_SEPARATOR;
  if (allowed.test(skipped)) return;
  const marks = [...skipped.matchAll(/\S/g)];
  const wrong = marks[Math.min(1, marks.length - 1)];
  throw new PastedTextError(`“${wrong[0]}” separates no two numbers: one mark may be between two numbers, ` +
    "and a colon, dash or underscore has no space before it", at + wrong.index);
}

/** Throws if numbers that are separated by commas may be decimal. */
function checkHexIsNotDecimal(tokens) {
  const plain = tokens.filter((token) => !token.prefix && DECIMAL.test(token.digits));
  const hasPrefixes = tokens.some((token) => token.prefix && token.digits.length <= 2);
  if (plain.length && (hasPrefixes || (plain.length === tokens.length && tokens.length > 1))) {
    throw new AmbiguousTextError(HEX_OR_DECIMAL, plain[0].at);
  }
}

function base64In(text, isNamed = false) {
  const packed = (isNamed ? text.split(/\s+/) : text.split("\n").map((line) => line.trim())).join("");
  const isWrong = packed.endsWith("=") && packed.length % 4;
  const isOfBase64 = /^(?:[A-Za-z0-9+/_-]+={0,2})?$/.test(packed);
  const bytes = isWrong || !isOfBase64 ? null : bytesOfBase64(packed);
  if (bytes === null) {
    const wrong = isOfBase64 ? -1 : text.search(/[^A-Za-z0-9+/_\-\s=]|=(?!=?\s*$)/);
    throw new PastedTextError("the input is no base64", wrong < 0 ? Math.max(0, text.trimEnd().length - 1) : wrong);
  }
  if (!isNamed && /^(?:[A-Z2-7]{8})*[A-Z2-7]{7}[A-Z2-7=]$/.test(packed)) {
    throw new AmbiguousTextError("the input may be base32 or base64", text.length - text.trimStart().length);
  }
  return bytes;
}

/** Parses base64 or base64url, even if all letters are hex digits; null for other text. */
function bytesOfBase64(text) {
  const plain = text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  if (!/^[A-Za-z0-9+/]*$/.test(plain) || plain.length % 4 === 1) return null;
  const letters = atob(plain);
  if (btoa(letters).replace(/=+$/, "") !== plain) return null; // bits would be lost
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}
