// Writes test/compatibility/router-starts.json: how llm-d-router and this picker start on the configurations of
// llm-d-router's repository. LLM_D_ROUTER is the path of llm-d-router's picker, LLM_D_ROUTER_CONFIGS a folder of its
// configurations. The files of examples/llm-d-router are among them whatever the folder is.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configurations, type RouterStart } from './router-configurations.ts';
import { llmdRouter, POINTSMAN, startOf } from './router-start.ts';

const { LLM_D_ROUTER: router, LLM_D_ROUTER_CONFIGS: folder } = process.env;
if (router === undefined) throw new Error('LLM_D_ROUTER is not set: give the path of llm-d-router');

const starts: Record<string, RouterStart> = {};
for (const { name, text } of configurations(folder)) {
  const there = await startOf(llmdRouter(router), text);
  const here = await startOf(POINTSMAN, text);
  starts[name] = { 'llm-d-router': there.outcome, pointsman: here.outcome };
  if (there.outcome === 'refuses' || here.outcome === 'refuses') {
    console.error(`${name}: llm-d-router ${there.outcome} ${there.words}\n  pointsman ${here.outcome} ${here.words}`);
  }
}
const file = fileURLToPath(new URL('router-starts.json', import.meta.url));
writeFileSync(file, `${JSON.stringify(starts, null, 2)}\n`);
