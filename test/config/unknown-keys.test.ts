import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { ConfigurationDocument } from '../../dist/src/config/document.js';
import { findings } from '../../dist/src/config/findings.js';
import {
  configurationSchema,
  type JsonSchema,
  parametersSchema,
  poolsSchema,
} from '../../dist/src/config/json-schema.js';
import { poolsFileFindings } from '../../dist/src/config/pools-file.js';
import { violations } from '../../dist/src/config/validation.js';
import { readSignals } from '../../dist/tools/explain/signals-file.js';
import { suiteSchema } from '../../dist/tools/simulator/suite/schema.js';
import { type Section, sectionsOf } from './sections.ts';

/** A slip of the keyboard: one letter more than a key that the section knows. */
const slip = ({ keys }: Section) => `${keys[0] ?? 'anything'}x`;

/** One of the errors names the place of the key, and the key that was meant. */
function expectNamed(errors: readonly Error[], section: Section, base = '', subject = ''): void {
  const place = [base, section.path, slip(section)].filter((part) => part !== '').join('.');
  const [meant] = section.keys;
  const text = `unknown field "${slip(section)}"${meant === undefined ? '' : `; did you mean "${meant}"?`}`;
  const expected =
    meant === undefined && section.path === ''
      ? `${subject} takes no parameters`
      : `${subject === '' ? '' : `${subject}: `}${text}`;
  const of = errors.map(({ message }) => message).filter((message) => message.includes(` ${place}: `));
  expect(of, errors.join('\n')).toEqual([expect.stringContaining(` ${place}: ${expected}`)]);
}

function errorsOf(document: unknown) {
  const options = { allowExperimental: true, registry: builtinPlugins, engines: [] };
  return findings({ text: JSON.stringify(document) }, options).errors;
}

const plugins = builtinPlugins.map((definition) => ({
  type: definition.type,
  sections: sectionsOf(parametersSchema(definition)),
}));

describe('an unknown key', () => {
  it.each(sectionsOf(configurationSchema(builtinPlugins)))(
    'an unknown key in "$path" of a configuration is named with its place and the nearest key',
    (section) => {
      expectNamed(errorsOf(section.withKey(slip(section))), section);
    },
  );

  it.each(plugins)(
    'an unknown key in a section of $type is named with its place and the nearest key',
    ({ type, sections }) => {
      for (const section of sections) {
        const errors = errorsOf({ plugins: [{ type, parameters: section.withKey(slip(section)) }] });
        expectNamed(errors, section, 'plugins[0].parameters', type);
      }
    },
  );

  it.each(sectionsOf(poolsSchema()))(
    'an unknown key in "$path" of a pools file is named with its place and the nearest key',
    (section) => {
      const text = JSON.stringify(section.withKey(slip(section)));
      expectNamed(poolsFileFindings(text, 'pools', { own: undefined, max: 4 }).errors, section);
    },
  );

  it('an unknown key of an endpoint in a file of signals is named with the nearest key', () => {
    const endpoint = {
      id: 'default/server-0',
      name: 'server-0',
      namespace: 'default',
      address: '10.0.0.1',
      port: 1,
      labels: {},
    };
    const text = JSON.stringify({ 'server-0': { runningRequest: 1 } });
    const meant = 'server-0.runningRequest: unknown field "runningRequest"; did you mean "runningRequests"?';
    expect(() => readSignals(text, 'signals', [endpoint])).toThrow(meant);
  });

  const suiteSections = sectionsOf(z.toJSONSchema(suiteSchema, { io: 'input' }) as JsonSchema);
  it.each(suiteSections)('an unknown key in "$path" of a simulation suite is named with the nearest key', (section) => {
    const document = new ConfigurationDocument(JSON.stringify(section.withKey(slip(section))), 'suite');
    expectNamed(violations(suiteSchema, document.data, document), section);
  });
});
