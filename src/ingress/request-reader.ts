import { DEFAULT_FAIRNESS_ID, namedFairnessId, namedPath, requestPath } from '../request/control-headers.js';
import type { Dialect } from '../request/dialects.js';
import { pathOfBody } from '../request/path-of-body.js';
import { bodyTooLarge, unusableBodyMode } from '../request/rejections.js';
import { RequestBody } from '../request/request-body.js';
import {
  type Requester,
  requesterOf,
  type UnderstoodRequest,
  understand,
  understandHeaders,
  understandOpaque,
} from '../request/understand.js';
import type { Rejection } from '../scheduling/decision.js';
import type { HookRequestRecord } from '../scheduling/hooks/hook-request-record.js';
import type { RequestHeaders } from '../scheduling/request-headers.js';
import { HeaderMap, NO_HEADERS } from './codec/header-map.js';
import { BodyMode, Phase, type ProcessMessage } from './codec/process-request.js';
import type { StreamServices } from './exchange.js';

/** The message that ended the request. */
export type EndOfRequest = 'headers' | 'body' | 'trailers';

/** Result of a message of the request. */
export type Reading =
  /** The request is not complete, or the message is of no use here. */
  | 'more'
  /** The request is complete: `understand` comes next. */
  | 'complete'
  | Rejection
  /** The proxy broke the order of the protocol. */
  | { readonly kind: 'fault'; readonly why: string };

/** Headers of a request that has released them. */
const FORGOTTEN = new HeaderMap(undefined);

/** A request on its way in: headers, body or none, trailers or none, in this order, each at most once. */
export class RequestReader {
  #headers: HeaderMap = NO_HEADERS;
  /** The proxy's hint, from whichever message carried it last. */
  subset: readonly string[] | undefined;
  body: RequestBody | undefined;
  #dialect: Dialect | undefined;
  endedBy: EndOfRequest = 'headers';
  #services: StreamServices;
  #path: string | undefined;
  #requester: KnownRequester | undefined;
  #state: 'expected' | 'body' | 'complete' = 'expected';
  /** Whether the body comes in one message, and the head waits for the reply to it. */
  isBuffered = false;

  constructor(services: StreamServices) {
    this.#services = services;
  }

  /** Headers of the request; none before they have arrived. */
  get headers(): HeaderMap {
    return this.#headers;
  }

  /** Takes the headers out of their message, which is gone when the call is over. */
  take(headers: HeaderMap): void {
    headers.keep();
    this.#headers = headers;
  }

  /** Of the body; undefined = none has been expected. */
  get dialect(): Dialect | undefined {
    return this.body === undefined ? this.#dialect : this.body.dialect;
  }

  /** Path of the request, query included. */
  get path(): string {
    this.#path ??= requestPath(this.headers);
    return this.#path;
  }

  /** Whether trailers mean nothing any more: the headers have come and no body is read, or the body has come whole. */
  get passesTrailers(): boolean {
    if (this.#state !== 'complete' || this.headers === NO_HEADERS) return false;
    return this.isBuffered || this.dialect === undefined;
  }

  read(message: ProcessMessage): Reading {
    if (message.phase === Phase.requestHeaders) return this.#readHeaders(message);
    if (message.phase === Phase.requestBody) return this.#readBody(message);
    return this.#readTrailers(message);
  }

  /** Model that the body of a complete request names; undefined = it names none. */
  model(): string | Rejection | undefined {
    const scan = this.body?.finish();
    return scan === undefined || 'kind' in scan ? scan : scan.model;
  }

  /** Goes on as a request of another pool. @returns the reason when that one refuses it */
  move(services: StreamServices): Rejection | undefined {
    this.#services = services;
    this.#requester = undefined;
    if (this.body === undefined) return undefined;
    const dialect = services.settings.current.dialects.find(this.path);
    return 'kind' in dialect ? dialect : this.body.move(dialect, services.scanner, services.blockBytes());
  }

  /** Ignores all further messages. */
  stop(): void {
    this.#state = 'complete';
  }

  /**
   * Releases headers and body, which an answered request does not need: it lives for as long as its answer, and the
   * garbage collector copies twice all that is held until then.
   */
  forget(): void {
    this.#dialect = this.dialect;
    this.body = undefined;
    this.#headers = FORGOTTEN;
  }

  /** The understood request, or the reason of its refusal. */
  understand(): UnderstoodRequest | Rejection {
    const { requester, body } = this;
    const { rules, random } = this.#services;
    if (body === undefined) return understandHeaders(this.headers, requester, rules);
    const scan = body.finish();
    if (scan === undefined) return understandOpaque(requester, rules);
    if ('kind' in scan) return scan;
    return understand(scan, body.dialect, this.headers, requester, rules, random, () => body.chunks);
  }

  /** Identity of the client; header processors run once. */
  get requester(): KnownRequester {
    this.#requester ??= identify(this.#services, this.headers);
    return this.#requester;
  }

  /** As `requester`, after its first read; undefined before. */
  get known(): KnownRequester | undefined {
    return this.#requester;
  }

  #readHeaders(message: ProcessMessage): Reading {
    if (this.#state !== 'expected') return fault('request headers came twice or too late');
    this.take(message.headers);
    this.subset = message.subset;
    // A proxy that sends no bodies (request_body_mode NONE) passes the body on by itself.
    if (message.endOfStream || message.requestBodyMode === BodyMode.none) return this.#complete('headers');
    const { settings, bounds, scanner, blockBytes } = this.#services;
    const refused = this.#refusedMode(message.requestBodyMode);
    if (refused !== undefined) return refused;
    this.isBuffered = message.requestBodyMode === BodyMode.buffered;
    const dialect = settings.current.dialects.find(this.path);
    if ('kind' in dialect) return dialect;
    const limit = bounds.maxRequestBodyBytes;
    const announced = message.headers.number('content-length') ?? 0;
    if (announced > limit) return bodyTooLarge(announced, limit);
    this.body = new RequestBody(dialect, scanner, blockBytes(), limit);
    this.#state = 'body';
    return 'more';
  }

  #readBody(message: ProcessMessage): Reading {
    if (this.#state === 'expected') return fault('a request body came before its headers');
    if (this.#state !== 'body') return 'more';
    if (message.subset !== undefined) this.subset = message.subset;
    const refused = this.body!.append(message.body);
    if (refused !== undefined) return refused;
    return message.endOfStream || this.isBuffered ? this.#completeBody('body') : 'more';
  }

  /** A mode in which the head goes on before the body has been read, or in which only a part of the body comes. */
  #refusedMode(mode: number): Rejection | undefined {
    if (mode !== BodyMode.streamed && mode !== BodyMode.bufferedPartial) return undefined;
    const rejection = unusableBodyMode(mode === BodyMode.streamed ? 'STREAMED' : 'BUFFERED_PARTIAL');
    this.#services.unusableModes.note(rejection.message);
    return rejection;
  }

  /** Trailers end a body whose last chunk did not; behind a finished body they mean nothing. */
  #readTrailers(message: ProcessMessage): Reading {
    if (this.#state === 'expected') return fault('request trailers came before the headers');
    if (this.#state !== 'body') return 'more';
    if (message.subset !== undefined) this.subset = message.subset;
    return this.#completeBody('trailers');
  }

  /** Takes the end of the body. Without a path, its fields decide what kind of request it is. */
  #completeBody(endedBy: EndOfRequest): Reading {
    const refused = namedPath(this.headers) === undefined ? this.#readByFields() : undefined;
    return refused ?? this.#complete(endedBy);
  }

  #readByFields(): Rejection | undefined {
    const path = pathOfBody(this.body!.chunks);
    if (path === undefined || path === this.path) return undefined;
    const { settings, scanner, blockBytes } = this.#services;
    const dialect = settings.current.dialects.find(path);
    if ('kind' in dialect) return dialect;
    this.#path = path;
    return this.body!.move(dialect, scanner, blockBytes());
  }

  #complete(endedBy: EndOfRequest): Reading {
    this.endedBy = endedBy;
    this.#state = 'complete';
    return 'complete';
  }
}

function fault(why: string): Reading {
  return { kind: 'fault', why };
}

/** Reads the client's identity and makes the request that hook plugins see. */
export interface KnownRequester extends Requester {
  /** Undefined when there are no hook plugins. */
  readonly hookRequest: HookRequestRecord | undefined;
}

/** Priority and flow of a request; header processors of hook plugins run here. */
function identify(services: StreamServices, headers: RequestHeaders): KnownRequester {
  const { priority, fairnessId } = requesterOf(headers, services.rules);
  if (services.plugins === undefined) return { priority, fairnessId, hookRequest: undefined };
  const hookRequest = services.plugins.begin(headers, requestPath(headers), priority, namedFairnessId(headers));
  return { priority, fairnessId: hookRequest.fairnessId || DEFAULT_FAIRNESS_ID, hookRequest };
}
