/**
 * Validation of values against the JSON Schemas of workers.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** One place where a value violates its schema. */
export interface ValidationError {
  /** JSON Pointer of the place, such as `/items/0/sku`; empty for the value itself. */
  readonly path: string;
  /** The violated rule, such as `must be integer`. */
  readonly message: string;
}

/** Lists the violations; empty for a valid value. */
export type SchemaCheck = (value: Json) => readonly ValidationError[];

/** Compiles schemas. */
export interface Schemas {
  /**
   * Called when a worker registers a function: loads what compile() needs, in parts beside other
   * work, so that no call waits for all of it. Resolves when it is loaded; never rejects.
   */
  prepare?(): Promise<void>;
  /**
   * Compiles a JSON Schema (2020-12).
   *
   * @throws {EngineError} `invalid_schema` when it is no usable schema or needs remote documents.
   */
  compile(schema: Json): SchemaCheck;
  /**
   * Compiles a schema in turns of its own if compile() would delay other work for long; `false`: it
   * would not. `onCompiled` is called later, with the check or with what compile() would throw;
   * what it returns is iterated in turns, too. Owners of schemas, such as workers, take turns.
   */
  compileSoon?(
    schema: Json,
    owner: object,
    onCompiled: (outcome: SchemaCheck | Error) => Iterable<void>,
  ): boolean;
}
