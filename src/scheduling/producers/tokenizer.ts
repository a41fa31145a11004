import { underOldName } from '../old-name.js';
import { tokenProducer } from './token-producer.js';

export const tokenizer = underOldName(tokenProducer, 'tokenizer');
