/**
 * `engine worker add`: put a worker into config.yaml, start it, and stay until it is ready.
 *
 * Progress goes to standard error; standard output gets one line when the worker is ready.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Endpoint, EngineInfo, Isolation, WorkerStatus } from "../../engine/mod.ts";
import type { Json, JsonObject } from "../../mod.ts";
import { UsageError } from "../failure.ts";
import { absolutePath, looksLikePath } from "../paths.ts";
import { withFields } from "../payload.ts";
import { type EngineAddress, type EngineLine, readNumber, type Terminal } from "../terminal.ts";
import { renderReady } from "../worker_view.ts";
import { waitUntilReady } from "../worker_wait.ts";

/** Default of `--wait-ms`; an installation may take its time. */
export const WAIT_MS = 300_000;
/** Longest `--wait-ms`: a day. */
export const WAIT_MS_MAX = 86_400_000;

const EXAMPLES = `
Examples:
  engine worker add ./workers/math-worker --isolation process
  engine worker add ./workers/math-worker --force        install its dependencies anew
  engine worker add engine-state
  engine worker add engine-http port=3200                with configuration, as key=value

A word with a slash is a directory, as is the name of one here with an engine.worker.yaml;
any other word is the name of a worker that comes with the engine.`;

/** What `--isolation` takes. */
export const ISOLATIONS = ["microvm", "process"] as const satisfies readonly Isolation[];

interface AddAnswer {
  readonly added: boolean;
  readonly changed: boolean;
  readonly config_path: string;
  readonly worker: WorkerStatus;
}

interface AddFlags extends EngineAddress {
  readonly isolation?: string | undefined;
  readonly force?: boolean | undefined;
  readonly waitMs: string;
}

/** Adds `engine worker add`. */
export function addWorkerAdd(group: Command, terminal: Terminal): void {
  group.command("add")
    .description("Add a worker to config.yaml and start it")
    .argument("<worker>", "directory of a worker, or name of one that comes with the engine")
    .argument("[config...]", "configuration of the latter, as key=value")
    .option("--isolation <kind>", "microvm or process (default: microvm on Linux, else process)")
    .option("--force", "install its dependencies anew")
    .option("--wait-ms <ms>", "how long to wait until it is ready; 0: do not wait", `${WAIT_MS}`)
    .option("--url <url>", "address of the engine (default: ENGINE_URL, ws://127.0.0.1:49134)")
    .option("--token <token>", "token of the engine (default: ENGINE_TOKEN)")
    .addHelpText("after", EXAMPLES)
    .action(async (word, config, flags) => {
      const waitMs = readNumber("--wait-ms", flags.waitMs, 0, WAIT_MS_MAX);
      const request = await readRequest(word, config, flags, terminal);
      await using engine = await terminal.connect(flags);
      await add(request, waitMs, engine, terminal);
    });
}

async function readRequest(
  word: string,
  config: readonly string[],
  flags: AddFlags,
  terminal: Terminal,
): Promise<JsonObject> {
  if (word === "") throw new UsageError("Which worker? Such as: engine worker add ./my-worker");
  const request: JsonObject = await isDirectory(word, terminal)
    ? { path: absolutePath(terminal.directory, word) }
    : { name: word };
  if (flags.isolation !== undefined) request["isolation"] = readIsolation(flags.isolation);
  if (flags.force) request["reinstall"] = true;
  if (config.length === 0) return request;
  if (request["path"] !== undefined) {
    throw new UsageError(`${word} is a directory; its configuration is in its engine.worker.yaml`);
  }
  return { ...request, config: withFields({}, config) };
}

async function isDirectory(word: string, terminal: Terminal): Promise<boolean> {
  if (looksLikePath(word)) return true;
  return await terminal.readFile(`${word}/engine.worker.yaml`).then(() => true, () => false);
}

function readIsolation(text: string): Isolation {
  const isolation = ISOLATIONS.find((known) => known === text);
  if (isolation !== undefined) return isolation;
  throw new UsageError(
    `--isolation: expected ${ISOLATIONS.join(" or ")}, received ${JSON.stringify(text)}`,
  );
}

async function add(
  request: JsonObject,
  waitMs: number,
  engine: EngineLine,
  terminal: Terminal,
): Promise<void> {
  const before = await endpointsOf(engine);
  const answer: Json | undefined = await engine.call("engine::supervisor::add", request);
  const { added, changed, config_path, worker } = answer as unknown as AddAnswer;
  const { name } = worker;
  if (added) terminal.err(`${name}  added to ${config_path}`);
  else if (changed) terminal.err(`${name}  changed in ${config_path}`);
  else terminal.err(`${name}  is in ${config_path} already`);
  if (waitMs === 0) {
    terminal.out(`${name} is ${worker.state}; see: engine worker status ${name}`);
    return;
  }
  const ready = await waitUntilReady({ engine, terminal, name, waitMs });
  for (const { url } of await endpointsOf(engine)) {
    if (!before.some((endpoint) => endpoint.url === url)) terminal.err(`${name}  serves ${url}`);
  }
  terminal.out(renderReady(ready));
}

/** The addresses that the engine serves now. */
async function endpointsOf(engine: EngineLine): Promise<readonly Endpoint[]> {
  const answer = await engine.call("engine::supervisor::info", {});
  return (answer as unknown as EngineInfo).endpoints;
}
