/**
 * Calls that wait for somebody to offer their function again, and which functions those may be.
 *
 * A plain table: it sends nothing and knows no time; {@linkcode Calls} starts and ends what waits
 * here. A parked call is kept as its frame and parsed again when it starts: the parsed message
 * takes several times the memory.
 *
 * @module
 */
import { PARKED_BYTES_MAX, PARKED_CALLS_MAX } from "../../sdk/typescript/wire/limits.ts";
import { DEFAULT_NAMESPACE, type InvokeFunction } from "../../sdk/typescript/wire/protocol.ts";
import type { Invocation, Peer } from "./peer.ts";

/** One call that waits. */
export interface ParkedCall {
  /** Who made it, also when it does not wait for a result. */
  readonly caller: Peer;
  /** What it says, but for what it carries. */
  readonly call: InvokeFunction;
  /** All it says. */
  readonly text: string;
  /** Its record among the running calls. */
  readonly invocation: Invocation;
}

/** What names a function in a table: equal for the same id in the same namespace. */
export type Target = string;

/** The name of a function for tables. */
export function targetOf(function_id: string, namespace: string = DEFAULT_NAMESPACE): Target {
  return JSON.stringify([namespace, function_id]);
}

/** The calls that wait. */
export class ParkedCalls {
  /** In the order they came. */
  readonly #byTarget = new Map<Target, Set<ParkedCall>>();
  readonly #byRecord = new Map<Invocation, ParkedCall>();
  /** How many expect each function. */
  readonly #expected = new Map<Target, number>();
  #bytes = 0;

  /** Calls that wait. */
  get size(): number {
    return this.#byRecord.size;
  }

  /** Somebody expects that the function will be offered again; once for each stopExpecting(). */
  expect(target: Target): void {
    this.#expected.set(target, (this.#expected.get(target) ?? 0) + 1);
  }

  /** Somebody who expected that does so no longer. */
  stopExpecting(target: Target): void {
    const others = this.#expected.get(target)! - 1;
    if (others > 0) this.#expected.set(target, others);
    else this.#expected.delete(target);
  }

  /** Whether a call of a function that nobody runs now is to wait. */
  isExpected({ function_id, namespace }: InvokeFunction): boolean {
    return this.#expected.size > 0 && this.#expected.has(targetOf(function_id, namespace));
  }

  /** Whether one more call with so many characters may wait. */
  hasRoom(bytes: number): boolean {
    return this.size < PARKED_CALLS_MAX && this.#bytes + bytes <= PARKED_BYTES_MAX;
  }

  /** Puts a call behind those that wait already. */
  add({ call: { data: _data, metadata: _metadata, ...call }, ...rest }: ParkedCall): void {
    const parked: ParkedCall = { call, ...rest };
    const target = targetOf(call.function_id, call.namespace);
    const queue = this.#byTarget.get(target);
    if (queue) queue.add(parked);
    else this.#byTarget.set(target, new Set([parked]));
    this.#byRecord.set(parked.invocation, parked);
    this.#bytes += parked.text.length;
  }

  /** Calls that wait for a function, in the order they came. */
  waitingFor(target: Target): ParkedCall[] {
    return [...this.#byTarget.get(target) ?? []];
  }

  /** The call that waits with this record. */
  find(invocation: Invocation): ParkedCall | undefined {
    return this.#byRecord.get(invocation);
  }

  /** Takes a call out by its record; nothing happens when that one does not wait. */
  remove(invocation: Invocation): void {
    const parked = this.#byRecord.get(invocation);
    if (!parked) return;
    const target = targetOf(parked.call.function_id, parked.call.namespace);
    const queue = this.#byTarget.get(target)!;
    queue.delete(parked);
    if (queue.size === 0) this.#byTarget.delete(target);
    this.#byRecord.delete(invocation);
    this.#bytes -= parked.text.length;
  }

  /** Calls that wait for functions which nobody expects any more. */
  unexpected(): ParkedCall[] {
    return this.all().filter(({ call }) => !this.isExpected(call));
  }

  /** Every call that waits. */
  all(): ParkedCall[] {
    return [...this.#byRecord.values()];
  }
}
