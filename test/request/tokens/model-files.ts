/** Byte-level BPE, as GPT-2 writes bytes: printable ones as they are, the others behind U+0100. */
function byteCharacters(): string[] {
  const printable = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : 256 + others++));
}

const MERGES = ['h e', 'l l', 'he ll', 'hell o', 'Ġ w', 'o r', 'Ġw or', 'Ġ t', 'Ġt he'];
const SPECIAL = ['<|begin|>', '<|im_start|>', '<|im_end|>'];

export const TEMPLATE =
  "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}" +
  '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';

/**
 * A tokenizer.json of a small model.
 * @param prepends its texts begin with a space that is not there, each piece anew
 */
export function tokenizerJson(prepends = false): object {
  const tokens = [...byteCharacters(), ...MERGES.map((merge) => merge.replace(' ', ''))];
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  const added = SPECIAL.map((content, index) => ({
    id: tokens.length + index,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  const begin = { SpecialToken: { id: '<|begin|>', type_id: 0 } };
  return {
    version: '1.0',
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: prepends
      ? { type: 'Metaspace', replacement: 'Ġ', prepend_scheme: 'first', split: false }
      : { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: {
      type: 'TemplateProcessing',
      single: [begin, { Sequence: { id: 'A', type_id: 0 } }],
      pair: [begin, { Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
      special_tokens: { '<|begin|>': { id: '<|begin|>', ids: [tokens.length], tokens: ['<|begin|>'] } },
    },
    decoder: { type: 'ByteLevel' },
    model: { type: 'BPE', vocab, merges: MERGES, unk_token: null, byte_fallback: false, ignore_merges: false },
  };
}

export const tokenizerConfig = {
  tokenizer_class: 'PreTrainedTokenizerFast',
  bos_token: '<|begin|>',
  chat_template: TEMPLATE,
};

/** Id of the first special token; the others follow. */
export const BEGIN = 256 + MERGES.length;
