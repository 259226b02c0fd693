/**
 * How the engine's own functions are offered: each payload is checked against a schema.
 *
 * The schemas are not registered as `request_format`, since the core would then check every payload
 * a second time; listings ask for them here.
 *
 * @module
 */
import * as v from "../kit/schema.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fit } from "../kit/fit.ts";

/** The functions of one worker and their schemas. */
export class Offers {
  readonly #worker: Pick<Worker, "registerFunction">;
  readonly #schemas = new Map<string, v.Schema>();

  /** Stores. */
  constructor(worker: Pick<Worker, "registerFunction">) {
    this.#worker = worker;
  }

  /**
   * Registers a function whose payload is an object; no payload counts as an empty one.
   *
   * The function fails with `deserialization_error` when the payload does not fit.
   */
  add<Of>(
    id: string,
    description: string,
    of: v.Schema<Of>,
    run: (payload: Of, context: CallContext) => Json | Promise<Json>,
  ): void {
    this.#schemas.set(id, of);
    this.#worker.registerFunction(
      id,
      (payload, _metadata, context) => run(fit(id, of, payload ?? {}), context),
      { description },
    );
  }

  /** The JSON Schema of a payload; `undefined` for a function that is not offered here. */
  schemaOf(id: string): Json | undefined {
    const schema = this.#schemas.get(id);
    // Unknown members are ignored; a form should still show that they mean nothing.
    return schema && { ...v.jsonSchema(schema), additionalProperties: false };
  }
}
