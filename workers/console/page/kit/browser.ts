/**
 * What the page uses of the browser: storage for the token and for preferences, the clipboard, the
 * address bar.
 *
 * Each part takes the browser's object as an argument, or can be replaced as a whole, so that tests
 * need no browser. A browser that refuses storage makes the page forget, nothing more.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";

const TOKEN_NAME = "engine-console.token";
const PREFERENCE_PREFIX = "engine-console.";

/** The part of the browser's storage that is used here; both may throw. */
export interface BrowserStorage {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
}

/** The token of this browser tab. */
export interface Session {
  /** Empty when there is none. */
  token(): string;
  /** Replaces the token of the page until the tab is closed. */
  setToken(token: string): void;
  /** Drops a stored token that was refused; returns whether the page has another one to try. */
  dropStored(): boolean;
}

/** What a {@linkcode Session} begins with. */
interface SessionOptions {
  /** The token in the page; empty when there is none. */
  readonly inPage: string;
  /** Whether the address had a key. */
  readonly withKey: boolean;
  /** Storage that lives as long as the tab. */
  readonly storage: BrowserStorage;
}

/**
 * Opens the session of this tab. A page opened with the operator's key (`?key=…`) has a token with
 * more rights than the pages opened after it in the tab, so that token is stored for them.
 */
export function openSession({ inPage, withKey, storage }: SessionOptions): Session {
  let stored = "";
  try {
    stored = storage.getItem(TOKEN_NAME) ?? "";
  } catch {
    // No storage: the token in the page is used.
  }
  const setToken = (token: string) => {
    stored = token;
    try {
      storage.setItem(TOKEN_NAME, token);
    } catch {
      // No storage: the token is forgotten when the page is reloaded.
    }
  };
  if (withKey && inPage !== "") setToken(inPage);
  return {
    token: () => stored || inPage,
    setToken,
    dropStored() {
      if (stored === "" || inPage === "" || stored === inPage) return false;
      setToken("");
      return true;
    },
  };
}

/** An address without the operator's key, which would otherwise be copied along with a link. */
export function withoutKey(address: string): string {
  const [path = "/", query = ""] = address.split("?");
  const members = new URLSearchParams(query);
  members.delete("key");
  return members.size > 0 ? `${path}?${members}` : path;
}

/** `system` follows the operating system. */
export type Theme = "system" | "light" | "dark";

/** What a person prefers: the theme, and texts that pages store under names of their own. */
export class Preferences {
  readonly #storage: BrowserStorage;
  readonly #theme: Signal<Theme>;

  constructor(storage: BrowserStorage) {
    this.#storage = storage;
    const theme = this.read("theme");
    this.#theme = signal(theme === "light" || theme === "dark" ? theme : "system");
  }

  /** The chosen theme. */
  get theme(): ReadonlySignal<Theme> {
    return this.#theme;
  }

  setTheme(theme: Theme): void {
    this.#theme.value = theme;
    this.write("theme", theme);
  }

  /** The text stored under a name; `null`: none. */
  read(name: string): string | null {
    try {
      return this.#storage.getItem(PREFERENCE_PREFIX + name);
    } catch {
      return null; // No storage.
    }
  }

  /** Stores a text under a name. */
  write(name: string, value: string): void {
    try {
      this.#storage.setItem(PREFERENCE_PREFIX + name, value);
    } catch {
      // Full, or no storage: the text is lost with the page.
    }
  }
}

/** Copies text. */
export interface Clipboard {
  /** Returns whether the browser allowed it. */
  copy(text: string): Promise<boolean>;
}

/** The browser's clipboard. */
export const browserClipboard: Clipboard = {
  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyWithTextArea(text); // Not allowed, or missing because the page is on plain HTTP.
    }
  },
};

function copyWithTextArea(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "offscreen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

/** The part of the browser's window that navigation uses. */
export interface AddressBar {
  /** Path and query, such as `/logs?level=warn`. */
  read(): string;
  write(address: string, replace: boolean): void;
  /** Calls `listener` when the person goes back or forward, until the result is called. */
  onChange(listener: () => void): () => void;
}

/** The browser's address bar and history. */
export const browserAddressBar: AddressBar = {
  read: () => location.pathname + location.search,
  write: (address, replace) =>
    replace ? history.replaceState(null, "", address) : history.pushState(null, "", address),
  onChange(listener) {
    addEventListener("popstate", listener);
    return () => removeEventListener("popstate", listener);
  },
};

/** One of the browser's storages. Merely naming it throws where storage is switched off. */
export function browserStorage(name: "localStorage" | "sessionStorage"): BrowserStorage {
  return {
    getItem: (key) => globalThis[name].getItem(key),
    setItem: (key, value) => globalThis[name].setItem(key, value),
  };
}
