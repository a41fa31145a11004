import { CORE } from '../../src/core/core-names.js';
import { Decider } from '../../src/core/decider.js';
import type { Decision } from '../../src/core/decision-data.js';
import { EndpointTable } from '../../src/core/endpoint-table.js';
import { attachCore, createPoolMemory } from '../../src/core/memory.js';
import { ProgramTable } from '../../src/core/programs.js';
import { compileScheduling } from '../../src/scheduling/compile.js';
import { writeLabels } from '../../src/scheduling/label-columns.js';
import { maxScorePicker } from '../../src/scheduling/pickers/max-score-picker.js';
import type { PluginDefinition, PluginKind } from '../../src/scheduling/plugin.js';
import type { CompiledScheduling, ProgramOperation } from '../../src/scheduling/program.js';
import { parsed } from './definition-checks.js';
import { must, type PluginCheck, PluginFault, shown } from './plugin-check.js';
import { sampleEndpoints } from './sample-request.js';

const WEIGHT = 3;
const PARAMETERS_MAX = 8;
const NOW_MS = 1_000;
/** Room for the rounding of a 32-bit sum. */
const ROUNDING = 1e-5;
/** Beginnings of the operations of a kind. */
const PREFIXES: Readonly<Partial<Record<PluginKind, string>>> = {
  filter: 'OP_FILTER_',
  scorer: 'OP_SCORE_',
  picker: 'OP_PICK_',
};

function compiled(definition: PluginDefinition, parameters: unknown): CompiledScheduling {
  const plugin = { name: definition.type, definition, parameters: parsed(definition, parameters), weight: WEIGHT };
  const picker = {
    name: maxScorePicker.type,
    definition: maxScorePicker,
    parameters: { maxNumOfEndpoints: 1 },
    weight: 1,
  };
  const plugins = definition.kinds.includes('picker') ? [plugin] : [plugin, picker];
  return compileScheduling([{ name: 'default', plugins }], [], plugins);
}

/** Operations that the plugin itself compiles to. */
function ownOperations({ type }: PluginDefinition, { profiles }: CompiledScheduling): readonly ProgramOperation[] {
  return profiles[0]!.operations.filter(({ name }) => name === type);
}

/** Result of a decision over a pool, with the weighted score of each of its endpoints. */
interface Decided {
  readonly status: Decision['status'];
  readonly slots: readonly number[];
  readonly scores: readonly number[];
}

/** Decides over a real core about a pool of the sample's first endpoints. */
function decide({ profiles, masks, labels }: CompiledScheduling, endpoints: number): Decided {
  const sizes = { endpoints: 64, indexBlocks: 256, requests: 64, chainBlocks: 64, threads: 2, scans: 2 };
  const memory = createPoolMemory({ ...sizes, telemetryBytes: 4_096 }, { hashSeed: 7n });
  const control = attachCore(memory, 0);
  const table = new EndpointTable(control);
  const sample = sampleEndpoints([0]);
  const assignments = Array.from({ length: endpoints }, (_, slot) => ({
    slot,
    generation: 1,
    endpoint: sample.at(slot)!.endpoint,
  }));
  for (const { slot } of assignments) {
    table.open(slot, 1);
    table.setState(slot, 'live');
    const [waiting, running, kvUsage] = [sample.waiting[slot]!, sample.running[slot]!, sample.kvUsage[slot]!];
    if (sample.isKnown(slot, 'waiting')) table.publish(slot, { waiting, running, kvUsage }, NOW_MS);
  }
  for (const [mask, { accepts }] of masks.entries()) {
    table.setMask(
      mask,
      assignments.filter(({ endpoint }) => accepts(endpoint.labels)).map(({ slot }) => slot),
    );
  }
  writeLabels(table, labels, assignments);
  new ProgramTable(control).publish(0, profiles[0]!.operations, { inserts: false });
  const core = attachCore(memory, 1);
  const { status, slots } = new Decider(core, 42n).decide({
    profile: 0,
    blocks: 0,
    tail: false,
    blockTokens: 64,
    promptTokens: 2_048,
    outputTokens: 128,
    priority: 0,
    adapter: '',
    nowMs: NOW_MS,
    subset: undefined,
    charged: false,
    explained: true,
  });
  return { status, slots: [...slots], scores: assignments.map(({ slot }) => core.call.scoreOf(slot)) };
}

/** Rules of plugins that compile to an operation of the core. */
export function programChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  if (definition.compile === undefined) return [];
  const operations = () => ownOperations(definition, compiled(definition, parameters));
  const checks: PluginCheck[] = [
    {
      name: 'program: the operation is one of the core for the kind of the plugin',
      run() {
        const beginnings = definition.kinds.flatMap((kind) => PREFIXES[kind] ?? []);
        if (beginnings.length === 0) return;
        for (const { code } of operations()) {
          const known = code in CORE && beginnings.some((beginning) => code.startsWith(beginning));
          must(known, () => `the operation is ${shown(code)}, and ${definition.kinds} begin with ${beginnings}`);
        }
      },
    },
    {
      name: 'program: the operation is one of those that the description names',
      run() {
        const named = definition.operations ?? [];
        const other = operations().find(({ code }) => !named.includes(code));
        must(other === undefined, () => `the operation is ${other?.code}, and operations says ${shown(named)}`);
      },
    },
    {
      name: `program: the operation has at most ${PARAMETERS_MAX} parameters, all of them numbers`,
      run() {
        for (const { parameters: given } of operations()) {
          must(given.length <= PARAMETERS_MAX, () => `there are ${given.length}`);
          must(!given.some((value) => typeof value !== 'number' || Number.isNaN(value)), () => `they are ${given}`);
        }
      },
    },
  ];
  if (!runs(() => operations().length, checks)) return checks;
  if (definition.kinds.includes('scorer')) checks.push(...scorerChecks(definition, parameters));
  if (definition.kinds.includes('picker')) checks.push(pickerCheck(definition, parameters));
  checks.push({
    name: 'program: the core decides over pools of five endpoints, of one, and of none',
    run() {
      for (const endpoints of [5, 1, 0]) {
        const { status } = decide(compiled(definition, parameters), endpoints);
        const known = ['decided', 'filtered', 'denied', 'no-candidates'].includes(status);
        must(known, () => `it answers ${status} over ${endpoints} endpoints`);
      }
    },
  });
  return checks;
}

/** Whether the plugin compiles and keeps the rules about its operation. */
function runs(compile: () => unknown, checks: readonly PluginCheck[]): boolean {
  try {
    compile();
    for (const { run } of checks) run();
    return true;
  } catch {
    return false;
  }
}

function scorerChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  return [
    {
      name: 'scorer: the operation has the weight of the profile',
      run() {
        const scores = ownOperations(definition, compiled(definition, parameters)).filter(({ code }) =>
          code.startsWith('OP_SCORE_'),
        );
        const wrong = scores.find(({ weight }) => weight !== WEIGHT);
        must(wrong === undefined, () => `its weight is ${wrong?.weight}, the profile says ${WEIGHT}`);
      },
    },
    {
      name: 'scorer: the scores of a mixed pool are numbers from 0 to 1',
      run() {
        const made = compiled(definition, parameters);
        const [own] = ownOperations(definition, made).filter(({ code }) => code.startsWith('OP_SCORE_'));
        if (own === undefined) return;
        const { scores } = decide(made, 5);
        const wrong = scores.findIndex((score) => !(score >= -ROUNDING && score <= own.weight + ROUNDING));
        must(wrong < 0, () => `endpoint ${wrong} scores ${scores[wrong]! / own.weight}`);
      },
    },
  ];
}

function pickerCheck(definition: PluginDefinition, parameters: unknown): PluginCheck {
  return {
    name: 'picker: picks an endpoint of the pool, and none twice',
    run() {
      const { status, slots } = decide(compiled(definition, parameters), 5);
      must(status === 'decided' && slots.length > 0, () => `it answers ${status} and picks ${slots.length}`);
      if (new Set(slots).size !== slots.length) throw new PluginFault(`it picks ${slots}`);
    },
  };
}
