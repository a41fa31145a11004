/**
 * Lengths in bits of the codes of RFC 7541, appendix B: one for each byte, the last one for the end of the string. The code is
 * canonical: codes are numbered by length and then by symbol, so the lengths say all of it.
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

/** Node after the step. */
const next = new Uint16Array(NODES * NIBBLES);
/** Byte that the step completes; the shortest code has five bits, so it is at most one. */
const emitted = new Uint16Array(NODES * NIBBLES);
/** A string may end at this node: what has been read of the next code is at most seven bits, all of them ones. */
const mayEnd = new Uint8Array(NODES);

/** Children of the nodes as 2 × node + bit: a node when positive, the bitwise complement of a symbol when negative. */
function codeTree(): Int16Array {
  const tree = new Int16Array(NODES * 2);
  const symbols = CODE_BITS.map((_, symbol) => symbol).sort((a, b) => CODE_BITS[a]! - CODE_BITS[b]! || a - b);
  let nodes = 1;
  let code = 0;
  let bits = 0;
  for (const symbol of symbols) {
    code *= 2 ** (CODE_BITS[symbol]! - bits);
    bits = CODE_BITS[symbol]!;
    let node = 0;
    for (let bit = bits - 1; bit > 0; bit--) {
      const child = 2 * node + ((code >>> bit) & 1);
      if (tree[child] === 0) tree[child] = nodes++;
      node = tree[child]!;
    }
    tree[2 * node + (code & 1)] = ~symbol;
    code++;
  }
  return tree;
}

function fillSteps(): void {
  const tree = codeTree();
  for (let node = 0; node < NODES; node++) {
    for (let nibble = 0; nibble < NIBBLES; nibble++) {
      const step = node * NIBBLES + nibble;
      emitted[step] = NONE;
      let at = node;
      for (let bit = 3; bit >= 0 && at !== REFUSED; bit--) {
        const child = tree[2 * at + ((nibble >>> bit) & 1)]!;
        if (child >= 0) {
          at = child;
          continue;
        }
        const symbol = ~child;
        if (symbol === EOS) at = REFUSED;
        else {
          emitted[step] = symbol;
          at = 0;
        }
      }
      next[step] = at;
    }
  }
  for (let node = 0, bits = 0; bits <= 7; bits++) {
    mayEnd[node] = 1;
    node = tree[2 * node + 1]!;
  }
}

fillSteps();

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
