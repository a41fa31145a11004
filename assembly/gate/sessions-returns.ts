// When sessions come back, and how long an idle one is worth its room.
//
// Owns: the returns and the kept ages in the head of REGION_SESSIONS. Commit lock held, but for the reckoning, which
// the control thread does beside it.
//
// An idle session is kept while the computation that its return would save is worth more than the room that it takes
// until then: while there is a time t for which
//
//   P(returns within t | idle so long) · refill  >  E[min(return, t) | idle so long]
//
// Its tokens cancel out: computing them takes tokens / capacity of the refill time, and they take that share of the
// cache. It is the five-minute rule (Gray and Putzolu) with the cache of an engine. Where tiers below the GPU keep what
// it forgets, the refill time is that of bringing it back, and little is worth its room. The chance of a return at an
// age is learned from the returns and from the sessions that reached the age, in three classes by the number of turns.
// So a finished session needs no sign: its chance has become small.
import { ASSERTIONS } from '../assertions';
import {
  AGES,
  COUNTED_AGES,
  HAS_RETURNED,
  hasTurn,
  keptAges,
  pausesAt,
  pausesSum,
  reachedAt,
  returnsAt,
  SESSION_CLASSES,
  Session,
  sessionsGiven,
  sessionsHead,
} from './sessions-layout';

const FIRST_AGE: f64 = 500; // ms
const GROWTH: f64 = 1.35;
/** Chance of a return before anything is known: the rate 1 / (5 s + age), as if so many sessions had shown it. */
const PRIOR_MS: f64 = 5000;
const PRIOR_SESSIONS: f64 = 4;

/** Class of a session by its turns. */
export function classOf(session: Session): u32 {
  return session.turns <= 1 ? 0 : session.turns < 5 ? 1 : 2;
}

/** Bin of an age in milliseconds. */
export function ageOf(ms: f64): u32 {
  let age: u32 = 0;
  for (let end = FIRST_AGE; ms >= end && age < AGES - 1; end *= GROWTH) age++;
  return age;
}

function addTo(at: usize, by: f32): void {
  store<f32>(at, load<f32>(at) + by);
}

/** The session has reached an age: it could have come back at each one before. */
function reach(session: Session, age: u32): void {
  const kind = classOf(session);
  const counted = session.ages & COUNTED_AGES;
  for (let i: u32 = counted; i < age; i++) addTo(reachedAt(kind, i), 1);
  if (age > counted) session.ages = (session.ages & ~COUNTED_AGES) | <u8>age;
}

function countPause(age: u32, ms: f64): void {
  store<u64>(pausesAt(age), load<u64>(pausesAt(age)) + 1);
  store<f64>(pausesSum(), load<f64>(pausesSum()) + ms);
}

/** Pauses that have ended within the bin of an age. */
export function sessionsPauses(age: u32): f64 {
  if (ASSERTIONS) assert(age < AGES, 'the age is one of the sessions');
  return <f64>load<u64>(pausesAt(age));
}

/** Milliseconds of all pauses that have ended. */
export function sessionsPausesSum(): f64 {
  return load<f64>(pausesSum());
}

/** An idle session comes back, or its turn that has waited goes on. */
export function noteReturn(session: Session, now: f64): void {
  if ((session.ages & HAS_RETURNED) != 0) return;
  const pause = max<f64>(now - session.lastUse, 0);
  const age = ageOf(pause);
  countPause(age, pause);
  reach(session, age);
  addTo(returnsAt(classOf(session), age), 1);
  addTo(reachedAt(classOf(session), age), 1);
}

/** A session has come back, and its turn waits: the wait is no part of its pause. */
export function noteWait(session: Session, now: f64): void {
  noteReturn(session, now);
  session.ages |= HAS_RETURNED;
}

/** Whether the next turn of a session is there: in flight, or it waits. A further one goes on beside it. */
export function hasNext(session: Session): bool {
  return hasTurn(session) || (session.ages & HAS_RETURNED) != 0;
}

/** The turn of a session that waited is given up. */
export function noteGone(session: Session): void {
  session.ages &= ~HAS_RETURNED;
}

/** It has not come back yet. */
export function noteAbsence(session: Session, now: f64): void {
  if ((session.ages & HAS_RETURNED) == 0) reach(session, ageOf(now - session.lastUse));
}

/** Whether the room of an idle session is worth more than it costs. */
export function isKept(session: Session, now: f64): bool {
  if ((session.ages & HAS_RETURNED) != 0) return true;
  const lease = sessionsGiven().lease;
  if (lease > 0) return now - session.lastUse < <f64>lease - 1;
  return (load<u32>(keptAges(classOf(session))) & (1 << ageOf(now - session.lastUse))) != 0;
}

/** Chance that a session that has reached an age comes back in its bin. */
function chanceOf(kind: u32, age: u32, begin: f64, end: f64): f64 {
  const prior = 1 - (PRIOR_MS + begin) / (PRIOR_MS + end);
  const returned = <f64>load<f32>(returnsAt(kind, age)) + PRIOR_SESSIONS * prior;
  return returned / (<f64>load<f32>(reachedAt(kind, age)) + PRIOR_SESSIONS);
}

/** Whether a session of a class is kept at an age. @param begin of its bin, ms */
function isWorth(kind: u32, age: u32, begin: f64, refill: f64): bool {
  let from = begin;
  let absent: f64 = 1;
  let returned: f64 = 0;
  let waited: f64 = 0;
  for (let i = age; i < AGES; i++) {
    const end = i == 0 ? FIRST_AGE : from * GROWTH;
    const chance = chanceOf(kind, i, from, end);
    waited += absent * (1 - chance / 2) * (end - from);
    returned += absent * chance;
    absent *= 1 - chance;
    if (returned * refill > waited) return true;
    from = end;
  }
  return false;
}

/** Every class is kept for the same time. */
function keepForLease(ms: f64): void {
  // 32 bits are not shifted by 32.
  const kept: u32 = <u32>(((<u64>1) << ageOf(ms)) - 1);
  for (let kind: u32 = 0; kind < SESSION_CLASSES; kind++) store<u32>(keptAges(kind), kept);
}

/** Reckons anew at which ages a session is kept. No lock: it reads what is counted meanwhile. */
export function reckonKept(): void {
  const refill = <f64>sessionsHead().refill;
  if (sessionsGiven().lease > 0) return keepForLease(<f64>sessionsGiven().lease - 1);
  for (let kind: u32 = 0; kind < SESSION_CLASSES; kind++) {
    let kept: u32 = 0;
    let begin: f64 = 0;
    for (let age: u32 = 0; age < AGES; age++) {
      if (refill <= 0 || isWorth(kind, age, begin, refill)) kept |= 1 << age;
      begin = age == 0 ? FIRST_AGE : begin * GROWTH;
    }
    store<u32>(keptAges(kind), kept);
  }
}

/** Halves what is known, so that it follows the traffic. */
export function halveReturns(): void {
  for (let kind: u32 = 0; kind < SESSION_CLASSES; kind++) {
    for (let age: u32 = 0; age < AGES; age++) {
      const returned = returnsAt(kind, age);
      const reached = reachedAt(kind, age);
      store<f32>(returned, load<f32>(returned) / 2);
      store<f32>(reached, load<f32>(reached) / 2);
    }
  }
}

/** Bin of the longest age at which a session of a class is kept, + 1; 0 = at none. */
export function keptAge(kind: u32): u32 {
  const kept = load<u32>(keptAges(kind));
  return kept == 0 ? 0 : 32 - <u32>clz(kept);
}

/** Milliseconds up to which a session of a class is kept, Infinity = always. */
export function sessionsKeptFor(kind: u32): f64 {
  if (ASSERTIONS) assert(kind < SESSION_CLASSES, 'the class is one of the sessions');
  return sessionsAgeEnd(keptAge(kind));
}

/** Milliseconds at which the first `ages` bins of ages end, Infinity = never. */
export function sessionsAgeEnd(ages: u32): f64 {
  if (ASSERTIONS) assert(ages <= AGES, 'the ages are those of the sessions');
  if (ages == 0) return 0;
  if (ages == AGES) return Infinity;
  let end = FIRST_AGE;
  for (let i: u32 = 1; i < ages; i++) end *= GROWTH;
  return end;
}
