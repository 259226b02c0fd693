/**
 * Registers functions whose payloads are checked against a schema.
 *
 * The schemas are not registered as `request_format`, since the core would then check each payload
 * a second time; listings obtain them from {@linkcode CheckedFunctions.schemaOf}.
 *
 * @module
 */
import type { CallContext } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { checkFilters } from "./pages.ts";

/** The functions of one worker and their schemas. */
export class CheckedFunctions {
  readonly #worker: Pick<Worker, "registerFunction">;
  readonly #schemas = new Map<string, v.Schema>();

  constructor(worker: Pick<Worker, "registerFunction">) {
    this.#worker = worker;
  }

  /**
   * Registers a function whose payload is an object; an absent payload counts as an empty one.
   *
   * Calls with an invalid payload fail with `deserialization_error`.
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

  /** The same for a query, whose texts and lists are short; longer ones are `invalid_payload`. */
  addQuery<Of>(
    id: string,
    description: string,
    of: v.Schema<Of>,
    run: (payload: Of, context: CallContext) => Json | Promise<Json>,
  ): void {
    this.add(id, description, of, (payload, context) => {
      checkFilters(id, payload as object);
      return run(payload, context);
    });
  }

  /** The JSON Schema of a function's payload; `undefined` if it is not registered here. */
  schemaOf(id: string): Json | undefined {
    const schema = this.#schemas.get(id);
    // Unknown members are ignored; forms should nevertheless reject them.
    return schema && { ...v.jsonSchema(schema), additionalProperties: false };
  }
}
