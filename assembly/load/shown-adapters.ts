// Names that an engine has shown as LoRA adapters: in its gauge, or in its list of models with a parent.
//
// Owns: the shown part of REGION_ADAPTERS, SHOWN_ADAPTERS name hashes (u64) in buckets of eight, 0 = free. Written by
// the control thread, word by word, without a lock; read by any thread. A full bucket forgets its first name: a request
// for it counts as one for a base model until an engine shows it again. A base model is never shown, so nothing is
// remembered of it.
import { ASSERTIONS } from '../assertions';
import { ADAPTERS, ADAPTERS_PER_ENDPOINT, ADAPTERS_REMEMBERED, SHOWN_ADAPTERS, SLOTS } from '../memory';
import { isMapped } from '../preconditions';

const BUCKET: u32 = 8;
const GOLDEN: u64 = 0x9e3779b97f4a7c15; // 2^64 / golden ratio (Knuth, vol. 3, 6.4)

function bucketOf(name: u64): usize {
  const part = ADAPTERS + ((<usize>(SLOTS * (ADAPTERS_PER_ENDPOINT + ADAPTERS_REMEMBERED))) << 3);
  const bucket = <u32>((name * GOLDEN) >> 32) % (SHOWN_ADAPTERS / BUCKET);
  return part + ((<usize>(bucket * BUCKET)) << 3);
}

/** Returns whether an engine has shown the name as an adapter. */
export function isShownAdapter(name: u64): bool {
  const bucket = bucketOf(name);
  for (let i: usize = 0; i < BUCKET; i++) if (load<u64>(bucket + (i << 3)) == name) return true;
  return false;
}

/** Notes that an engine has shown the name whose hash stands at an address. Control thread. */
export function adapterShown(namePointer: usize): void {
  if (ASSERTIONS) assert(isMapped(namePointer, 8), 'the name is in the memory');
  const name = load<u64>(namePointer);
  if (name == 0 || isShownAdapter(name)) return;
  const bucket = bucketOf(name);
  for (let i: usize = 0; i < BUCKET; i++) {
    if (load<u64>(bucket + (i << 3)) != 0) continue;
    store<u64>(bucket + (i << 3), name);
    return;
  }
  memory.copy(bucket, bucket + sizeof<u64>(), <usize>(BUCKET - 1) * sizeof<u64>());
  store<u64>(bucket + <usize>(BUCKET - 1) * sizeof<u64>(), name);
}
