import { endpointAddress } from '../../contract/endpoint.js';
import type { SilenceNews } from './silence-watch.js';

/** The part of the log that silences are written to. */
export interface SilenceLog {
  warn(fields: object, text: string): void;
  info(fields: object, text: string): void;
}

/** Writes a line when an endpoint falls silent, and when it is back. */
export function silenceLog(log: SilenceLog): (news: SilenceNews) => void {
  return (news) => {
    const { id: endpoint } = news.endpoint;
    if (news.kind === 'back') {
      const silentSeconds = seconds(news.silentMs);
      log.info({ endpoint, silentSeconds }, 'endpoint answers again: it gets new requests');
      return;
    }
    const { overdue, quietMs, allowedMs, idle } = news.silence;
    const facts = {
      endpoint,
      address: endpointAddress(news.endpoint),
      requestsOverdue: overdue,
      quietSeconds: seconds(quietMs),
      allowedSeconds: seconds(allowedMs),
      engineSaysIdle: idle,
    };
    log.warn(facts, `endpoint silent: its requests in flight get no byte; ${news.kind === 'out' ? OUT : IN}`);
  };
}

const OUT = 'no new ones until a byte comes or a probe succeeds. If it does not recover, restart its model server';
const IN =
  'it still gets new ones, because half of the pool is out already or ejection is off. Restart its model server';

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
