/**
 * Checks of values against JSON Schemas that workers brought along.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** One place where a value does not fit. */
export interface ValidationError {
  /** JSON Pointer of the place, such as `/items/0/sku`; empty for the value itself. */
  readonly path: string;
  /** What does not fit, such as `must be integer`. */
  readonly message: string;
}

/** Lists what does not fit; empty when all does. */
export type SchemaCheck = (value: Json) => readonly ValidationError[];

/** Turns schemas into checks. */
export interface Schemas {
  /**
   * The check of a schema (JSON Schema 2020-12).
   *
   * @throws {EngineError} `invalid_schema` when it is no usable schema or needs remote documents.
   */
  compile(schema: Json): SchemaCheck;
}
