/**
 * Questions of a built-in worker to the other engines of the cluster.
 *
 * Each engine answers for itself, by a function in a namespace of its own; one that does not answer
 * in time is left out.
 *
 * @module
 */
import {
  type Directory,
  ENGINE_NAMESPACE,
  type Engines,
  type EngineView,
} from "../../engine/ports/directory.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
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
  return await callEngines(worker, engines, ASK_FUNCTION, { function_id, payload });
}

/** Calls a function of all other engines, each by its own namespace. Never rejects. */
export async function callEngines(
  worker: Pick<Worker, "trigger">,
  engines: Pick<Engines, "list"> | undefined,
  function_id: string,
  payload: Json,
): Promise<EngineAnswer[]> {
  const answers = otherEngines(engines).map((other) =>
    callEngine(worker, other, function_id, payload)
  );
  return (await Promise.all(answers)).filter((answer) => answer !== undefined);
}

/** Calls a function of one engine; `undefined`: it is gone, busy or older. Never rejects. */
export async function callEngine(
  worker: Pick<Worker, "trigger">,
  { life, name: engine }: Pick<EngineView, "life" | "name">,
  function_id: string,
  payload: Json,
): Promise<EngineAnswer | undefined> {
  try {
    const called = { function_id, namespace: ENGINE_NAMESPACE + life, payload };
    const result = await worker.trigger<Json, Json>({ ...called, timeoutMs: ASK_TIMEOUT_MS });
    return { engine, life, result };
  } catch {
    return undefined;
  }
}

/** The engines of the cluster but this one. */
export function otherEngines(engines: Pick<Engines, "list"> | undefined): EngineView[] {
  return engines?.list().filter(({ link }) => link !== null) ?? [];
}

/**
 * Refuses callers that are no engines of the cluster, for functions between engines.
 *
 * @throws {EngineError} `FORBIDDEN`
 */
export function checkEngine(
  directory: Pick<Directory, "worker">,
  { caller, function_id }: { readonly caller?: string | undefined; readonly function_id: string },
): void {
  if (directory.worker(caller ?? "")?.engine !== undefined) return;
  throw new EngineError("FORBIDDEN", `${function_id} answers engines of the cluster only`);
}
