/**
 * How the engine's own functions are offered: each payload is checked against a shape.
 *
 * The shapes are not registered as `request_format`, since the core would then check every payload
 * a second time; listings ask for them here.
 *
 * @module
 */
import type * as shape from "../kit/mod.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fit } from "../kit/payload.ts";

/** The JSON Schema that shapes are told in. */
const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** The functions of one worker and their shapes. */
export class Offers {
  readonly #worker: Pick<Worker, "registerFunction">;
  readonly #shapes = new Map<string, shape.Any>();

  /** Stores. */
  constructor(worker: Pick<Worker, "registerFunction">) {
    this.#worker = worker;
  }

  /**
   * Registers a function whose payload is an object of a shape; no payload counts as an empty one.
   *
   * The function fails with `deserialization_error` when the payload does not fit.
   */
  add<Of>(
    id: string,
    description: string,
    of: shape.Shape<Of, boolean>,
    run: (payload: Of, context: CallContext) => Json | Promise<Json>,
  ): void {
    this.#shapes.set(id, of);
    this.#worker.registerFunction(
      id,
      (payload, _metadata, context) => run(fit(id, of, payload ?? {}), context),
      { description },
    );
  }

  /** The JSON Schema of a payload; `undefined` for a function that is not offered here. */
  schemaOf(id: string): Json | undefined {
    const shape = this.#shapes.get(id);
    return shape && { $schema: DIALECT, ...shape.schema("output") };
  }
}
