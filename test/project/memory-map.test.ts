import { describe, expect, test } from 'vitest';
import { structures } from '../../scripts/memory-map.ts';

const record = (fields: string) => `/** One record. */\n@unmanaged\nexport class Record {\n${fields}}\n`;

describe('structures of the memory map', () => {
  test('a field stands at the next multiple of its size, and a private one only fills a gap', () => {
    const text = record(
      '  /** Bits · host · none. */\n  flags: u8;\n' +
        '  /** Tokens · any thread · commit lock. */\n  tokens: u32;\n' +
        '  private gap: u32;\n' +
        '  /** Milliseconds\n   * of the pool clock · any thread · commit lock. */\n  time: f64;\n' +
        '\n  double(): f64 {\n    return this.time * 2;\n  }\n',
    );
    expect(structures('assembly/x.ts', text)).toEqual([
      {
        name: 'Record',
        file: 'assembly/x.ts',
        meaning: 'One record.',
        bytes: 24,
        fields: [
          [0, '`flags`', 'u8', 'Bits', 'host', 'none'],
          [4, '`tokens`', 'u32', 'Tokens', 'any thread', 'commit lock'],
          [16, '`time`', 'f64', 'Milliseconds of the pool clock', 'any thread', 'commit lock'],
        ],
      },
    ]);
  });

  test('a field without unit, writer and lock is an error that names it', () => {
    expect(() => structures('assembly/x.ts', record('  /** Tokens · any thread. */\n  tokens: u32;\n'))).toThrow(
      'Record.tokens: its comment must say unit · writer · lock',
    );
    expect(() => structures('assembly/x.ts', record('  tokens: u32;\n'))).toThrow('Record.tokens');
  });

  test('a managed class is no structure', () => {
    expect(structures('assembly/x.ts', 'class Managed {\n  tokens: u32;\n}\n')).toEqual([]);
  });
});
