import type { ScanFlaw, ScanRefusal } from '../core/types.js';

/** Error texts for a body that cannot be read. They are llm-d-router's, with a position where that has none. */
export interface DialectErrors {
  /** Text for a body that is no document of its kind; undefined = it is JSON, but no object. */
  unreadable(refusal: ScanRefusal | undefined): string;
  /** Text for a field of a wrong shape that the dialect needs. */
  wrongContent(flaw: ScanFlaw): string;
}

function place(refusal: ScanRefusal | undefined): string {
  return refusal === undefined ? 'not a JSON object at byte 0' : `${refusal.reason} at byte ${refusal.position}`;
}

function openai(name: string, field: string): DialectErrors {
  return {
    unreadable: (refusal) => `error unmarshaling request bodyMap: ${place(refusal)}`,
    wrongContent: () => `invalid ${name} request: must have ${field} field`,
  };
}

const anthropic: DialectErrors = {
  unreadable: (refusal) => `error unmarshaling request body: ${place(refusal)}`,
  wrongContent(flaw) {
    if (flaw === 'missing' || flaw === 'empty') return 'invalid messages request: must have at least one message';
    const what = flaw === 'system' ? 'system' : 'messages';
    const shape =
      flaw === 'system'
        ? 'a string or an array of content blocks'
        : 'objects whose content is a string or an array of content blocks';
    return `error parsing messages request: ${what} must be ${shape}`;
  },
};

const vllmHttp: DialectErrors = {
  unreadable: place,
  wrongContent: (flaw) =>
    flaw === 'shape'
      ? 'invalid generate request: token_ids must be an array of uint32 integers'
      : 'invalid generate request: must have non-empty token_ids field',
};

const SGLANG_FLAWS: Readonly<Record<ScanFlaw, string>> = {
  missing: 'invalid generate request: input_ids must be provided',
  empty: 'invalid generate request: input_ids cannot be empty',
  shape: 'invalid generate request: input_ids must be an array of uint32 integers',
  salt: 'unsupported generate request: extra_key must be a string',
  stream: 'invalid generate request: stream must be true or false',
  system: '',
};

const sglang: DialectErrors = {
  unreadable: (refusal) => `invalid generate request: ${place(refusal)}`,
  wrongContent: (flaw) => SGLANG_FLAWS[flaw],
};

const BAD_FRAME = 'invalid or unsupported gRPC payload';

function engine(message: string): DialectErrors {
  return {
    unreadable: (refusal) =>
      refusal?.layer === 'frame' ? BAD_FRAME : `unmarshaling ${message}: proto: ${refusal?.reason}`,
    wrongContent: () =>
      message === 'EmbedRequest' ? `missing tokenized input in ${message}` : 'not supported request inputType',
  };
}

function vertex(message: string, inner: DialectErrors): DialectErrors {
  return {
    unreadable(refusal) {
      if (refusal?.layer === 'frame') return `${BAD_FRAME}: ${refusal.reason}`;
      if (refusal?.layer === 'message') return `unmarshaling ${message}: proto: ${refusal.reason}`;
      return refusal?.layer === 'bare'
        ? `${message} has no HttpBody`
        : `parsing ${message}: ${inner.unreadable(refusal)}`;
    },
    wrongContent: (flaw) => `parsing ${message}: ${inner.wrongContent(flaw)}`,
  };
}

/** The errors of every dialect. */
export const errorsOf = { openai, anthropic, vllmHttp, sglang, engine, vertex } as const;
