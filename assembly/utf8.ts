// Text as bytes: UTF-8 of a code point.
//
// Owns nothing; writes to the caller's address.

/** Writes a code point as UTF-8 to `to` (4 bytes of room). @returns its length in bytes. */
export function writeCodePoint(to: usize, point: u32): u32 {
  if (point < 0x80) {
    store<u8>(to, point);
    return 1;
  }
  if (point < 0x800) {
    store<u8>(to, 0xc0 | (point >> 6));
    store<u8>(to + 1, 0x80 | (point & 0x3f));
    return 2;
  }
  if (point < 0x10000) {
    store<u8>(to, 0xe0 | (point >> 12));
    store<u8>(to + 1, 0x80 | ((point >> 6) & 0x3f));
    store<u8>(to + 2, 0x80 | (point & 0x3f));
    return 3;
  }
  store<u8>(to, 0xf0 | (point >> 18));
  store<u8>(to + 1, 0x80 | ((point >> 12) & 0x3f));
  store<u8>(to + 2, 0x80 | ((point >> 6) & 0x3f));
  store<u8>(to + 3, 0x80 | (point & 0x3f));
  return 4;
}
