/**
 * `engine worker add`: put workers into config.yaml, start them, and stay until they are ready.
 *
 * Progress goes to standard error; standard output gets one line for each worker that is ready.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Endpoint, EngineInfo, Isolation, WorkerStatus } from "../../../engine/mod.ts";
import type { JsonObject } from "../../../mod.ts";
import { absolutePath, looksLikePath, readTimeout, TIMEOUT_S } from "../../arguments.ts";
import { describeFailure, EXIT_DONE, EXIT_NOT_READY, UsageError } from "../../failure.ts";
import { withFields } from "../../payload.ts";
import { type Progress, type ProgressRow, showProgress } from "../../progress.ts";
import { renderDuration } from "../../render.ts";
import { type EngineLine, interruptible, readNumber, type Terminal } from "../../terminal.ts";
import { ANSWER_MS_MAX, followAll, type Followed, FollowedWorker } from "./follow.ts";
import { standOf, type Wish } from "./view.ts";

const EXAMPLES = `
Examples:
  engine worker add ./workers/math-worker
  engine worker add ./workers/math-worker --isolation process --replicas 3
  engine worker add ./workers/math-worker --accel tcg    software emulation: no KVM needed, slow
  engine worker add ./workers/math-worker --force        install its dependencies anew
  engine worker add engine-http port=3200                with configuration, as key=value
  engine worker add engine-state ./workers/a ./workers/b several at once

A word with a slash is a directory, as is the name of one here with an engine.worker.yaml; key=value
belongs to the word before it; any other word is the name of a worker that comes with the engine.

Exit codes: 0 all are ready, 1 one failed, 2 not understood, 3 not ready within --timeout, 130 after
Ctrl-C (the engine goes on: see engine worker list).`;

/** Adds `engine worker add`. */
export function addWorkerAdd(group: Command, terminal: Terminal): void {
  group.command("add")
    .description("Add workers to config.yaml and start them")
    .argument(
      "<workers...>",
      "directories of workers, or names of those that come with the engine, with their key=value",
    )
    .option("--isolation <kind>", "microvm or process (default: microvm on Linux, else process)")
    .option("--accel <what>", "what runs its microVM: auto, kvm or tcg (default: auto)")
    .option("--replicas <number>", "how many copies run at once (default: 1)")
    .option("--force", "install its dependencies anew")
    .option(
      "--timeout <time>",
      "how long to wait until all are ready, such as 90, 90s or 2m; 0: do not wait",
      `${TIMEOUT_S}`,
    )
    .option("--url <url>", "address of the engine (default: ENGINE_URL, ws://127.0.0.1:49134)")
    .option("--token <token>", "token of the engine (default: ENGINE_TOKEN)")
    .addHelpText("after", EXAMPLES)
    .action(async (words, flags) => {
      const timeoutMs = readTimeout(flags.timeout);
      const wanted = await readWanted(words, flags, terminal);
      await interruptible(terminal, async (signal) => {
        await using engine = await terminal.connect(flags);
        await add(wanted, { engine, terminal, timeoutMs, signal });
      });
    });
}

interface AddOptions {
  readonly engine: EngineLine;
  readonly terminal: Terminal;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

async function add(wanted: readonly WantedWorker[], options: AddOptions): Promise<void> {
  const { engine, terminal, timeoutMs, signal } = options;
  const before = await endpointsOf(engine, signal);
  const progress = showProgress(terminal);
  const waits = timeoutMs > 0;
  const adding = await addAll(wanted, { engine, terminal, progress, waits, signal });
  // Without waiting the engine still has to answer.
  await followAll(adding, {
    terminal,
    progress,
    timeoutMs: waits ? timeoutMs : Infinity,
    signal,
  });
  for (const { name, url } of await endpointsOf(engine, signal)) {
    if (!before.some((endpoint) => endpoint.url === url)) terminal.err(`serving  ${name}  ${url}`);
  }
}

/** The addresses that the engine serves now. */
async function endpointsOf(engine: EngineLine, signal: AbortSignal): Promise<readonly Endpoint[]> {
  const answer = await engine.call("engine::supervisor::info", {}, { signal });
  return (answer as unknown as EngineInfo).endpoints;
}

/** What `--isolation` takes. */
export const ISOLATIONS = ["microvm", "process"] as const satisfies readonly Isolation[];
/** What `--accel` takes. */
export const ACCELERATORS = ["auto", "kvm", "tcg"] as const satisfies readonly (
  | "auto"
  | NonNullable<WorkerStatus["accelerator"]>
)[];
/** Most copies of one worker, as the engine has it. */
export const REPLICAS_MAX = 64;

/** Options that say how a directory is to run. */
export interface AddFlags {
  readonly isolation?: string | undefined;
  readonly accel?: string | undefined;
  readonly replicas?: string | undefined;
  readonly force?: true | undefined;
}

/** One worker to add. */
export interface WantedWorker {
  /** As it was typed. */
  readonly word: string;
  /** Payload of `engine::supervisor::add`. */
  readonly request: JsonObject;
}

/**
 * The workers that were typed, in their order.
 *
 * @throws {UsageError} A word or an option makes no sense.
 */
export async function readWanted(
  words: readonly string[],
  flags: AddFlags,
  terminal: Pick<Terminal, "directory" | "readFile">,
): Promise<WantedWorker[]> {
  const options = readOptions(flags);
  const wanted: WantedWorker[] = [];
  for (const { word, fields } of groupWords(words)) {
    const isPath = await isDirectory(word, terminal);
    if (isPath && fields.length > 0) {
      throw new UsageError(
        `${word} is a directory; its configuration is in its engine.worker.yaml`,
      );
    }
    const request: JsonObject = isPath
      ? { path: absolutePath(terminal.directory, word), ...options }
      : { name: word, ...fields.length > 0 ? { config: withFields({}, fields) } : {} };
    wanted.push({ word, request });
  }
  refuseTwice(wanted);
  refuseIdle(wanted, flags);
  return wanted;
}

/** Each worker with the `key=value` words behind it. */
function groupWords(words: readonly string[]): { word: string; fields: string[] }[] {
  const groups: { word: string; fields: string[] }[] = [];
  for (const word of words) {
    if (!isField(word)) groups.push({ word, fields: [] });
    else if (groups.length > 0) groups.at(-1)!.fields.push(word);
    else throw new UsageError(`Which worker is ${word} for? Its name comes first`);
    if (word === "") throw new UsageError("Which worker? Such as: engine worker add ./my-worker");
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

/**
 * What was typed behind `--isolation`.
 *
 * @throws {UsageError} Naming what is expected.
 */
export function readIsolation(text: string): Isolation {
  return readChoice("--isolation", text, ISOLATIONS);
}

function readChoice<T extends string>(option: string, text: string, known: readonly T[]): T {
  const choice = known.find((each) => each === text);
  if (choice !== undefined) return choice;
  const list = `${known.slice(0, -1).join(", ")} or ${known.at(-1)}`;
  throw new UsageError(`${option}: expected ${list}, received ${JSON.stringify(text)}`);
}

async function isDirectory(
  word: string,
  terminal: Pick<Terminal, "readFile">,
): Promise<boolean> {
  if (looksLikePath(word)) return true;
  return await terminal.readFile(`${word}/engine.worker.yaml`).then(() => true, () => false);
}

function refuseTwice(wanted: readonly WantedWorker[]): void {
  const seen = new Set<unknown>();
  for (const { word, request } of wanted) {
    const key = request["path"] ?? request["name"];
    if (seen.has(key)) throw new UsageError(`${word} is there twice`);
    seen.add(key);
  }
}

/** Options that would do nothing to any of them. */
function refuseIdle(wanted: readonly WantedWorker[], flags: AddFlags): void {
  if (wanted.some(({ request }) => request["path"] !== undefined)) return;
  const idle = (["isolation", "accel", "replicas"] as const).find((name) =>
    flags[name] !== undefined
  );
  if (idle === undefined) return;
  const names = wanted.map(({ word }) => word).join(", ");
  throw new UsageError(
    `--${idle} is for workers that are directories; ${names} would be part of the engine`,
  );
}

/** Answer of `engine::supervisor::add`. */
interface AddAnswer {
  readonly added: boolean;
  readonly changed: boolean;
  readonly config_path: string;
  readonly worker: WorkerStatus;
}

/** What adding needs. */
export interface AddingOptions {
  readonly engine: EngineLine;
  readonly terminal: Terminal;
  readonly progress: Progress;
  /** `false`: being added is enough. */
  readonly waits: boolean;
  /** Ctrl-C: what the engine has not been asked for yet is left. */
  readonly signal: AbortSignal;
}

/** Starts to add workers, in their order; each can be followed at once. */
export async function addAll(
  wanted: readonly WantedWorker[],
  options: AddingOptions,
): Promise<readonly Followed[]> {
  const { engine, progress, signal } = options;
  const info = await engine.call("engine::supervisor::info", {}, { signal });
  const { platform } = info as unknown as EngineInfo;
  const answer = await engine.call("engine::supervisor::list", {}, { signal });
  const { workers } = answer as unknown as { workers: WorkerStatus[] };
  const adding = wanted.map((worker) =>
    new AddedWorker(worker, workers, progress.row(worker.word), options)
  );
  void addInTurn(adding, platform, options);
  return adding;
}

async function addInTurn(
  adding: readonly AddedWorker[],
  platform: string,
  { progress, signal }: AddingOptions,
): Promise<void> {
  let isSaid = platform === "linux";
  for (const worker of adding) {
    if (signal.aborted) return;
    const isolation = await worker.add();
    if (isSaid || isolation !== "process" || worker.isTold) continue;
    progress.say("microVMs need Linux, so workers run as plain processes here by default");
    isSaid = true;
  }
}

/** One worker, from the request on. */
class AddedWorker implements Followed {
  readonly #wanted: WantedWorker;
  readonly #present: readonly WorkerStatus[];
  readonly #row: ProgressRow;
  readonly #options: AddingOptions;
  #exitCode: number | undefined;
  #worker: FollowedWorker | undefined;
  #isAsked = false;

  constructor(
    wanted: WantedWorker,
    present: readonly WorkerStatus[],
    row: ProgressRow,
    options: AddingOptions,
  ) {
    this.#wanted = wanted;
    this.#present = present;
    this.#row = row;
    this.#options = options;
  }

  get name(): string {
    return this.#worker?.name ?? this.#wanted.word;
  }

  get exitCode(): number | undefined {
    return this.#exitCode ?? this.#worker?.exitCode;
  }

  get isAsked(): boolean {
    return this.#isAsked;
  }

  /** Somebody has said how it is to be kept apart. */
  get isTold(): boolean {
    return this.#wanted.request["isolation"] !== undefined;
  }

  /** Asks the engine; how the worker will be kept apart, if it is added. Does not throw. */
  async add(): Promise<WorkerStatus["isolation"]> {
    if (this.#exitCode !== undefined) return null; // It has taken too long already.
    this.#isAsked = true;
    try {
      const { engine } = this.#options;
      const { request } = this.#wanted;
      const options = { timeout_ms: ANSWER_MS_MAX };
      const answer = await engine.call("engine::supervisor::add", request, options);
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
    const what = this.#isAsked ? "is still being added" : "is not added yet";
    const message = `error: ${this.name} ${what} after ${renderDuration(timeoutMs)}; ` +
      "see: engine worker list";
    this.#row.done("not added yet", { err: [message] });
  }

  #added({ added, changed, config_path, worker }: AddAnswer): WorkerStatus["isolation"] {
    const { engine, terminal, waits } = this.#options;
    const { name, state, isolation } = worker;
    if (this.#exitCode !== undefined) return isolation; // Given up while it was asked.
    this.#row.name = name;
    if (added) this.#row.phase(`added to ${config_path}`);
    else if (changed) this.#row.phase(`changed in ${config_path}`);
    else this.#row.phase(`is in ${config_path} already`);
    if (!waits) {
      this.#exitCode = EXIT_DONE;
      this.#row.done(state, { out: [`${name} is ${state}; see: engine worker status ${name}`] });
      return isolation;
    }
    const isAnew = this.#wanted.request["reinstall"] === true;
    const before = added ? undefined : this.#present.find((each) => each.name === name);
    const isTouched = changed || isAnew || (before && standOf(before) === "ended");
    this.#worker = new FollowedWorker({
      engine,
      terminal,
      row: this.#row,
      name,
      goal: "ready",
      before: isTouched ? before : undefined,
      renewed: changed || isAnew ? "all" : "one",
      mayRest: changed && !isAnew,
      wish: wishOf(this.#wanted.request),
    });
    return isolation;
  }
}

function wishOf({ isolation, accel, replicas }: JsonObject): Wish {
  return {
    ...isolation === undefined ? {} : { isolation: isolation as Isolation },
    ...accel === "kvm" || accel === "tcg" ? { accelerator: accel } : {},
    ...replicas === undefined ? {} : { replicas: Number(replicas) },
  };
}
