/**
 * Questions of a built-in worker to the other engines of the cluster.
 *
 * Each engine answers for itself, by a function in a namespace of its own; one that does not answer
 * in time is left out.
 *
 * @module
 */
import { ENGINE_NAMESPACE, type Engines } from "../../engine/ports/directory.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";

/** The function that answers, in the namespace of its engine. */
export const ASK_FUNCTION = "cluster::ask";
/** How long an engine may take to answer. */
export const ASK_TIMEOUT_MS = 1_000;

/** What an engine answered. */
export interface EngineAnswer {
  /** Name of the engine. */
  readonly engine: string;
  readonly life: string;
  readonly result: Json;
}

/** Asks all other engines for what a function of theirs says. Never rejects. */
export async function askEngines(
  worker: Pick<Worker, "trigger">,
  engines: Pick<Engines, "list"> | undefined,
  function_id: string,
  payload: Json,
): Promise<EngineAnswer[]> {
  const others = engines?.list().filter(({ link }) => link !== null) ?? [];
  const answers = await Promise.all(others.map(async ({ life, name: engine }) => {
    try {
      const result = await worker.trigger<Json, Json>({
        function_id: ASK_FUNCTION,
        namespace: ENGINE_NAMESPACE + life,
        payload: { function_id, payload },
        timeoutMs: ASK_TIMEOUT_MS,
      });
      return [{ engine, life, result }];
    } catch {
      return []; // It is gone, busy or older.
    }
  }));
  return answers.flat();
}
