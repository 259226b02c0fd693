/**
 * Shows how far several things are: one line each.
 *
 * On a terminal the lines are rewritten in place, and stay as they were last; elsewhere each phase
 * is written once, with the time since the beginning. Results are printed at the end on a terminal,
 * and as soon as they are there elsewhere. It does not know what is going on.
 *
 * @module
 */
import { type LiveLine, LiveLines } from "./screen.ts";
import { printable, renderDuration } from "./render.ts";
import type { Screen, Terminal } from "./terminal.ts";

/** What there is to print of something that is done. */
export interface Result {
  /** Lines for standard output. */
  readonly out?: readonly string[];
  /** Lines for standard error; printed first. */
  readonly err?: readonly string[];
}

/** One of the things that are going on. */
export interface ProgressRow {
  /** What it is called; may become known late. */
  name: string;
  /** Lines that it printed stay to be seen. */
  readonly keepsLines: boolean;
  /** What it is at now. */
  phase(text: string): void;
  /** A line that it printed: shown beside its phase, until the next one. */
  printed(text: string): void;
  /** It is done; a second call changes nothing. */
  done(summary: string, result: Result): void;
}

/** All that is going on. */
export interface Progress {
  /** Adds a thing. */
  row(name: string): ProgressRow;
  /** Says something that concerns none of them, or all. */
  say(text: string): void;
  /** Time has passed. */
  tick(): void;
  /** Nothing more comes. */
  end(): void;
}

/** Progress as the terminal can show it. */
export function showProgress(terminal: Terminal): Progress {
  const { screen } = terminal;
  return screen ? new LiveProgress(terminal, screen) : new PlainProgress(terminal);
}

/** Lines, one after the other. */
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
    // What changed has been written.
  }

  end(): void {
    // So has all the rest.
  }
}

/** A row of a terminal. */
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

/** Lines that are rewritten. */
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

  /** Those that go on come first when there is not room for all. */
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
