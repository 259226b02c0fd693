/**
 * How the engine's own functions are offered: with a schema for people, and a check of what comes.
 *
 * @module
 */
import { z } from "zod";
import type { CallContext } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fit } from "../shapes.ts";

/**
 * Registers a function whose payload is an object of a shape; no payload counts as an empty one.
 *
 * The function fails with `deserialization_error` when the payload does not fit.
 */
export function offer<Shape extends z.ZodType>(
  worker: Pick<Worker, "registerFunction">,
  id: string,
  description: string,
  shape: Shape,
  run: (payload: z.infer<Shape>, context: CallContext) => Json | Promise<Json>,
): void {
  const request_format = z.toJSONSchema(shape) as Json;
  worker.registerFunction(
    id,
    (payload: Json, _metadata: Json | undefined, context: CallContext) => {
      return run(fit(id, shape, payload ?? {}), context);
    },
    { description, request_format },
  );
}
