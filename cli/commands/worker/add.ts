/**
 * `engine worker add`: put workers into config.yaml, start them, and stay until they are ready.
 *
 * Progress goes to standard error; standard output gets one line for each worker that is ready.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Endpoint, EngineInfo } from "../../../engine/mod.ts";
import { showProgress } from "../../progress.ts";
import { type EngineLine, interruptible, type Terminal } from "../../terminal.ts";
import { readTimeout, TIMEOUT_S } from "../../arguments.ts";
import { addAll } from "./adding.ts";
import { followAll } from "./follow.ts";
import { readWanted, type WantedWorker } from "./words.ts";

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
