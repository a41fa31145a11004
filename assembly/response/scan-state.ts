// State of a thread's response scans in memory.
//
// Owns no words of its own: layout.ts says where each lies in this thread's part of REGION_RESPONSES. No lock: all of
// it belongs to one thread.
import { Wire } from '../protobuf/reader';

/** Token counts of an answer; -1 = unknown. */
@unmanaged
export class Usage {
  /** Prompt tokens · its thread · none. */
  prompt: f64;
  /** Output tokens · its thread · none. */
  completion: f64;
  /** Tokens in all · its thread · none. */
  total: f64;
  /** Prompt tokens served from a cache · its thread · none. */
  cached: f64;
}

/** One open scan; the areas of layout.ts follow. */
@unmanaged
export class ResponseScan {
  /** Form in which the answer comes, MODE_* · its thread · none. */
  mode: u32;
  /** Part of the line under way, LINE_*, server-sent events only · its thread · none. */
  line: u32;
  /** Bytes matched of "data:" or of "[DONE]" · its thread · none. */
  lineMatched: u32;
  /** Data lines seen, [DONE] not counted · its thread · none. */
  events: u32;
  /** State of the JSON reader, STATE_* · its thread · none. */
  state: u32;
  /** Containers open around the reader · its thread · none. */
  depth: u32;
  /** Member under way, KEY_*; KEY_OTHER in an array · its thread · none. */
  key: u32;
  /** Use of the open string, STRING_* · its thread · none. */
  string: u32;
  /** Part of a number, bytes matched of a literal, or hex digits still to come · its thread · none. */
  part: u32;
  /** First byte of the literal, or UTF-16 unit collected from hex digits · its thread · none. */
  unit: u32;
  /** High surrogate that waits for its low half, 0 = none · its thread · none. */
  surrogate: u32;
  /** Decoded bytes of the open key or count string · its thread · none. */
  taken: u32;
  /** Depth of the open usage object, 0 = none · its thread · none. */
  usageDepth: u32;
  /** Depth of its open details object, 0 = none · its thread · none. */
  detailsDepth: u32;
  /** Top-level member around the reader, SCOPE_* · its thread · none. */
  scope: u32;
  /** Whether the document at hand has changed the staged usage, STAGED_* · its thread · none. */
  staged: u32;
  /** 1 = the open model name may still be the one to rename · its thread · none. */
  holding: u32;
  /** Decoded bytes of it that matched · its thread · none. */
  matched: u32;
  /** Bytes of the name to rename, 0 = rename nothing · its thread · none. */
  nameBytes: u32;
  /** One decoded character, 4 bytes · its thread · none. */
  scratchBytes: u32;
  /** Number under way, NOT_A_COUNT when it cannot be a token count · its thread · none. */
  value: u64;
  private unused0: u64;
  /** Usage of all documents that ended as valid JSON · its thread · none. */
  usageFields: u64;
  private usageFields1: u64;
  private usageFields2: u64;
  private usageFields3: u64;
  /** Usage with the document at hand · its thread · none. */
  stagedFields: u64;
  private stagedFields1: u64;
  private stagedFields2: u64;
  private stagedFields3: u64;
  /** Usage of the open usage object alone · its thread · none. */
  blockFields: u64;
  private blockFields1: u64;
  private blockFields2: u64;
  private blockFields3: u64;
  /** Open key, 32 bytes, when it is split over pieces · its thread · none. */
  keyBytes: u64;
  private keyBytes1: u64;
  private keyBytes2: u64;
  private keyBytes3: u64;
  /** Form in which the answer tells its usage, FORM_* · its thread · none. */
  form: u32;
  /** 1 = the document's type is "response.completed" · its thread · none. */
  completed: u32;
  /** 1 = the open meta_info has a finish_reason · its thread · none. */
  finished: u32;
  private unused1: u32;
  /** Wire of the message under way · its thread · none. */
  wireState: u64;
  private wireState1: u64;
  private wireState2: u64;
  private wireState3: u64;
  private wireState4: u64;
  private wireState5: u64;
  private wireState6: u64;
  private wireState7: u64;
  private wireState8: u64;

  /** Address of the decoded character. */
  get scratch(): usize {
    return changetype<usize>(this) + offsetof<ResponseScan>('scratchBytes');
  }

  get usage(): Usage {
    return changetype<Usage>(changetype<usize>(this) + offsetof<ResponseScan>('usageFields'));
  }

  get stagedUsage(): Usage {
    return changetype<Usage>(changetype<usize>(this) + offsetof<ResponseScan>('stagedFields'));
  }

  get blockUsage(): Usage {
    return changetype<Usage>(changetype<usize>(this) + offsetof<ResponseScan>('blockFields'));
  }

  /** Address of the open key. */
  get keyText(): usize {
    return changetype<usize>(this) + offsetof<ResponseScan>('keyBytes');
  }

  get wire(): Wire {
    return changetype<Wire>(changetype<usize>(this) + offsetof<ResponseScan>('wireState'));
  }
}
