import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { PROGRAM, pointsman } from '../serve/program.ts';

it('pointsman model-server answers chats under its name and model until SIGTERM', async () => {
  const flags = ['--port=0', '--name=mine', '--model=my-model', '--speedup=100'];
  const child = spawn(process.execPath, [PROGRAM, 'model-server', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  const [, url] = /^model server mine on (http:\S+), model my-model\n$/.exec(line) ?? [];
  const models = await fetch(`${url}/v1/models`);
  expect(await models.json()).toMatchObject({ data: [{ id: 'my-model' }] });
  const answer = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"my-model","prompt":"Hello","max_tokens":3}',
  });
  expect(answer.headers.get('x-inference-pod')).toBe('mine');
  expect(await answer.json()).toMatchObject({ object: 'text_completion', usage: { completion_tokens: 3 } });
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

it('pointsman model-server names the hardware that it knows', () => {
  expect(pointsman('model-server', '--hardware=h100')).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^pointsman: --hardware: expected one of .*llama-8b-h100.*got "h100"\n$/),
  });
});
