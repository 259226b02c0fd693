/**
 * The functions that the core answers itself, because they concern the connection that speaks and
 * have to take effect in the order of its frames. Nobody registers them, so listings add them.
 *
 * @module
 */
import { ANNOUNCE_FUNCTION_ID, DEFAULT_NAMESPACE } from "../../sdk/typescript/protocol.ts";
import type { FunctionView } from "../../engine/ports/directory.ts";
import type { Json } from "../../sdk/typescript/protocol.ts";

/** Name of the worker that offers what no other built-in does. */
export const ENGINE_WORKER_NAME = "engine";

/** All of them, as the directory would show them. */
export const CORE_FUNCTIONS: readonly FunctionView[] = [
  describe(ANNOUNCE_FUNCTION_ID, "Says who speaks on this connection", {
    type: "object",
    required: ["runtime", "version", "name", "os", "pid"],
    properties: {
      runtime: { type: "string" },
      version: { type: "string" },
      name: { type: "string" },
      description: { type: "string" },
      os: { type: "string" },
      pid: { type: "integer" },
      isolation: { type: ["string", "null"] },
      namespace: { type: "string" },
      capabilities: { type: "array", items: { type: "string" } },
      telemetry: { type: "object" },
    },
  }),
  describe("engine::register_trigger", "Binds a function to something that happens", {
    type: "object",
    required: ["trigger_type", "function_id"],
    properties: {
      trigger_type: { type: "string" },
      function_id: { type: "string" },
      config: {},
      metadata: {},
    },
  }),
  describe("engine::unregister_trigger", "Ends a trigger", {
    type: "object",
    required: ["id"],
    properties: { id: { type: "string" } },
  }),
];

function describe(function_id: string, description: string, request_schema: Json): FunctionView {
  return {
    function_id,
    namespace: DEFAULT_NAMESPACE,
    worker_id: ENGINE_WORKER_NAME,
    worker_name: ENGINE_WORKER_NAME,
    description,
    request_schema,
    internal: false,
    builtin: true,
    worker_ids: [],
  };
}
