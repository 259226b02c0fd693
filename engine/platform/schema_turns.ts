/**
 * Compiles schemas in turns of the engine's thread, a stage at a time, and starts the calls that
 * waited for them.
 *
 * A large schema takes 50 to 90 ms to compile, so its stages are turns of their own, with messages
 * of all connections between them. Owners of schemas take turns, so that one with very many does
 * not delay those of others.
 *
 * @module
 */
import type { SchemaCheck } from "../ports/schemas.ts";
import type { Turns, Work } from "../ports/turns.ts";

/** Schemas that wait to be compiled. */
export const WAITING_SCHEMAS_MAX = 200;

/** The stages of compiling one schema; throws when it cannot be used. */
export type Stages = Generator<void, SchemaCheck, void>;

/** Gets what a schema became: its check, or why it cannot be used. What it returns is iterated. */
export type OnCompiled = (outcome: SchemaCheck | Error) => Iterable<void>;

/** Yields `true` where it may wait for schemas of other owners: half a compiler takes memory. */
type Job = Generator<true | void, void, void>;

/** See the top of this file. */
export class SchemaTurns implements Work {
  readonly #turns: Turns;
  readonly #prepare: () => Promise<void>;
  /** By owner; the first has the next turn. */
  readonly #jobs = new Map<object, Job[]>();
  #count = 0;
  #isQueued = false;

  /** Nothing is compiled before `prepare` resolves, which never rejects. */
  constructor(turns: Turns, prepare: () => Promise<void>) {
    this.#turns = turns;
    this.#prepare = prepare;
  }

  /** Whether one more schema may wait. */
  get hasRoom(): boolean {
    return this.#count < WAITING_SCHEMAS_MAX;
  }

  /** Compiles a schema of an owner behind its others. */
  add(owner: object, stages: Stages, onCompiled: OnCompiled): void {
    this.#count++;
    const jobs = this.#jobs.get(owner);
    const job = jobOf(stages, onCompiled);
    if (jobs) jobs.push(job);
    else this.#jobs.set(owner, [job]);
    if (this.#isQueued) return;
    this.#isQueued = true;
    void this.#prepare().then(() => this.#turns.queue(this));
  }

  /** Does stages until the turn is over. */
  work(): boolean {
    do {
      const [owner, jobs] = this.#jobs.entries().next().value!;
      const { done, value: mayWait } = jobs[0]!.next();
      if (!done && !mayWait) continue;
      if (done) {
        this.#count--;
        jobs.shift();
      }
      this.#jobs.delete(owner);
      if (jobs.length > 0) this.#jobs.set(owner, jobs); // Behind the others.
    } while (this.#jobs.size > 0 && !this.#turns.isSpent());
    return this.#isQueued = this.#jobs.size > 0;
  }
}

function* jobOf(stages: Stages, onCompiled: OnCompiled): Job {
  let outcome: SchemaCheck | Error;
  try {
    outcome = yield* stages;
  } catch (thrown) {
    outcome = thrown as Error;
  }
  for (const _ of onCompiled(outcome)) yield true;
}
