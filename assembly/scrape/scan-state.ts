// Queries of metrics and the page under way, as they stand in memory.
//
// Owns no words of its own: layout.ts says where each lies in this thread's metrics scanner. No lock: all of it belongs
// to one thread.

/** Head of a query; its metrics and its text follow. */
@unmanaged
export class Query {
  /** Metrics · control thread · none. */
  count: u32;
  private unused0: u32;
  private unused1: u64;
  private unused2: u64;
  private unused3: u64;
  private unused4: u64;
  private unused5: u64;
  private unused6: u64;
  private unused7: u64;
}

/** A wanted metric. Offsets count from the query's text. */
@unmanaged
export class Metric {
  /** First eight bytes of its name, the missing ones 0 · control thread · none. */
  head: u64;
  /** Mask of the bytes that there are · control thread · none. */
  headMask: u64;
  /** Offset in bytes of its name · control thread · none. */
  name: u32;
  /** Bytes of its name · control thread · none. */
  nameBytes: u32;
  /** Way to combine several samples, AGGREGATE_* · control thread · none. */
  aggregate: u32;
  /** Labels that must match · control thread · none. */
  matcherCount: u32;
  /** Offset in bytes of the matchers, each a MatcherHead, name, value · control thread · none. */
  matcherList: u32;
  /** Wanted labels · control thread · none. */
  labelCount: u32;
  /** Offset in bytes of the wanted labels, each a u16 of name bytes and the name · control thread · none. */
  labelList: u32;
  /** Number of its own capture · control thread · none. */
  capture: u32;
  /** Matchers that an absent label satisfies since their value is empty, a bit each · control thread · none. */
  absentMatch: u32;
  private unused0: u32;
  private unused1: u64;

  get next(): Metric {
    return changetype<Metric>(changetype<usize>(this) + offsetof<Metric>());
  }
}

/** Head of a label that must match; its name and its value follow. */
@unmanaged
export class MatcherHead {
  /** Bytes of the label's name · control thread · none. */
  nameBytes: u16;
  /** Bytes of its value · control thread · none. */
  valueBytes: u16;
}

/** The page under way. */
@unmanaged
export class MetricsScan {
  /** Number of the query · its thread · none. */
  query: u32;
  /** 1 = the rest of the line is passed over · its thread · none. */
  skipping: u32;
  /** Bytes of a cut line in the line buffer · its thread · none. */
  carried: u32;
  /** Wanted lines that could not be read · its thread · none. */
  unusable: u32;
  /** Distinct names found in comma lists · its thread · none. */
  names: u32;
  private unused0: u32;
  private unused1: u64;
  private unused2: u64;
  private unused3: u64;
  private unused4: u64;
  private unused5: u64;
}

/** A wanted label in the line under way, or in a metric's capture. */
@unmanaged
export class TextRange {
  /** Address of its value, or offset in bytes in the capture · its thread · none. */
  from: u32;
  /** Bytes of the label's value · its thread · none. */
  bytes: u32;
}

/** Result for a wanted metric of a page; a TextRange of each wanted label follows. */
@unmanaged
export class MetricResult {
  /** Value, aggregated · its thread · none. */
  value: f64;
  /** 1 = a sample was found · its thread · none. */
  found: u32;
  private unused0: u32;
}
