// The arrows between the rooms of src/: `npm run arrows`. They are checked on the compiled modules, so type-only imports do not
// count: a room may name another room's contract types but may not run its code. Circles of imports, which type-only imports
// can close as well, are found in the sources by scripts/circles.ts.

/** Rooms on the ground floor, which every other room may import. */
const ground = ['contract', 'runtime'];
/** What each room may import at run time, besides itself and the ground floor. */
const rooms = {
  contract: [],
  runtime: [],
  core: [],
  remote: [],
  kubernetes: ['remote'],
  config: ['core', 'scheduling', 'flow-control', 'admission', 'request'],
  scheduling: ['core'],
  prediction: ['core', 'scheduling', 'request', 'remote'],
  admission: ['core', 'scheduling'],
  'flow-control': ['core', 'scheduling'],
  request: ['core', 'scheduling', 'admission', 'remote'],
  response: ['core', 'scheduling', 'request'],
  ingress: ['core', 'scheduling', 'admission', 'flow-control', 'request', 'response'],
  pool: ['core', 'config', 'kubernetes'],
  kvevents: ['core'],
  replication: ['core'],
  operations: ['core', 'config', 'scheduling'],
  adaptation: ['core', 'config'],
  'plugin-testing': ['core', 'scheduling', 'flow-control'],
  picker: [
    'core',
    'kubernetes',
    'config',
    'scheduling',
    'admission',
    'flow-control',
    'request',
    'response',
    'ingress',
    'pool',
    'kvevents',
    'replication',
    'operations',
    'adaptation',
    'prediction',
  ],
  gateway: ['core', 'config', 'scheduling', 'request', 'response', 'ingress'],
  simulator: ['core', 'config', 'scheduling', 'request', 'response', 'ingress', 'adaptation'],
  cli: [
    'core',
    'kubernetes',
    'config',
    'scheduling',
    'admission',
    'flow-control',
    'request',
    'response',
    'ingress',
    'pool',
    'operations',
    'adaptation',
    'prediction',
    'picker',
    'gateway',
    'simulator',
  ],
};
const arrows = Object.entries(rooms).map(([room, targets]) => ({
  name: `${room}-imports`,
  comment: `${room} may import ${[room, ...ground, ...targets].join(', ')} and nothing else of the project`,
  severity: 'error',
  from: { path: `^dist/${room}/` },
  to: { path: '^dist/', pathNot: `^dist/(${[room, ...ground, ...targets].join('|')})/` },
}));

module.exports = {
  forbidden: [
    ...arrows,
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    ...[
      ['control', 'shards'],
      ['shards', 'control'],
    ].map(([from, to]) => ({
      name: `${from}-apart-from-${to}`,
      comment: 'the control thread and the shards share messages and memory, not code of their own',
      severity: 'error',
      from: { path: `^dist/picker/${from}/` },
      to: { path: `^dist/picker/${to}/` },
    })),
    {
      name: 'known-rooms',
      comment: 'a new room needs its arrows in this file',
      severity: 'error',
      from: { path: '^dist/', pathNot: `^dist/(${Object.keys(rooms).join('|')})/` },
      to: {},
    },
    {
      name: 'resolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'optional-packages-on-demand',
      comment: 'optional dependencies may be absent: load them with optionalPackage (src/runtime/optional-package.ts)',
      severity: 'error',
      from: { path: '^dist/' },
      to: { dependencyTypes: ['npm-optional'] },
    },
    {
      name: 'installed-with-the-package',
      comment: 'what the program imports must be among the dependencies, not the development dependencies',
      severity: 'error',
      from: { path: '^dist/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
  ],
  options: { doNotFollow: { path: 'node_modules' }, exclude: { path: '^dist/program/' } },
};
