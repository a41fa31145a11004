// Packages and run-time circles of the compiled modules: `npm run arrows`. The arrows between the rooms, which
// type-only imports count for as well, are checked in the sources (scripts/arrows.ts).

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
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
