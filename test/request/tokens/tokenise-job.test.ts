import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tokeniseBody } from '../../../dist/src/request/tokens/tokenise-job.js';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pointsman-tokeniser-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const load = (where: string) => () => tokeniseBody({ folder: where, what: 'load', body: new Uint8Array(0) });

describe('the files of a tokeniser', () => {
  it('the files of a tokeniser that are missing are named in one line', () => {
    expect(load(folder)).toThrow(`${join(folder, 'tokenizer.json')} does not exist`);
    expect(load('/no/such/folder')).toThrow('/no/such/folder/tokenizer.json does not exist');
  });

  it('the files of a tokeniser that are no JSON are named in one line', () => {
    writeFileSync(join(folder, 'tokenizer.json'), 'no JSON');
    expect(load(folder)).toThrow(`${join(folder, 'tokenizer.json')} is no JSON: `);
  });
});
