/**
 * `deno run -A tests/bench/start_up.ts [rounds]`: how long a person waits for the program itself.
 *
 * From the start of a process to its end, or until its port takes a line: Deno with nothing to do,
 * `engine trigger` of a running function, an engine with nothing in its config.yaml and one with
 * the workers of the quickstart; and what an engine holds in memory a while later. They take turns,
 * and medians are printed, so that what else runs on the machine concerns all alike.
 *
 * @module
 */
import { median, table } from "./figures.ts";

const ROUNDS = Number(Deno.args[0] ?? 9);
const ROOT = new URL("../../", import.meta.url).pathname;
/** After that long nothing of the start is still going on. */
const REST_MS = 3_000;

const CONFIGS = {
  bare: "workers: []",
  quickstart: "workers:\n  - name: engine-state\n  - name: engine-http\n    config:\n      port: 0",
};

/** An engine on a port of its own. */
interface Running {
  readonly child: Deno.ChildProcess;
  readonly port: number;
  /** From the start of its process until it took a line. */
  readonly listeningMs: number;
}

/** A port that was free a moment ago. */
function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

async function startEngine(config: string): Promise<Running> {
  const directory = await Deno.makeTempDir({ prefix: "engine-start-" });
  const port = freePort();
  await Deno.writeTextFile(`${directory}/config.yaml`, `engine:\n  port: ${port}\n${config}\n`);
  const begun = performance.now();
  const args = ["run", "-A", `${ROOT}cli/main.ts`, "--config", `${directory}/config.yaml`];
  const child = run(args);
  for (;;) {
    try {
      (await Deno.connect({ hostname: "127.0.0.1", port })).close();
      return { child, port, listeningMs: performance.now() - begun };
    } catch {
      await wait(1); // Not yet.
    }
  }
}

function run(args: string[], env: Record<string, string> = {}): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), { args, env, stdout: "null", stderr: "null" }).spawn();
}

async function timed(args: string[], env: Record<string, string> = {}): Promise<number> {
  const begun = performance.now();
  const { success } = await run(args, env).status;
  if (!success) throw new Error(`expected ${args.join(" ")} to end well`);
  return performance.now() - begun;
}

async function stop({ child }: Running): Promise<void> {
  child.kill("SIGTERM");
  await child.status;
}

/** Resident memory in megabytes; Linux only. */
function memoryOf({ child: { pid } }: Running): number {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (import.meta.main) {
  const figures: Record<string, number[]> = {};
  const note = (name: string, figure: number) => (figures[name] ??= []).push(figure);
  const asked = await startEngine(CONFIGS.bare);
  const env = { ENGINE_URL: `ws://127.0.0.1:${asked.port}` };
  const trigger = ["run", "-A", `${ROOT}cli/main.ts`, "trigger", "engine::health::check"];
  const nothing = ["eval", "--no-config", "0"];
  await timed(trigger, env); // What is compiled once is compiled now.
  for (let round = 0; round < ROUNDS; round++) {
    note("Deno with nothing to do, ms", await timed(nothing));
    note("engine trigger, ms", await timed(trigger, env));
    for (const [name, config] of Object.entries(CONFIGS)) {
      const engine = await startEngine(config);
      note(`engine, ${name}: listening, ms`, engine.listeningMs);
      if (round === 0) {
        await wait(REST_MS);
        note(`engine, ${name}: resident, MB`, memoryOf(engine));
      }
      await stop(engine);
    }
  }
  await stop(asked);
  const rows = Object.entries(figures).map(([name, all]) => [name, median(all).toFixed(0)]);
  console.log(table(["what", "median"], rows));
}
