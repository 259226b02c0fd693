/**
 * `engine worker list|status|start|stop|restart|remove`.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { WorkerStatus } from "../../engine/mod.ts";
import type { Json } from "../../mod.ts";
import { compactJson } from "../render.ts";
import { readNumber, type Terminal } from "../terminal.ts";
import { renderReady, renderStatus, renderWorkers } from "../worker_view.ts";
import { statusOf, waitUntilReady, waitUntilStopped } from "../worker_wait.ts";
import { WAIT_MS, WAIT_MS_MAX } from "./worker_add.ts";

const URL_HELP = "address of the engine (default: ENGINE_URL, ws://127.0.0.1:49134)";
const TOKEN_HELP = "token of the engine (default: ENGINE_TOKEN)";

/** Adds `engine worker list`. */
export function addList(group: Command, terminal: Terminal): void {
  group.command("list")
    .description("List the workers of the engine")
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
    });
}

/** Adds `engine worker status`. */
export function addStatus(group: Command, terminal: Terminal): void {
  group.command("status")
    .description("Say how a worker fares")
    .argument("<name>", "name of the worker")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", "\nExamples:\n  engine worker status math-worker")
    .action(async (name, flags) => {
      await using engine = await terminal.connect(flags);
      const status = await statusOf(engine, name);
      if (flags.json) return terminal.out(compactJson(status as unknown as Json));
      for (const line of renderStatus(status, terminal.wall())) terminal.out(line);
    });
}

/** Adds `engine worker start`. */
export function addStartWorker(group: Command, terminal: Terminal): void {
  group.command("start")
    .description("Start a worker that was stopped or has failed")
    .argument("<name>", "name of the worker")
    .option("--wait-ms <ms>", "how long to wait until it is ready", `${WAIT_MS}`)
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", "\nExamples:\n  engine worker start math-worker")
    .action(async (name, flags) => {
      const waitMs = readNumber("--wait-ms", flags.waitMs, 0, WAIT_MS_MAX);
      await using engine = await terminal.connect(flags);
      const before = await statusOf(engine, name);
      await engine.call("engine::supervisor::start", { name });
      const afterLaunch = before.state === "ready" ? undefined : before.launch;
      const following = { engine, terminal, name, waitMs, afterLaunch };
      terminal.out(renderReady(await waitUntilReady(following)));
    });
}

/** Adds `engine worker stop`. */
export function addStop(group: Command, terminal: Terminal): void {
  group.command("stop")
    .description("Stop a worker, until it is started or the engine starts anew")
    .argument("<name>", "name of the worker")
    .option("--wait-ms <ms>", "how long to wait until it has ended", `${WAIT_MS}`)
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", "\nExamples:\n  engine worker stop math-worker")
    .action(async (name, flags) => {
      const waitMs = readNumber("--wait-ms", flags.waitMs, 0, WAIT_MS_MAX);
      await using engine = await terminal.connect(flags);
      await engine.call("engine::supervisor::stop", { name });
      const { state, last_exit } = await waitUntilStopped({ engine, terminal, name, waitMs });
      terminal.out(`${name} is ${state}${last_exit === null ? "" : ` (${last_exit})`}`);
    });
}

/** Adds `engine worker restart`. */
export function addRestart(group: Command, terminal: Terminal): void {
  group.command("restart")
    .description("End a worker and start it again")
    .argument("<name>", "name of the worker")
    .option("--force", "install its dependencies anew")
    .option("--wait-ms <ms>", "how long to wait until it is ready", `${WAIT_MS}`)
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText(
      "after",
      "\nExamples:\n  engine worker restart math-worker\n  engine worker restart mail --force",
    )
    .action(async (name, flags) => {
      const waitMs = readNumber("--wait-ms", flags.waitMs, 0, WAIT_MS_MAX);
      await using engine = await terminal.connect(flags);
      const { launch } = await statusOf(engine, name);
      const reinstall = flags.force ?? false;
      await engine.call("engine::supervisor::restart", { name, reinstall });
      const following = { engine, terminal, name, waitMs, afterLaunch: launch };
      terminal.out(renderReady(await waitUntilReady(following)));
    });
}

/** Adds `engine worker remove`. */
export function addRemove(group: Command, terminal: Terminal): void {
  group.command("remove")
    .description("Take a worker out of config.yaml and stop it; its files stay")
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
