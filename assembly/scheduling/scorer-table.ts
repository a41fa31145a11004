// Which function evaluates which scorer: one row for each OP_SCORE_* number (core/operations.ts has the rest of its
// facts).
//
// Owns: nothing; the scorers write the thread's SCORE and KEYS columns. Called under the commit lock.
import { ASSERTIONS } from '../assertions';
import {
  scoreAttribute,
  scoreCacheAware,
  scoreContextLength,
  scoreHeaderLabel,
  scoreRendezvous,
  scoreRing,
} from './affinity-scorers';
import { scoreActiveBlocks, scoreLMetric } from './cost-scorers';
import { scoreAdapter, scoreNoHit, scoreSessionHome } from './history-scorers';
import { scoreLatency } from './latency';
import { scoreMarginalCost } from './marginal-cost';
import {
  OP_SCORE_ACTIVE_BLOCKS,
  OP_SCORE_ACTIVE_REQUEST,
  OP_SCORE_ADAPTER,
  OP_SCORE_ATTRIBUTE,
  OP_SCORE_CACHE_AWARE,
  OP_SCORE_CONSISTENT_HASH,
  OP_SCORE_CONTEXT_LENGTH,
  OP_SCORE_EXPLOIT_EXPLORE,
  OP_SCORE_HEADER_LABEL,
  OP_SCORE_HOST,
  OP_SCORE_KV_USAGE,
  OP_SCORE_LATENCY,
  OP_SCORE_LMETRIC,
  OP_SCORE_LOAD_AWARE,
  OP_SCORE_MARGINAL_COST,
  OP_SCORE_NO_HIT_LRU,
  OP_SCORE_PREFIX,
  OP_SCORE_PREFIX_BALANCE,
  OP_SCORE_QUEUE,
  OP_SCORE_RENDEZVOUS,
  OP_SCORE_RUNNING,
  OP_SCORE_SESSION_HOME,
  OP_SCORE_TOKEN_LOAD,
  OP_SCORE_TOPOLOGY,
  Operation,
} from './program';
import { columnBegin, columnEnd } from './score-column';
import {
  scoreActiveRequest,
  scoreHookColumn,
  scoreKvUsage,
  scoreLoadAware,
  scorePrefix,
  scoreQueue,
  scoreRunning,
  scoreTokenLoad,
} from './scorers';
import { scoreExploitExplore, scorePrefixBalance } from './threshold-scorers';
import { scoreNear } from './topology';

function addScoresOf(op: Operation, code: u32, used: u32, total: u32): void {
  switch (code) {
    case OP_SCORE_QUEUE:
      return scoreQueue(used);
    case OP_SCORE_RUNNING:
      return scoreRunning(used);
    case OP_SCORE_KV_USAGE:
      return scoreKvUsage(used);
    case OP_SCORE_PREFIX:
      return scorePrefix(used, total, op.p0, op.p1, op.p2);
    case OP_SCORE_ACTIVE_REQUEST:
      return scoreActiveRequest(used, op.p0, op.p1);
    case OP_SCORE_TOKEN_LOAD:
      return scoreTokenLoad(used, op.p0);
    case OP_SCORE_ACTIVE_BLOCKS:
      return scoreActiveBlocks(op, used, total);
    case OP_SCORE_LOAD_AWARE:
      return scoreLoadAware(used, op.p0);
    case OP_SCORE_ADAPTER:
      return scoreAdapter(used, op.p0 != 0);
    case OP_SCORE_HOST:
      return scoreHookColumn(used, <u32>op.p0);
    case OP_SCORE_HEADER_LABEL:
      return scoreHeaderLabel(used, <u32>op.p0, <u32>op.p1);
    case OP_SCORE_ATTRIBUTE:
      return scoreAttribute(op, used);
    case OP_SCORE_NO_HIT_LRU:
      return scoreNoHit(used, <u32>op.p0);
    case OP_SCORE_CONTEXT_LENGTH:
      return scoreContextLength(used, <u32>op.p0);
    case OP_SCORE_RENDEZVOUS:
      return scoreRendezvous(used, <u32>op.p0, <u32>op.p1, op.p2);
    case OP_SCORE_CONSISTENT_HASH:
      return scoreRing(used, <u32>op.p0, <u32>op.p1, op.p2, <u32>op.p3);
    case OP_SCORE_LMETRIC:
      return scoreLMetric(used);
    case OP_SCORE_PREFIX_BALANCE:
      return scorePrefixBalance(used, total, op.p0, op.p1);
    case OP_SCORE_EXPLOIT_EXPLORE:
      return scoreExploitExplore(used, op.p0);
    case OP_SCORE_SESSION_HOME:
      return scoreSessionHome(used);
    case OP_SCORE_TOPOLOGY:
      return scoreNear(op, used);
    case OP_SCORE_CACHE_AWARE:
      return scoreCacheAware(used, total, op.p0, op.p1, op.p2);
    case OP_SCORE_MARGINAL_COST:
      return scoreMarginalCost(used);
    case OP_SCORE_LATENCY:
      return scoreLatency(op, used, total);
    default:
      if (ASSERTIONS) assert(false, 'a scorer has a row');
  }
}

/**
 * Runs scorer operation `op` (code and parameters as in program.ts) and adds its column.
 * @param explainColumn column of the explanation, -1 = none
 */
export function score(op: Operation, code: u32, used: u32, total: u32, explainColumn: i32): void {
  columnBegin(op.weight, used, explainColumn);
  addScoresOf(op, code, used, total);
  columnEnd(used);
}
