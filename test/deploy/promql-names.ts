/** What a PromQL expression names. */
export interface PromqlNames {
  readonly metrics: readonly string[];
  /** Labels in braces, with the metric before them. */
  readonly matched: readonly (readonly [metric: string, label: string])[];
  /** Labels of `by` and `on`. */
  readonly grouped: readonly string[];
}

const WORDS = new Set(['by', 'on', 'and', 'or', 'unless', 'without', 'ignoring', 'group_left', 'group_right', 'bool']);

/** Reads the names of metrics and labels. Other than Prometheus it takes every expression. */
export function promqlNames(expression: string): PromqlNames {
  const bare = expression.replace(/"[^"]*"/g, '""').replace(/\[[^\]]*\]/g, '');
  const matched = [...bare.matchAll(/([\w:]+)\s*\{([^}]*)\}/g)].flatMap(([, metric, labels]) =>
    [...labels!.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => [metric!, label!] as const),
  );
  const lists = /\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
  const grouped = [...bare.matchAll(lists)].flatMap(([, list]) => list!.split(',').map((label) => label.trim()));
  const rest = bare.replace(/\{[^}]*\}/g, ' ').replace(lists, ' ');
  const metrics = [...rest.matchAll(/(?<![\w:.])([a-z_][\w:]*)(?!\s*\(|[\w:])/gi)].map(([, name]) => name!);
  return {
    metrics: [...new Set(metrics.filter((name) => !WORDS.has(name)))],
    matched,
    grouped: [...new Set(grouped.filter((label) => label !== ''))],
  };
}
