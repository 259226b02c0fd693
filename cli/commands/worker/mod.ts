/**
 * `engine worker …`: manage the workers of a running engine. In this file: list, status, start,
 * stop, restart, remove.
 *
 * All commands only call `engine::supervisor::*`: the engine edits config.yaml and starts workers.
 *
 * @module
 */
import {
  readInactiveTriggers,
  readLoads,
  readSuspects,
  renderInactiveTriggers,
  renderLoads,
  renderSuspects,
} from "./diagnosis.ts";
import type { Command } from "@commander-js/extra-typings";
import type { WorkerStatus } from "../../../engine/mod.ts";
import type { Json } from "../../../mod.ts";
import { readTimeout, TIMEOUT_S, TOKEN_HELP, URL_HELP } from "../../arguments.ts";
import type { CallOptions, EngineAddress, EngineConnection } from "../../connect.ts";
import { readFarWorkers, renderFarWorkers } from "../../cluster/view.ts";
import { showProgress } from "../../progress.ts";
import { compactJson } from "../../render.ts";
import { interruptible, type Terminal } from "../../terminal.ts";
import { addWorkerAdd } from "./add.ts";
import { addExec } from "./exec.ts";
import {
  ANSWER_MS_MAX,
  followAll,
  FollowedWorker,
  type FollowOptions,
  interruptedError,
  stageOf,
  statusOf,
} from "./follow.ts";
import { addLogs } from "./logs.ts";
import { renderStatus, renderWorkers } from "./view.ts";

const EXAMPLES = `
Examples:
  engine worker add ./workers/math-worker      a directory with an engine.worker.yaml
  engine worker add engine-state               a built-in worker
  engine worker list
  engine worker logs math-worker -f
  engine worker exec math-worker -- ls -l      a command beside it`;

/** Adds `engine worker` and its commands. */
export function addWorker(program: Command, terminal: Terminal): void {
  const group = program.command("worker")
    .description("Add, remove and manage workers")
    .enablePositionalOptions() // Else -- is lost on the way to exec.
    .addHelpText("after", EXAMPLES) as Command;
  addWorkerAdd(group, terminal);
  addRemove(group, terminal);
  addList(group, terminal);
  addStatus(group, terminal);
  addStartWorker(group, terminal);
  addStop(group, terminal);
  addRestart(group, terminal);
  addLogs(group, terminal);
  addExec(group, terminal);
}

const READY_HELP = "how long to wait until it is ready, such as 90, 90s or 2m; 0: do not wait";
const CODES = "\nExit codes: 0 ready, 1 failed, 2 invalid usage, 3 not ready within --timeout.";

/** Adds `engine worker list`. */
export function addList(group: Command, terminal: Terminal): void {
  listWorkers(group.command("list").alias("ls") as Command, terminal);
}

/** Adds `engine ps`, which is short for `engine worker list`. */
export function addPs(program: Command, terminal: Terminal): void {
  listWorkers(program.command("ps") as Command, terminal);
}

function listWorkers(command: Command, terminal: Terminal): void {
  command.description("List the workers of the engine")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", "\nExamples:\n  engine worker list\n  engine worker list --json")
    .action(async (flags) => {
      await using engine = await terminal.connect(flags);
      const answer = await engine.call("engine::supervisor::list", {});
      const { workers } = answer as unknown as { workers: WorkerStatus[] };
      if (flags.json) return terminal.out(compactJson(workers as unknown as Json));
      for (const line of renderWorkers(workers, terminal.wall())) terminal.out(line);
      const shown = workers.flatMap(({ replicas }) => replicas.flatMap((one) => one.worker_ids));
      const suspects = renderSuspects(await readSuspects(engine), new Set(shown));
      for (const line of suspects) terminal.out(line);
      const others = renderFarWorkers(await readFarWorkers(engine), terminal.wall());
      for (const line of others) terminal.out(line);
    });
}

/** Adds `engine worker status`. */
export function addStatus(group: Command, terminal: Terminal): void {
  group.command("status")
    .description("Show the state of a worker")
    .argument("<name>", "name of the worker")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", "\nExamples:\n  engine worker status math-worker")
    .action(async (name, flags) => {
      await using engine = await terminal.connect(flags);
      const status = await statusOf(engine, name);
      const inactive_triggers = await readInactiveTriggers(engine, status);
      const loads = await readLoads(engine, status);
      if (flags.json) {
        const all = { ...status, inactive_triggers, handlers: loads };
        return terminal.out(compactJson(all as unknown as Json));
      }
      for (const line of renderStatus(status, terminal.wall())) terminal.out(line);
      const more = [...renderLoads(loads), ...renderInactiveTriggers(inactive_triggers)];
      for (const line of more) terminal.out(`  ${line}`);
    });
}

/** Adds `engine worker start`. */
export function addStartWorker(group: Command, terminal: Terminal): void {
  group.command("start")
    .description("Start a worker that was stopped or has failed")
    .argument("<name>", "name of the worker")
    .option("--timeout <time>", READY_HELP, `${TIMEOUT_S}`)
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", `\nExamples:\n  engine worker start math-worker\n${CODES}`)
    .action(async (name, flags) => {
      await request(name, flags, terminal, async (engine, before, options) => {
        await engine.call("engine::supervisor::start", { name }, options);
        return { goal: "ready", before: stageOf(before) === "ended" ? before : undefined };
      });
    });
}

/** Adds `engine worker stop`. */
export function addStop(group: Command, terminal: Terminal): void {
  group.command("stop")
    .description("Stop a worker, until it is started or the engine restarts")
    .argument("<name>", "name of the worker")
    .option("--timeout <time>", "how long to wait until it has ended, such as 90s", `${TIMEOUT_S}`)
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", "\nExamples:\n  engine worker stop math-worker")
    .action(async (name, flags) => {
      await request(name, flags, terminal, async (engine, _before, options) => {
        await engine.call("engine::supervisor::stop", { name }, options);
        return { goal: "stopped" };
      });
    });
}

/** Adds `engine worker restart`. */
export function addRestart(group: Command, terminal: Terminal): void {
  group.command("restart")
    .description("Restart a worker, one replica after the other")
    .argument("<name>", "name of the worker")
    .option("--force", "reinstall its dependencies")
    .option("--timeout <time>", READY_HELP, `${TIMEOUT_S}`)
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText(
      "after",
      "\nExamples:\n  engine worker restart math-worker\n" +
        `  engine worker restart mail --force\n${CODES}`,
    )
    .action(async (name, flags) => {
      await request(name, flags, terminal, async (engine, before, options) => {
        const reinstall = flags.force ?? false;
        await engine.call("engine::supervisor::restart", { name, reinstall }, options);
        return { goal: "ready", before, renewed: "all" };
      });
    });
}

/** Adds `engine worker remove`. */
export function addRemove(group: Command, terminal: Terminal): void {
  group.command("remove")
    .alias("rm")
    .description("Remove a worker from config.yaml and stop it; its files stay")
    .argument("<name>", "name of the worker")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", "\nExamples:\n  engine worker remove math-worker")
    .action(async (name, flags) => {
      await using engine = await terminal.connect(flags);
      const answer = await engine.call("engine::supervisor::remove", { name });
      const { config_path } = answer as unknown as { config_path: string };
      terminal.out(`${name} removed from ${config_path}`);
    });
}

interface RequestFlags extends EngineAddress {
  readonly timeout: string;
}

/** Sends a request about a worker and waits until the worker has reached the goal. */
async function request(
  name: string,
  flags: RequestFlags,
  terminal: Terminal,
  send: (
    engine: EngineConnection,
    before: WorkerStatus,
    options: CallOptions,
  ) => Promise<Pick<FollowOptions, "goal" | "before" | "renewed">>,
): Promise<void> {
  const timeoutMs = readTimeout(flags.timeout);
  await interruptible(terminal, async (signal) => {
    await using engine = await terminal.connect(flags);
    const before = await statusOf(engine, name);
    const options = { timeout_ms: ANSWER_MS_MAX, signal };
    const goal = await send(engine, before, options).catch((thrown) => {
      throw signal.aborted ? interruptedError([{ name, isRequested: true }]) : thrown;
    });
    if (timeoutMs === 0) {
      const { state } = await statusOf(engine, name);
      return terminal.out(`${name} is ${state}; see: engine worker status ${name}`);
    }
    const progress = showProgress(terminal);
    const row = progress.row(name);
    const followed = new FollowedWorker({ engine, terminal, row, name, ...goal });
    await followAll([followed], { terminal, progress, timeoutMs, signal });
  });
}
