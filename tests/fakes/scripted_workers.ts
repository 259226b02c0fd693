/**
 * The functions of an engine whose workers go through states that a test wrote down, one with each
 * question; the last one stays.
 *
 * @module
 */
import type { WorkerStatus } from "../../engine/ports/supervision.ts";
import { InvocationError, type Json, type JsonObject } from "../../mod.ts";
import type { Answer } from "./fake_terminal.ts";
import { builtinStatus, workerStatus } from "./samples.ts";

/** One worker of the script. */
export interface Script {
  /** What differs from a worker that is ready. */
  readonly states?: readonly Partial<WorkerStatus>[];
  /** After its last state it is not there any more. */
  readonly leaves?: boolean;
  /** How it is before it is added; left out: it is not there. */
  readonly before?: Partial<WorkerStatus>;
  /** The last lines of its log, one list with each question. */
  readonly log?: readonly (readonly string[])[];
  readonly added?: boolean;
  readonly changed?: boolean;
  /** Thrown when it is added. */
  readonly refusal?: Error;
  /** Adding takes until this settles. */
  readonly adding?: Promise<unknown>;
}

/** Functions for a {@linkcode FakeTerminal}; a script has the name of its worker or directory. */
export function scriptedWorkers(
  scripts: Readonly<Record<string, Script>>,
  platform = "linux",
): Record<string, Answer> {
  const endpoints = [{ name: "workers", url: "ws://127.0.0.1:49134" }];
  const left = new Map(
    Object.entries(scripts).map(([name, script]) => [name, {
      script,
      states: [...script.states ?? [{}]],
      log: [...script.log ?? []],
    }]),
  );
  const base = (name: string, changed: Partial<WorkerStatus> = {}): Json => {
    const make = name.startsWith("engine-") ? builtinStatus : workerStatus;
    return make({ name, ...changed }) as unknown as Json;
  };
  const find = (name: string) => {
    const found = left.get(name);
    if (found) return found;
    const message = `There is no worker ${name}; there are: ${[...left.keys()].join(", ")}`;
    throw new InvocationError({ code: "NOT_FOUND", message }, "engine::supervisor::status");
  };
  const status = ({ name }: JsonObject): Json => {
    const { states, script } = find(String(name));
    if (script.leaves && states.length === 1) left.delete(String(name));
    return base(String(name), states.length > 1 ? states.shift() : states[0]);
  };
  const known = ({ name }: JsonObject): Json => find(String(name)) && base(String(name));
  return {
    "engine::supervisor::info": () => ({ endpoints: [...endpoints], platform }),
    "engine::supervisor::list": () => ({
      workers: Object.entries(scripts).filter(([, script]) => script.before)
        .map(([name, script]) => base(name, script.before)),
    }),
    "engine::supervisor::status": status,
    "engine::supervisor::logs": ({ name }) => ({
      lines: [...find(String(name)).log.shift() ?? []],
    }),
    "engine::supervisor::add": async ({ name, path, isolation }) => {
      const wanted = String(name ?? String(path).split("/").at(-1));
      const { script } = find(wanted);
      await script.adding;
      if (script.refusal) throw script.refusal;
      if (wanted === "engine-http") endpoints.push({ name: "http", url: "http://127.0.0.1:3111" });
      const { added = true, changed = false } = script;
      const kept = isolation === undefined ? {} : { isolation: isolation as "process" };
      const worker = base(wanted, { state: "queued", ...script.before, ...kept });
      return { added, changed, config_path: "/project/config.yaml", worker };
    },
    "engine::supervisor::start": known,
    "engine::supervisor::stop": known,
    "engine::supervisor::restart": known,
    "engine::supervisor::remove": () => ({ config_path: "/project/config.yaml" }),
  };
}
