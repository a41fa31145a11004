import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { PromptKind } from '../../dist/src/core/types.js';
import { documentText, kind, mutated } from './request-scanner-documents.ts';
import { scan, scanner, seed, sizes } from './request-scanner-harness.ts';
import { expectedChain, expectedScan } from './request-scanner-reference.ts';

// POINTSMAN_FUZZ multiplies the number of generated documents.
const runs = 300 * Number(process.env.POINTSMAN_FUZZ ?? 1);

afterEach(() => expect(scanner.openScans).toBe(0));

function cut(body: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...places, body.length];
  return ends.map((end, i) => body.subarray(i === 0 ? 0 : ends[i - 1]!, end));
}

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(body.toString());
    return true;
  } catch {
    return false;
  }
}

/** Checks one body in one cutting against JSON.parse and the slow reference. */
function check(kind: PromptKind, body: Buffer, pieces: readonly Uint8Array[], blockBytes = 64) {
  const outcome = scan(kind, pieces, blockBytes);
  expect(outcome.accepted).toBe(isJson(body));
  if (!outcome.accepted) return;
  const expected = expectedScan(kind, body, seed);
  expect(outcome.result).toEqual(expected.result);
  const chain = expectedChain(seed, expected, 'target', blockBytes);
  expect(outcome.hashes).toEqual(chain.slice(0, sizes.chainBlocks));
}

/** Plain text of one repeated letter that has no byte at which a string stops. */
const plainRun = fc.tuple(fc.integer({ min: 0, max: 3_000 }), fc.constantFrom('a', 'é', '_', '\u{10348}'));
const ends = ['\\n', '\\"', '\\\\', '\\u00e9', '\\ud800\\udf48'];
/** JSON text of a string whose plain runs are as long as those that are hashed where they lie, and shorter. */
const longText = fc
  .array(fc.tuple(plainRun, fc.constantFrom(...ends)), { minLength: 1, maxLength: 4 })
  .map((runs) => runs.map(([[length, letter], end]) => letter.repeat(length) + end).join(''));

describe('a request scan of long plain runs', () => {
  const numRuns = runs / 3;

  it('a request scan of long plain runs finds what JSON.parse finds, in any pieces', () => {
    fc.assert(
      fc.property(
        kind,
        longText,
        longText,
        fc.constantFrom(48, 64, 256),
        fc.array(fc.nat(), { maxLength: 3 }),
        (...of) => {
          const [which, system, content, blockBytes, places] = of;
          const messages = `[{"role":"system","content":"${system}"},{"role":"user","content":"${content}"}]`;
          const text = Buffer.from(
            `{"messages":${messages},"prompt":"${content}","input":"${content}","text":"${system}"}`,
          );
          const sorted = places.map((place) => place % (text.length + 1)).sort((a, b) => a - b);
          check(which, text, cut(text, sorted), blockBytes);
        },
      ),
      { numRuns },
    );
  });

  it('a request scan of long plain runs refuses a control byte wherever it stands', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 5_000 }), fc.integer({ min: 0, max: 0x1f }), (before, byte) => {
        const head = '{"messages":[{"role":"user","content":"';
        const text = Buffer.from(`${head}${'a'.repeat(before)}#${'b'.repeat(2_000)}"}]}`);
        text[head.length + before] = byte;
        expect(scan(PromptKind.chat, [text]).refusal).toMatchObject({ position: head.length + before });
      }),
      { numRuns },
    );
  });
});

describe('a request scan', () => {
  it('a request scan finds in generated documents what JSON.parse finds, fed whole', () => {
    fc.assert(
      fc.property(kind, documentText, fc.integer({ min: 1, max: 300 }), (which, text, blockBytes) => {
        check(which, text, [text], blockBytes);
      }),
      { numRuns: runs * 4 },
    );
  });

  it('a request scan finds the same when the body is cut in two at any byte', () => {
    fc.assert(
      fc.property(kind, documentText, (which, text) => {
        const whole = scan(which, [text]);
        expect(whole.accepted).toBe(true);
        for (let at = 0; at <= text.length; at++) expect(scan(which, cut(text, [at]))).toEqual(whole);
      }),
      { numRuns: runs / 3 },
    );
  });

  it('a request scan finds the same when the body comes in random pieces', () => {
    fc.assert(
      fc.property(kind, documentText, fc.array(fc.nat(), { maxLength: 20 }), (which, text, places) => {
        const sorted = places.map((place) => place % (text.length + 1)).sort((a, b) => a - b);
        check(which, text, cut(text, sorted));
      }),
      { numRuns: runs },
    );
  });

  it('a request scan finds the same when the body comes byte by byte', () => {
    fc.assert(
      fc.property(kind, documentText, (which, text) => {
        check(which, text, cut(text, [...text.keys()]));
      }),
      { numRuns: runs / 3 },
    );
  });

  it('a request scan accepts a mutated document exactly when JSON.parse does', () => {
    fc.assert(
      fc.property(kind, mutated, (which, text) => {
        check(which, text, [text]);
      }),
      { numRuns: runs * 4 },
    );
  });

  it('a request scan refuses a mutated document at the same byte wherever it is cut', () => {
    fc.assert(
      fc.property(kind, mutated, (which, text) => {
        const whole = scan(which, [text]);
        for (let at = 0; at <= text.length; at++) expect(scan(which, cut(text, [at]))).toEqual(whole);
      }),
      { numRuns: runs / 3 },
    );
  });
});
