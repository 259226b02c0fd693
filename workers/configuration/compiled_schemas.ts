/**
 * Checks of schemas that are in use, and the pace at which new ones are compiled.
 *
 * Compiling a schema takes a hundred times as long as a check, 50 ms for one of 500 parts, and
 * cannot be divided. A call of another peer waits for up to four pieces of work on its way, so of
 * schemas that are compiled one after the other each large one is followed by a rest.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { SchemaCheck, Schemas } from "../../engine/ports/schemas.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** How long nothing is compiled after a schema, in times of what it took. */
export const REST_FACTOR = 4;
/** A schema that takes less is followed by no rest. */
export const QUICK_MS = 5;
/** A schema of so many characters as JSON is compiled at once. */
export const SMALL_CHARS = 4_096;

/** See the top of this file. */
export class CompiledSchemas {
  readonly #schemas: Schemas;
  readonly #clock: Pick<Clock, "now" | "after">;
  readonly #checks = new WeakMap<object, SchemaCheck>();
  /** Resolves when the next schema may be compiled. */
  #rest: Promise<void> = Promise.resolve();

  constructor(schemas: Schemas, clock: Pick<Clock, "now" | "after">) {
    this.#schemas = schemas;
    this.#clock = clock;
  }

  /**
   * The check of a schema, compiled when it may be.
   *
   * @throws {EngineError} `invalid_schema`
   */
  async of(schema: Json): Promise<SchemaCheck> {
    if (schema === true) return () => [];
    const known = this.#known(schema);
    if (known) return known;
    // The compiler and a schema at once would keep the thread for 0.1 s.
    await this.prepare();
    // Callers with schemas of the usual size do not wait behind those with large ones.
    if (JSON.stringify(schema).length <= SMALL_CHARS) return this.at(schema);
    const before = this.#rest;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#rest = promise;
    await before;
    return this.#paced(() => this.at(schema), resolve);
  }

  /** Loads the compiler, which {@linkcode CompiledSchemas.at} would load in one piece. */
  async prepare(): Promise<void> {
    await this.#schemas.prepare?.();
  }

  /** Runs a piece of work; calls `rested` after its rest. Throws what `work` throws. */
  #paced<Result>(work: () => Result, rested: () => void): Result {
    const began = this.#clock.now();
    try {
      return work();
    } finally {
      const ms = this.#clock.now() - began;
      if (ms < QUICK_MS) rested();
      else this.#clock.after(REST_FACTOR * ms, rested);
    }
  }

  /**
   * The same at once, for lists, whose caller has turns of its own.
   *
   * @throws {EngineError} `invalid_schema`
   */
  at(schema: Json): SchemaCheck {
    if (schema === true) return () => [];
    const known = this.#known(schema);
    if (known) return known;
    const check = this.#schemas.compile(schema);
    if (typeof schema === "object" && schema !== null) this.#checks.set(schema, check);
    return check;
  }

  #known(schema: Json): SchemaCheck | undefined {
    return typeof schema === "object" && schema !== null ? this.#checks.get(schema) : undefined;
  }
}
