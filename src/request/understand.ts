import { type ByteRange, type Medium, PromptKind, type RequestScanResult } from '../core/types.js';
import type { OutputClass, Rejection } from '../scheduling/decision.js';
import type { RequestHeaders } from '../scheduling/request-headers.js';
import { objectiveName } from '../scheduling/wanted-times.js';
import { fairnessId, requestedRewrite } from './control-headers.js';
import type { Dialect } from './dialects.js';
import { type BodyChunks, bytesOf, outputClassOf } from './output-class.js';
import { badRequest, unknownModel, unreadModel } from './rejections.js';
import type { RequestRules } from './rules.js';

/** A request in the form for the decision. */
export interface UnderstoodRequest {
  readonly kind: 'understood';
  /** The model that the client named and the one sent upstream; both empty for an opaque body. */
  readonly model: string;
  readonly targetModel: string;
  /** The rule that chose the target; undefined when no rule matched. */
  readonly rewriteRule: string | undefined;
  /** Place of the target model in the body that goes on; undefined when the body is not changed. */
  readonly edit: ModelEdit | undefined;
  /** Place of the model's name in the body, changed or not; undefined for a dialect without one. */
  readonly modelPlace: ModelEdit | undefined;
  readonly stream: boolean;
  readonly maxOutputTokens: number | undefined;
  readonly outputClass: OutputClass;
  readonly promptBytes: number;
  /** Whether the prompt is token ids, four bytes each, and no text. */
  readonly tokenIds: boolean;
  /** Whether the prompt has images, audio or video. */
  readonly hasMedia: boolean;
  readonly cacheSalt: string | undefined;
  /** Distinct images, videos and sounds of the prompt. */
  readonly media: readonly Medium[];
  readonly priority: number;
  readonly fairnessId: string;
}

/** A model name to write over a range of the body, or to insert as the object's first member. */
export type ModelEdit = { readonly kind: 'replace'; readonly range: ByteRange } | { readonly kind: 'insert' };

/** The client's side of a request: what the headers say about priority and flow. */
export interface Requester {
  readonly priority: number;
  readonly fairnessId: string;
}

/** Priority and flow of a request. */
export function requesterOf(headers: RequestHeaders, rules: RequestRules): Requester {
  return { priority: rules.priority(objectiveName(headers)), fairnessId: fairnessId(headers) };
}

/** A request without a body, of a `:method`. GET and HEAD run no model; any other may, and none can be read from it. */
export function understandHeaders(
  headers: RequestHeaders,
  requester: Requester,
  rules: RequestRules,
): UnderstoodRequest | Rejection {
  const method = headers.get(':method');
  return method === 'GET' || method === 'HEAD' ? opaque(requester) : understandOpaque(requester, rules);
}

/** A request whose model cannot be read: its dialect names none, or its body is not read. */
export function understandOpaque(requester: Requester, rules: RequestRules): UnderstoodRequest | Rejection {
  return rules.access.matchRequired ? unreadModel() : opaque(requester);
}

function opaque(requester: Requester): UnderstoodRequest {
  return {
    kind: 'understood',
    model: '',
    targetModel: '',
    rewriteRule: undefined,
    edit: undefined,
    modelPlace: undefined,
    stream: false,
    maxOutputTokens: undefined,
    outputClass: 'unknown',
    promptBytes: 0,
    tokenIds: false,
    hasMedia: false,
    cacheSalt: undefined,
    media: [],
    ...requester,
  };
}

/**
 * Builds a request from the result of the scan: shape, model and rewrite, checked in llm-d-router's order.
 * @param random uniform in [0, 1), for rules with several targets
 * @param chunks the body's bytes, in pieces
 */
export function understand(
  scan: RequestScanResult,
  dialect: Dialect,
  headers: RequestHeaders,
  requester: Requester,
  rules: RequestRules,
  random: () => number,
  chunks: BodyChunks,
): UnderstoodRequest | Rejection {
  if (scan.flaw !== undefined && dialect.countsOnly === true) return understandOpaque(requester, rules);
  if (scan.flaw !== undefined) return badRequest(dialect.errors.wrongContent(scan.flaw));
  if (!dialect.namesModel) {
    const unnamed = understandOpaque(requester, rules);
    if (unnamed.kind === 'rejected') return unnamed;
    const model = dialect.tellsModel === true ? (scan.model ?? '') : '';
    return { ...unnamed, ...payload(scan, chunks), model };
  }
  const model = scan.model ?? '';
  // The scanner writes U+FFFD for half a surrogate pair, and for bytes that are not UTF-8.
  if (model.includes('\ufffd')) return badRequest('model: the name holds half a surrogate pair or U+FFFD');
  if (model !== '' && !rules.serves(model)) return unknownModel(model);
  const rewritten = rules.rewrite(model, random);
  const targetModel = rewritten?.target ?? targetOfClient(model, headers, rules);
  if (targetModel === '') {
    // What only counts tokens goes on unread, as in llm-d-router: the model server says what is missing.
    return dialect.countsOnly === true
      ? understandOpaque(requester, rules)
      : badRequest('model not found in request body');
  }
  // The target of a rule was chosen by the pool's owner.
  if (rewritten === undefined && targetModel !== model && !rules.serves(targetModel)) return unknownModel(targetModel);
  const modelPlace = placeOfModel(scan);
  const counts = dialect.countsOnly !== true;
  // Written out: this object is made for every request, and spreads cost a microsecond.
  return {
    kind: 'understood',
    model,
    targetModel,
    rewriteRule: rewritten?.rule,
    edit: targetModel === scan.model ? undefined : modelPlace,
    modelPlace,
    stream: scan.stream,
    maxOutputTokens: scan.maxOutputTokens,
    outputClass: outputClassOf(scan, dialect.prompt === PromptKind.chat, chunks),
    promptBytes: counts ? scan.promptBytes : 0,
    tokenIds: hasTokenIds(scan.promptRange, dialect.prompt, chunks),
    hasMedia: counts && scan.hasMedia,
    cacheSalt: scan.cacheSalt,
    media: counts ? scan.media : NO_MEDIA,
    priority: rules.priorityOf(objectiveName(headers), model),
    fairnessId: requester.fairnessId,
  };
}

/** The model that the header asks for, where clients may; else the model of the body, which may be missing. */
function targetOfClient(model: string, headers: RequestHeaders, { access }: RequestRules): string {
  // A header must not stand in for the model that the body has to name.
  if (!access.clientsRewrite || (access.matchRequired && model === '')) return model;
  return requestedRewrite(headers) || model;
}

/** Bytes of a prompt's JSON within which its first token id stands, if it has any. */
const FIRST_ID_BYTES = 16;

/** Whether a prompt is a list of token ids, or a list of such lists. */
function hasTokenIds(range: ByteRange | undefined, prompt: PromptKind | undefined, chunks: BodyChunks): boolean {
  if (range === undefined || prompt === undefined || !WITH_IDS.has(prompt)) return false;
  return /^[\s[]*[0-9]/.test(Buffer.from(bytesOf(range, chunks, FIRST_ID_BYTES)).toString('latin1'));
}

const WITH_IDS: ReadonlySet<PromptKind> = new Set([
  ...[PromptKind.completions, PromptKind.tokens, PromptKind.sglang, PromptKind.embeddings],
]);

const NO_MEDIA: readonly Medium[] = [];

function payload(scan: RequestScanResult, chunks: BodyChunks) {
  const { stream, maxOutputTokens, promptBytes, hasMedia, cacheSalt, media } = scan;
  const outputClass = outputClassOf(scan, false, chunks);
  return { stream, maxOutputTokens, outputClass, promptBytes, hasMedia, cacheSalt, media };
}

function placeOfModel(scan: RequestScanResult): ModelEdit {
  // A body without a model gets one as its first member. Another member follows, because the scan has found a prompt.
  return scan.modelRange === undefined ? { kind: 'insert' } : { kind: 'replace', range: scan.modelRange };
}
