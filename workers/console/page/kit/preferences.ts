/**
 * What a person likes: theme, time zone of times, and what pages keep under a name of their own.
 *
 * Kept in the browser; a browser that keeps nothing forgets them when the page is closed.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";

/** `system` follows the operating system. */
export type Theme = "system" | "light" | "dark";

/** What of the browser's storage is needed; either may throw. */
export interface Keep {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
}

const PREFIX = "engine-console.";

/** See the module. */
export class Preferences {
  readonly #keep: Keep;
  readonly #theme: Signal<Theme>;

  /** Reads what is kept. */
  constructor(keep: Keep) {
    this.#keep = keep;
    const theme = this.read("theme");
    this.#theme = signal(theme === "light" || theme === "dark" ? theme : "system");
  }

  /** The theme that was chosen. */
  get theme(): ReadonlySignal<Theme> {
    return this.#theme;
  }

  /** Chooses a theme. */
  setTheme(theme: Theme): void {
    this.#theme.value = theme;
    this.write("theme", theme);
  }

  /** What was kept under a name; `null`: nothing. */
  read(name: string): string | null {
    try {
      return this.#keep.getItem(PREFIX + name);
    } catch {
      return null; // The browser keeps nothing.
    }
  }

  /** Keeps a text under a name. */
  write(name: string, value: string): void {
    try {
      this.#keep.setItem(PREFIX + name, value);
    } catch {
      // Full, or not allowed: then it is forgotten with the page.
    }
  }
}
