/**
 * A terminal as a screen with keys: lines at its end that are rewritten in place, and key presses.
 *
 * Every write leaves the cursor at the start of a line below the others, with plain letters and
 * wrapping on. So nothing has to be restored, however the program ends.
 *
 * @module
 */
import { printable } from "./render.ts";

/** A terminal that obeys control sequences. */
export interface Screen {
  /** Current size in characters and lines. */
  size(): { readonly columns: number; readonly rows: number };
  /** Writes text with its control sequences. */
  write(text: string): void;
}

/** One line: its text, and a less important end that is dimmed. */
export interface LiveLine {
  readonly text: string;
  readonly dimmed?: string | undefined;
}

/** Keys that are read one by one. */
export interface Keyboard {
  /**
   * Calls `listener` for every key, such as `q`; the result stops that and restores the terminal.
   * `undefined` when standard input is no terminal.
   */
  listen(listener: (key: string) => void): (() => void) | undefined;
}

/** The part of standard input that a keyboard needs. */
export interface KeyInput {
  isTerminal(): boolean;
  setRaw(isRaw: boolean, options?: { cbreak: boolean }): void;
  read(buffer: Uint8Array): Promise<number | null>;
}

const ESC = "\x1b[";
/** With wrapping off the terminal cuts long lines by its own idea of how wide a character is. */
const WRAP_OFF = `${ESC}?7l`;
const WRAP_ON = `${ESC}?7h`;
const DIM = `${ESC}2m`;
const PLAIN = `${ESC}0m`;
const CLEAR_REST_OF_LINE = `${ESC}K`;
const CLEAR_BELOW = `${ESC}J`;

/** Lines at the end of a screen that are rewritten in place. */
export class LiveLines {
  readonly #screen: Screen;
  readonly #hasColour: boolean;
  #height = 0;
  #shown = "";

  constructor(screen: Screen, hasColour: boolean) {
    this.#screen = screen;
    this.#hasColour = hasColour;
  }

  /** Rewrites the lines; those that do not fit into the terminal are counted in the last one. */
  draw(lines: readonly LiveLine[]): void {
    const { columns, rows } = this.#screen.size();
    const room = Math.max(1, rows - 1);
    const fitting = lines.length <= room ? lines : [
      ...lines.slice(0, room - 1),
      { text: `… and ${lines.length - room + 1} more` },
    ];
    const body = fitting.map((line) => this.#cut(line, columns - 1) + CLEAR_REST_OF_LINE + "\n")
      .join("");
    if (body === this.#shown) return;
    this.#shown = body;
    this.#screen.write(`${WRAP_OFF}${this.#home()}${body}${CLEAR_BELOW}${WRAP_ON}`);
    this.#height = fitting.length;
  }

  /** Writes lines that stay, above those that are rewritten. */
  above(lines: readonly string[]): void {
    const text = lines.map((line) => `${printable(line)}\n`).join("");
    this.#screen.write(`${this.#home()}${CLEAR_BELOW}${text}`);
    this.#height = 0;
    this.#shown = "";
  }

  #home(): string {
    return this.#height === 0 ? "\r" : `\r${ESC}${this.#height}A`;
  }

  #cut({ text, dimmed }: LiveLine, width: number): string {
    const head = [...onOneLine(text)];
    if (head.length > width) return head.slice(0, Math.max(0, width - 1)).join("") + "…";
    if (dimmed === undefined) return head.join("");
    const room = width - head.length - 2;
    if (room < 4) return head.join(""); // Too short to be useful.
    const tail = [...onOneLine(dimmed)];
    const rest = tail.length > room ? `${tail.slice(0, room - 1).join("")}…` : tail.join("");
    return `${head.join("")}  ${this.#hasColour ? `${DIM}${rest}${PLAIN}` : rest}`;
  }
}

function onOneLine(text: string): string {
  return printable(text).replaceAll(/[\t\n]/g, " ");
}

/** The keyboard of an input; default: of this process. */
export function keyboardAt(input: KeyInput = Deno.stdin): Keyboard {
  return {
    listen(listener) {
      if (!input.isTerminal()) return undefined;
      input.setRaw(true, { cbreak: true }); // Ctrl-C stays a signal.
      let isOpen = true;
      void readKeys(input, (key) => isOpen && listener(key), () => isOpen);
      return () => {
        if (!isOpen) return;
        isOpen = false;
        input.setRaw(false);
      };
    },
  };
}

/** Reads until the keyboard is closed; a read that is pending then ends with the process. */
async function readKeys(
  input: KeyInput,
  onKey: (key: string) => void,
  isOpen: () => boolean,
): Promise<void> {
  const buffer = new Uint8Array(64);
  const decoder = new TextDecoder();
  while (isOpen()) {
    const length = await input.read(buffer).catch(() => null);
    if (length === null) return;
    const text = decoder.decode(buffer.subarray(0, length), { stream: true });
    // Arrow keys and the like come as escape sequences and are ignored.
    if (!text.startsWith("\x1b")) { for (const key of text) onKey(key); }
  }
}
