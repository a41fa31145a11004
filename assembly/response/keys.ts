// The member names that matter in an answer.
//
// Owns: nothing; reads the caller's bytes. Up to 24 bytes from the address are loaded, also for a shorter name.
//
// Names are compared as little-endian words: the module may hold no literal data (every instantiation would write it
// into the shared memory again).

export const KEY_OTHER: u32 = 0;
// The counts; the first four are one above their number in usage.ts.
export const KEY_PROMPT: u32 = 1; // prompt_tokens, input_tokens
export const KEY_COMPLETION: u32 = 2; // completion_tokens, output_tokens
export const KEY_TOTAL: u32 = 3; // total_tokens
export const KEY_CACHED: u32 = 4; // cached_tokens
export const KEY_CACHE_READ: u32 = 5; // cache_read_input_tokens
export const KEY_DETAILS: u32 = 6; // prompt_tokens_details, input_tokens_details
export const KEY_USAGE: u32 = 7;
export const KEY_MODEL: u32 = 8;
export const KEY_RESPONSE: u32 = 9;
export const KEY_MESSAGE: u32 = 10;
export const KEY_TYPE: u32 = 11;
export const KEY_META: u32 = 12; // meta_info
export const KEY_FINISH: u32 = 13; // finish_reason
export const KEY_BYTES_MAX: u32 = 23;

/** Eight bytes of a name from byte 8 × `i` on. */
function wordAt(p: usize, i: usize): u64 {
  return load<u64>(p + (i << 3));
}

/** KEY_* of the `n` bytes at `p`. */
export function keyOf(p: usize, n: usize): u32 {
  const head = load<u64>(p);
  if (n == 5) {
    const word = head & 0xffffffffff;
    if (word == 0x6567617375) return KEY_USAGE; // usage
    return word == 0x6c65646f6d ? KEY_MODEL : KEY_OTHER; // model
  }
  if (n == 4) return <u32>head == 0x65707974 ? KEY_TYPE : KEY_OTHER; // type
  if (n == 7) return (head & 0xffffffffffffff) == 0x6567617373656d ? KEY_MESSAGE : KEY_OTHER; // message
  if (n == 8) return head == 0x65736e6f70736572 ? KEY_RESPONSE : KEY_OTHER; // response
  if (n == 9) return head == 0x666e695f6174656d && <u32>load<u8>(p + 8) == 0x6f ? KEY_META : KEY_OTHER; // meta_info
  if (n < 12) return KEY_OTHER;
  return longKeyOf(head, p, n);
}

/** Whether the `n` bytes at `p` are "response.completed". */
export function isCompleted(p: usize, n: usize): bool {
  if (n != 18) return false;
  return (
    load<u64>(p) == 0x65736e6f70736572 &&
    wordAt(p, 1) == 0x74656c706d6f632e &&
    <u32>load<u16>(p + 2 * sizeof<u64>()) == 0x6465
  );
}

function longKeyOf(head: u64, p: usize, n: usize): u32 {
  const tail = load<u64>(p + n - sizeof<u64>());
  if (n == 12) {
    if (head == 0x6f745f7475706e69 && tail == 0x736e656b6f745f74) return KEY_PROMPT; // input_tokens
    if (head == 0x6f745f6c61746f74 && tail == 0x736e656b6f745f6c) return KEY_TOTAL; // total_tokens
  } else if (n == 13) {
    if (head == 0x745f74706d6f7270 && tail == 0x736e656b6f745f74) return KEY_PROMPT; // prompt_tokens
    if (head == 0x745f74757074756f && tail == 0x736e656b6f745f74) return KEY_COMPLETION; // output_tokens
    if (head == 0x745f646568636163 && tail == 0x736e656b6f745f64) return KEY_CACHED; // cached_tokens
    if (head == 0x725f6873696e6966 && tail == 0x6e6f736165725f68) return KEY_FINISH; // finish_reason
  } else if (n == 17) {
    if (head != 0x6974656c706d6f63 || tail != 0x736e656b6f745f6e) return KEY_OTHER;
    if (wordAt(p, 1) == 0x6e656b6f745f6e6f) return KEY_COMPLETION; // completion_tokens
  } else if (n == 20) {
    if (head != 0x6f745f7475706e69 || tail != 0x736c69617465645f) return KEY_OTHER;
    if (wordAt(p, 1) == 0x7465645f736e656b) return KEY_DETAILS; // input_tokens_details
  } else if (n == 21) {
    if (head != 0x745f74706d6f7270 || tail != 0x736c69617465645f) return KEY_OTHER;
    if (wordAt(p, 1) == 0x65645f736e656b6f) return KEY_DETAILS; // prompt_tokens_details
  } else if (n == 23) {
    if (head != 0x65725f6568636163 || tail != 0x736e656b6f745f74) return KEY_OTHER;
    if (wordAt(p, 1) == 0x7475706e695f6461) return KEY_CACHE_READ; // cache_read_input_tokens
  }
  return KEY_OTHER;
}
