/**
 * Lengths in bits of the codes of RFC 7541, appendix B: one for each byte, the last one for the end of the string. The
 * code is canonical: codes are numbered by length and then by symbol, so the lengths define it.
 */
// biome-ignore format: sixteen to a line, as many as a hexadecimal digit
const CODE_BITS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];

const EOS = 256;
/** Nodes of the code's tree: one fewer than its leaves. */
const NODES = 256;
/** Steps of four bits: for each node and each four bits, where they lead and the symbols that they complete. */
const NIBBLES = 16;

/** No symbol in this step. */
const NONE = 0xffff;
/** The step meets the end-of-string code, which no string may hold. */
const REFUSED = 0xffff;

/** Steps through the code. */
interface Steps {
  /** Node after the step. */
  readonly next: Uint16Array;
  /** Byte that the step completes; the shortest code has five bits, so it is at most one. */
  readonly emitted: Uint16Array;
  /** A string may end at this node: the begun next code has at most seven bits, all of them 1. */
  readonly mayEnd: Uint8Array;
}

/**
 * Made when the first string is read: a thread that reads none spends neither the time nor the memory of V8's
 * compilers.
 */
let steps: Steps | undefined;

/**
 * Children of the nodes as 2 × node + bit: a node when positive, the bitwise complement of a symbol when negative.
 * Nodes are numbered by depth and then by code, so among the children at one depth the symbols come first: their codes
 * are the lowest.
 */
function codeTree(): Int16Array {
  const tree = new Int16Array(NODES * 2);
  const symbols = CODE_BITS.map((_, symbol) => symbol).sort((a, b) => CODE_BITS[a]! - CODE_BITS[b]! || a - b);
  let taken = 0;
  let nodes = 1;
  for (let child = 0, depth = 1; child < tree.length; depth++) {
    for (const end = 2 * nodes; child < end; child++) {
      const symbol = symbols[taken]!;
      if (CODE_BITS[symbol] === depth) {
        tree[child] = ~symbol;
        taken++;
      } else tree[child] = nodes++;
    }
  }
  return tree;
}

function makeSteps(): Steps {
  const tree = codeTree();
  const next = new Uint16Array(NODES * NIBBLES);
  const emitted = new Uint16Array(NODES * NIBBLES).fill(NONE);
  for (let step = 0; step < next.length; step++) {
    let at = Math.trunc(step / NIBBLES);
    for (let bit = 3; bit >= 0 && at !== REFUSED; bit--) {
      const child = tree[2 * at + ((step >>> bit) & 1)]!;
      if (child >= 0) at = child;
      else if (~child === EOS) at = REFUSED;
      else {
        emitted[step] = ~child;
        at = 0;
      }
    }
    next[step] = at;
  }
  const mayEnd = new Uint8Array(NODES);
  for (let node = 0, bits = 0; bits <= 7; bits++) {
    mayEnd[node] = 1;
    node = tree[2 * node + 1]!;
  }
  return { next, emitted, mayEnd };
}

/** Bytes that a string of `length` encoded bytes has at most: the shortest code has five bits. */
export function huffmanBytesMax(length: number): number {
  return Math.floor((length * 8) / 5);
}

/**
 * Decodes bytes[from, to) into `into` from its first byte.
 * @param into at least `huffmanBytesMax(to - from)` bytes
 * @returns the decoded length, -1 when the bytes are no valid string
 */
export function decodeHuffman(bytes: Uint8Array, from: number, to: number, into: Uint8Array): number {
  steps ??= makeSteps();
  const { next, emitted, mayEnd } = steps;
  let node = 0;
  let length = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at]!;
    const high = node * NIBBLES + (byte >>> 4);
    const between = next[high]!;
    if (between === REFUSED) return -1;
    if (emitted[high] !== NONE) into[length++] = emitted[high]!;
    const low = between * NIBBLES + (byte & 15);
    node = next[low]!;
    if (node === REFUSED) return -1;
    if (emitted[low] !== NONE) into[length++] = emitted[low]!;
  }
  return mayEnd[node] === 1 ? length : -1;
}
