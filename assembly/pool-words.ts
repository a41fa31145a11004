// The pool words: what all threads know about the pool as a whole.
//
// Owns: the words from HEADER_POOL on in the header page. Writer and lock stand beside each word; readers take none.
export const POOL_PROFILES: usize = 0; // 32 × u32: number of the program that each profile runs (atomic)
export const POOL_SLOTS_USED: usize = 128; // u32: slots at and above this number are free (control thread)
export const POOL_LIVE: usize = 132; // u32: live endpoints (control thread)
export const POOL_EJECTED: usize = 136; // u32: endpoints that are out (commit lock)
export const POOL_EJECTION_OFF: usize = 140; // u32: 1 = failing endpoints stay in (control thread)
export const POOL_EPOCH: usize = 144; // u32: counts repairs (control thread)
export const POOL_SLOTS_SEEN: usize = 148; // f32: largest SLOTS_SEEN of any endpoint, 0 = unknown (commit lock)
export const POOL_COLD_OLDEST: usize = 152; // u32: slot + 1, head of the list of cold prompts (commit lock)
export const POOL_COLD_NEWEST: usize = 156; // u32: slot + 1, tail of it
export const POOL_COLD_LENGTH: usize = 160; // u32
export const POOL_DECISIONS: usize = 164; // u32: requests decided, wraps around (commit lock)
export const POOL_TURNS: usize = 256; // 32 × u32: slot + 1 that each profile's round-robin-picker took last (commit lock)
export const MAX_PROFILES: u32 = 32;
