/**
 * The token of this browser tab.
 *
 * @module
 */
import type { Keep } from "./preferences.ts";

const NAME = "engine-console.token";

/** The token that stands in the page, or that the person typed in. */
export interface Session {
  /** Empty when there is none. */
  token(): string;
  /** Takes the place of the page's own, until the tab is closed. */
  setToken(token: string): void;
}

/** A session whose typed-in token is kept while the tab is open. */
export function openSession(inPage: string, keep: Keep): Session {
  let typed = "";
  try {
    typed = keep.getItem(NAME) ?? "";
  } catch {
    // The browser keeps nothing: it has to be typed in again.
  }
  return {
    token: () => inPage || typed,
    setToken(token) {
      typed = token;
      try {
        keep.setItem(NAME, token);
      } catch {
        // As above.
      }
    },
  };
}
