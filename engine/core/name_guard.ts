/**
 * Notices that workers of different names offer the same function, and refuses it where the
 * configuration says so.
 *
 * Replicas of one worker share its name, so that is what tells a replica from a stranger that would
 * get calls meant for another worker. Without `shared_functions` a stranger is accepted and
 * reported once; with it, only functions that it lists may be offered under several names.
 *
 * A worker that chose no name (it announced nothing, or the SDK's `<hostname>:<pid>`) counts as
 * unnamed: for the report, unnamed workers are no strangers to each other, but to every named one.
 * To be refused, it is enough not to have the same name.
 *
 * Names are not proven: this protects from mistakes, not from a worker that claims another's name.
 *
 * @module
 */
import type { Announcement } from "../../sdk/typescript/wire/protocol.ts";
import type { ErrorReplies } from "./error_replies.ts";
import { type FunctionEntry, type FunctionTable, isOfBuiltin } from "./function_table.ts";
import type { Peer } from "./peer.ts";

/** Pairs of workers and functions that were reported; beyond, all may be reported again. */
const REPORTED_MAX = 1_000;
/** Names of a function's workers that listings show. */
export const OWNERS_SHOWN_MAX = 10;

/** Guards the functions of one router. */
export class NameGuard {
  readonly #functions: FunctionTable;
  readonly #errorReplies: Pick<ErrorReplies, "warn">;
  readonly #reported = new Set<string>();
  #shared: readonly string[] | undefined;

  /** `shared`: see {@linkcode NameGuard.apply}. */
  constructor(
    functions: FunctionTable,
    errorReplies: Pick<ErrorReplies, "warn">,
    shared: readonly string[] | undefined,
  ) {
    this.#functions = functions;
    this.#errorReplies = errorReplies;
    this.#shared = shared;
  }

  /**
   * Ids that workers of different names may offer, or their beginnings with a `*` behind;
   * `undefined`: all, with a report. Functions that are registered already stay.
   */
  apply(shared: readonly string[] | undefined): void {
    this.#shared = shared;
  }

  /** The worker because of which a worker may not offer a function; `undefined`: it may. */
  ownerAgainst(peer: Peer, function_id: string, namespace: string): Peer | undefined {
    const isExempt = peer.isBuiltin || peer.isEngine;
    if (this.#shared === undefined || isExempt || this.#isShared(function_id)) {
      return undefined;
    }
    const other = this.#other(peer, this.#functions.find(function_id, namespace));
    return other && !peer.hasNameOf(other) ? other : undefined;
  }

  /** A worker registered a function. */
  registered(peer: Peer, function_id: string, namespace: string): void {
    if (!peer.announcement || this.#isShared(function_id)) return;
    this.#check(peer, this.#functions.find(function_id, namespace)!);
  }

  /** A worker has a name now, perhaps after it had registered functions. */
  announced(peer: Peer): void {
    if (peer.isBuiltin) return;
    for (const entry of this.#functions.entriesOf(peer)) {
      if (!this.#isShared(entry.id)) this.#check(peer, entry);
    }
  }

  /** The names under which a function is offered, if they differ and it is not listed as shared. */
  contenders(entry: FunctionEntry): string[] {
    const { id, replicas } = entry;
    if (replicas.length < 2) return [];
    const near = entry.replicas.filter(({ peer }) => !peer.isEngine);
    if (near.length < 2 || isOfBuiltin(entry)) return [];
    const names = new Set<string>();
    for (const { peer } of near) {
      names.add(chosenName(peer) ?? UNNAMED);
      if (names.size === OWNERS_SHOWN_MAX) break;
    }
    return names.size < 2 || this.#isShared(id) ? [] : [...names].sort();
  }

  #check(peer: Peer, entry: FunctionEntry): void {
    const other = this.#other(peer, entry);
    if (!other) return;
    const [name, otherName] = [chosenName(peer), chosenName(other)];
    if (name === otherName) return;
    const { id, namespace } = entry;
    const key = JSON.stringify([namespace, id, [name ?? "", otherName ?? ""].sort()]);
    if (this.#reported.has(key)) return;
    if (this.#reported.size >= REPORTED_MAX) this.#reported.clear();
    this.#reported.add(key);
    const detail = `${id} is offered by ${described(other)} and now by ${described(peer)} too, ` +
      "and each gets some of its calls; give it another id or both workers one name, or forbid " +
      "it with engine.shared_functions";
    this.#errorReplies.warn(peer, "workers of different names offer the same function", detail);
  }

  /** Another worker that offers a function: the first, since equal names need no second look. */
  #other(peer: Peer, entry: FunctionEntry | undefined): Peer | undefined {
    const replicas = entry?.replicas ?? [];
    // Those of other engines come first; their names were checked there.
    const at = entry?.engines ?? 0;
    const [first, second] = [replicas[at], replicas[at + 1]];
    return first?.peer === peer ? second?.peer : first?.peer;
  }

  #isShared(function_id: string): boolean {
    return this.#shared?.some((pattern) =>
      pattern.endsWith("*") ? function_id.startsWith(pattern.slice(0, -1)) : function_id === pattern
    ) ?? false;
  }
}

const UNNAMED = "(unnamed)";

/** The name that a worker chose; `undefined` for an unnamed one. */
function chosenName({ announcement, info }: Peer): string | undefined {
  if (info.builtin !== null) return info.builtin;
  return announcement && !isDefaultName(announcement) ? announcement.name : undefined;
}

/** Whether a name is the one that an SDK makes up: `<hostname>:<pid>`, or `browser`. */
function isDefaultName({ name, pid, runtime }: Announcement): boolean {
  return name.endsWith(`:${pid}`) || (runtime === "browser" && name === "browser");
}

/** A worker as a sentence names it. */
export function described(peer: Peer): string {
  const name = chosenName(peer);
  if (name !== undefined) return `worker ${name}`;
  return `an unnamed worker (${peer.ownerName ?? peer.id})`;
}
