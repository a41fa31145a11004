import { CORE } from '../../src/core/core-names.js';
import type { Recording } from '../../src/operations/recording/recording-reader.js';

/** Output tokens of a request whose engine did not count them, as far as others of the recording tell. */
function usualOutput(recording: Recording): number {
  const known = [...recording.ends.values()].flatMap(({ outputTokens }) => outputTokens ?? []).sort((a, b) => a - b);
  return Math.max(1, known[known.length >> 1] ?? 1);
}

/**
 * The recording as a trace of `pointsman simulate` (workload `jsonl`), one line for each request: block ids stand for the blocks of its
 * prompt. A request with several profiles has one line.
 */
export function traceOf(recording: Recording): string {
  const usual = usualOutput(recording);
  const first = Math.min(...recording.decisions.map(({ timeMs }) => timeMs));
  const ids = new Map<bigint, number>();
  const lines = recording.decisions
    .filter(({ flags }) => (flags & CORE.DECIDE_FURTHER) === 0)
    .sort((a, b) => a.timeMs - b.timeMs)
    .map(({ timeMs, thread, number, promptTokens, blocks, hashes }) => {
      const blockIds = Array.from({ length: blocks }, (_, i) => {
        const hash = hashes.readBigUInt64LE(8 * i);
        const id = ids.get(hash) ?? ids.size;
        ids.set(hash, id);
        return id;
      });
      const end = recording.ends.get(`${thread}.${number}`);
      return JSON.stringify({
        timestamp_ms: Math.round((timeMs - first) * 1000) / 1000,
        prompt_tokens: Math.max(1, end?.promptTokens ?? promptTokens, promptTokens),
        output_tokens: Math.max(1, end?.outputTokens ?? usual),
        block_ids: blockIds,
      });
    });
  return `${lines.join('\n')}\n`;
}
