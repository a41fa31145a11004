// Times one decision of a queue scorer over 64 endpoints: node examples/embedded/time-a-decision.js
import { attachCore, createPoolMemory, Decider, defaultPoolSizes, EndpointTable, ProgramTable } from 'pointsman/core';

const core = attachCore(createPoolMemory({ ...defaultPoolSizes, endpoints: 64, indexBlocks: 65_536 }), 0);
const table = new EndpointTable(core);
for (let slot = 0; slot < 64; slot++) {
  table.open(slot, 1);
  table.setState(slot, 'live');
  table.publish(slot, { waiting: slot % 7, running: slot % 13, kvUsage: slot / 128 }, 1);
}
const operation = (code, ...parameters) => ({ code, weight: 1, parameters });
const operations = [operation('OP_SCORE_QUEUE'), operation('OP_PICK_MAX_SCORE', 1)];
new ProgramTable(core).publish(0, operations, { inserts: false });
const prompt = { blocks: 0, tail: false, blockTokens: 64, promptTokens: 1024, outputTokens: 0, adapter: '' };
const request = { ...prompt, profile: 0, priority: 0, nowMs: 1, subset: undefined, charged: false, explained: false };
const decider = new Decider(core, 1n);
for (let i = 0; i < 50_000; i++) decider.decide(request); // until the code is optimised
const begin = performance.now();
for (let i = 0; i < 100_000; i++) decider.decide(request);
console.log(`${((performance.now() - begin) * 10).toFixed(0)} ns a decision, slot ${decider.decide(request).slots[0]}`);
