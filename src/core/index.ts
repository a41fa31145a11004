// The public interface of the decision core (`pointsman/core`), for embedding in another router and for
// microbenchmarks.
export {
  type Coefficients,
  CostTable,
  type CostTerm,
  costTerms,
  type HardwareCoefficients,
  type ProjectionSums,
  type TermShares,
} from './coefficients.js';
export { CORE, type CoreConstant, type CoreFunctions } from './core-names.js';
export { Decider } from './decider.js';
export type { DecisionColumns, LoggedEndpoint, LoggedOperation, Removal } from './decision-columns.js';
export type { Decision, DecisionRequest, DecisionStatus } from './decision-data.js';
export { type DecisionEnd, DecisionLog, type DecisionRecord } from './decision-log.js';
export { DecisionTrail } from './decision-trail.js';
export { type EndpointReading, type EndpointSignals, EndpointTable } from './endpoint-table.js';
export {
  attachCore,
  type CoreInstance,
  createPoolMemory,
  defaultPoolSizes,
  loadCoreModule,
  type PoolMemory,
  type PoolSizes,
} from './memory.js';
export type { Operation, OperationName } from './operations.js';
export { IndexBusyError, PrefixIndex } from './prefix-index.js';
export { type ProgramOptions, ProgramTable } from './programs.js';
export { RequestScanner } from './request-scanner.js';
export { ResponseScanner, type ResponseScanOptions } from './response-scanner.js';
export { SampleReader } from './sample-reader.js';
export type { Measures, Outcome, TrainingSample } from './training-sample.js';
export { type ByteRange, PromptKind, type RequestScanResult, type ScanRefusal, type Usage } from './types.js';
