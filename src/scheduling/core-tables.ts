import { CORE } from '../core/core-names.js';
import type { ConfiguredPlugin, TopologyLabels } from './plugin.js';
import type { HookPluginSettings, LabelSpecification, MaskSpecification, MatchFormula } from './program.js';

/** Thrown when profiles do not fit the core's tables. */
export class ProgramTooLarge extends Error {}

/** One bounded table of the core; equal keys share an entry. */
class KeyedTable<Entry> {
  readonly entries: Entry[] = [];
  readonly #limit: number;
  readonly #what: string;
  readonly #indexes = new Map<string, number>();

  constructor(limit: number, what: string) {
    this.#limit = limit;
    this.#what = what;
  }

  index(key: string, entry: Entry): number {
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    if (this.entries.length === this.#limit) {
      throw new ProgramTooLarge(`more than ${this.#limit} different ${this.#what}: remove some`);
    }
    this.#indexes.set(key, this.entries.length);
    return this.entries.push(entry) - 1;
  }
}

/** Columns of hook filters and scorers. A plugin in several profiles fills its column anew for each. */
class HookColumnTable {
  readonly #indexes = new Map<string, number>();
  /** By producer. */
  readonly #matches = new Map<string, Map<number, MatchFormula>>();

  index(kind: 'filter' | 'scorer', name: string): number {
    return this.#at(`${kind} ${name}`);
  }

  #at(key: string): number {
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    const next = this.#indexes.size;
    if (next === CORE.HOST_COLUMNS) {
      throw new ProgramTooLarge(`more than ${CORE.HOST_COLUMNS} hook filters and scorers: remove some`);
    }
    this.#indexes.set(key, next);
    return next;
  }

  /** Column of a producer's matches, converted to scores by a formula. */
  match(producer: string, formula: MatchFormula): number {
    const column = this.#at(`match ${producer} ${JSON.stringify(formula)}`);
    const columns = this.#matches.get(producer) ?? new Map<number, MatchFormula>();
    this.#matches.set(producer, columns.set(column, formula));
    return column;
  }

  matchesOf(producer: string): HookPluginSettings['matchColumns'] {
    return [...(this.#matches.get(producer) ?? [])].map(([column, formula]) => ({ ...formula, column }));
  }

  find(kind: 'filter' | 'scorer', name: string): number | undefined {
    return this.#indexes.get(`${kind} ${name}`);
  }
}

/** Tables that programs refer to by number, so that profiles with the same label rule or header share an entry. */
export class CoreTables {
  readonly masks = new KeyedTable<MaskSpecification>(CORE.MASK_COUNT, 'label filters');
  readonly labels = new KeyedTable<LabelSpecification>(CORE.LABEL_COLUMNS, 'labels that scorers look at');
  readonly requestKeys = new KeyedTable<string>(CORE.KEYS_MAX, 'request headers that scorers look at');
  readonly attributes = new KeyedTable<string>(CORE.ATTRIBUTE_COLUMNS, 'attributes of endpoints');
  readonly columns = new HookColumnTable();
  /** Labels of each topology extractor, by its name. */
  readonly topologies: ReadonlyMap<string, TopologyLabels>;
  /** Names of the hook plugins that produce prefix matches. */
  readonly matchProducers: ReadonlySet<string>;

  constructor(plugins: readonly ConfiguredPlugin[]) {
    this.matchProducers = new Set(plugins.flatMap(({ name, definition }) => (definition.hostsMatches ? [name] : [])));
    this.topologies = new Map(
      plugins.flatMap(({ name, definition, parameters }) =>
        definition.topologyLabels === undefined ? [] : [[name, definition.topologyLabels(parameters)] as const],
      ),
    );
  }
}
