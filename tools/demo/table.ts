/** Lines of a table, its columns aligned to the right but for the last one. */
export class Table {
  readonly #widths: readonly number[];
  readonly #head: readonly string[];

  constructor(head: readonly string[]) {
    this.#head = head;
    this.#widths = head.map((title) => title.length);
  }

  head(): string {
    return this.line(this.#head);
  }

  line(cells: readonly string[]): string {
    const padded = cells.map((cell, column) =>
      column === cells.length - 1 ? cell : cell.padStart(this.#widths[column]!),
    );
    return `  ${padded.join('  ')}`;
  }
}
