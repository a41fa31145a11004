/** One message of a chat. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** Client's measurements of one streamed chat completion. Times in milliseconds from the sending of the request. */
export interface ChatOutcome {
  readonly server: string;
  readonly firstTokenMs: number;
  readonly wholeMs: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly text: string;
}

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
  readonly usage?: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
}

/**
 * Asks for a streamed chat completion and reads it to its end.
 * @throws {Error} naming the status when the answer is not 200, or when the stream breaks off.
 */
export async function chat(
  url: string,
  model: string,
  messages: readonly Message[],
  tokens: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<ChatOutcome> {
  const start = performance.now();
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      model,
      messages,
      max_tokens: tokens,
      ignore_eos: true,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  if (!response.ok) throw new Error(`status ${response.status}: ${(await response.text()).trim()}`);
  let text = '';
  let firstTokenMs = 0;
  let usage: Chunk['usage'];
  for await (const data of events(response)) {
    const chunk = JSON.parse(data) as Chunk;
    text += chunk.choices[0]?.delta.content ?? '';
    if (text !== '' && firstTokenMs === 0) firstTokenMs = performance.now() - start;
    usage = chunk.usage ?? usage;
  }
  if (usage === undefined) throw new Error('the stream broke off before its usage');
  return {
    server: response.headers.get('x-inference-pod') ?? 'unknown',
    firstTokenMs,
    wholeMs: performance.now() - start,
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details.cached_tokens,
    text,
  };
}

/** The data of every server-sent event up to `[DONE]`. */
async function* events(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of response.body!) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      if (line.startsWith('data: ') && line !== 'data: [DONE]') yield line.slice('data: '.length);
    }
  }
}
