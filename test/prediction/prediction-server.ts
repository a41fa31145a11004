import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A row as the server reads it. */
export type Row = Readonly<Record<string, number | string>>;
/** What it predicts for a row; undefined = it cannot. */
export type Guess = { readonly ttft_ms: number; readonly tpot_ms: number } | undefined;

/** A server that speaks the wire format of llm-d-router's prediction and training servers. */
export class PredictionServer {
  readonly #server: Server;
  /** Rows of each call, and the path that it came on. */
  readonly calls: { readonly path: string; readonly rows: readonly Row[] }[] = [];
  readonly samples: Row[] = [];
  readonly connections = new Set<unknown>();
  /** What to say about a row, and about all rows of a call. */
  guess: (row: Row) => Guess = () => ({ ttft_ms: 100, tpot_ms: 10 });
  answer: (rows: readonly Row[]) => readonly Guess[] = (rows) => rows.map((row) => this.guess(row));
  /** Answers with this status and nothing else; 0 = properly. */
  status = 0;
  /** Answers with this text. */
  text: string | undefined;
  /** Does not answer before this is resolved. */
  held: Promise<void> = Promise.resolve();

  private constructor() {
    this.#server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', async () => {
        const body = JSON.parse(Buffer.concat(pieces).toString()) as { requests?: Row[]; entries?: Row[] };
        await this.held;
        const { status, text } = this.#reply(request.url!, body);
        response.writeHead(status, { 'content-type': 'application/json' }).end(text);
      });
    });
    this.#server.on('connection', (socket) => this.connections.add(socket));
  }

  static async start(): Promise<PredictionServer> {
    const server = new PredictionServer();
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #reply(path: string, { requests, entries }: { requests?: Row[]; entries?: Row[] }) {
    if (path === '/add_training_data_bulk') {
      this.samples.push(...(this.status === 0 ? entries! : []));
      return { status: this.status || 202, text: '{"message": "accepted"}' };
    }
    this.calls.push({ path, rows: requests! });
    if (this.status !== 0) return { status: this.status, text: '{"detail": "no"}' };
    if (this.text !== undefined) return { status: 200, text: this.text };
    const predictions = this.answer(requests!).map((guess) => guess ?? null);
    const failed = predictions.filter((guess) => guess === null).length;
    if (path === '/predict/bulk/strict' && failed > 0) return { status: 500, text: '{"detail": "a row failed"}' };
    const counts = { total_requests: requests!.length, successful_predictions: requests!.length - failed };
    return {
      status: 200,
      text: JSON.stringify({ predictions, ...counts, failed_predictions: failed, processing_time_ms: 1 }),
    };
  }

  /** May be called again. */
  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
