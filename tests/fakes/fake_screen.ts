/**
 * A terminal's screen: obeys the control sequences that the command line writes, and no others.
 *
 * @module
 */
import type { Screen } from "../../cli/screen.ts";

/** What a person would see, and how the terminal was left. */
export class FakeScreen implements Screen {
  /** All lines from the first one written, also those that have scrolled away. */
  readonly lines: string[] = [""];
  /** Every state that was seen, as text. */
  readonly frames: string[] = [];
  /** Letters that were dimmed when they were written. */
  dimmed = "";
  #row = 0;
  #column = 0;
  #isDim = false;
  #wraps = true;
  #columns: number;
  #rows: number;

  constructor(columns = 100, rows = 24) {
    this.#columns = columns;
    this.#rows = rows;
  }

  /** The size from now on. */
  resize(columns: number, rows: number): void {
    this.#columns = columns;
    this.#rows = rows;
  }

  size(): { columns: number; rows: number } {
    return { columns: this.#columns, rows: this.#rows };
  }

  write(text: string): void {
    // deno-lint-ignore no-control-regex
    for (const [part] of text.matchAll(/\x1b\[[?0-9]*[A-Za-z]|[\s\S]/gu)) this.#obey(part);
    this.frames.push(this.text);
  }

  /** Lines as they come from elsewhere, such as standard output on the same terminal. */
  print(text: string): void {
    this.write(`${text}\n`);
  }

  /** What is to be seen, without the empty line that the cursor stands on. */
  get text(): string {
    return this.lines.map((line) => line.trimEnd()).join("\n").trimEnd();
  }

  /** Whether whatever comes next is shown as on a terminal that nobody has touched. */
  get isRestored(): boolean {
    return this.#wraps && !this.#isDim && this.#column === 0 && this.#row === this.lines.length - 1;
  }

  #obey(part: string): void {
    if (part === "\n") return this.#newLine();
    if (part === "\r") return void (this.#column = 0);
    // deno-lint-ignore no-control-regex
    const [, number, letter] = /^\x1b\[(\??\d*)(\w)$/.exec(part) ?? [];
    if (letter === undefined) return this.#put(part);
    switch (`${letter}${letter === "A" ? "" : number}`) {
      case "A":
        this.#row = Math.max(this.lines.length - this.#rows, this.#row - Number(number || 1), 0);
        return;
      case "K":
        return this.#clearLine();
      case "J":
        this.#clearLine();
        this.lines.length = this.#row + 1;
        return;
      case "l?7":
        return void (this.#wraps = false);
      case "h?7":
        return void (this.#wraps = true);
      case "m2":
        return void (this.#isDim = true);
      case "m0":
        return void (this.#isDim = false);
      default:
        throw new Error(`this terminal does not know ${JSON.stringify(part)}`);
    }
  }

  #put(letter: string): void {
    if (this.#column >= this.#columns) {
      if (!this.#wraps) return;
      this.#newLine();
    }
    const line = [...this.lines[this.#row]!.padEnd(this.#column)];
    line[this.#column] = letter;
    this.lines[this.#row] = line.join("");
    if (this.#isDim) this.dimmed += letter;
    this.#column++;
  }

  #newLine(): void {
    this.#column = 0;
    this.#row++;
    if (this.#row === this.lines.length) this.lines.push("");
  }

  #clearLine(): void {
    this.lines[this.#row] = [...this.lines[this.#row]!].slice(0, this.#column).join("");
  }
}
