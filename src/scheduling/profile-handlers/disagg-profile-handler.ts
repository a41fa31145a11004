import { z } from 'zod';
import { openThread } from '../open-thread.js';
import { definePlugin } from '../plugin.js';
import type { HandlerContext, ProfileHandler, ProfilePick, ProfileRuns } from '../profile-handler.js';
import { stageHeaders } from './stage-headers.js';
import { answerStage, type Handled, missingProfiles, optionalStage, type Stage, stagesUsed } from './stages.js';

const STAGE_ORDERS: Readonly<Record<string, 'decode-first' | 'prefill-first'>> = {
  '': 'decode-first',
  decode: 'decode-first',
  decodefirst: 'decode-first',
  prefill: 'prefill-first',
  prefillfirst: 'prefill-first',
};

/** The stage order of a text, regardless of case, hyphens and underscores; undefined = unknown text. */
function stageOrder(text: string): 'decode-first' | 'prefill-first' | undefined {
  return STAGE_ORDERS[text.toLowerCase().replaceAll(/[-_]/g, '')];
}

const name = (text: string) => z.string().default('').describe(text);
const flat = (replacement: string) => z.string().optional().describe(`Deprecated: use ${replacement}.`);

const FLAT_FIELDS = [
  'decodeProfile',
  'prefillProfile',
  'encodeProfile',
  'prefillDeciderPluginName',
  'encodeDeciderPluginName',
  'deciderPluginName',
] as const;
const REPLACEMENTS: Readonly<Record<(typeof FLAT_FIELDS)[number], string>> = {
  decodeProfile: 'profiles.decode',
  prefillProfile: 'profiles.prefill',
  encodeProfile: 'profiles.encode',
  prefillDeciderPluginName: 'deciders.prefill',
  encodeDeciderPluginName: 'deciders.encode',
  deciderPluginName: 'deciders.prefill',
};

const fields = () =>
  z.strictObject({
    stageOrder: z
      .string()
      .default('decode-first')
      .describe(
        'decode-first: the decode endpoint is picked first and the prefill decider looks at it. prefill-first: the ' +
          'prefill ' +
          'endpoint is picked first, for every request when there is a prefill profile.',
      ),
    profiles: z
      .strictObject({
        decode: name('Profile of the endpoint that answers; empty = decode.'),
        prefill: name('Profile of the endpoint that reads the prompt; empty = prefill.'),
        encode: name('Profile of the endpoints that read images, audio and video; empty = encode.'),
        fallback: name(
          'Profile of endpoints that do the whole work of a request, run when no endpoint can decode, or none can ' +
            'prefill with whenPrefillFails: reject; empty = none. Only with decode-first. Open in llm-d-router ' +
            '(#2638): it may change.',
        ),
      })
      .prefault({})
      .describe('Names of the profiles.'),
    deciders: z
      .strictObject({
        prefill: name('Decider of the prefill stage; empty = no such stage. Only with decode-first.'),
        encode: name('Decider of the encode stage; empty = no such stage.'),
      })
      .prefault({})
      .describe('Plugins that say whether a stage is worth while for a request.'),
    whenPrefillFails: z
      .enum(['decode-only', 'reject'])
      .default('decode-only')
      .describe(
        'Outcome of a request for which a prefill endpoint is wanted and none can be picked. decode-only: the decode ' +
          'endpoint reads the prompt itself. reject: 429.',
      ),
    decodeProfile: flat('profiles.decode'),
    prefillProfile: flat('profiles.prefill'),
    encodeProfile: flat('profiles.encode'),
    prefillDeciderPluginName: flat('deciders.prefill'),
    encodeDeciderPluginName: flat('deciders.encode'),
    deciderPluginName: flat('deciders.prefill'),
  });

type Fields = z.output<ReturnType<typeof fields>>;

const parameters = () =>
  fields().superRefine((given, context) => {
    const issue = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (stageOrder(given.stageOrder) === undefined) {
      issue(['stageOrder'], 'invalid stage order, must be "decode-first" or "prefill-first"');
    }
    const nested = [...Object.values(given.profiles), ...Object.values(given.deciders)];
    const mixed = FLAT_FIELDS.find((field) => given[field] !== undefined);
    if (mixed !== undefined && nested.some((value) => value !== '')) {
      issue([mixed], `is deprecated and cannot be mixed with profiles and deciders: use ${REPLACEMENTS[mixed]}`);
    }
    if (stageOrder(given.stageOrder) === 'prefill-first' && wanted(given).prefillDecider !== '') {
      issue(['stageOrder'], 'prefill decider is not supported in prefill-first stage order: remove it');
    }
    if (stageOrder(given.stageOrder) === 'prefill-first' && given.profiles.fallback !== '') {
      issue(['profiles', 'fallback'], 'is not supported in prefill-first stage order: remove it');
    }
  });

/** Names of the profiles and deciders in either form of the parameters. */
function wanted(given: Fields) {
  const { profiles, deciders } = given;
  return {
    decode: profiles.decode || given.decodeProfile || 'decode',
    prefill: profiles.prefill || given.prefillProfile || 'prefill',
    encode: profiles.encode || given.encodeProfile || 'encode',
    prefillDecider: deciders.prefill || given.prefillDeciderPluginName || given.deciderPluginName || '',
    encodeDecider: deciders.encode || given.encodeDeciderPluginName || '',
  };
}

/** Path of a decider's name in the parameters. */
function deciderPath(given: Fields, stage: 'prefill' | 'encode'): readonly string[] {
  if (given.deciders[stage] !== '') return ['deciders', stage];
  if (stage === 'encode') return ['encodeDeciderPluginName'];
  return given.prefillDeciderPluginName ? ['prefillDeciderPluginName'] : ['deciderPluginName'];
}

export const disaggProfileHandler = definePlugin({
  type: 'disagg-profile-handler',
  kinds: ['profile-handler'],
  stability: 'Beta',
  doc:
    'Splits requests into stages: one endpoint decodes and answers, another one may read the prompt beforehand ' +
    '(prefill), ' +
    'others images, audio and video (encode). The answering endpoint is told the others in the headers ' +
    'x-prefiller-host-port and x-encoder-hosts-ports. A stage without an endpoint is left out.',
  parameters,
  consumes: () => [{ key: 'prefix-match' }, { key: 'prompt-tokens' }],
  advise: (given) => [
    ...FLAT_FIELDS.filter((field) => given[field] !== undefined).map(
      (field) => `${field} is deprecated: use ${REPLACEMENTS[field]}`,
    ),
    ...(given.profiles.fallback === '' ? [] : [`profiles.fallback ${openThread(2638)}`]),
  ],
  references: (given) => {
    const { prefillDecider, encodeDecider } = wanted(given);
    return [
      ...(prefillDecider === '' ? [] : [reference(prefillDecider, deciderPath(given, 'prefill'))]),
      ...(encodeDecider === '' ? [] : [reference(encodeDecider, deciderPath(given, 'encode'))]),
    ];
  },
  handlerAdvice: (given, profiles) => {
    const { decode, prefill, encode, prefillDecider, encodeDecider } = wanted(given);
    const { fallback } = given.profiles;
    const missing = missingProfiles(profiles, decode, [
      [prefill, prefillDecider !== ''],
      [encode, encodeDecider !== ''],
    ]);
    if (fallback === '' || profiles.includes(fallback)) return missing;
    return [...missing, `there is no profile "${fallback}": requests have no fallback`];
  },
  profileHandler: (given, context) => {
    const stages = configuredStages(given, context);
    return stageOrder(given.stageOrder) === 'prefill-first' ? prefillFirst(stages) : withFallback(stages);
  },
});

function reference(decider: string, path: readonly string[]) {
  return { name: decider, path, kinds: ['decider'] as const };
}

interface Stages {
  readonly decode: string;
  readonly prefill: Stage;
  readonly encode: Stage;
  readonly mustPrefill: boolean;
  /** Empty = none. */
  readonly fallback: string;
}

function configuredStages(given: Fields, context: HandlerContext): Stages {
  const { decode, prefill, encode, prefillDecider, encodeDecider } = wanted(given);
  const always = stageOrder(given.stageOrder) === 'prefill-first';
  const decider = (decided: string, otherwise: boolean) =>
    decided === '' ? () => otherwise : context.decider(decided);
  return {
    decode,
    prefill: { profile: prefill, decide: decider(prefillDecider, always) },
    encode: { profile: encode, decide: decider(encodeDecider, false) },
    mustPrefill: given.whenPrefillFails === 'reject',
    fallback: given.profiles.fallback,
  };
}

/** Decode first; a request for which no endpoint is left goes to one that does all of its work. */
function withFallback(stages: Stages): ProfileHandler {
  const staged = decodeFirst(stages);
  if (stages.fallback === '') return staged;
  const handle = (runs: ProfileRuns): Handled => {
    const handled = staged.handle(runs);
    if (handled.kind === 'handled' || handled.leftWaiting === true || handled.reason !== 'rejected-no-endpoints') {
      return handled;
    }
    if (!runs.profiles.includes(stages.fallback)) return handled;
    runs.abandon();
    const primary = answerStage(runs, stages.fallback);
    if (primary.kind === 'rejected') return primary;
    const headers = stageHeaders(undefined, undefined);
    return { kind: 'handled', primary, headers, stages: 'aggregated-fallback' };
  };
  return { handle };
}

/** Order decode, encode, prefill: the deciders and topology plugins see the decode pick. */
function decodeFirst(stages: Stages): ProfileHandler {
  const handle = (runs: ProfileRuns): Handled => {
    const primary = answerStage(runs, stages.decode);
    if (primary.kind === 'rejected') return primary;
    const encode = optionalStage(runs, stages.encode, 'encode', { decode: primary, earlier: primary });
    if (encode?.kind === 'rejected') return encode;
    const prefill = optionalStage(runs, stages.prefill, 'prefill', {
      decode: primary,
      earlier: primary,
      must: stages.mustPrefill,
    });
    if (prefill?.kind === 'rejected') return prefill;
    return finished(primary, prefill, encode);
  };
  return { handle };
}

/** Order prefill, encode, decode: topology plugins of the decode profile see the prefill pick. */
function prefillFirst(stages: Stages): ProfileHandler {
  const handle = (runs: ProfileRuns): Handled => {
    const prefill = optionalStage(runs, stages.prefill, 'prefill', { must: stages.mustPrefill });
    if (prefill?.kind === 'rejected') return prefill;
    const encode = optionalStage(runs, stages.encode, 'encode', { earlier: prefill });
    if (encode?.kind === 'rejected') return encode;
    const primary = answerStage(runs, stages.decode, prefill);
    if (primary.kind === 'rejected') return primary;
    return finished(primary, prefill, encode);
  };
  return { handle };
}

function finished(primary: ProfilePick, prefill: ProfilePick | undefined, encode: ProfilePick | undefined): Handled {
  return {
    kind: 'handled',
    primary,
    headers: stageHeaders(prefill?.endpoints, encode?.endpoints),
    stages: stagesUsed(prefill, encode),
  };
}
