/**
 * Runs the tasks of state_file.ts in a thread of their own; the module is also what runs there.
 *
 * A thread starts in some 25 ms and ends with its task, so an engine that needs none has none.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { StateCheck } from "../ports/store.ts";
import { checkStateFile, copyStateFile, shrinkStateFile } from "./state_file.ts";

/** What to do with the state file at `path`. */
export type StateTask =
  | { readonly task: "check" | "shrink"; readonly path: string }
  | { readonly task: "copy"; readonly path: string; readonly to: string };

/** The result of a task, or why it failed. */
export type StateOutcome = { readonly check?: StateCheck } | { readonly failure: string };

/**
 * Runs a task; resolves when its thread has ended.
 *
 * @throws {EngineError} `store_unavailable` with the reason.
 */
export async function runInThread(task: StateTask): Promise<StateCheck | undefined> {
  const thread = new Worker(new URL("./state_thread.ts", import.meta.url), { type: "module" });
  try {
    const outcome = await new Promise<StateOutcome>((resolve) => {
      thread.onmessage = ({ data }: MessageEvent<StateOutcome>) => resolve(data);
      thread.onerror = (event) => {
        event.preventDefault();
        resolve({ failure: event.message });
      };
      thread.postMessage(task);
    });
    if (!("failure" in outcome)) return outcome.check;
    throw new EngineError("store_unavailable", `The ${task.task} failed: ${outcome.failure}`);
  } finally {
    thread.terminate();
  }
}

/** Does a task on this thread. */
export function runTask(task: StateTask): StateOutcome {
  try {
    switch (task.task) {
      case "check":
        return { check: checkStateFile(task.path) };
      case "copy":
        return { check: copyStateFile(task.path, task.to) };
      case "shrink":
        shrinkStateFile(task.path);
        return {};
    }
  } catch (thrown) {
    return { failure: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

/** What a thread has and the main program has not. */
const scope = globalThis as { onmessage?: unknown; postMessage?: (data: unknown) => void };

if (!("window" in globalThis) && scope.postMessage && "WorkerGlobalScope" in globalThis) {
  scope.onmessage = ({ data }: MessageEvent<StateTask>) => scope.postMessage!(runTask(data));
}
