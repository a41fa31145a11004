// Head of the prefix index: free lists, the tick and the way of comparing.
//
// Owns: the first 72 bytes of REGION_PREFIX. Each field says who writes it, and under which lock.
import { HEAD } from './layout';
/** Words of the head before the counters. */
@unmanaged
export class IndexHead {
  /** First free segment, 0 = none; linked by Segment.parent · any thread · index lock. */
  segmentFree: u32;
  /** Highest segment number ever used · any thread · index lock. */
  segmentTop: u32;
  /** First free overflow list, 0 = none; linked by its first word · any thread · index lock. */
  overflowFree: u32;
  /** Highest number of an overflow list ever used · any thread · index lock. */
  overflowTop: u32;
  /** First free set, 0 = none; linked by SetMeta.next · any thread · index lock. */
  setFree: u32;
  /** Highest set number ever used · any thread · index lock. */
  setTop: u32;
  /** Cost of loading a block from the host's memory, beside computing it, 0..1 · control thread · none. */
  hostPrice: f32;
  /** As hostPrice, from a disk · control thread · none. */
  diskPrice: f32;
  /** As hostPrice, from another machine · control thread · none. */
  remotePrice: f32;
  /** Bit of each place below the GPU at which an endpoint has held blocks · any thread · index lock. */
  places: u32;
  private unused1: u64;
  private unused2: u64;
  private unused3: u32;
  /** Holder sets with an endpoint that holds its blocks below the GPU · any thread · index lock. */
  tieredSets: u32;
  /** Changes, counted in twos; on a line that readers read anyway · any thread · index lock. */
  tick: u32;
  /** Not 0: lookups compare every hash, not one per segment · control thread · none. */
  verify: u32;
}

export function indexHead(): IndexHead {
  return changetype<IndexHead>(HEAD);
}
