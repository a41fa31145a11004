/** One figure of one process. */
export interface ProcessFigure {
  /** `pointsman` or `llm-d-router`. */
  readonly picker: string;
  /** What was done, for people. */
  readonly scenario: string;
  readonly value: number;
  readonly unit: 'µs' | 'ms' | 'MB' | '/s' | '×';
}
