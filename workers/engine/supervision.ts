/**
 * Registers `engine::supervisor::*` and `engine::config::list`.
 *
 * The functions delegate to the engine's {@linkcode Supervision}; here payloads and callers are
 * checked. Only operators may change workers, since that means running programs on this machine.
 * Built-in workers may not: triggers can make them call any function.
 *
 * @module
 */
import {
  type AddRequest,
  type ExecRequest,
  REPLICAS_MAX,
  type Supervision,
} from "../../engine/ports/supervision.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { EngineHost } from "../kit/define.ts";
import * as v from "../kit/schema.ts";
import { ExecInputs, INPUT_CHARS_MAX, runExec } from "./exec.ts";
import type { CheckedFunctions } from "./functions.ts";

/** Default number of lines of a worker's log. */
const LOG_TAIL_LINES = 100;
/** Lines of a worker's log in one answer. */
const LOG_TAIL_LINES_MAX = 10_000;

/** Characters of a name that is looked up: an error repeats it. */
const NAME_CHARS_MAX = 256;
/** Characters of a path, as systems have it. */
const PATH_CHARS_MAX = 4_096;
/** Words of a command, and characters of each. */
const COMMAND_WORDS_MAX = 1_000;
const COMMAND_WORD_CHARS_MAX = 128 * 1024;

/** Columns and rows of a terminal. */
const TERMINAL_CELLS_MAX = 1_000;
/** Characters of a kind of terminal, and of the id of an input. */
const TERM_CHARS_MAX = 64;
const INPUT_ID_CHARS_MAX = 64;

const Nothing = v.object({});
const InputId = v.text(1, INPUT_ID_CHARS_MAX);
const Name = v.object({
  name: v.described("The worker, as in config.yaml", v.text(1, NAME_CHARS_MAX)),
});
const Reinstall = v.described(
  "Deletes the cached dependencies and installs them again. Default: false",
  v.nullish(v.boolean()),
);
const Restart = v.object({ ...Name.entries, reinstall: Reinstall });
const Logs = v.object({
  ...Name.entries,
  tail: v.described(
    `Number of lines from the end. Default: ${LOG_TAIL_LINES}`,
    v.nullish(v.int(0, LOG_TAIL_LINES_MAX)),
  ),
});
const Replica = v.int(1, REPLICAS_MAX);
const Cells = v.int(1, TERMINAL_CELLS_MAX);
const Exec = v.object({
  ...Name.entries,
  command: v.described(
    "The program and its arguments; they are not passed through a shell",
    v.pipe(
      v.list(v.text(0, COMMAND_WORD_CHARS_MAX), COMMAND_WORDS_MAX),
      v.minLength(1),
    ),
  ),
  replica: v.described(
    "Number of the replica beside which the command runs. Default: the first one running",
    v.nullish(Replica),
  ),
  input: v.described(
    "An id of your choice, with which engine::supervisor::exec_input sends standard input. " +
      "Default: no input",
    v.nullish(InputId),
  ),
  tty: v.described(
    "Runs the command in a terminal; all of its output is then stdout. Default: no terminal",
    v.nullish(v.object({
      columns: v.described("Width in characters", Cells),
      rows: v.described("Height in lines", Cells),
      term: v.described(
        "Value of TERM, such as xterm-256color",
        v.pipe(v.text(1, TERM_CHARS_MAX), v.regex(/^[\w.+-]+$/)),
      ),
    })),
  ),
});
const ExecInput = v.object({
  input: v.described("The id that engine::supervisor::exec got as input", InputId),
  data: v.described(
    "Bytes in base64, at most 64 KiB; the call returns when the command has read them. " +
      "Default: none",
    v.nullish(v.text(0, INPUT_CHARS_MAX)),
  ),
  end: v.described("Ends the input: no more data follows. Default: false", v.nullish(v.boolean())),
});
const Add = v.pipe(
  v.object({
    name: v.described(
      "Name of a built-in worker, such as engine-queue; either this or path",
      v.nullish(v.text(1, NAME_CHARS_MAX)),
    ),
    path: v.described(
      "Absolute path of the worker's directory; either this or name",
      v.nullish(v.text(1, PATH_CHARS_MAX)),
    ),
    isolation: v.described(
      "Where it runs. Default: as the manifest says, else microvm on Linux, process elsewhere",
      v.nullish(v.picklist(["microvm", "process"])),
    ),
    accel: v.described(
      "What runs its microVM: hardware (kvm), software emulation (tcg), or kvm where it works. " +
        "Default: auto",
      v.nullish(v.picklist(["auto", "kvm", "tcg"])),
    ),
    replicas: v.described(
      "Number of replicas. Default: as the manifest says, else 1",
      v.nullish(Replica),
    ),
    reinstall: Reinstall,
    config: v.described(
      "Configuration of a built-in worker. Default: its defaults",
      v.nullish(v.record(v.unknown())),
    ),
  }),
  v.metadata({ anyOf: [{ required: ["name"] }, { required: ["path"] }] }),
);

/** Parts of the engine that the functions use. */
export type SupervisionHost = Pick<EngineHost, "directory" | "supervision">;

/** Registers `engine::supervisor::*`. */
export function registerSupervision(registry: CheckedFunctions, host: SupervisionHost): void {
  registerQueries(registry, host.supervision);
  registerCommands(registry, host);
}

/** Functions that any worker may call. */
function registerQueries(registry: CheckedFunctions, supervision: Supervision): void {
  registry.add(idOf("list"), "Supervised workers and their status", Nothing, async () => {
    return { workers: plain(await supervision.list()) };
  });
  registry.add(idOf("status"), "The status of one worker", Name, async ({ name }) => {
    return plain(await supervision.status(name));
  });
  registry.add(idOf("logs"), "The last lines a worker printed", Logs, async ({ name, tail }) => {
    return { lines: await supervision.logs(name, tail ?? LOG_TAIL_LINES) };
  });
  registry.add(idOf("info"), "Directories, version and endpoints of the engine", Nothing, () => {
    return plain(supervision.info());
  });
}

/** Functions for operators only. */
function registerCommands(registry: CheckedFunctions, host: SupervisionHost): void {
  const { supervision } = host;
  const inputs = new ExecInputs();
  const add = <Of>(
    name: string,
    description: string,
    of: v.Schema<Of>,
    run: (payload: Of, context: CallContext) => Promise<object>,
  ): void =>
    registry.add(idOf(name), description, of, async (payload, context) => {
      checkOperator(host, context);
      return plain(await run(payload, context));
    });
  add("start", "Starts a worker", Name, ({ name }) => supervision.start(name));
  add("stop", "Stops a worker until it is started again", Name, ({ name }) => {
    return supervision.stop(name);
  });
  add(
    "restart",
    "Restarts a worker, one replica after the other",
    Restart,
    ({ name, reinstall }) => {
      return supervision.restart(name, { reinstall: reinstall ?? false });
    },
  );
  add("add", "Adds a worker to config.yaml and starts it", Add, (payload) => {
    return supervision.add(readAdd(payload));
  });
  add("remove", "Removes a worker from config.yaml", Name, ({ name }) => supervision.remove(name));
  add("exec", "Runs a command beside a worker", Exec, async (payload, context) => {
    const { name, command, replica, input, tty } = payload;
    const request: ExecRequest = { name, command, ...replica && { replica } };
    const fed = input ? inputs.open(context.caller, input) : undefined;
    const options = { ...fed && { input: fed.stream }, ...tty && { tty } };
    try {
      return await runExec(supervision, request, context, options);
    } finally {
      fed?.close();
    }
  });
  add("exec_input", "Sends standard input to a command", ExecInput, (payload, { caller }) => {
    return inputs.write(caller, payload);
  });
}

/** @throws {EngineError} `FORBIDDEN` unless an operator calls: the engine's user on its machine. */
export function checkOperator(host: SupervisionHost, { caller, function_id }: CallContext): void {
  if (caller !== undefined && host.directory.worker(caller)?.operator) return;
  const { path, problem } = host.supervision.info().control_key;
  const why = problem === null ? `its key is in ${path}` : `the key is unavailable: ${problem}`;
  throw new EngineError(
    "FORBIDDEN",
    `Only the command line of the engine's own user on its machine may call ${function_id} ` +
      `(${why}); list, status, logs and info are open to all`,
  );
}

/** @throws {EngineError} `INVALID_ARGUMENTS` unless exactly one of name and path is given. */
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

/** The supervisor's types are plain JSON. */
function plain(value: object): Json {
  return value as Json;
}

/** Registers `engine::config::list`. The host has redacted secrets already. */
export function registerSettings(
  registry: CheckedFunctions,
  host: Pick<EngineHost, "configuration" | "supervision">,
): void {
  registry.add(
    "engine::config::list",
    "The configuration in force, and where each value comes from",
    v.object({}),
    () => ({
      settings: host.configuration() as unknown as Json, // Plain values by contract of the port.
      path: host.supervision.info().config_path,
    }),
  );
}
