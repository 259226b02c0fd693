/**
 * Who may talk to the console: its own pages, and no other page in the same browser.
 *
 * Three things are checked. The `Host` must be one the console is meant to be reached under, or
 * a page of a stranger could have its own name lead here. The `Origin` must be the console's. And
 * whoever speaks must know a token, which only its own pages can have read.
 *
 * @module
 */
import type { Store } from "../../engine/ports/store.ts";
import type { ControlKeyInfo } from "../../engine/ports/supervision.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { memberOf, randomHex } from "./engine_client.ts";

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

/** `operator`: everything. `guest`: what any worker may. */
export type Rights = "operator" | "guest";

/** Functions of supervision that anybody may call. */
const OPEN_TO_ALL = /^engine::supervisor::(list|status|logs|info)$/;
/** Functions that change the connection of whoever calls, which here is the console's own. */
const OF_THE_LINE = /^engine::(workers::register|register_trigger|unregister_trigger)$/;
/** Attributes of spans that only operators see. */
const PAYLOADS = ["engine.request", "engine.response"];

/** @throws {EngineError} `FORBIDDEN` when a page with these rights may not call the function. */
export function checkCall(rights: Rights, functionId: string): void {
  if (rights === "operator" || OPEN_TO_ALL.test(functionId)) return;
  if (!functionId.startsWith("engine::supervisor::") && !OF_THE_LINE.test(functionId)) return;
  throw new EngineError(
    "FORBIDDEN",
    "This page was opened without the key of the engine's own user, and may not call " +
      `${functionId}; open it with: engine console --open`,
  );
}

/** Whether results of a function hold what only operators see. */
export function holdsPayloads(functionId: string): boolean {
  return functionId.startsWith("engine::traces::");
}

/** The same result without payloads of calls. */
export function withoutPayloads(result: Json | undefined): Json | undefined {
  if (Array.isArray(result)) {
    return result.filter((part) => !isPayload(part)).map((part) => withoutPayloads(part)!);
  }
  if (result === null || typeof result !== "object") return result;
  return Object.fromEntries(
    Object.entries(result).filter(([name]) => !PAYLOADS.includes(name))
      .map(([name, part]) => [name, withoutPayloads(part)!]),
  );
}

/** An attribute of a span is a pair of name and value. */
function isPayload(part: Json): boolean {
  return Array.isArray(part) && typeof part[0] === "string" && PAYLOADS.includes(part[0]);
}

/** The secret for an engine whose key lies there now; `undefined`: there is none. */
export async function operatorKeyOf(info: ControlKeyInfo): Promise<string | undefined> {
  if (info.problem !== null) return undefined;
  try {
    const key = memberOf(JSON.parse(await Deno.readTextFile(info.path)), "key");
    return typeof key === "string" ? await addressKey(key) : undefined;
  } catch {
    return undefined; // Gone or broken: then nobody can prove to be the user.
  }
}

/** The secret for a control key. */
export function addressKey(controlKey: string): Promise<string> {
  return derive(controlKey, "engine-console address");
}

const PLACE = ["console", "secret"];

/** Another secret made of one, about which it says nothing: 32 hexadecimal digits. */
export async function derive(secret: string, purpose: string): Promise<string> {
  const bytes = new TextEncoder().encode(`${purpose} ${secret}`);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 32);
}

/**
 * The secret of an engine's console, kept in its store: a page that is open while the engine
 * restarts has a token that still holds.
 */
export async function keptSecret(store: Pick<Store, "write">): Promise<string> {
  const fresh = randomHex(32);
  try {
    const [written] = await store.write([[PLACE, (old) => old ?? fresh]]);
    const kept = written?.new?.value;
    return typeof kept === "string" ? kept : fresh;
  } catch {
    return fresh; // The disk refuses: pages have to be opened anew after a restart, no more.
  }
}
