import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const program = resolve(import.meta.dirname, '../../dist/program');

/** Text of the bundled files that `first` imports when it is loaded, itself included. */
function loadedWith(first: string): string {
  const texts = new Map<string, string>();
  const load = (file: string): void => {
    if (texts.has(file)) return;
    const text = readFileSync(resolve(program, file), 'utf8');
    texts.set(file, text);
    for (const [, next] of text.matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) load(next!);
  };
  load(first);
  return [...texts.values()].join('\n');
}

/** In every build of grpc-js, and in no other package. */
const GRPC_JS = 'grpc.max_receive_message_length';

describe('the way to the first answer', () => {
  const files = readdirSync(program).filter((file) => file.endsWith('.js'));
  const serve = files.find((file) => readFileSync(resolve(program, file), 'utf8').includes('pointsman is serving'));

  it.each([
    ['serve', serve!],
    ['a shard', 'shard.js'],
  ])('the way to the first answer of %s does not load grpc-js', (_what, first) => {
    expect(loadedWith(first)).not.toContain(GRPC_JS);
  });

  it('the way to the first answer would be found to load it', () => {
    expect(files.some((file) => loadedWith(file).includes(GRPC_JS))).toBe(true);
  });
});
