/**
 * Who may talk to the console: its own pages, and no other page in the same browser.
 *
 * Three things are checked. The `Host` must be one the console is meant to be reached under, or
 * a page of a stranger could have its own name lead here. The `Origin` must be the console's. And
 * whoever speaks must know a token, which only its own pages can have read.
 *
 * @module
 */
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { Rights } from "./rights.ts";

/** What is wrong with a request; `undefined`: nothing. */
export function problemOf(
  request: Request,
  at: { readonly isLoopback: boolean; readonly isUpgrade: boolean },
): string | undefined {
  const { headers } = request;
  const host = headers.get("host") ?? "";
  const name = URL.canParse(`http://${host}/`) ? new URL(`http://${host}/`).hostname : "";
  if (name === "") return "The request names no host";
  if (at.isLoopback && !isLoopback(name)) {
    return "The console listens on this machine only; open it as 127.0.0.1 or localhost";
  }
  const origin = headers.get("origin");
  if (origin === null) {
    return at.isUpgrade ? "A line without an origin is not one of the console's pages" : undefined;
  }
  const own = [`http://${host}`, `https://${host}`]; // The latter behind somebody's TLS.
  return own.includes(origin) ? undefined : "Another web page may not talk to the console";
}

/** A token and what it allows. */
export interface Token {
  readonly text: string;
  readonly rights: Rights;
}

/** What a token allows; `undefined`: nothing. Takes the same time for all wrong ones. */
export function rightsOf(offered: string, tokens: readonly Token[]): Rights | undefined {
  let rights: Rights | undefined;
  for (const token of tokens) if (isSameText(offered, token.text)) rights = token.rights;
  return rights;
}

/** Whether two texts are equal, in a time that says nothing about where they differ. */
export function isSameText(offered: string, expected: string): boolean {
  const encoder = new TextEncoder();
  const a = encoder.encode(offered);
  const b = encoder.encode(expected);
  let difference = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) difference |= (a[i] ?? 0) ^ b[i]!;
  return difference === 0;
}
