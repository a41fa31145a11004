/** Advice about what follows a thread of llm-d-router that is still open. */
export function openThread(number: number): string {
  return `follows an open proposal of llm-d-router (#${number}): parameters and behaviour may change with it`;
}
