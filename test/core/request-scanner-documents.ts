// Generated request bodies, well-formed and broken ones.
import fc from 'fast-check';
import { PromptKind } from '../../dist/src/core/types.js';

const space = fc.constantFrom('', '', '', ' ', '\n', '\t \r\n');
const escaped = fc.constantFrom(
  '\\n',
  '\\"',
  '\\\\',
  '\\/',
  '\\t\\b\\f\\r',
  '\\u0041',
  '\\uD83d\\uDE00',
  '\\ud800',
  '\\uDC00x',
);
const plain = fc
  .oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'binary', maxLength: 12 }))
  .map((text) => JSON.stringify(text).slice(1, -1));
const stringText = fc.array(fc.oneof(plain, escaped), { maxLength: 4 }).map((parts) => `"${parts.join('')}"`);
const numberText = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.nat().map(String),
  fc.constantFrom(
    '-0',
    '0',
    '1e3',
    '1E+2',
    '10e-1',
    '1.0',
    '0.5',
    '-1',
    '1e400',
    '4294967295',
    '4294967296',
    '123456789012345678901',
  ),
);
const scalarText = fc.oneof(stringText, numberText, fc.constantFrom('true', 'false', 'null'));
const keys = [
  'model',
  'stream',
  'prompt',
  'messages',
  'input',
  'items',
  'tools',
  'system',
  'instructions',
  'cache_salt',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'role',
  'content',
  'text',
  'type',
  'image_url',
  'video_url',
  'audio_url',
  'input_audio',
  'cache_control',
  '__proto__x',
  'source',
  'token_ids',
  'input_ids',
  'extra_key',
  'sampling_params',
  'max_new_tokens',
];
const keyText = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...keys).map((key) => JSON.stringify(key)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...keys).map((key) => `"\\u00${key.charCodeAt(0).toString(16)}${key.slice(1)}"`),
  },
  { weight: 1, arbitrary: stringText.filter((text) => JSON.parse(text) !== '__proto__') },
);
const list = (open: string, items: fc.Arbitrary<string>, close: string, maxLength: number) =>
  fc
    .tuple(
      fc.array(
        fc.tuple(space, items, space).map((parts) => parts.join('')),
        { maxLength },
      ),
      space,
    )
    .map(([found, blank]) => `${open}${found.length === 0 ? blank : found.join(',')}${close}`);
const objectOf = (entry: fc.Arbitrary<string>, maxLength = 4) => list('{', entry, '}', maxLength);
const arrayOf = (item: fc.Arbitrary<string>, maxLength = 4) => list('[', item, ']', maxLength);
const entryOf = (key: fc.Arbitrary<string>, value: fc.Arbitrary<string>) =>
  fc.tuple(key, space, space, value).map(([name, before, after, text]) => `${name}${before}:${after}${text}`);
const named = (name: string, value: fc.Arbitrary<string>) => entryOf(fc.constant(`"${name}"`), value);

const { anything } = fc.letrec<{ anything: string }>((tie) => ({
  anything: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalarText,
    arrayOf(tie('anything')),
    objectOf(entryOf(keyText, tie('anything'))),
  ),
}));
/** Texts that begin like the notice of an Anthropic client, or are it. */
const systemText = fc
  .tuple(fc.nat(30), stringText)
  .map(([length, text]) => `"${'x-anthropic-billing-header: '.slice(0, length)}${text.slice(1)}`);
const part = fc.oneof(
  objectOf(
    fc.oneof(
      named('type', stringText),
      named('text', stringText),
      named('image_url', anything),
      named('video_url', anything),
      named('audio_url', anything),
      named('input_audio', anything),
      named('source', anything),
      named('text', systemText),
      named('cache_control', anything),
      entryOf(keyText, anything),
    ),
  ),
  scalarText,
);
const message = objectOf(
  fc.oneof(
    named('role', stringText),
    named('content', stringText),
    named('content', arrayOf(part)),
    named('content', fc.constant('null')),
    entryOf(keyText, anything),
  ),
);
const prompt = fc.oneof(
  stringText,
  arrayOf(stringText),
  arrayOf(fc.nat().map(String), 30),
  arrayOf(message, 5),
  anything,
);
const body = objectOf(
  fc.oneof(
    entryOf(fc.constantFrom('"prompt"', '"messages"', '"input"', '"items"', '"token_ids"', '"input_ids"'), prompt),
    named('system', systemText),
    named('system', arrayOf(part)),
    named('sampling_params', objectOf(entryOf(keyText, numberText))),
    entryOf(fc.constantFrom('"stream"', '"extra_key"', '"cache_salt"'), scalarText),
    named(
      'messages',
      arrayOf(fc.oneof({ weight: 9, arbitrary: message }, { weight: 1, arbitrary: fc.constant('null') }), 5),
    ),
    named('max_tokens', numberText),
    named('max_completion_tokens', numberText),
    entryOf(keyText, anything),
  ),
  8,
);
/** Documents full of the keys that mean something, in and out of their places. */
export const documentText = fc
  .tuple(space, fc.oneof({ weight: 6, arbitrary: body }, { weight: 1, arbitrary: anything }), space)
  .map((parts) => Buffer.from(parts.join('')));
/** Kinds of bodies that are JSON from their first byte on. */
export const kind = fc.constantFrom(...Object.values(PromptKind).filter((which) => which < PromptKind.engine));

/** A document with some bytes replaced, removed, doubled or inserted. */
export const mutated = fc
  .tuple(
    documentText,
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.nat(3),
        fc.oneof(fc.nat(255), fc.constantFrom(...Buffer.from('{}[],:"\\0-.eE+tfn \n\x1f\x80'))),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([original, changes]) => {
    let bytes = [...original];
    for (const [where, how, byte] of changes) {
      const at = where % (bytes.length + 1);
      const inserted =
        how === 0
          ? [byte]
          : how === 1
            ? []
            : how === 2
              ? [byte, ...bytes.slice(at, at + 1)]
              : bytes.slice(at, at + 1).flatMap((b) => [b, b]);
      bytes = [...bytes.slice(0, at), ...inserted, ...bytes.slice(at + 1)];
    }
    return Buffer.from(bytes);
  });
