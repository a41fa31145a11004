import { describe, expect, it } from 'vitest';
import { readableTokens, SignedTokens } from '../../dist/src/scheduling/session/session-token.js';

const ids = ['default/pod-0', 'default/pod-1'];
const all = () => ids;

describe('the readable session token', () => {
  it('the readable session token is the base64 of namespace/name', () => {
    expect(readableTokens.encode('default/pod-1')).toBe('ZGVmYXVsdC9wb2QtMQ==');
    expect(readableTokens.decode('ZGVmYXVsdC9wb2QtMQ==', all)).toBe('default/pod-1');
  });

  it.each(['', '!', 'ZGVmYXVsdC9wb2QtMQ', 'A'.repeat(2048)])('the readable session token is not %j', (token) => {
    expect(readableTokens.decode(token, all)).toBeUndefined();
  });
});

describe('the signed session token', () => {
  const tokens = new SignedTokens(Buffer.from('0123456789abcdef'));

  it('the signed session token names an endpoint to who has the key, on every replica', () => {
    const other = new SignedTokens(Buffer.from('0123456789abcdef'));
    expect(other.decode(tokens.encode('default/pod-1'), all)).toBe('default/pod-1');
  });

  it('the signed session token tells nothing about the endpoint and is different with another key', () => {
    const token = tokens.encode('default/pod-1');
    expect(token).toMatch(/^[\w-]{22}$/);
    expect(Buffer.from(token, 'base64').toString('latin1')).not.toContain('pod');
    expect(new SignedTokens(Buffer.from('fedcba9876543210')).encode('default/pod-1')).not.toBe(token);
  });

  it('the signed session token cannot be made without the key', () => {
    expect(tokens.decode(readableTokens.encode('default/pod-1'), all)).toBeUndefined();
  });

  it('the signed session token is remembered for 16,384 endpoints, and computed again for more', () => {
    const remembering = new SignedTokens(Buffer.from('0123456789abcdef'));
    const none = (): string[] => [];
    const first = remembering.encode('default/pod-0');
    for (let i = 1; i < 16_384; i++) remembering.encode(`default/pod-${i}`);
    expect(remembering.decode(first, none)).toBe('default/pod-0');
    remembering.encode('default/pod-16384');
    expect(remembering.decode(first, none)).toBeUndefined();
    expect(remembering.decode(first, all)).toBe('default/pod-0');
  });

  it('the signed session token needs a key of at least 16 bytes', () => {
    expect(() => new SignedTokens(Buffer.from('short'))).toThrow('at least 16 bytes');
  });
});
