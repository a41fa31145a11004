import type { RetentionHint } from '../contract/queue-settings.js';
import { PromptKind } from '../core/types.js';
import { PacedReport } from '../runtime/paced-report.js';
import { memberRange, wholeBody } from './member-range.js';
import { type BodyEdit, behindOpeningBrace } from './model-edit.js';

const KEY = 'stream_options';
const QUOTED_KEY = Buffer.from(`"${KEY}"`);
const ASKED = '{"include_usage":true}';
const INSERTED = Buffer.from(`"${KEY}":${ASKED},`);
/** Longest `stream_options` that is read, in bytes. */
const OPTIONS_BYTES_MAX = 4_096;

/**
 * Edit by which the body of a stream asks for its usage. Nothing outside the value of `stream_options` changes.
 * @param chunks a JSON object, checked
 * @returns undefined = the client asks itself, or has written options that no engine takes
 */
export function usageEdit(chunks: readonly Uint8Array[]): BodyEdit | undefined {
  const body = wholeBody(chunks);
  const range = memberRange(body, QUOTED_KEY);
  if (range === undefined) {
    const at = behindOpeningBrace(chunks);
    return { range: { start: at, end: at }, bytes: INSERTED };
  }
  if (range.end - range.start > OPTIONS_BYTES_MAX) return undefined;
  const text = body.toString('utf8', range.start, range.end);
  const options = JSON.parse(text) as Readonly<Record<string, unknown>> | null;
  if (options === null) return { range, bytes: Buffer.from(ASKED) };
  if (typeof options !== 'object' || Array.isArray(options) || options.include_usage === true) return undefined;
  return { range, bytes: Buffer.from(JSON.stringify({ ...options, include_usage: true })) };
}

/**
 * Member of the body that engines read. SGLang: `priority`, by which `--radix-eviction-policy priority` evicts (its
 * PriorityStrategy, sgl-project/sglang#10190). Dynamo: `nvext.agent_hints.priority` (its page "Agent Hints").
 */
const MEMBERS: Readonly<Record<RetentionHint['engine'], (priority: number) => readonly [string, string]>> = {
  sglang: (priority) => ['priority', String(priority)],
  dynamo: (priority) => ['nvext', `{"agent_hints":{"priority":${priority}}}`],
};

/** Turns without a hint, because their clients have written that member: one line a minute, with their number. */
export function leftOutHints(log: {
  warn(details: object, message: string): void;
}): PacedReport<RetentionHint['engine']> {
  return new PacedReport((engine, count) => {
    const [member] = MEMBERS[engine](0);
    log.warn(
      { member, count, metric: 'pointsman_retention_hints_left_out_total' },
      'turns have no retention hint, as their clients write its member of the body themselves: take it out of the ' +
        'clients, or flowControl.sessions.retention out of the configuration (docs/guides/agents.md)',
    );
  });
}

/** Prompts of APIs whose bodies have that member. */
export const RETAINABLE: ReadonlySet<PromptKind | undefined> = new Set([
  PromptKind.chat,
  PromptKind.completions,
  PromptKind.sglang,
]);

/**
 * Edit by which a body asks an engine to keep its blocks for longer than those of other requests. All other bytes stay.
 * @param chunks a JSON object, checked
 * @returns undefined = the client has written that member itself
 */
export function retentionEdit(
  chunks: readonly Uint8Array[],
  { engine, priority }: RetentionHint,
): BodyEdit | undefined {
  const [name, value] = MEMBERS[engine](priority);
  const key = Buffer.from(JSON.stringify(name));
  if (memberRange(wholeBody(chunks), key) !== undefined) return undefined;
  const at = behindOpeningBrace(chunks);
  return { range: { start: at, end: at }, bytes: Buffer.from(`"${name}":${value},`) };
}
