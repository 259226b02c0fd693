/**
 * `engine worker add`: add workers to config.yaml, start them, and wait until they are ready.
 *
 * The whole command line is checked first, so that an invalid argument changes nothing. Then the
 * engine adds one worker after the other, and each is followed until it is ready. Progress goes to
 * standard error; standard output gets one line for each worker that is ready.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Endpoint, EngineInfo, Isolation, WorkerStatus } from "../../../engine/mod.ts";
import type { JsonObject } from "../../../mod.ts";
import {
  absolutePath,
  ACCELERATORS,
  looksLikePath,
  readChoice,
  readIsolation,
  readNumber,
  readTimeout,
  REPLICAS_MAX,
  TIMEOUT_S,
  TOKEN_HELP,
  URL_HELP,
} from "../../arguments.ts";
import type { EngineConnection } from "../../connect.ts";
import { describeFailure, EXIT_DONE, EXIT_NOT_READY, UsageError } from "../../failure.ts";
import { withFields } from "../../payload.ts";
import { type Progress, type ProgressRow, showProgress } from "../../progress.ts";
import { renderDuration } from "../../render.ts";
import { interruptible, type Terminal } from "../../terminal.ts";
import {
  ANSWER_MS_MAX,
  type DesiredWorker,
  followAll,
  type Followed,
  FollowedWorker,
  stageOf,
} from "./follow.ts";

const EXAMPLES = `
Examples:
  engine worker add ./workers/math-worker
  engine worker add ./workers/math-worker --isolation process --replicas 3
  engine worker add ./workers/math-worker --accel tcg    software emulation: no KVM needed, slow
  engine worker add ./workers/math-worker --force        reinstall its dependencies
  engine worker add engine-http port=3200                with configuration, as key=value
  engine worker add engine-state ./workers/a ./workers/b several at once

A word with a slash is a directory, as is the name of one here with an engine.worker.yaml; key=value
belongs to the word before it; any other word is the name of a built-in worker.

Exit codes: 0 all are ready, 1 one failed, 2 invalid usage, 3 not ready within --timeout, 130 after
Ctrl-C (the engine continues: see engine worker list).`;

/** Adds `engine worker add`. */
export function addWorkerAdd(group: Command, terminal: Terminal): void {
  group.command("add")
    .description("Add workers to config.yaml and start them")
    .argument(
      "<workers...>",
      "directories of workers, or names of built-in workers, with their key=value",
    )
    .option("--isolation <kind>", "microvm or process (default: microvm on Linux, else process)")
    .option("--accel <what>", "what runs its microVM: auto, kvm or tcg (default: auto)")
    .option("--replicas <number>", "how many replicas run at once (default: 1)")
    .option("--force", "reinstall its dependencies")
    .option(
      "--timeout <time>",
      "how long to wait until all are ready, such as 90, 90s or 2m; 0: do not wait",
      `${TIMEOUT_S}`,
    )
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (words, flags) => {
      const timeoutMs = readTimeout(flags.timeout);
      const requests = await readRequests(words, flags, terminal);
      await interruptible(terminal, async (signal) => {
        await using engine = await terminal.connect(flags);
        await add(requests, { engine, terminal, timeoutMs, signal });
      });
    });
}

interface AddOptions {
  readonly engine: EngineConnection;
  readonly terminal: Terminal;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

async function add(requests: readonly AddRequest[], options: AddOptions): Promise<void> {
  const { engine, terminal, timeoutMs, signal } = options;
  const before = await endpointsOf(engine, signal);
  const progress = showProgress(terminal);
  const waits = timeoutMs > 0;
  const added = await addAll(requests, { engine, terminal, progress, waits, signal });
  // Also with --timeout 0 the engine has to accept the requests.
  await followAll(added, { terminal, progress, timeoutMs: waits ? timeoutMs : Infinity, signal });
  for (const { name, url } of await endpointsOf(engine, signal)) {
    if (!before.some((endpoint) => endpoint.url === url)) terminal.err(`serving  ${name}  ${url}`);
  }
}

/** The addresses that the engine serves. */
async function endpointsOf(
  engine: EngineConnection,
  signal: AbortSignal,
): Promise<readonly Endpoint[]> {
  const answer = await engine.call("engine::supervisor::info", {}, { signal });
  return (answer as unknown as EngineInfo).endpoints;
}

/** Options for workers that are directories. */
export interface AddFlags {
  readonly isolation?: string | undefined;
  readonly accel?: string | undefined;
  readonly replicas?: string | undefined;
  readonly force?: true | undefined;
}

/** One worker to add. */
export interface AddRequest {
  /** The directory or name as it was typed. */
  readonly word: string;
  /** Payload of `engine::supervisor::add`. */
  readonly payload: JsonObject;
}

/**
 * Reads the workers to add, in their order.
 *
 * @throws {UsageError} An argument or an option is invalid.
 */
export async function readRequests(
  words: readonly string[],
  flags: AddFlags,
  terminal: Pick<Terminal, "directory" | "readFile">,
): Promise<AddRequest[]> {
  const options = readOptions(flags);
  const requests: AddRequest[] = [];
  for (const { word, fields } of groupWords(words)) {
    const isPath = await isDirectory(word, terminal);
    if (isPath && fields.length > 0) {
      throw new UsageError(
        `${word} is a directory; its configuration is in its engine.worker.yaml`,
      );
    }
    const payload: JsonObject = isPath
      ? { path: absolutePath(terminal.directory, word), ...options }
      : { name: word, ...fields.length > 0 ? { config: withFields({}, fields) } : {} };
    requests.push({ word, payload });
  }
  refuseDuplicates(requests);
  refuseUselessOptions(requests, flags);
  return requests;
}

/** Each worker with the `key=value` fields behind it. */
function groupWords(words: readonly string[]): { word: string; fields: string[] }[] {
  const groups: { word: string; fields: string[] }[] = [];
  for (const word of words) {
    if (!isField(word)) groups.push({ word, fields: [] });
    else if (groups.length > 0) groups.at(-1)!.fields.push(word);
    else throw new UsageError(`Which worker is ${word} for? Its name comes first`);
    if (word === "") throw new UsageError("Missing worker. Example: engine worker add ./my-worker");
  }
  return groups;
}

/** A key has no slash, so `./a=b` is a directory. */
function isField(word: string): boolean {
  const key = word.slice(0, Math.max(0, word.indexOf("=")));
  return word.includes("=") && !looksLikePath(key);
}

function readOptions({ isolation, accel, replicas, force }: AddFlags): JsonObject {
  if (accel !== undefined && isolation === "process") {
    throw new UsageError("--accel is for microVMs, so it does not go with --isolation process");
  }
  return {
    ...isolation === undefined ? {} : { isolation: readIsolation(isolation) },
    ...accel === undefined ? {} : { accel: readChoice("--accel", accel, ACCELERATORS) },
    ...replicas === undefined
      ? {}
      : { replicas: readNumber("--replicas", replicas, 1, REPLICAS_MAX) },
    ...force ? { reinstall: true } : {},
  };
}

async function isDirectory(
  word: string,
  terminal: Pick<Terminal, "readFile">,
): Promise<boolean> {
  if (looksLikePath(word)) return true;
  return await terminal.readFile(`${word}/engine.worker.yaml`).then(() => true, () => false);
}

function refuseDuplicates(requests: readonly AddRequest[]): void {
  const seen = new Set<unknown>();
  for (const { word, payload } of requests) {
    const key = payload["path"] ?? payload["name"];
    if (seen.has(key)) throw new UsageError(`${word} is there twice`);
    seen.add(key);
  }
}

/** @throws {UsageError} An option for directories, and no worker is one. */
function refuseUselessOptions(requests: readonly AddRequest[], flags: AddFlags): void {
  if (requests.some(({ payload }) => payload["path"] !== undefined)) return;
  const useless = (["isolation", "accel", "replicas"] as const).find((name) =>
    flags[name] !== undefined
  );
  if (useless === undefined) return;
  const names = requests.map(({ word }) => word).join(", ");
  throw new UsageError(
    `--${useless} is for workers that are directories; ${names} would be part of the engine`,
  );
}

/** Result of `engine::supervisor::add`. */
interface AddAnswer {
  readonly added: boolean;
  readonly changed: boolean;
  readonly config_path: string;
  readonly worker: WorkerStatus;
}

/** What {@linkcode addAll} needs. */
export interface AddingOptions {
  readonly engine: EngineConnection;
  readonly terminal: Terminal;
  readonly progress: Progress;
  /** Whether a worker has to become ready, or only to be added. */
  readonly waits: boolean;
  /** Aborted by Ctrl-C; workers that were not requested yet are not added. */
  readonly signal: AbortSignal;
}

/** Begins to add workers one after the other; the result can be followed at once. */
export async function addAll(
  requests: readonly AddRequest[],
  options: AddingOptions,
): Promise<readonly Followed[]> {
  const { engine, progress, signal } = options;
  const info = await engine.call("engine::supervisor::info", {}, { signal });
  const { platform } = info as unknown as EngineInfo;
  const answer = await engine.call("engine::supervisor::list", {}, { signal });
  const { workers } = answer as unknown as { workers: WorkerStatus[] };
  const added = requests.map((request) =>
    new AddedWorker(request, workers, progress.row(request.word), options)
  );
  void addInOrder(added, platform, options);
  return added;
}

async function addInOrder(
  added: readonly AddedWorker[],
  platform: string,
  { progress, signal }: AddingOptions,
): Promise<void> {
  let isExplained = platform === "linux";
  for (const worker of added) {
    if (signal.aborted) return;
    const isolation = await worker.add();
    if (isExplained || isolation !== "process" || worker.hasIsolation) continue;
    progress.say("microVMs need Linux, so workers run as plain processes here by default");
    isExplained = true;
  }
}

/** A worker that is being added. */
class AddedWorker implements Followed {
  readonly #request: AddRequest;
  readonly #present: readonly WorkerStatus[];
  readonly #row: ProgressRow;
  readonly #options: AddingOptions;
  #exitCode: number | undefined;
  #worker: FollowedWorker | undefined;
  #isRequested = false;

  constructor(
    request: AddRequest,
    present: readonly WorkerStatus[],
    row: ProgressRow,
    options: AddingOptions,
  ) {
    this.#request = request;
    this.#present = present;
    this.#row = row;
    this.#options = options;
  }

  get name(): string {
    return this.#worker?.name ?? this.#request.word;
  }

  get exitCode(): number | undefined {
    return this.#exitCode ?? this.#worker?.exitCode;
  }

  get isRequested(): boolean {
    return this.#isRequested;
  }

  /** Whether the request names an isolation. */
  get hasIsolation(): boolean {
    return this.#request.payload["isolation"] !== undefined;
  }

  /** Sends the request; the isolation of the worker if it was added. Never throws. */
  async add(): Promise<WorkerStatus["isolation"]> {
    if (this.#exitCode !== undefined) return null; // Given up already.
    this.#isRequested = true;
    try {
      const { engine } = this.#options;
      const { payload } = this.#request;
      const options = { timeout_ms: ANSWER_MS_MAX };
      const answer = await engine.call("engine::supervisor::add", payload, options);
      return this.#added(answer as unknown as AddAnswer);
    } catch (thrown) {
      if (this.#exitCode !== undefined || this.#options.signal.aborted) return null;
      const { lines, exitCode } = describeFailure(thrown);
      this.#exitCode = exitCode;
      this.#row.done("not added", { err: lines });
      return null;
    }
  }

  async poll(): Promise<void> {
    await this.#worker?.poll();
  }

  giveUp(timeoutMs: number): void {
    if (this.#worker) return this.#worker.giveUp(timeoutMs);
    this.#exitCode = EXIT_NOT_READY;
    const what = this.#isRequested ? "is still being added" : "is not added yet";
    const message = `error: ${this.name} ${what} after ${renderDuration(timeoutMs)}; ` +
      "see: engine worker list";
    this.#row.done("not added yet", { err: [message] });
  }

  #added({ added, changed, config_path, worker }: AddAnswer): WorkerStatus["isolation"] {
    const { engine, terminal, waits } = this.#options;
    const { name, state, isolation } = worker;
    if (this.#exitCode !== undefined) return isolation; // Given up during the call.
    this.#row.name = name;
    if (added) this.#row.phase(`added to ${config_path}`);
    else if (changed) this.#row.phase(`changed in ${config_path}`);
    else this.#row.phase(`is in ${config_path} already`);
    if (!waits) {
      this.#exitCode = EXIT_DONE;
      this.#row.done(state, { out: [`${name} is ${state}; see: engine worker status ${name}`] });
      return isolation;
    }
    const isAnew = this.#request.payload["reinstall"] === true;
    const before = added ? undefined : this.#present.find((each) => each.name === name);
    const isTouched = changed || isAnew || (before && stageOf(before) === "ended");
    this.#worker = new FollowedWorker({
      engine,
      terminal,
      row: this.#row,
      name,
      goal: "ready",
      before: isTouched ? before : undefined,
      renewed: changed || isAnew ? "all" : "one",
      mayBeUnchanged: changed && !isAnew,
      desired: desiredOf(this.#request.payload),
    });
    return isolation;
  }
}

function desiredOf({ isolation, accel, replicas }: JsonObject): DesiredWorker {
  return {
    ...isolation === undefined ? {} : { isolation: isolation as Isolation },
    ...accel === "kvm" || accel === "tcg" ? { accelerator: accel } : {},
    ...replicas === undefined ? {} : { replicas: Number(replicas) },
  };
}
