import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { DEFAULT_CONFIGURATION } from '../../dist/src/config/default-configuration.js';
import { ConfigurationError } from '../../dist/src/config/error.js';
import { loadConfiguration } from '../../dist/src/config/load.js';

const runs = Number(process.env.FUZZ_RUNS ?? 300);

function outcome(text: string): 'loaded' | 'refused' {
  try {
    loadConfiguration({ text }, { allowExperimental: false, registry: builtinPlugins });
    return 'loaded';
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    expect((error as Error).message).not.toContain('\n');
    return 'refused';
  }
}

describe('any text', () => {
  it('any text loads or is refused with one line', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (text) => {
        outcome(text);
      }),
      { numRuns: runs },
    );
  });

  it('any text loads or is refused with one line when a piece of a good configuration is replaced', () => {
    const edit = fc.record({
      at: fc.nat(DEFAULT_CONFIGURATION.length),
      length: fc.nat(12),
      by: fc.oneof(
        fc.string({ maxLength: 6 }),
        fc.constantFrom('[', '{', '&a ', '*a', 'null', '1e9', '\t', '- ', ': '),
      ),
    });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
        let text = DEFAULT_CONFIGURATION;
        for (const { at, length, by } of edits) text = text.slice(0, at) + by + text.slice(at + length);
        outcome(text || ' ');
      }),
      { numRuns: runs },
    );
  });

  it('any text that refers to itself is refused', () => {
    expect(outcome('a: &a [*a]')).toBe('refused');
  });

  it.each(['[', '{a: ', '- ', '"'])('any text of %j a hundred thousand times is refused', (piece) => {
    expect(outcome(piece.repeat(100_000))).toBe('refused');
  });

  it('any text longer than a mebibyte is refused', () => {
    expect(outcome(`${DEFAULT_CONFIGURATION}#${'x'.repeat(1_048_576)}`)).toBe('refused');
  });

  it('any text with aliases that multiply is refused', () => {
    const lines = ['a0: &a0 [x, x]', ...Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`)];
    expect(outcome(lines.join('\n'))).toBe('refused');
  });
});
