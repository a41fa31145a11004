// Makes docs/performance.md anew: `npm run performance [-- --short] [-- CHAPTER …]`, half an hour on a quiet machine
// with --short, longer without.
//
// Without names it measures the chapters that have no results of the commit yet, so a run that was stopped goes on
// where it was; with names it measures those anew. The page is written as soon as all chapters have results of one
// commit; with --page nothing is measured, and the page names what its commit has no results of. With
// LLM_D_ROUTER=/path/to/epp llm-d-router's picker takes part. Needs a build, Linux, and a second core for the load.
import { readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Chapter, type ChapterTimes, chapters, chapterTexts } from './performance-chapters.ts';
import { machine, missingText, type Noise, noiseTable, renew } from './performance-doc.ts';
import { type ChapterResult, measuredCommit, ResultFolder } from './performance-results.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { short: { type: 'boolean', default: false }, page: { type: 'boolean', default: false } },
});
const root = join(import.meta.dirname, '..');
const page = join(root, 'docs/performance.md');
const times: ChapterTimes = values.short
  ? { rowMs: 100, loadMs: 4_000, starts: 3 }
  : { rowMs: 1_000, loadMs: 8_000, starts: 9 };

/** Time of one fixed piece of work, again and again: a quiet machine takes the same time for each. */
function noise(): Noise {
  const pieces: number[] = [];
  for (let piece = 0; piece < 400; piece++) {
    const begin = performance.now();
    let sum = 0;
    for (let i = 0; i < 2_000_000; i++) sum = (sum + Math.imul(i, piece)) | 0;
    pieces.push(performance.now() - begin + (sum === 1 ? 1e-9 : 0));
  }
  pieces.sort((a, b) => a - b);
  return { p50: pieces[200]!, p99: pieces[396]!, load: loadavg()[0]! };
}

const unknown = positionals.filter((name) => !chapters.some((chapter) => chapter.name === name));
if (unknown.length > 0) {
  const names = chapters.map(({ name }) => name).join(', ');
  throw new Error(`${unknown.join(', ')}: no chapter of the page; these are: ${names}`);
}
const commit = measuredCommit(root);
const folder = new ResultFolder(root, commit);
const wanted = (name: string) =>
  positionals.length === 0 ? folder.read(name) === undefined : positionals.includes(name);
const chosen = values.page ? [] : chapters.filter(({ name }) => wanted(name));
if (!process.env.LLM_D_ROUTER) console.error('performance: LLM_D_ROUTER names no program: llm-d-router takes no part');
for (const { name, measure } of chosen) {
  console.error(`performance: ${name}`);
  const before = noise();
  const rows = await measure(times);
  folder.write(name, { noise: [before, noise()], rows });
}
const results: { chapter: Chapter; result: ChapterResult }[] = [];
const missing: string[] = [];
for (const chapter of chapters) {
  const result = folder.read(chapter.name);
  if (result === undefined) missing.push(chapter.name);
  else results.push({ chapter, result });
}
if (missing.length > 0) console.error(`performance: there are no results of ${missing.join(', ')} at ${commit}`);
if (missing.length === 0 || values.page) {
  const parts = [machine(commit), ...chapterTexts(results), missingText(missing)];
  const noises = results.map(({ chapter, result }) => [chapter.name, ...result.noise] as const);
  const text = [...parts.filter((part) => part !== ''), noiseTable(noises)].join('\n\n');
  writeFileSync(page, renew(readFileSync(page, 'utf8'), text));
}
