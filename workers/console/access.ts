/**
 * Who may use the console, and for what.
 *
 * Every request passes {@linkcode requestProblem}: the `Host` must be an address that the console
 * is meant to be reached at, or another site could point its own name here (DNS rebinding), and the
 * `Origin` must be the console's own. Every page then proves itself with a token that only pages of
 * this console, or the person in front of one, can know.
 *
 * The token decides the {@linkcode Rights}. The console's own connection may manage workers, but
 * its port is open to every user of the machine and to workers in microVMs, so a page by itself may
 * do only what any worker may. `engine console` prints an address with a key derived from a file
 * that only the engine's user can read; a page opened with that key is the operator's.
 *
 * @module
 */
import type { Store } from "../../engine/ports/store.ts";
import type { ControlKeyInfo } from "../../engine/ports/supervision.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { type AllowedHosts, nameOf } from "../kit/allowed_hosts.ts";
import type { WatchedTrigger } from "./wire.ts";

/** `operator`: everything. `guest`: what any worker may. */
export type Rights = "operator" | "guest";

/** A token and what it allows. */
export interface Token {
  readonly text: string;
  readonly rights: Rights;
}

/** Supervision functions that guests may call. */
const GUEST_SUPERVISION = /^engine::supervisor::(list|status|logs|info)$/;
/** Functions that change the connection of their caller, which here is the console's own. */
const CONNECTION_FUNCTIONS = /^engine::(workers::register|register_trigger|unregister_trigger)$/;
/** Functions that remove what others recorded. */
const REMOVAL = /^engine::(traces|logs)::clear$/;
/** Makes the call that its payload names. */
const ENQUEUE = "engine::queue::enqueue";
/** Functions that decide about the jobs of others. */
const QUEUE_ACTIONS = /^engine::queue::(pause|resume|purge|(redrive|discard)(_message)?)$/;
/** Functions of configurations that change one, or return its secrets. */
const CONFIGURATION_ACTIONS = /^configuration::(register|set|get)$/;
/** Functions that change the items of streams, or send to all who follow one. */
const STREAM_ACTIONS = /^stream::(set|update|delete|send)$/;
/** Attributes of spans that only operators see. */
const PAYLOAD_ATTRIBUTES = ["engine.request", "engine.response"];
/** Where functions of queues have what jobs take and return. */
const JOB_PAYLOADS: Readonly<Record<string, string>> = {
  "engine::queue::peek": "payload",
  "engine::queue::dlq_messages": "payload",
  "engine::queue::result": "result",
};
const SECRET_KEY = ["console", "secret"];

/** Why a request of another web page is refused. */
export const OTHER_PAGE = "Another web page may not talk to the console; a proxy in front of it " +
  "has to pass on the header Host unchanged";

/** Why a request is refused; `undefined`: it is not. */
export function requestProblem(
  request: Request,
  at: {
    readonly isLoopback: boolean;
    readonly isUpgrade: boolean;
    /** Names at which other machines reach it; none for one that listens on loopback. */
    readonly hosts: AllowedHosts;
  },
): string | undefined {
  const { headers } = request;
  const host = headers.get("host") ?? "";
  const name = nameOf(host);
  if (name === undefined) return "The header Host of the request is missing or invalid";
  if (at.isLoopback ? !isLoopback(name) && !at.hosts.names(name) : !at.hosts.allows(host)) {
    return at.isLoopback
      ? "The console listens on this machine only; open it as 127.0.0.1 or localhost"
      : `Open the console by its address, or add "${name}" to allowed_hosts of engine-console`;
  }
  const origin = headers.get("origin");
  if (origin === null) {
    return at.isUpgrade ? "A WebSocket without an Origin is not from a console page" : undefined;
  }
  const own = [`http://${host}`, `https://${host}`]; // https: behind a proxy that ends TLS.
  return own.includes(origin) ? undefined : OTHER_PAGE;
}

/** What a token allows; `undefined`: it is wrong. Takes the same time for every wrong token. */
export function rightsOf(offered: string, tokens: readonly Token[]): Rights | undefined {
  let rights: Rights | undefined;
  for (const token of tokens) if (isSameText(offered, token.text)) rights = token.rights;
  return rights;
}

/** Compares two texts in a time that does not depend on where they differ. */
export function isSameText(offered: string, expected: string): boolean {
  const encoder = new TextEncoder();
  const a = encoder.encode(offered);
  const b = encoder.encode(expected);
  let difference = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) difference |= (a[i] ?? 0) ^ b[i]!;
  return difference === 0;
}

/**
 * Checks a call of a page, and the call that a queue would make for it.
 *
 * @throws {EngineError} `FORBIDDEN` when a page with these rights may not make it.
 */
export function checkCall(rights: Rights, functionId: string, payload?: unknown): void {
  if (rights === "operator" || GUEST_SUPERVISION.test(functionId)) return;
  if (functionId === ENQUEUE) return checkFunctions(payload);
  const isRestricted = functionId.startsWith("engine::supervisor::") ||
    CONNECTION_FUNCTIONS.test(functionId) || REMOVAL.test(functionId) ||
    QUEUE_ACTIONS.test(functionId) || CONFIGURATION_ACTIONS.test(functionId) ||
    STREAM_ACTIONS.test(functionId);
  if (isRestricted) throw forbidden(functionId);
}

/** @throws {EngineError} `FORBIDDEN` when its functions are not for a page with these rights. */
export function checkTrigger(rights: Rights, { config }: WatchedTrigger): void {
  if (rights === "guest") checkFunctions(config);
}

/** Checks the functions that an engine would call for a guest, such as conditions of triggers. */
function checkFunctions(members: unknown): void {
  for (const [name, id] of Object.entries(members ?? {})) {
    if (!name.endsWith("function_id") || typeof id !== "string") continue;
    if (id === ENQUEUE) throw forbidden(id); // Of what, nothing here would see.
    checkCall("guest", id);
  }
}

function forbidden(functionId: string): EngineError {
  return new EngineError(
    "FORBIDDEN",
    "This page was opened without the key of the engine's own user, and may not call " +
      `${functionId}; open it with: engine console --open`,
  );
}

/**
 * How guests see the results of a function: without the payloads that others exchange, which only
 * operators see. `undefined`: as they are.
 */
export function guestView(
  functionId: string,
): ((result: Json | undefined) => Json | undefined) | undefined {
  if (functionId.startsWith("engine::traces::")) return withoutPayloads;
  const member = Object.hasOwn(JOB_PAYLOADS, functionId) ? JOB_PAYLOADS[functionId] : undefined;
  return member === undefined ? undefined : (result) => withoutMember(result, member);
}

/** The same jobs, in a list or below `jobs`, or the same result without a member. */
function withoutMember(result: Json | undefined, member: string): Json | undefined {
  if (Array.isArray(result)) return result.map((job) => withoutMember(job, member)!);
  if (result === null || typeof result !== "object") return result;
  const { [member]: _, ...rest } = result;
  return "jobs" in rest ? { ...rest, jobs: withoutMember(rest["jobs"], member)! } : rest;
}

/** The same result without the payloads of recorded calls. */
function withoutPayloads(result: Json | undefined): Json | undefined {
  if (Array.isArray(result)) {
    return result.filter((part) => !isPayload(part)).map((part) => withoutPayloads(part)!);
  }
  if (result === null || typeof result !== "object") return result;
  return Object.fromEntries(
    Object.entries(result).filter(([name]) => !PAYLOAD_ATTRIBUTES.includes(name))
      .map(([name, part]) => [name, withoutPayloads(part)!]),
  );
}

/** An attribute of a span is a pair of name and value. */
function isPayload(part: Json): boolean {
  return Array.isArray(part) && typeof part[0] === "string" &&
    PAYLOAD_ATTRIBUTES.includes(part[0]);
}

/**
 * The `?key=…` of operator pages, derived from the control key that the engine wrote to
 * `info.path`; `undefined` when that file is missing or unreadable.
 */
export async function operatorKeyOf(info: ControlKeyInfo): Promise<string | undefined> {
  if (info.problem !== null) return undefined;
  try {
    const { key } = JSON.parse(await Deno.readTextFile(info.path));
    return typeof key === "string" ? await addressKey(key) : undefined;
  } catch {
    return undefined; // Missing or broken: nothing can prove that a page is the operator's.
  }
}

/**
 * The `?key=…` for a control key. The control key itself never goes into an address, because
 * browsers keep addresses and show them.
 */
export function addressKey(controlKey: string): Promise<string> {
  return derive(controlKey, "engine-console address");
}

/** A secret derived from another for one purpose: 32 hexadecimal digits of a SHA-256. */
export async function derive(secret: string, purpose: string): Promise<string> {
  const bytes = new TextEncoder().encode(`${purpose} ${secret}`);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 32);
}

/**
 * The secret that page tokens are derived from. It is kept in the store, so that tokens of open
 * pages stay valid while the engine restarts.
 */
export async function storedSecret(store: Pick<Store, "write">): Promise<string> {
  const fresh = randomSecret();
  try {
    const [written] = await store.write([[SECRET_KEY, (old) => old ?? fresh]]);
    const stored = written?.new?.value;
    return typeof stored === "string" ? stored : fresh;
  } catch {
    return fresh; // The disk refuses: pages must be reloaded after a restart, no more.
  }
}

/** A random secret in hexadecimal digits. */
export function randomSecret(bytes = 32): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}
