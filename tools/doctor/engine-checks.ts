import { type Condition, condition, type PickerReading } from './condition.js';
import { sumOf } from './exposition.js';

const TOKENS = 'pointsman_token_requests_total';
/** Prompts from which on their outcomes are judged. */
const PROMPTS_MIN = 20;

/** Caches of engines by their own reports, and whether prompts can match them. */
export function engineConditions(reading: PickerReading): readonly Condition[] {
  return [...estimated(reading), ...untold(reading), ...miscounted(reading), ...unconfirmed(reading)];
}

/** Engines tell of their own tokens: a prompt whose tokens are estimated matches none of their blocks. */
function estimated({ samples, earlier }: PickerReading): readonly Condition[] {
  if (!samples.has('pointsman_kv_events_state')) return [];
  const since = (labels = {}) => sumOf(samples, TOKENS, labels) - (earlier ? sumOf(earlier, TOKENS, labels) : 0);
  const total = () => sumOf(samples, TOKENS);
  const tokenised = () => sumOf(samples, TOKENS, { outcome: 'tokenised' });
  const isNow = since() > 0 && since({ outcome: 'tokenised' }) === 0;
  const isEver = total() > 0 && tokenised() === 0;
  if (!isEver && !(isNow && since() >= PROMPTS_MIN)) return [];
  const prompts = isEver ? `${total()} prompts since the start` : `${since()} prompts just now`;
  const text = `no prompt gets its tokens (${prompts}), so none matches the blocks that engines tell of`;
  const remedy =
    "the log has the token source's answer; a vLLM server renders with --enable-scale-out (docs/tokens.md)";
  return [condition('error', 'token sources', text, remedy)];
}

const COUNTS = 'pointsman_token_counts_total';
/** Share of the prompts from which on other counts of the engine are no exception. */
const DIFFERING_SHARE_MAX = 0.05;

/** A tokeniser that is not quite the engine's hashes other blocks, which match nothing that the engine tells of. */
function miscounted({ samples }: PickerReading): readonly Condition[] {
  const differs = sumOf(samples, COUNTS, { agreement: 'differs' });
  const counted = differs + sumOf(samples, COUNTS, { agreement: 'same' });
  if (counted < PROMPTS_MIN || differs <= counted * DIFFERING_SHARE_MAX) return [];
  const last = (by: string) => sumOf(samples, 'pointsman_token_count_differing', { counted_by: by });
  const text =
    `${differs} of ${counted} prompts have other token counts at the engine; the last one ` +
    `${last('engine')} there and ${last('picker')} here`;
  const remedy =
    "give the token source the engine's own tokeniser files and chat template, or render at the engine " +
    '(docs/tokens.md)';
  return [condition('warning', 'token counts', text, remedy)];
}

/** Value of pointsman_kv_events_state. */
const UNTOLD = 3;
const NAMES_MAX = 3;

function untold({ samples }: PickerReading): readonly Condition[] {
  const names = (samples.get('pointsman_kv_events_state') ?? [])
    .filter(({ value }) => value === UNTOLD)
    .map(({ labels }) => labels.endpoint ?? '');
  if (names.length === 0) return [];
  const some =
    names.slice(0, NAMES_MAX).join(', ') + (names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : '');
  const text = `${some} served requests and told of no KV block; what is sent there counts as held`;
  const remedy =
    "the log names the engine's sockets and what to set; see --kv-events-config of the engine and kvEventsConfig " +
    '(docs/kv-events.md)';
  return [condition('error', 'KV events', text, remedy)];
}

/** Blocks from which on, and the share of them, that may end without an event of the engine. */
const SPECULATED_MIN = 100;
const EXPIRED_SHARE_MAX = 0.5;

function unconfirmed({ samples }: PickerReading): readonly Condition[] {
  const count = (outcome: string) => sumOf(samples, 'pointsman_kv_events_speculated_blocks_total', { outcome });
  const [made, expired] = [count('made'), count('expired')];
  if (made < SPECULATED_MIN || expired < made * EXPIRED_SHARE_MAX) return [];
  const text = `engines have not confirmed ${expired} of ${made} blocks that were sent to them`;
  const remedy =
    'see that the token source counts as the engine does (usage.prompt_tokens of its answers), ' +
    "that blocks fit the engine's " +
    'and that its events come (docs/kv-events.md)';
  return [condition('warning', 'KV events', text, remedy)];
}
