import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { EngineAnswer } from './vllm.ts';

const FOLDER = fileURLToPath(new URL('recorded', import.meta.url));

/** Line of a recorded stream of events: a message of the engine, or an answer that it gave, in the engine's order. */
export type StreamLine =
  | { readonly kind: 'message'; readonly topic: string; readonly number: number; readonly payload: string }
  | {
      readonly kind: 'answer';
      /** What was done, for the reader. */
      readonly what: string;
      readonly model: string;
      readonly tokens: readonly number[];
      readonly cachedTokens: number;
      readonly promptTokens: number;
    };

/** Folders of the recordings by engine and version: `vllm-0.32.0`. */
export function recordedVersions(): readonly string[] {
  return readdirSync(FOLDER).sort();
}

/** Whether the run writes what it sees: POINTSMAN_RECORD_ENGINES=1. */
export const records = process.env.POINTSMAN_RECORD_ENGINES === '1';

/** Recording of one version of an engine. Metrics pages are long, and kept compressed. */
export class Recording {
  readonly #folder: string;

  constructor(version: string) {
    this.#folder = `${FOLDER}/${version}`;
  }

  page(name: string): string {
    return gunzipSync(readFileSync(`${this.#folder}/${name}.metrics.gz`)).toString();
  }

  answers(): Readonly<Record<string, EngineAnswer>> {
    return JSON.parse(readFileSync(`${this.#folder}/answers.json`, 'utf8')) as Record<string, EngineAnswer>;
  }

  stream(name: string): readonly StreamLine[] {
    const text = gunzipSync(readFileSync(`${this.#folder}/${name}.events.gz`)).toString();
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as StreamLine);
  }

  writePage(name: string, page: string): void {
    this.#write(`${name}.metrics.gz`, gzipSync(page, { level: 9 }));
  }

  writeAnswers(answers: Readonly<Record<string, EngineAnswer>>): void {
    this.#write('answers.json', `${JSON.stringify(answers, undefined, 2)}\n`);
  }

  writeStream(name: string, lines: readonly StreamLine[]): void {
    this.#write(`${name}.events.gz`, gzipSync(lines.map((line) => `${JSON.stringify(line)}\n`).join(''), { level: 9 }));
  }

  #write(name: string, content: string | Uint8Array): void {
    if (!records) return;
    mkdirSync(this.#folder, { recursive: true });
    writeFileSync(`${this.#folder}/${name}`, content);
  }
}
