/**
 * The token of this browser tab.
 *
 * It stands in the page, or the person typed it in. A page that was opened with the key of the
 * engine's own user (`?key=…`) holds a better one than the next page does; so it is kept for the
 * tab, and the key is taken out of the address, where it would be copied with a link.
 *
 * @module
 */
import type { Keep } from "./preferences.ts";

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
