import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { DASHBOARDS, dashboardJson } from '../../scripts/dashboards.ts';
import { metricChapters } from '../../scripts/reference-docs.ts';
import { alertScenarios } from './alert-scenarios.ts';
import { promqlNames } from './promql-names.ts';
import { promtool, promtoolSkipReason, promtoolWanted } from './promtool.ts';

const folder = new URL('../../deploy/monitoring/', import.meta.url);
const text = (file: string) => readFileSync(new URL(file, folder), 'utf8');

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit: string } };
  readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[];
}

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query: string | { readonly query: string };
}

const recording = parse(text('recording-rules.yaml')) as RuleFile;
const alerting = parse(text('alerts.yaml')) as RuleFile;
const rulesOf = (file: RuleFile) => file.groups.flatMap(({ rules }) => rules);
const alerts = rulesOf(alerting);

const dashboards = readdirSync(new URL('dashboards/', folder)).map((file) => {
  const { panels, uid, templating } = JSON.parse(text(`dashboards/${file}`)) as {
    readonly panels: readonly Panel[];
    readonly uid: string;
    readonly templating: { readonly list: readonly Variable[] };
  };
  return { file, panels, uid, variables: templating.list, drawn: panels.filter(({ type }) => type !== 'row') };
});

/** Labels that Prometheus gives to every series that it reads. */
const TARGET = ['job', 'instance', 'pool'];

/** Labels by the name of the series, which for a histogram has an ending. */
const known = new Map<string, readonly string[]>();
for (const { name, type, labels } of metricChapters().flatMap(({ metrics }) => metrics)) {
  const all = [...labels, ...TARGET];
  if (type !== 'histogram') {
    known.set(name, all);
    continue;
  }
  known.set(`${name}_bucket`, [...all, 'le']);
  known.set(`${name}_sum`, all);
  known.set(`${name}_count`, all);
}

/** Labels of what an expression returns. */
function resultLabels(expression: string): readonly string[] {
  const { metrics, grouped } = promqlNames(expression);
  return /\bby\s*\(/.test(expression) ? grouped : metrics.flatMap((name) => known.get(name) ?? []);
}

// Recording rules are metrics for the rules and panels behind them.
for (const { record, expr } of rulesOf(recording)) known.set(record!, resultLabels(expr));

/** Names in an expression that do not exist. */
function strangers(expression: string): string[] {
  const { metrics, matched, grouped } = promqlNames(expression);
  const labels = new Set([...TARGET, 'le', ...metrics.flatMap((name) => known.get(name) ?? [])]);
  return [
    ...metrics.filter((name) => !known.has(name)),
    ...matched.filter(([metric, label]) => !known.get(metric)?.includes(label)).map((pair) => pair.join('.')),
    ...grouped.filter((label) => !labels.has(label)),
  ];
}

const named = (template: string, pattern: RegExp) => [...template.matchAll(pattern)].map(([, label]) => label!);
const expressions = [...rulesOf(recording), ...alerts].map(
  ({ alert, record, expr }) => [alert ?? record!, expr] as const,
);
const queries = dashboards.flatMap(({ file, drawn }) =>
  drawn.flatMap(({ title, targets }) => targets!.map((target) => ({ where: `${file}: ${title}`, ...target }))),
);

describe('rules of deploy/monitoring', () => {
  it.each(expressions)('%s names only metrics and labels that exist', (_, expr) => {
    expect(promqlNames(expr).metrics).not.toEqual([]);
    expect(strangers(expr)).toEqual([]);
  });

  it('a metric or label that does not exist is found', () => {
    expect(strangers('sum by (nobody) (rate(llm_d_epp_request_totals{priorities="1"}[5m]))')).toEqual([
      'llm_d_epp_request_totals',
      'llm_d_epp_request_totals.priorities',
      'nobody',
    ]);
  });

  it.each(alerts)('$alert has a severity, a summary and a description with labels that it has', (alert) => {
    expect(['critical', 'warning']).toContain(alert.labels?.severity);
    const { summary, description } = alert.annotations!;
    expect(summary!.length).toBeGreaterThan(10);
    expect(description).toMatch(/\.$/);
    const used = named(`${summary} ${description}`, /\$labels\.(\w+)/g);
    expect(used.filter((label) => !resultLabels(alert.expr).includes(label))).toEqual([]);
  });

  it('the names of the alerts differ', () => {
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
  });
});

describe('docs/guides/monitoring.md', () => {
  const guide = readFileSync(new URL('../../docs/guides/monitoring.md', import.meta.url), 'utf8');
  /** Titles of the sections under "Alerts". */
  const sections = [...guide.matchAll(/^### (\w+)\n([\s\S]*?)(?=^##|$(?![\s\S]))/gm)];

  it('the guide has one section for each alert, in their order', () => {
    expect(sections.map(([, title]) => title)).toEqual(alerts.map(({ alert }) => alert));
  });

  it.each(alerts)('the runbook of $alert is its section', ({ alert, annotations }) => {
    expect(annotations!.runbook_url).toBe(`docs/guides/monitoring.md#${alert!.toLowerCase()}`);
  });

  it.each(sections.map(([, title, body]) => [title!, body!]))(
    '%s says what it means, what to look at, what to do',
    (_, body) => {
      expect(named(body, /^\*\*([\w ]+)\.\*\*/gm)).toEqual(['Means', 'Look at', 'Do']);
    },
  );

  it('the guide names only metrics that exist', () => {
    const metrics = named(guide, /`((?:pointsman|llm_d_epp|nodejs|process)[:_][\w:]+)(?:\{[^`]*)?`/g);
    const families = new Set([...known.keys()].map((name) => name.replace(/_(bucket|sum|count)$/, '')));
    expect(metrics.filter((name) => !families.has(name) && !known.has(name))).toEqual([]);
  });
});

describe('dashboards of deploy/monitoring', () => {
  it.each(DASHBOARDS)('$file is what scripts/dashboards.ts says; "npm run dashboards" renews it', (dashboard) => {
    expect(text(`dashboards/${dashboard.file}`)).toBe(dashboardJson(dashboard));
  });

  it('every file is of a dashboard in the script, and their uids differ', () => {
    expect(dashboards.map(({ file }) => file).sort()).toEqual(DASHBOARDS.map(({ file }) => file).sort());
    expect(new Set(dashboards.map(({ uid }) => uid)).size).toBe(dashboards.length);
  });

  it.each(dashboards)(
    '$file has panels with ids of their own, units, descriptions and queries',
    ({ panels, drawn }) => {
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
      expect(new Set(drawn.map(({ title }) => title)).size).toBe(drawn.length);
      const bare = drawn.filter(({ fieldConfig, description, targets }) => {
        return !fieldConfig?.defaults.unit || !description || !targets?.length;
      });
      expect(bare.map(({ title }) => title)).toEqual([]);
    },
  );

  it.each(dashboards)('$file has no panels that overlap or leave the grid of 24 columns', ({ panels }) => {
    const taken = new Map<string, string>();
    for (const { title, gridPos } of panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken.get(`${x} ${y}`), title).toBe(undefined);
          taken.set(`${x} ${y}`, title);
        }
      }
    }
  });

  it('no panel adds up endpoints of two pools that have one name, and each follows the choice of the pool', () => {
    const ofPools = queries.filter(({ expr }) => !/process_|nodejs_|pointsman_shard_|pointsman_info/.test(expr));
    const followed = ofPools.filter(({ expr }) => expr.includes('pool=~"$pool"'));
    expect(followed.length).toBeGreaterThan(30);
    const collapsed = followed.filter(({ expr }) => /by \((?!le\)|\)|pool, )/.test(expr));
    expect(collapsed).toEqual([]);
  });

  it.each(dashboards)('every variable of $file lists the values of a label that exists', ({ variables }) => {
    const asked = variables.filter(({ type }) => type === 'query');
    expect(asked.map(({ name }) => name)).toEqual(['job', 'instance', 'pool']);
    for (const { name, query } of asked) {
      const [, expr, label] = /^label_values\((.+), (\w+)\)$/.exec(typeof query === 'string' ? query : query.query)!;
      expect(strangers(expr!), name).toEqual([]);
      expect(resultLabels(expr!), name).toContain(label);
    }
  });

  it.each(dashboards)('every query and variable of $file uses only variables that it has', ({ variables, drawn }) => {
    const names = [...variables.map(({ name }) => name), '__rate_interval', '__range'];
    const asked = variables.map(({ query }) => (typeof query === 'string' ? query : query.query));
    const used = [...drawn.flatMap(({ targets }) => targets!.map(({ expr }) => expr)), ...asked].flatMap((expr) =>
      named(expr, /\$\{?(\w+)/g),
    );
    expect(used.length).toBeGreaterThan(20);
    expect(used.filter((name) => !names.includes(name))).toEqual([]);
  });

  it('every panel names only metrics and labels that exist, in its queries and its legend', () => {
    const found = queries.flatMap(({ where, expr, legendFormat }) => {
      const labels = resultLabels(expr);
      const missing = named(legendFormat, /\{\{(\w+)\}\}/g).filter((label) => !labels.includes(label));
      return [...strangers(expr), ...missing].map((name) => `${where}: ${name}`);
    });
    expect(queries.length).toBeGreaterThan(60);
    expect(found).toEqual([]);
  });
});

describe('scenarios of the alerts', () => {
  it('every alert has one', () => {
    expect(Object.keys(alertScenarios)).toEqual(alerts.map(({ alert }) => alert));
  });
});

describe.skipIf(!promtoolWanted)(`promtool${promtoolSkipReason}`, () => {
  // One run for all alerts: promtool makes a database for every scenario, which takes its time on a busy machine.
  const PATIENCE_MS = 240_000;
  const file = (path: string) => fileURLToPath(new URL(path, folder));

  /** One test of promtool: that these series are the ones that fire. */
  function scenario(alert: string, series: Readonly<Record<string, string>>, firing: readonly string[]) {
    return {
      interval: '1m',
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      promql_expr_test: [
        {
          expr: `ALERTS{alertname="${alert}", alertstate="firing"}`,
          eval_time: `${alertScenarios[alert]!.minute}m`,
          exp_samples: firing.map((labels) => ({ labels, value: 1 })),
        },
      ],
    };
  }

  /** What promtool says about the scenarios; names the expression of those that fail. */
  function play(tests: readonly object[]): Promise<string> {
    const rules = [file('recording-rules.yaml'), file('alerts.yaml')];
    return promtool(['test', 'rules'], { rule_files: rules, evaluation_interval: '30s', tests });
  }

  it('every alert fires in its scenario, with its labels', { timeout: PATIENCE_MS }, async () => {
    const tests = alerts.map(({ alert, labels: own }) => {
      const { fires, labels } = alertScenarios[alert!]!;
      const all = { alertname: alert!, alertstate: 'firing', ...own, ...labels };
      const written = Object.entries(all).map(([label, value]) => `${label}="${value}"`);
      return scenario(alert!, fires, [`ALERTS{${written.join(', ')}}`]);
    });
    expect(await play(tests)).toBe('');
  });

  it('no alert fires just short of its condition', { timeout: PATIENCE_MS }, async () => {
    expect(await play(alerts.map(({ alert }) => scenario(alert!, alertScenarios[alert!]!.quiet, [])))).toBe('');
  });

  it('a scenario that expects an alert which does not fire fails', { timeout: PATIENCE_MS }, async () => {
    const { quiet } = alertScenarios.PointsmanErrors!;
    expect(await play([scenario('PointsmanErrors', quiet, ['ALERTS{alertname="PointsmanErrors"}'])])).toContain(
      'FAILED',
    );
  });

  it('promtool takes the expressions of every panel', { timeout: PATIENCE_MS }, async () => {
    const rules = queries.map(({ expr }, index) => ({
      record: `panel:${index}`,
      expr: expr.replace(/\$__(rate_interval|range)/g, '5m'),
    }));
    expect(await promtool(['check', 'rules'], { groups: [{ name: 'panels', rules }] })).toBe('');
  });
});
