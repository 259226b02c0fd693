/**
 * Calls of a built-in worker to the other engines of the cluster, and functions that answer them.
 *
 * Each engine answers for itself, by functions in a namespace of its own. Where all are asked, one
 * that does not answer in time is left out.
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
    const call = { function_id, payload, timeoutMs: ASK_TIMEOUT_MS };
    return { engine, life, result: await triggerAt(worker, life, call) };
  } catch {
    return undefined;
  }
}

/** Calls a function in the namespace of the engine with this life. Rejects as any call. */
export function triggerAt(
  worker: Pick<Worker, "trigger">,
  life: string,
  call: { readonly function_id: string; readonly payload: Json; readonly timeoutMs: number },
): Promise<Json> {
  return worker.trigger<Json, Json>({ ...call, namespace: ENGINE_NAMESPACE + life });
}

/** The engines of the cluster but this one. */
export function otherEngines(engines: Pick<Engines, "list"> | undefined): EngineView[] {
  return engines?.list().filter(({ link }) => link !== null) ?? [];
}

/** What registers a function between engines. */
export interface EngineFunctionSetup {
  readonly worker: Pick<Worker, "registerFunction">;
  readonly directory: Pick<Directory, "worker">;
  /** The life of this engine, in whose namespace it is. Default: it is in none. */
  readonly life?: string;
}

/**
 * Registers a function that only engines of the cluster may call; other callers get `FORBIDDEN`.
 */
export function registerForEngines(
  { worker, directory, life }: EngineFunctionSetup,
  { function_id, description }: { readonly function_id: string; readonly description: string },
  handle: (payload: Json) => Json | Promise<Json>,
): void {
  worker.registerFunction(function_id, (payload: Json, _metadata, { caller }) => {
    if (directory.worker(caller ?? "")?.engine !== undefined) return handle(payload);
    throw new EngineError("FORBIDDEN", `${function_id} answers engines of the cluster only`);
  }, {
    ...life !== undefined && { namespace: ENGINE_NAMESPACE + life },
    description,
    metadata: { internal: true },
  });
}
