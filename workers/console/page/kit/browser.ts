/**
 * The token of this browser tab.
 *
 * It stands in the page, or the person typed it in. A page that was opened with the key of the
 * engine's own user (`?key=…`) holds a better one than the next page does; so it is kept for the
 * tab, and the key is taken out of the address, where it would be copied with a link.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";

const NAME = "engine-console.token";

/** See the module. */
export interface Session {
  /** Empty when there is none. */
  token(): string;
  /** Takes the place of the page's own, until the tab is closed. */
  setToken(token: string): void;
  /** Forgets a kept token that was refused; whether the page's own is left to try. */
  dropKept(): boolean;
}

/** What a session begins with. */
export interface SessionStart {
  /** As it stands in the page; empty when it does not. */
  readonly inPage: string;
  /** The address held a key. */
  readonly withKey: boolean;
  /** What is kept while the tab is open. */
  readonly keep: Keep;
}

/** See the module. */
export function openSession({ inPage, withKey, keep }: SessionStart): Session {
  let kept = "";
  try {
    kept = keep.getItem(NAME) ?? "";
  } catch {
    // The browser keeps nothing: the page's own has to do.
  }
  const setToken = (token: string) => {
    kept = token;
    try {
      keep.setItem(NAME, token);
    } catch {
      // As above: it holds until the page is loaded anew.
    }
  };
  if (withKey && inPage !== "") setToken(inPage);
  return {
    token: () => kept || inPage,
    setToken,
    dropKept() {
      if (kept === "" || inPage === "" || kept === inPage) return false;
      setToken("");
      return true;
    },
  };
}

/** An address without the key in it. */
export function withoutKey(address: string): string {
  const [path = "/", query = ""] = address.split("?");
  const members = new URLSearchParams(query);
  members.delete("key");
  return members.size > 0 ? `${path}?${members}` : path;
}

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

/** Copies text. */
export interface Clipboard {
  /** Whether it was copied; a browser may refuse. */
  copy(text: string): Promise<boolean>;
}

/** The browser's own clipboard. Without it (no secure context), a hidden field does the copying. */
export const browserClipboard: Clipboard = {
  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyByField(text); // Not allowed, or not there on plain http.
    }
  },
};

function copyByField(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "offscreen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
