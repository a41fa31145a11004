// Victims: the oldest segments that one pass found.
//
// Owns: the victims part of the scratch in REGION_PREFIX: VICTIMS × u64 age key, then VICTIMS × u32 segment. Index lock
// held throughout. During a pass the part is a heap with the youngest victim on top, which the next older one replaces;
// then it is sorted, oldest first. Inserting each victim in its place would move half of the list every time.
import { indexHead } from './head';
import { SCRATCH, VICTIMS } from './layout';
import { Segment } from './segment';

const KEYS: usize = 1024;
const NUMBERS: usize = KEYS + ((<usize>VICTIMS) << 3);

/** Victims found. */
export let victims: u32 = 0;

function keyCell(i: u32): usize {
  return SCRATCH + KEYS + ((<usize>i) << 3);
}

function numberCell(i: u32): usize {
  return SCRATCH + NUMBERS + ((<usize>i) << 2);
}

function setVictim(i: u32, key: u64, segment: u32): void {
  store<u64>(keyCell(i), key);
  store<u32>(numberCell(i), segment);
}

function moveVictim(to: u32, from: u32): void {
  setVictim(to, load<u64>(keyCell(from)), load<u32>(numberCell(from)));
}

/** Segment of victim `i`; oldest first once they are sorted. */
export function victimAt(i: u32): u32 {
  return load<u32>(numberCell(i));
}

/** Smallest key of a stamp: that of the deepest segment. */
function firstKey(stamp: u32): u64 {
  const age = indexHead().tick + 1 - stamp;
  return (<u64>(0xffffffff - age)) << 16;
}

/** Oldest first; of the same age, the deepest first. */
export function ageKey(stamp: u32, at: Segment): u64 {
  return firstKey(stamp) | (0xffff - <u64>at.depth);
}

export function beginVictims(): void {
  victims = 0;
}

/** During a pass: whether no segment with this stamp can be a victim, as there are enough that are older. */
export function tooYoung(stamp: u32): bool {
  return victims == VICTIMS && firstKey(stamp) > load<u64>(keyCell(0));
}

/** Lets a key sink from place `i` of a heap of `size`. */
function sink(i: u32, size: u32, key: u64, segment: u32): void {
  for (;;) {
    let child = (i << 1) + 1;
    if (child >= size) break;
    if (child + 1 < size && load<u64>(keyCell(child + 1)) > load<u64>(keyCell(child))) child++;
    if (load<u64>(keyCell(child)) <= key) break;
    moveVictim(i, child);
    i = child;
  }
  setVictim(i, key, segment);
}

/** Lets a key rise from place `i` of the heap. */
function rise(i: u32, key: u64, segment: u32): void {
  while (i != 0) {
    const above = (i - 1) >> 1;
    if (load<u64>(keyCell(above)) >= key) break;
    moveVictim(i, above);
    i = above;
  }
  setVictim(i, key, segment);
}

/** During a pass: keeps the VICTIMS oldest. */
export function offerVictim(key: u64, segment: u32): void {
  if (victims < VICTIMS) rise(victims++, key, segment);
  else if (key < load<u64>(keyCell(0))) sink(0, VICTIMS, key, segment);
}

/** Ends a pass: the oldest comes first. */
export function sortVictims(): void {
  for (let size = victims; size > 1; ) {
    size--;
    const key = load<u64>(keyCell(size));
    const segment = victimAt(size);
    moveVictim(size, 0);
    sink(0, size, key, segment);
  }
}

/** After a pass: puts one more victim in its place, unless enough are older. */
export function insertVictim(key: u64, segment: u32): void {
  let at = victims;
  if (victims < VICTIMS) victims++;
  else if (key >= load<u64>(keyCell(--at))) return;
  for (; at != 0 && load<u64>(keyCell(at - 1)) > key; at--) moveVictim(at, at - 1);
  setVictim(at, key, segment);
}
