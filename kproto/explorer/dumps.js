// Reads hex dumps with offsets. The rules are those of kproto/study/hex_dumps.py;
// tests/vectors/pasted_text.json has cases for both.

const MAX_DUMPED_BYTES = 104_857_600;
const READABLE = "hexdump -C, xxd, od -t x1 and tcpdump -x print the bytes in order";
const OF_WORDS = `the input is a dump of words in the byte order of a machine; ${READABLE}`;
const OF_NUMBERS = `the input is a dump of octal or decimal numbers; ${READABLE}`;
const SEVERAL_DUMPS = "the input is several dumps, of which another one begins here: read them one by one";
const ONE_LINE = "the input is either a line of a dump with its offset, or hex in groups: leave out the offset";
const SEVERAL_LINES = "the input is either a dump with offsets, or hex whose lines begin with numbers that could be offsets: " +
  "leave out the offsets";
const NOT_WHOLE = `the input is a dump whose offsets do not match its bytes; ${READABLE}`;
const ANY_BASE = "the input is a dump whose repeated lines (*) have another number for offsets in hex, octal or decimal: " +
  "print all lines (od -v, xxd without -a), or offsets in hex (od -A x)";
const ANY_ORDER = `the input is a dump of groups whose text does not tell the order of their bytes (xxd -g or xxd -e). ${READABLE}`;
const ANY_DIGITS = "the input is a dump of hex or binary digits (xxd -g 4 or xxd -b)";
const ANY_NUMBERS = "the input is a dump of hex or decimal numbers (od -t x1 or od -t u1)";

/** Returns the bytes of a dump; null for text that is no dump. */
function dumpOf(text, form = "auto") {
  const lines = dumpLines(text);
  if (lines === null) return null;
  const rows = rowsOf(lines);
  if (!rows.some((row) => row.groups.length)) return null;
  if (!haveOffsets(rows)) {
    if (form === "auto" && mayHaveOffsets(rows)) {
      throw new AmbiguousTextError(rows.length > 1 ? SEVERAL_LINES : ONE_LINE, rows[rows.length > 1 ? 1 : 0].at);
    }
    return null;
  }
  rows.forEach(checkBytes);
  const another = rows.slice(1).find((row) => row.groups.length && offsetIn(row, 16) === 0);
  if (another) throw new PastedTextError(SEVERAL_DUMPS, another.at);
  if (form !== "dump" && rows.length === 1 && mayBeHex(rows[0])) {
    if (form === "hex") return null;
    throw new AmbiguousTextError(ONE_LINE, rows[0].at);
  }
  checkGroups(rows);
  if (form !== "dump") {
    checkNotDecimal(rows);
    checkNotBits(rows);
    checkOrder(rows);
  }
  return bytesOfRows(lines, rows);
}

/** Returns the bytes; throws if no base of the offsets fits, or several with different bytes. */
function bytesOfRows(lines, rows) {
  let wrong = 0;
  let bytes = null;
  for (const base of basesOf(rows)) {
    const found = dumpByBase(lines, base);
    if (!(found instanceof Uint8Array)) {
      wrong = Math.max(wrong, found.at);
    } else if (bytes !== null && !sameBytes(bytes, found)) {
      throw new AmbiguousTextError(ANY_BASE, lines.find((line) => typeof line === "number") ?? rows[0].at);
    } else {
      bytes = found;
    }
  }
  if (bytes !== null) return bytes;
  const swapped = rows.find(isSwapped);
  if (swapped) throw new PastedTextError(OF_WORDS, swapped.at + swapped.start);
  throw new PastedTextError(NOT_WHOLE, wrong);
}

function sameBytes(some, others) {
  return some.length === others.length && some.every((byte, index) => byte === others[index]);
}

/** Returns the lines of a dump, with its index for a line `*`; null if a line has no offset. */
function dumpLines(text) {
  const found = [];
  let at = 0;
  for (const whole of linesOf(text)) {
    const line = whole.replace(/\n$/, "");
    if (line.trim() === "*") {
      found.push(at);
    } else if (line.trim()) {
      const match = /^\s*((?:0[xX])?[0-9a-fA-F]{4,16})(:?)(\s+|$)/.exec(line);
      if (!match) return null;
      const hasColon = match[2] !== "";
      const start = match[0].length;
      // `hexdump -C` has a gap of two spaces in the middle of its bytes
      const groups = groupsOf(line, start, hasColon ? 1 : 2);
      found.push({ at, text: line, offset: match[1], hasColon, gap: match[3].length, start, groups });
    }
    at += whole.length;
  }
  return found.length ? found : null;
}

function rowsOf(lines) {
  return lines.filter((line) => typeof line !== "number");
}

/** Returns the groups of a line that may be bytes; a gap of more than `most` spaces ends them. */
function groupsOf(line, start, most) {
  const groups = [];
  for (let at = start, match; (match = matchAt(/([0-9a-fA-F]+)(\s+|(?=[|>])|$)/y, line, at)) !== null;) {
    at += match[0].length;
    groups.push({ digits: match[1], gap: match[2].length, end: at });
    if (match[2].length > most) break;
  }
  return groups;
}

function haveOffsets(rows) {
  if (rows.every((row) => row.hasColon)) return true;
  if (rows.some((row) => row.hasColon) || new Set(rows.map((row) => row.offset.length)).size > 1) return false;
  if (/^0x/i.test(rows[0].offset)) return false;
  return rows.every((row) => !row.groups.length || row.groups[0].digits.length !== row.offset.length);
}

/** Returns true if the first groups of hex text count the bytes behind them, or have the widest gaps. */
function mayHaveOffsets(rows) {
  const widest = (row) => row.groups.slice(0, -1).reduce((most, group) => Math.max(most, group.gap), 1);
  if (rows.every((row) => !row.groups.length || row.gap > widest(row))) return true;
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
  if (!wrong.length) return;
  const at = wrong[0].at + wrong[0].start;
  const digits = wrong[0].groups[0].digits;
  if (wrong.length === filled.length) throw new PastedTextError(digits.length === 3 ? OF_NUMBERS : OF_WORDS, at);
  throw new PastedTextError(`“${digits.slice(0, 20)}” is no byte of two digits`, at);
}

/** Throws for a line whose offset is followed by something else than bytes. */
function checkBytes(row) {
  if (row.groups.length || !row.text.slice(row.start).trim()) return;
  const at = row.start + matchAt(/[0-9a-fA-F]*/y, row.text, row.start)[0].length;
  throw new PastedTextError(`“${row.text[at]}” is no hex digit`, row.at + at);
}

/** Throws for lines that `od -t u1` prints for bytes from 10 to 99. */
function checkNotDecimal(rows) {
  const filled = rows.filter((row) => row.groups.length);
  if (rows[0].hasColon || ![6, 7].includes(rows[0].offset.length)) return;
  const isPadded = (row) => row.gap > 1 && row.groups.slice(0, -1).every((group) => group.gap > 1);
  if (filled.every((row) => isPadded(row) && row.groups.every((group) => /^[1-9][0-9]$/.test(group.digits)))) {
    throw new AmbiguousTextError(ANY_NUMBERS, filled[0].at + filled[0].start);
  }
}

/** Throws for a single line that `xxd -b`, too, may have printed. */
function checkNotBits(rows) {
  const row = rows[0];
  if (rows.length > 1 || !row.hasColon || row.text.slice(row.groups.at(-1).end).trim()) return;
  if (row.groups.every((group) => /^[01]{8}$/.test(group.digits))) throw new AmbiguousTextError(ANY_DIGITS, row.at + row.start);
}

/** Throws if `xxd -e`, too, may have printed the lines, for other bytes. */
function checkOrder(rows) {
  const filled = rows.filter((row) => row.groups.length);
  if (!filled.some(mayBeReversed)) return;
  if (!filled.every((row) => matchesOf(row, bytesOfGroups(row, true)).length)) return;
  const differs = filled.some((row) => !sameBytes(bytesOfGroups(row), bytesOfGroups(row, true)));
  if (differs && filled.every((row) => matchesOf(row, bytesOfGroups(row)).length)) {
    throw new AmbiguousTextError(ANY_ORDER, filled[0].at + filled[0].start);
  }
}

/** Returns true for the groups of `xxd -e`, which fills a short group with spaces before it. */
function mayBeReversed(row) {
  const size = row.groups[0].digits.length;
  return row.hasColon && !/^0x/i.test(row.offset) && ([8, 16].includes(size) || (size > 2 && row.gap > 2));
}

/** Returns the bases that the program of the dump writes, so that a lost line is noticed. */
function basesOf(rows) {
  const { offset, hasColon } = rows[0];
  if (/^0x/i.test(offset)) return [16];
  if (hasColon) return [16, 10];
  return [4, 6, 8].includes(offset.length) ? [16] : [16, 8, 10];
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
  const rows = rowsOf(lines);
  const parts = [];
  let size = 0;
  let last = new Uint8Array(0);
  let longest = null;
  let first = null;
  let repeats = false;
  for (const [number, line] of lines.entries()) {
    if (typeof line === "number") {
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
        throw new PastedTextError(`a dump of ${offset - first} bytes; at most ${MAX_DUMPED_BYTES} are read`, line.at);
      }
      for (let left = missing; left > 0; left -= last.length) parts.push(last);
      size += missing;
      repeats = false;
    }
    if (offset - first !== size) return line;
    const following = number + 1 < lines.length && typeof lines[number + 1] !== "number" ? lines[number + 1] : null;
    const wanted = following ? offsetIn(following, base) - offset : null;
    const found = contentOf(line, Number.isNaN(wanted) ? -1 : wanted, longest);
    if (found === null) return line;
    parts.push(found);
    size += found.length;
    longest = Math.max(longest ?? 0, found.length);
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

/**
 * Returns the bytes of a line; null if it cannot have `size` bytes. Without `size` its text decides, and
 * it has at most as many bytes as the longest line before it.
 */
function contentOf(line, size, longest) {
  if (!line.groups.length) return size === null || size === 0 ? new Uint8Array(0) : null;
  const bytes = bytesOfGroups(line);
  const fits = (count) => count === size || (size === null && (longest === null || count <= longest));
  const found = matchesOf(line, bytes).filter(([count]) => fits(count));
  if (!found.length) return null;
  const [count, gap] = found[0];
  if (found.length > 1 && gap < 2) {
    throw new AmbiguousTextError("the end of the line may be bytes or their text: separate the text by two spaces, or leave it out", line.at);
  }
  return bytes.slice(0, count);
}

/** Returns the bytes of the groups up to the first that cannot be bytes; each reversed if asked. */
function bytesOfGroups(line, isReversed = false) {
  const parts = [];
  for (const { digits } of line.groups) {
    if (digits.length % 2 || !(line.hasColon || digits.length === 2)) break;
    parts.push(isReversed ? digits.match(/../g).reverse().join("") : digits);
  }
  return bytesOfPairs(parts.join(""));
}

/**
 * Returns each possible number of bytes of a line, with the gap after those bytes. The rest must be empty
 * or their text; its length excludes nearly all numbers, so that the time is linear.
 */
function matchesOf(line, bytes) {
  const shown = shownText(bytes);
  const first = shown.length - shown.replace(/^ +/, "").length;
  const end = line.text.trimEnd().length;
  const found = [];
  let count = 0;
  let last = 0; // the index after the last byte that is no space
  for (const group of line.groups) {
    const before = count;
    count += group.digits.length >> 1;
    if (count > bytes.length) break;
    for (let index = before; index < count; index += 1) {
      if (shown[index] !== " ") last = index + 1;
    }
    const length = Math.max(0, end - group.end);
    const stripped = Math.max(0, last - first);
    if (length && ![stripped, stripped + 1, count, count + 1, count + 2].includes(length)) continue;
    if (isTextOf(shown.slice(0, count), line.text.slice(group.end, end))) found.push([count, group.gap]);
  }
  return found;
}

function shownText(bytes) {
  return Array.from(bytes, (byte) => byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".").join("");
}

/** Returns true if `rest` is empty or the text `shown`, as one of the programs prints it. */
function isTextOf(shown, rest) {
  if (!rest || rest === `|${shown}|` || rest === `>${shown}<`) return true;
  const parted = `${shown.slice(0, 8)} ${shown.slice(8)}`;
  return [shown.trim(), parted.trim(), shown.replaceAll(" ", ".")].includes(rest);
}

/** Returns true if the text of a line shows that the bytes of each group are reversed. */
function isSwapped(line) {
  const whole = { ...line, groups: groupsOf(line.text, line.start, Infinity) };
  return matchesOf(whole, bytesOfGroups(whole, true)).length > 0 && !matchesOf(whole, bytesOfGroups(whole)).length;
}

/** Reads a dump of two-byte words of a little-endian machine, as `hexdump` and `od -x` print it. */
function wordsIn(text) {
  const lines = dumpLines(text);
  const rows = rowsOf(lines || []);
  if (lines === null || rows.length < lines.length || rows.length < 2 || rows.at(-1).groups.length) {
    throw new PastedTextError("the input is no dump of words: the last line is the offset of the end", rows.at(-1)?.at ?? 0);
  }
  const digits = [];
  for (const row of rows) {
    for (const group of row.groups) {
      if (group.digits.length !== 4) throw new PastedTextError(`“${group.digits.slice(0, 20)}” is no word of four digits`, row.at);
      digits.push(group.digits.slice(2), group.digits.slice(0, 2));
    }
    const after = row.groups.length ? row.groups.at(-1).end : row.start;
    if (row.text.slice(after).trim()) throw new PastedTextError(`“${row.text[after]}” follows the words`, row.at + after);
  }
  const bytes = bytesOfPairs(digits.join(""));
  let wrong = 0;
  for (const base of [16, 8, 10]) {
    const fault = faultOfWords(rows, base, bytes.at(-1) === 0);
    if (fault === null) return bytes.slice(0, offsetIn(rows.at(-1), base) - offsetIn(rows[0], base));
    wrong = Math.max(wrong, fault.at);
  }
  throw new PastedTextError(NOT_WHOLE, wrong);
}

/** Returns the first line whose offset does not count the words before it; null if there is none. */
function faultOfWords(rows, base, isPadded) {
  let expected = offsetIn(rows[0], base);
  for (const row of rows.slice(0, -1)) {
    if (offsetIn(row, base) !== expected) return row;
    expected += 2 * row.groups.length;
  }
  const end = offsetIn(rows.at(-1), base);
  return end === expected || (isPadded && end === expected - 1) ? null : rows.at(-1);
}
