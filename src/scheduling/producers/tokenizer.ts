import { definePlugin } from '../plugin.js';
import { tokenProducer } from './token-producer.js';

const { defaultProducerOf: _unused, ...definition } = tokenProducer;

export const tokenizer = definePlugin({
  ...definition,
  type: 'tokenizer',
  deprecated: { replacement: tokenProducer.type },
  doc: 'Old name of token-producer.',
});
