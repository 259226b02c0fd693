/**
 * Accounts for calls: each has to end exactly once, in time.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Peer } from "./peer.ts";
import { pause } from "./waiting.ts";

/** How long after its deadline a call may end. */
const LATE_MS = 5_000;

/** The calls of one peer, which hears of nothing else. */
export class Ledger {
  sent = 0;
  /** Calls that ended with a result. */
  results = 0;
  /** Errors by code. */
  readonly errors = new Map<string, number>();
  /** Calls that ended twice, or were never made. */
  doubled = 0;
  /** Longest time from sending to the end. */
  longestMs = 0;
  readonly #peer: Peer;
  readonly #open = new Map<string, number>();
  readonly #name: string;

  constructor(peer: Peer, name: string) {
    this.#peer = peer;
    this.#name = name;
    peer.onText = (text) => {
      if (text.startsWith('{"type":"invocationresult"')) this.#end(JSON.parse(text));
    };
  }

  /** Calls that have not ended. */
  get open(): number {
    return this.#open.size;
  }

  /** Makes a call. */
  call(functionId: string, timeoutMs: number, data: string = "1"): Promise<void> {
    const id = `${this.#name}-${this.sent++}`;
    this.#open.set(id, performance.now());
    const ids = `"invocation_id":"${id}","function_id":"${functionId}"`;
    return this.#peer.send(
      `{"type":"invokefunction",${ids},"timeout_ms":${timeoutMs},"data":${data}}`,
    );
  }

  /** Waits until all calls have ended, or could have. */
  async close(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs + LATE_MS;
    while (this.#open.size > 0 && performance.now() < end && !this.#peer.isOver) await pause(20);
  }

  /** What is wrong, if something is. */
  problems(): string[] {
    const problems: string[] = [];
    if (this.#open.size > 0) problems.push(`${this.#open.size} calls never ended`);
    if (this.doubled > 0) problems.push(`${this.doubled} results of calls that were not open`);
    return problems;
  }

  #end(message: JsonObject): void {
    const id = String(message.invocation_id);
    const start = this.#open.get(id);
    if (start === undefined) {
      this.doubled++;
      return;
    }
    this.#open.delete(id);
    this.longestMs = Math.max(this.longestMs, performance.now() - start);
    const error = message.error as { code: string } | undefined;
    if (error === undefined) this.results++;
    else this.errors.set(error.code, (this.errors.get(error.code) ?? 0) + 1);
  }
}

/** The counts of several ledgers as text. */
export function summaryOf(ledgers: readonly Ledger[]): string {
  const sum = (pick: (ledger: Ledger) => number) =>
    ledgers.reduce((total, ledger) => total + pick(ledger), 0);
  const codes = new Map<string, number>();
  for (const { errors } of ledgers) {
    for (const [code, count] of errors) codes.set(code, (codes.get(code) ?? 0) + count);
  }
  const errors = [...codes].map(([code, count]) => `${count} ${code}`).join(", ");
  return `${sum(({ sent }) => sent)} calls: ${sum(({ results }) => results)} results` +
    (errors === "" ? "" : `, ${errors}`);
}
