/**
 * The progress of several tasks, one line each.
 *
 * On a terminal the lines are rewritten in place and the last ones stay, with the results of all
 * tasks printed at the end. Elsewhere each phase is written once, with the elapsed time, and the
 * result of a task as soon as it is done.
 *
 * @module
 */
import { printable, renderDuration } from "./render.ts";
import { type LiveLine, LiveLines, type Screen } from "./screen.ts";
import type { Terminal } from "./terminal.ts";

/** What a task prints when it is done. */
export interface Result {
  /** Lines for standard output. */
  readonly out?: readonly string[];
  /** Lines for standard error; printed first. */
  readonly err?: readonly string[];
}

/** One task. */
export interface ProgressRow {
  /** Name of the task; may change while it runs. */
  name: string;
  /** Whether lines from {@linkcode ProgressRow.printed} stay visible. */
  readonly keepsLines: boolean;
  /** Shows what the task does now. */
  phase(text: string): void;
  /** Shows a line of the task's output beside its phase, until the next one. */
  printed(text: string): void;
  /** Ends the task; a second call has no effect. */
  done(summary: string, result: Result): void;
}

/** The progress of all tasks. */
export interface Progress {
  /** Adds a task. */
  row(name: string): ProgressRow;
  /** Prints a line that belongs to no single task. */
  say(text: string): void;
  /** Updates the elapsed times. */
  tick(): void;
  /** Prints what is left; no call may follow. */
  end(): void;
}

/** Progress in the form that the terminal supports. */
export function showProgress(terminal: Terminal): Progress {
  const { screen } = terminal;
  return screen ? new LiveProgress(terminal, screen) : new PlainProgress(terminal);
}

/** Progress as a log: one line per change. */
class PlainProgress implements Progress {
  readonly #terminal: Terminal;
  readonly #beganMs: number;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#beganMs = terminal.now();
  }

  row(name: string): ProgressRow {
    const terminal = this.#terminal;
    const elapsed = (): string => renderDuration(terminal.now() - this.#beganMs);
    let last = "";
    let isDone = false;
    return {
      name,
      keepsLines: true,
      phase(text) {
        if (text === last) return;
        last = text;
        terminal.err(printable(`${this.name}  ${elapsed()}  ${text}`));
      },
      printed(text) {
        terminal.err(printable(`${this.name}  | ${text}`));
      },
      done(_summary, result) {
        if (!isDone) print(terminal, result);
        isDone = true;
      },
    };
  }

  say(text: string): void {
    this.#terminal.err(text);
  }

  tick(): void {
    // Every change was written at once.
  }

  end(): void {
    // Every result was written at once.
  }
}

/** One task on a terminal. */
class LiveRow implements ProgressRow {
  name: string;
  readonly keepsLines = false;
  readonly #now: () => number;
  readonly #beganMs: number;
  #text = "";
  #printed: string | undefined;
  #endedMs: number | undefined;
  #result: Result = {};

  constructor(name: string, now: () => number) {
    this.name = name;
    this.#now = now;
    this.#beganMs = now();
  }

  get isDone(): boolean {
    return this.#endedMs !== undefined;
  }

  get result(): Result {
    return this.#result;
  }

  phase(text: string): void {
    if (text === this.#text) return;
    this.#text = text;
    this.#printed = undefined;
  }

  printed(text: string): void {
    this.#printed = text;
  }

  done(summary: string, result: Result): void {
    if (this.isDone) return;
    this.phase(summary);
    this.#endedMs = this.#now();
    this.#result = result;
  }

  line(nameChars: number): LiveLine {
    const elapsed = renderDuration((this.#endedMs ?? this.#now()) - this.#beganMs);
    const text = `${this.name.padEnd(nameChars)}  ${elapsed.padStart(7)}  ${this.#text}`;
    return { text, dimmed: this.#printed };
  }
}

/** Progress in lines that are rewritten. */
class LiveProgress implements Progress {
  readonly #terminal: Terminal;
  readonly #lines: LiveLines;
  readonly #rows: LiveRow[] = [];
  #isOver = false;

  constructor(terminal: Terminal, screen: Screen) {
    this.#terminal = terminal;
    this.#lines = new LiveLines(screen, terminal.env("NO_COLOR") === undefined);
  }

  row(name: string): ProgressRow {
    const row = new LiveRow(name, () => this.#terminal.now());
    this.#rows.push(row);
    return row;
  }

  say(text: string): void {
    this.#lines.above([text]);
  }

  /** Draws the rows; running tasks come first when the terminal is too small for all. */
  tick(): void {
    const width = this.#nameChars();
    const { rows } = this.#terminal.screen!.size();
    const shown = this.#rows.length < rows
      ? this.#rows
      : this.#rows.toSorted((one, other) => Number(one.isDone) - Number(other.isDone));
    this.#lines.draw(shown.map((row) => row.line(width)));
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const width = this.#nameChars();
    this.#lines.above(this.#rows.map((row) => row.line(width).text));
    for (const { result } of this.#rows) print(this.#terminal, result);
  }

  #nameChars(): number {
    return Math.max(...this.#rows.map(({ name }) => name.length));
  }
}

function print(terminal: Terminal, { out = [], err = [] }: Result): void {
  for (const line of err) terminal.err(line);
  for (const line of out) terminal.out(line);
}
