import { setTimeout } from 'node:timers/promises';
import { requestBody, requestHeaders, responseBody, responseHeaders } from '../../ingress/envoy-messages.ts';
import { type Call, dialPicker, type ProxyClient } from '../../ingress/proxy-client.ts';

/** Streams at one time, and the pause between two of them. */
const STREAMS = 4;
const PAUSE_MS = 300;
const BODY_BYTES = 400_000;
/** Size of the pieces in which Envoy sends a body. */
const PIECE_BYTES = 32_768;
/** Share of the streams that are reset. */
const RESETS = 0.15;
const RESET_MS_MAX = 100;
const CANCELLED = 1;
const FAILURES_KEPT = 10;

/**
 * A proxy that half-closes its streams right behind its last message, while replies wait for its windows of 64 KB.
 * Envoy ends its streams when it has read the last reply, so that their ends never wait.
 */
export class HastyProxy {
  answered = 0;
  failed = 0;
  readonly failures: string[] = [];
  readonly #client: ProxyClient;
  #serial = 0;

  constructor(pickerPort: number) {
    this.#client = dialPicker(pickerPort);
  }

  /** Sends exchanges until the signal comes, and waits for the last ones to end. */
  async run(signal: AbortSignal): Promise<void> {
    const one = async (): Promise<void> => {
      while (!signal.aborted) {
        await this.#exchange();
        await setTimeout(PAUSE_MS);
      }
    };
    await Promise.all(Array.from({ length: STREAMS }, one));
  }

  /** Ends its connection. */
  close(): void {
    this.#client.close();
  }

  async #exchange(): Promise<void> {
    const call = this.#client.process();
    let replyBytes = 0;
    call.on('error', () => undefined);
    call.on('data', (reply: Buffer) => {
      if (replyBytes === 0) answerAndEnd(call);
      replyBytes += reply.length;
    });
    const status = new Promise<{ code: number; details: string }>((resolve) => call.on('status', resolve));
    const cancel = globalThis.setTimeout(
      () => call.cancel(),
      Math.random() < RESETS ? Math.random() * RESET_MS_MAX : 2 ** 31 - 1,
    );
    this.#sendRequest(call);
    const { code, details } = await status;
    clearTimeout(cancel);
    if (code === 0 && replyBytes >= BODY_BYTES) this.answered++;
    else if (code !== CANCELLED) this.#fail(code, details, replyBytes);
  }

  #sendRequest(call: Call): void {
    const content = `${this.#serial++} `.padEnd(BODY_BYTES, 'h');
    const body = Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }));
    const length = { 'content-type': 'application/json', 'content-length': String(body.length) };
    call.write(requestHeaders({ ':method': 'POST', ':path': '/v1/chat/completions', ...length }));
    for (let at = 0; at < body.length; at += PIECE_BYTES) {
      call.write(requestBody(body.subarray(at, at + PIECE_BYTES), at + PIECE_BYTES >= body.length));
    }
  }

  #fail(code: number, details: string, replyBytes: number): void {
    this.failed++;
    if (this.failures.length < FAILURES_KEPT) this.failures.push(`code ${code} after ${replyBytes} bytes: ${details}`);
  }
}

function answerAndEnd(call: Call): void {
  call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
  call.write(responseBody('{"id":"c","choices":[]}', true));
  call.end();
}
