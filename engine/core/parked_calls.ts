/**
 * Calls that wait until a worker registers their function again, and the functions that are
 * expected.
 *
 * A plain table: it sends nothing and has no clock; {@linkcode Calls} starts and ends parked calls.
 * A parked call is kept as its frame and parsed again when it starts: the parsed message takes
 * several times the memory. The frames count against the budget of the process.
 *
 * @module
 */
import { DEFAULT_NAMESPACE, type InvokeFunction } from "../../sdk/typescript/wire/protocol.ts";
import { type Absences, NO_ABSENCES } from "../ports/absences.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../ports/memory.ts";
import type { EndListener, Invocation, Peer } from "./peer.ts";

/** Longest time that a call is parked, in milliseconds. */
export const CALL_PARK_MS = 5_000;
/** Parked calls in all. */
export const PARKED_CALLS_MAX = 10_000;
/** Bytes of the frames of all parked calls. */
export const PARKED_BYTES_MAX = 64 * 1024 * 1024;

/** One parked call. */
export interface ParkedCall {
  /** Made the call; set for void calls, too. */
  readonly caller: Peer;
  /** The message without its payload and metadata. */
  readonly call: InvokeFunction;
  /** The whole frame. */
  readonly frame: Uint8Array;
  /** Its record among the open calls. */
  readonly invocation: Invocation;
}

/** Key of a function: equal for equal id and namespace. */
export type Target = string;

/** The key of a function. */
export function targetOf(function_id: string, namespace: string = DEFAULT_NAMESPACE): Target {
  return JSON.stringify([namespace, function_id]);
}

/** The parked calls. */
export class ParkedCalls implements EndListener {
  /** In order of arrival. */
  readonly #byTarget = new Map<Target, Set<ParkedCall>>();
  readonly #byRecord = new Map<Invocation, ParkedCall>();
  /** Number of handovers that expect each function. */
  readonly #expected = new Map<Target, number>();
  readonly #memory: MemoryBudget;
  readonly #absences: Absences;
  #bytes = 0;

  constructor(memory: MemoryBudget = UNLIMITED_MEMORY, absences: Absences = NO_ABSENCES) {
    this.#memory = memory;
    this.#absences = absences;
  }

  /** Number of parked calls. */
  get size(): number {
    return this.#byRecord.size;
  }

  /** Expects that the function is registered again; to be undone by one stopExpecting(). */
  expect(target: Target): void {
    this.#expected.set(target, (this.#expected.get(target) ?? 0) + 1);
  }

  /** Undoes one expect(). */
  stopExpecting(target: Target): void {
    const others = this.#expected.get(target)! - 1;
    if (others > 0) this.#expected.set(target, others);
    else this.#expected.delete(target);
  }

  /** Whether a call of a function without a ready replica is to be parked. */
  isExpected({ function_id, namespace }: InvokeFunction, caller: Peer): boolean {
    if (this.#expected.size > 0 && this.#expected.has(targetOf(function_id, namespace))) {
      return true;
    }
    // What another engine will offer is not for calls that came from one.
    return !caller.isEngine &&
      (this.#absences.isExpected?.(function_id, namespace ?? DEFAULT_NAMESPACE) ?? false);
  }

  /** Takes room for a frame that is then added; `false` when one more call may not be parked. */
  takeRoom(bytes: number): boolean {
    if (this.size >= PARKED_CALLS_MAX || this.#bytes + bytes > PARKED_BYTES_MAX) return false;
    if (!this.#memory.take("queues", bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Adds a call behind those that are parked already. */
  add({ call: { data: _data, metadata: _metadata, ...call }, ...rest }: ParkedCall): void {
    const parked: ParkedCall = { call, ...rest };
    const target = targetOf(call.function_id, call.namespace);
    const queue = this.#byTarget.get(target);
    if (queue) queue.add(parked);
    else this.#byTarget.set(target, new Set([parked]));
    this.#byRecord.set(parked.invocation, parked);
    parked.invocation.onEnd = this;
  }

  /** The calls that are parked for a function, oldest first. */
  waitingFor(target: Target): ParkedCall[] {
    return [...this.#byTarget.get(target) ?? []];
  }

  /** The parked call with this record. */
  find(invocation: Invocation): ParkedCall | undefined {
    return this.#byRecord.get(invocation);
  }

  /** Removes a call by its record; does nothing when that is not parked. */
  remove(invocation: Invocation): void {
    const parked = this.#byRecord.get(invocation);
    if (!parked) return;
    const target = targetOf(parked.call.function_id, parked.call.namespace);
    const queue = this.#byTarget.get(target)!;
    queue.delete(parked);
    if (queue.size === 0) this.#byTarget.delete(target);
    this.#byRecord.delete(invocation);
    invocation.onEnd = undefined;
    this.#bytes -= parked.frame.length;
    this.#memory.release("queues", parked.frame.length);
  }

  /** A parked call has ended. */
  ended(invocation: Invocation): void {
    this.remove(invocation);
  }

  /** Parked calls whose function is not expected. */
  unexpected(): ParkedCall[] {
    return this.all().filter(({ call, caller }) => !this.isExpected(call, caller));
  }

  /** Every parked call. */
  all(): ParkedCall[] {
    return [...this.#byRecord.values()];
  }
}
