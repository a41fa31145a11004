// Layout of the news of sessions for peers: a ring of turns, and one record for what a peer tells or is told whole.
//
// Owns: the end of REGION_SESSIONS: SessionNewsHead, SESSION_NEWS records of 88 bytes (any thread, commit lock; read
// without it), and the last one (control thread, no lock but where sessions are written with it).

/** Head of the news for peers. */
@unmanaged
export class SessionNewsHead {
  /** 1 = turns are told to peers · control thread · commit lock, read without it. */
  tells: u32;
  /** Records that were ever written · any thread · commit lock, read without it. */
  written: u32;
}

/** A turn that begins or ends, or a session as a whole, as replicas tell it to each other. */
@unmanaged
export class SessionNews {
  /** Anchor that its session had before, 0 = it is new or the turn ends · any thread · commit lock. */
  before: u64;
  /** Anchor of its session now · any thread · commit lock. */
  anchor: u64;
  /** Its early anchor, 0 = none · any thread · commit lock. */
  earlyAnchor: u64;
  /** Chain hash of the last block that it shares, 0 = none · any thread · commit lock. */
  prefix: u64;
  /** Chain hash of the last block of a shorter beginning within it, 0 = none · any thread · commit lock. */
  within: u64;
  /** Endpoint slot · any thread · commit lock. */
  slot: u32;
  /** Generation of the slot · any thread · commit lock. */
  generation: u32;
  /** Tokens of its prompt, with the output at its end · any thread · commit lock. */
  tokens: u32;
  /** Those of them that it shares · any thread · commit lock. */
  shared: u32;
  /** Tokens of the shorter beginning, 0 = there is none · any thread · commit lock. */
  withinTokens: u32;
  /** 1 = it begins, or is in flight; 0 = it ends, or the session is between turns · any thread · commit lock. */
  begins: u32;
  /** NEWS_IS_* bits; of a turn NEWS_IS_NAMED alone · any thread · commit lock. */
  marks: u32;
  /** Of a session as a whole: turns so far, 255 = that many or more · control thread · commit lock. */
  turns: u32;
  /** Of one: milliseconds since its last use · control thread · commit lock. */
  age: u32;
  /** Of one: tenths of a second that it was idle when it lapsed · control thread · commit lock. */
  idle: u32;
  /** Of one: tag of the peer where its turn is in flight or waits, 0 = none · control thread · commit lock. */
  peer: u32;
}

export const NEWS_IS_NAMED: u32 = 1; // its header names it, and that is its early anchor
export const NEWS_IS_WAITING: u32 = 2; // its next turn waits
export const NEWS_IS_LAPSED: u32 = 4; // its tokens are given away
export const NEWS_IS_FORGOTTEN: u32 = 8; // the engine has forgotten it while it was protected

/** Records that are kept until the control thread reads them. */
export const SESSION_NEWS: u32 = 1024;
export const SESSION_NEWS_BYTES: usize = 88;
export const SESSION_NEWS_HEAD_BYTES: usize = 8;

/** Bytes of all. */
export const SESSION_NEWS_REGION_BYTES: u64 = SESSION_NEWS_HEAD_BYTES + <u64>(SESSION_NEWS + 1) * SESSION_NEWS_BYTES;

let news: usize = 0;

/** Takes the address in the attached memory. */
export function sessionNewsBind(address: usize): void {
  news = address;
}

export function sessionNewsHead(): SessionNewsHead {
  return changetype<SessionNewsHead>(news);
}

/** Address of the news. */
export function sessionNewsAddress(): usize {
  return news;
}

/** @param at number of a record modulo SESSION_NEWS, or SESSION_NEWS for what a peer tells */
export function sessionNewsAt(at: u32): SessionNews {
  return changetype<SessionNews>(news + SESSION_NEWS_HEAD_BYTES + <usize>at * SESSION_NEWS_BYTES);
}

export const NEWS_WRITTEN: usize = offsetof<SessionNewsHead>('written');
export const NEWS_BEFORE: usize = offsetof<SessionNews>('before');
export const NEWS_ANCHOR: usize = offsetof<SessionNews>('anchor');
export const NEWS_EARLY_ANCHOR: usize = offsetof<SessionNews>('earlyAnchor');
export const NEWS_PREFIX: usize = offsetof<SessionNews>('prefix');
export const NEWS_WITHIN: usize = offsetof<SessionNews>('within');
export const NEWS_SLOT: usize = offsetof<SessionNews>('slot');
export const NEWS_GENERATION: usize = offsetof<SessionNews>('generation');
export const NEWS_TOKENS: usize = offsetof<SessionNews>('tokens');
export const NEWS_SHARED: usize = offsetof<SessionNews>('shared');
export const NEWS_WITHIN_TOKENS: usize = offsetof<SessionNews>('withinTokens');
export const NEWS_BEGINS: usize = offsetof<SessionNews>('begins');
export const NEWS_MARKS: usize = offsetof<SessionNews>('marks');
export const NEWS_TURNS: usize = offsetof<SessionNews>('turns');
export const NEWS_AGE: usize = offsetof<SessionNews>('age');
export const NEWS_IDLE: usize = offsetof<SessionNews>('idle');
export const NEWS_PEER: usize = offsetof<SessionNews>('peer');
