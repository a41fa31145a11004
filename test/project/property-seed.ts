// Property tests draw the same cases in every run, so that a failure can be repeated anywhere and a run says
// something about the change at hand. POINTSMAN_SEED=random draws new cases, POINTSMAN_SEED=N those of another seed:
// use it to look for cases that nobody has seen yet (CONTRIBUTING.md).
import fc from 'fast-check';

const wanted = process.env.POINTSMAN_SEED ?? '20261121';
if (wanted !== 'random') {
  const seed = Number(wanted);
  if (!Number.isInteger(seed)) throw new Error(`POINTSMAN_SEED must be an integer or "random", not "${wanted}"`);
  fc.configureGlobal({ seed });
}
