/**
 * How the engine's own functions are offered: each payload is checked against a shape.
 *
 * The shapes are not registered as `request_format`, since the core would then check every payload
 * a second time; listings ask for them here.
 *
 * @module
 */
import { z } from "zod";
import type { CallContext } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fit } from "../shapes.ts";

/** The functions of one worker and their shapes. */
export class Offers {
  readonly #worker: Pick<Worker, "registerFunction">;
  readonly #shapes = new Map<string, z.ZodType>();

  /** Stores. */
  constructor(worker: Pick<Worker, "registerFunction">) {
    this.#worker = worker;
  }

  /**
   * Registers a function whose payload is an object of a shape; no payload counts as an empty one.
   *
   * The function fails with `deserialization_error` when the payload does not fit.
   */
  add<Shape extends z.ZodType>(
    id: string,
    description: string,
    shape: Shape,
    run: (payload: z.output<Shape>, context: CallContext) => Json | Promise<Json>,
  ): void {
    this.#shapes.set(id, shape);
    this.#worker.registerFunction(
      id,
      (payload, _metadata, context) => run(fit(id, shape, payload ?? {}), context),
      { description },
    );
  }

  /** The JSON Schema of a payload; `undefined` for a function that is not offered here. */
  schemaOf(id: string): Json | undefined {
    const shape = this.#shapes.get(id);
    return shape && z.toJSONSchema(shape) as Json;
  }
}
