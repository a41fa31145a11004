/**
 * Subjects of test names. A name is a sentence of the specification: "the ledger refuses a second release". One that
 * begins with its verb or a preposition ("refuses it twice") says nothing without the lines around it.
 */

/** Words that begin no sentence with a subject: auxiliaries, prepositions, conjunctions and adverbs. */
const NO_SUBJECT = words(`
  and as at because behind beyond but by can cannot could did do does from for had has have in is are may must
  never nor not of on should than that then to under was were when whenever where while whose with without would`);

/** Stems of verbs that are no nouns, with and without s. */
const VERBS = words(`
  accept add admit advertise agree allow apply ask assign assume avoid become begin believe belong bring carry choose
  claim clamp come compare compile compute contain cover decide declare decode deliver depend describe differ dispatch
  draw drop elect encode enqueue escape evict exploit explore fail fetch fill find finish flip follow forget get give go
  grow hear hold honour ignore insert install judge keep know lack learn leave let listen live load look lose make
  measure miss move multiply narrow need offer open overwrite owe pass pick play predict prefer print produce publish
  put raise reach refuse reject release remember remove render repair repeat replace require rest return run save say
  scrape see send serve shed show shrink skip speak spill spoil spread stand stay stick stop survive take teach tell
  throw treat trust understand want warn weigh win work write`);

/** Stems of verbs that are nouns as well: "answers 404" has no subject, "answers that are late" is one. */
const VERBS_AND_NOUNS = words(`
  account act answer bound break call cause change charge close copy count cut default double drain echo end equal
  estimate export fall filter free group hand hash import index limit list log loop lower map mark match mean name note
  notice order poll price process query rank rate read record repeat report request reset result route sample scale scan
  score set share sort start step store sum swap tail test time tie try turn update use visit
  wait watch yield`);

/** What follows a verb, and no noun. */
const OBJECTS =
  /^(?:an?|the|no|nothing|none|all|any|each|every|both|it|its|them|their|what|who|whom|one|only|%\S*|\d\S*)$/;

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

/** A word without the ending of a verb in the third person. */
function stems(word: string): readonly string[] {
  const shorter = [word, word.replace(/s$/, ''), word.replace(/es$/, ''), word.replace(/ies$/, 'y')];
  return [...new Set(shorter)];
}

/** Whether a test name begins with its verb, or with words that belong to a subject that is not there. */
export function lacksSubject(name: string): boolean {
  const [first = '', second = ''] = name.split(/[\s,:]+/);
  if (NO_SUBJECT.has(first)) return true;
  if (stems(first).some((stem) => VERBS.has(stem))) return true;
  return OBJECTS.test(second) && stems(first).some((stem) => VERBS_AND_NOUNS.has(stem));
}

/** Names of the tests in a file, as they are written. */
export function testNames(source: string): readonly string[] {
  const call = /^[ \t]*(?:it|test)\(\s*(['"`])(.*?)\1,\s*(?:async )?\(/gms;
  const table = /\)\(\s*(['"`])((?:(?!\1).)*)\1,\s*(?:async )?\(/gms;
  return [...source.matchAll(call), ...source.matchAll(table)].map((match) => match[2]!.replaceAll('\\', ''));
}
