// The traffic of llm-d's comparison of schedulers, as its authors describe it: 150 businesses with 6,000 tokens of
// instructions, five users of each with 1,200 tokens of their own, at 3 to 60 requests a second. The 750 prompts come
// again and again. Answers are said to have 1,000 tokens; but 10,497 tokens a second at 60 requests are 175 of each.
import { RandomStream } from '../../dist/tools/simulator/fleet/random-stream.js';

const BUSINESSES = 150;
const USERS = 5;
/** Tokens of one id; instructions have five of them, a question one. */
const BLOCK_TOKENS = 1216;
const BUSINESS_BLOCKS = 5;
const SECONDS = 300;
const FIRST_RATE = 3;
const LAST_RATE = 60;
const OUTPUT_TOKENS = 175;

/** A trace, a request a line. */
export function businessRamp(): string {
  const random = new RandomStream(1, 'business ramp');
  const lines: string[] = [];
  let seconds = 0;
  for (;;) {
    seconds += random.exponential(1) / (FIRST_RATE + ((LAST_RATE - FIRST_RATE) * seconds) / SECONDS);
    if (seconds >= SECONDS) return `${lines.join('\n')}\n`;
    const prompt = random.below(BUSINESSES * USERS);
    const business = Math.floor(prompt / USERS);
    const shared = Array.from({ length: BUSINESS_BLOCKS }, (_, i) => business * BUSINESS_BLOCKS + i);
    const blocks = [...shared, BUSINESSES * BUSINESS_BLOCKS + prompt];
    lines.push(
      JSON.stringify({
        timestamp_ms: Math.round(seconds * 1e3),
        prompt_tokens: blocks.length * BLOCK_TOKENS,
        output_tokens: OUTPUT_TOKENS,
        block_ids: blocks,
      }),
    );
  }
}
