/**
 * Which requests to add or change a worker go together with what is there.
 *
 * Decides and changes nothing.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { ALWAYS_RUNNING } from "./config.ts";
import type { WorkerKeys } from "./file.ts";
import type { DirectoryEntry, WorkerEntry } from "../ports/config.ts";
import type { Isolation } from "../ports/launcher.ts";
import type { AddRequest } from "../ports/supervision.ts";

/** @throws {EngineError} `INVALID_ARGUMENTS` for a worker that always runs. */
export function refuseAlways(name: string, done: string): void {
  if (!ALWAYS_RUNNING.includes(name)) return;
  throw new EngineError("INVALID_ARGUMENTS", `${name} is the engine itself and cannot be ${done}`);
}

/** @throws {EngineError} `INVALID_ARGUMENTS` when another worker has the name. */
export function refuseClash(present: WorkerEntry | undefined, name: string, path: string): void {
  if (!present || (present.kind === "directory" && isSamePlace(present.path, path))) {
    return;
  }
  const other = present.kind === "directory" ? present.path : "a built-in worker";
  const message = `A worker ${name} is there already (${other}); ` +
    `change name in ${path}/engine.worker.yaml, or remove the other one`;
  throw new EngineError("INVALID_ARGUMENTS", message);
}

/** @throws {EngineError} `INVALID_ARGUMENTS` when what is asked for does not go together. */
export function refuseMisfits(name: string, isolation: Isolation, request: AddRequest): void {
  if (request.config !== undefined) {
    const message = `Worker ${name} is a directory, and config is for built-in workers; ` +
      "set what it reads under env in config.yaml";
    throw new EngineError("INVALID_ARGUMENTS", message);
  }
  if (request.accel === undefined || isolation === "microvm") return;
  const message =
    `accel says what runs a microVM, and worker ${name} would run as a plain process; ` +
    "leave it out, or ask for isolation microvm";
  throw new EngineError("INVALID_ARGUMENTS", message);
}

/** What is asked for and not so yet. */
export function differingKeys(request: AddRequest, entry: DirectoryEntry | undefined): WorkerKeys {
  const { isolation, accel, replicas } = request;
  return {
    ...isolation !== entry?.isolation && isolation && { isolation },
    ...accel !== (entry?.accel ?? "auto") && accel && { accel },
    ...replicas !== entry?.replicas && replicas && { replicas },
  };
}

/** Whether two paths lead to one directory, be it over links. */
function isSamePlace(one: string, other: string): boolean {
  if (one === other) return true;
  try {
    return Deno.realPathSync(one) === Deno.realPathSync(other);
  } catch {
    return false; // One of them is not there: not the same as one that is.
  }
}

/** The path as config.yaml has it: relative where the worker lies below the project. */
export function relativeTo(directory: string, path: string): string {
  return path.startsWith(`${directory}/`) ? `.${path.slice(directory.length)}` : path;
}
