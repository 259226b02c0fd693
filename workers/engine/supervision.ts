/**
 * `engine::supervisor::*`: what the command line asks of the workers that the engine runs.
 *
 * Every function hands on to the engine's {@linkcode Supervision}; only shapes are checked here.
 *
 * @module
 */
import { z } from "zod";
import type { AddRequest, Supervision } from "../../engine/ports/supervision.ts";
import { EngineError } from "../../sdk/typescript/errors.ts";
import { LOG_TAIL_LINES, LOG_TAIL_LINES_MAX } from "../../sdk/typescript/limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/protocol.ts";
import type { Offers } from "./offers.ts";

const Nothing = z.object({});
const Name = z.object({ name: z.string().min(1) });
const Restart = Name.extend({ reinstall: z.boolean().nullish() });
const Logs = Name.extend({ tail: z.int().min(0).max(LOG_TAIL_LINES_MAX).nullish() });
const Add = z.object({
  name: z.string().min(1).nullish(),
  path: z.string().min(1).nullish(),
  isolation: z.enum(["microvm", "process"]).nullish(),
  reinstall: z.boolean().nullish(),
  config: z.record(z.string(), z.unknown()).nullish(),
}).meta({ anyOf: [{ required: ["name"] }, { required: ["path"] }] });

/** Registers the functions of supervision. */
export function offerSupervision(offers: Offers, supervision: Supervision): void {
  const id = (name: string): string => `engine::supervisor::${name}`;
  offers.add(id("list"), "Workers the engine runs, and how they fare", Nothing, () => {
    return { workers: supervision.list().map(plain) };
  });
  offers.add(id("status"), "How one worker fares", Name, ({ name }) => {
    return plain(supervision.status(name));
  });
  offers.add(id("start"), "Starts a worker", Name, ({ name }) => {
    return plain(supervision.start(name));
  });
  offers.add(id("stop"), "Stops a worker until it is started again", Name, ({ name }) => {
    return plain(supervision.stop(name));
  });
  offers.add(id("restart"), "Ends a worker and starts it again", Restart, (payload) => {
    return plain(supervision.restart(payload.name, { reinstall: payload.reinstall ?? false }));
  });
  offers.add(id("add"), "Adds a worker to config.yaml and starts it", Add, async (payload) => {
    return plain(await supervision.add(readAdd(payload)));
  });
  offers.add(id("remove"), "Takes a worker out of config.yaml", Name, async ({ name }) => {
    return plain(await supervision.remove(name));
  });
  offers.add(id("logs"), "The last lines a worker printed", Logs, async ({ name, tail }) => {
    return { lines: await supervision.logs(name, tail ?? LOG_TAIL_LINES) };
  });
  offers.add(id("info"), "Where this engine lies and what it serves", Nothing, () => {
    return plain(supervision.info());
  });
}

/** @throws {EngineError} `INVALID_ARGUMENTS` unless exactly one of name and path is there. */
function readAdd(payload: z.infer<typeof Add>): AddRequest {
  const { name, path, isolation, reinstall, config } = payload;
  if ((name ?? undefined) === undefined && (path ?? undefined) === undefined) {
    throw new EngineError("INVALID_ARGUMENTS", "Give the name of a built-in worker or a path");
  }
  if (name && path) {
    throw new EngineError("INVALID_ARGUMENTS", "Give a name or a path, not both");
  }
  return {
    ...name && { name },
    ...path && { path },
    ...isolation && { isolation },
    ...reinstall && { reinstall },
    ...config && { config: config as JsonObject },
  };
}

/** What the engine tells of itself is JSON already; the types only do not say so. */
function plain(value: object): Json {
  return value as Json;
}
