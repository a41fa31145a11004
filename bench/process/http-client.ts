// Chats over HTTP/1.1 on connections that stay, each with one request at a time. It looks for the ends of answers only,
// so that it takes little of the machine that it measures.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const END_OF_HEAD = '\r\n\r\n';
const LAST_CHUNK = '0\r\n\r\n';

export interface Chat {
  readonly promptBytes: number;
  readonly stream: boolean;
}

/** Sends chats for `forMs`, `concurrency` at a time. @returns how many were answered with 200. @throws for any other */
export async function closedLoop(port: number, chat: Chat, concurrency: number, forMs: number): Promise<number> {
  const until = performance.now() + forMs;
  const counts = await Promise.all(Array.from({ length: concurrency }, (_, i) => oneByOne(port, chat, i, until)));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function oneByOne(port: number, chat: Chat, caller: number, until: number): Promise<number> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  socket.setEncoding('latin1');
  await once(socket, 'connect');
  let count = 0;
  while (performance.now() < until) {
    const answered = wholeAnswer(socket);
    socket.write(requestOf(chat, `${caller}-${count}`));
    await answered;
    count++;
  }
  socket.destroy();
  return count;
}

/** A prompt that begins as no other one. */
function requestOf({ promptBytes, stream }: Chat, name: string): string {
  const content = `${name} `.padEnd(promptBytes, 'words of a prompt ');
  const body = JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content }] });
  return (
    'POST /v1/chat/completions HTTP/1.1\r\nhost: models.example.com\r\ncontent-type: application/json\r\n' +
    `content-length: ${body.length}\r\n\r\n${body}`
  );
}

function wholeAnswer(socket: Socket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let text = '';
  const take = (piece: string) => {
    text += piece;
    if (!isWhole(text)) return;
    end();
    if (text.startsWith('HTTP/1.1 200 ')) resolve();
    else reject(new Error(`a chat was answered with ${text.slice(0, 200)}`));
  };
  const lost = () => {
    end();
    reject(new Error(`a connection ended after ${JSON.stringify(text.slice(0, 200))}`));
  };
  const end = () => socket.off('data', take).off('close', lost).off('error', lost);
  socket.on('data', take).on('close', lost).on('error', lost);
  return promise;
}

function isWhole(text: string): boolean {
  const head = text.indexOf(END_OF_HEAD);
  if (head < 0) return false;
  const length = /^content-length: (\d+)\r$/im.exec(text.slice(0, head + 2))?.[1];
  if (length === undefined) return text.endsWith(LAST_CHUNK);
  return text.length >= head + END_OF_HEAD.length + Number(length);
}
