/**
 * `engine::supervisor::*`: what the command line asks of the workers that the engine runs.
 *
 * Every function hands on to the engine's {@linkcode Supervision}; only shapes are checked here,
 * and who asks: whoever can change workers can run programs on this machine. Built-in workers may
 * not either, since triggers make them call what anybody named.
 *
 * @module
 */
import type { Ended, OutputChunk } from "../../engine/ports/launcher.ts";
import type { AddRequest, ExecRequest, Supervision } from "../../engine/ports/supervision.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { REPLICAS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { EngineHost } from "../kit/define.ts";
import * as v from "../kit/schema.ts";
import type { Offers } from "./functions.ts";

/** Default number of lines of a worker's log. */
const LOG_TAIL_LINES = 100;
/** Lines of a worker's log in one answer. */
const LOG_TAIL_LINES_MAX = 10_000;

const Nothing = v.object({});
const Name = v.object({ name: v.text(1) });
const Restart = v.object({ ...Name.entries, reinstall: v.nullish(v.boolean()) });
const Logs = v.object({ ...Name.entries, tail: v.nullish(v.int(0, LOG_TAIL_LINES_MAX)) });
const Replica = v.int(1, REPLICAS_MAX);
const Exec = v.object({
  ...Name.entries,
  command: v.pipe(v.array(v.string()), v.minLength(1)),
  replica: v.nullish(Replica),
});
const Add = v.pipe(
  v.object({
    name: v.nullish(v.text(1)),
    path: v.nullish(v.text(1)),
    isolation: v.nullish(v.picklist(["microvm", "process"])),
    accel: v.nullish(v.picklist(["auto", "kvm", "tcg"])),
    replicas: v.nullish(Replica),
    reinstall: v.nullish(v.boolean()),
    config: v.nullish(v.record(v.unknown())),
  }),
  v.metadata({ anyOf: [{ required: ["name"] }, { required: ["path"] }] }),
);

/** What of the engine these functions need. */
export type SupervisionHost = Pick<EngineHost, "directory" | "supervision">;

/** Registers the functions of supervision. */
export function offerSupervision(offers: Offers, host: SupervisionHost): void {
  offerLooks(offers, host.supervision);
  offerChanges(offers, host);
}

/** What anybody may ask. */
function offerLooks(offers: Offers, supervision: Supervision): void {
  offers.add(idOf("list"), "Workers the engine runs, and how they fare", Nothing, async () => {
    return { workers: plain(await supervision.list()) };
  });
  offers.add(idOf("status"), "How one worker fares", Name, async ({ name }) => {
    return plain(await supervision.status(name));
  });
  offers.add(idOf("logs"), "The last lines a worker printed", Logs, async ({ name, tail }) => {
    return { lines: await supervision.logs(name, tail ?? LOG_TAIL_LINES) };
  });
  offers.add(idOf("info"), "Where this engine lies and what it serves", Nothing, () => {
    return plain(supervision.info());
  });
}

/** What only the engine's own user may do. */
function offerChanges(offers: Offers, host: SupervisionHost): void {
  const { supervision } = host;
  const add = <Of>(
    name: string,
    description: string,
    of: v.Schema<Of>,
    run: (payload: Of, context: CallContext) => Promise<object>,
  ): void =>
    offers.add(idOf(name), description, of, async (payload, context) => {
      checkOperator(host, context);
      return plain(await run(payload, context));
    });
  add("start", "Starts a worker", Name, ({ name }) => supervision.start(name));
  add("stop", "Stops a worker until it is started again", Name, ({ name }) => {
    return supervision.stop(name);
  });
  add("restart", "Ends a worker and starts it again", Restart, ({ name, reinstall }) => {
    return supervision.restart(name, { reinstall: reinstall ?? false });
  });
  add("add", "Adds a worker to config.yaml and starts it", Add, (payload) => {
    return supervision.add(readAdd(payload));
  });
  add("remove", "Takes a worker out of config.yaml", Name, ({ name }) => supervision.remove(name));
  add("exec", "Runs a command beside a worker", Exec, (payload, context) => {
    const { name, command, replica } = payload;
    const request: ExecRequest = { name, command, ...replica && { replica } };
    return runBeside(supervision, request, context);
  });
}

/** @throws {EngineError} `FORBIDDEN` unless the engine's own user calls, on its machine. */
function checkOperator(host: SupervisionHost, { caller, function_id }: CallContext): void {
  if (caller !== undefined && host.directory.worker(caller)?.operator) return;
  const { path, problem } = host.supervision.info().control_key;
  const why = problem === null ? `its key is in ${path}` : `none can be it now: ${problem}`;
  throw new EngineError(
    "FORBIDDEN",
    `Only the command line of the engine's own user on its machine may call ${function_id} ` +
      `(${why}); list, status, logs and info are open to all`,
  );
}

/** @throws {EngineError} `INVALID_ARGUMENTS` unless exactly one of name and path is there. */
function readAdd(payload: v.InferOutput<typeof Add>): AddRequest {
  const { name, path, isolation, accel, replicas, reinstall, config } = payload;
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
    ...accel && { accel },
    ...replicas && { replicas },
    ...reinstall && { reinstall },
    ...config && { config: config as JsonObject },
  };
}

function idOf(name: string): string {
  return `engine::supervisor::${name}`;
}

/** What the engine tells of itself is JSON already; the types only do not say so. */
function plain(value: object): Json {
  return value as Json;
}

/** Bytes of output in one message: large enough to be quick, small enough to be on its way soon. */
const PIECE_BYTES = 48 * 1024;

/**
 * How the command ended; the caller's cancel ends it.
 *
 * @throws {EngineError} It could not be started.
 */
export async function runBeside(
  supervision: Pick<Supervision, "exec">,
  request: ExecRequest,
  context: Pick<CallContext, "progress" | "signal">,
): Promise<Ended> {
  const send = ({ stream, bytes }: OutputChunk): void => {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      context.progress({ stream, data: bytes.subarray(at, at + PIECE_BYTES).toBase64() });
    }
  };
  return await supervision.exec(request, send, context.signal);
}

/** Registers the function. Secrets are shortened before they come here. */
export function offerSettings(
  offers: Offers,
  host: Pick<EngineHost, "configuration" | "supervision">,
): void {
  offers.add(
    "engine::config::list",
    "The configuration in force, and where each value comes from",
    v.object({}),
    () => ({
      settings: host.configuration() as unknown as Json, // Plain values, as the port says.
      path: host.supervision.info().config_path,
    }),
  );
}
