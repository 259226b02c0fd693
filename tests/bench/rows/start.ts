/**
 * How long a person waits: until an engine listens, until `engine trigger` has printed a result;
 * and what an idle engine holds in memory. The program runs from its sources, as it is installed.
 *
 * Beside it stands a program of Deno that does nothing, which is the best that can be had. Times
 * are reported as they are, since the targets are times; compared with another run is their ratio
 * to the empty program.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Bench, Section } from "../bench.ts";
import { median, table } from "../figures.ts";
import { type Program, startProgram } from "../program.ts";
import { startEngine } from "../servers.ts";

/** The section. */
export const start: Section = { name: "start", measure };

const LISTENING_MS = 250;
const TRIGGER_MS = 120;
const IDLE_MB = 80;
/** What was held while starting has been given back by then. */
const SETTLE_MS = 2_000;
const LISTENS = [/(ws:\/\/127\.0\.0\.1:\d+)/];
/** As `deno task install` has it. */
const DENO = ["run", "-A", "--no-check", "--unstable-lazy-dynamic-imports"];
const EMPTY = "empty program";
const TARGETS_MS: Readonly<Record<string, number>> = {
  "engine listens": LISTENING_MS,
  "engine trigger": TRIGGER_MS,
};

interface Took {
  readonly ms: number;
}

async function measure(bench: Bench): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "engine-bench-" });
  try {
    await measureIn(directory, bench);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

async function measureIn(directory: string, bench: Bench): Promise<void> {
  const { tree } = bench.options;
  const [main, empty] = [`${tree}cli/main.ts`, `${directory}/empty.ts`];
  await Deno.writeTextFile(empty, "");
  await using engine = await startEngine({ tree, transport: "raw" });
  const url = `ws://127.0.0.1:${engine.ports[0]}`;
  const peer = new URL("../sdk_peer.ts", import.meta.url).pathname;
  await using _worker = await startProgram(
    Deno.execPath(),
    [...DENO, peer, "worker", url, `${tree}mod.ts`],
    [/^(ready)$/m],
  );
  const trigger = [main, "trigger", "--url", url, "bench::echo", "a=1"];
  const found = await bench.alternately("listening, and engine trigger", {
    [EMPTY]: () => ends([empty]),
    "engine listens": () => listens(main, directory),
    "engine trigger": () => ends(trigger),
  });
  tell(bench, found, await idle(main, directory));
}

function tell(
  bench: Bench,
  found: Readonly<Record<string, readonly Took[]>>,
  memory: number,
): void {
  const of = (rounds: readonly Took[]) => median(rounds.map(({ ms }) => ms));
  const times = (rounds: readonly Took[]) =>
    median(rounds.map(({ ms }, round) => ms / found[EMPTY]![round]!.ms));
  for (const [name, rounds] of Object.entries(found)) {
    if (name === EMPTY) continue;
    const target = TARGETS_MS[name];
    const value = of(rounds);
    bench.find({ name, value, unit: "ms", better: "less", ...target !== undefined && { target } });
    const over = `${name}, over an empty program`;
    bench.find({ name: over, value: times(rounds), unit: "times", better: "less" });
  }
  bench.find({ name: "idle memory", value: memory, unit: "MB", better: "less", target: IDLE_MB });
  const rows = Object.entries(found).map(([name, rounds]) => [
    name,
    `${of(rounds).toFixed(0)} ms`,
    `${times(rounds).toFixed(2)} ×`,
  ]);
  bench.show(
    "Start",
    table(["from the command on", "time", "of an empty program"], rows),
    `An idle engine without workers of its own holds ${memory.toFixed(0)} MB after ` +
      `${SETTLE_MS / 1_000} s.`,
  );
}

/** Until a program has ended. */
async function ends(words: readonly string[]): Promise<Took> {
  const began = performance.now();
  const command = new Deno.Command(Deno.execPath(), { args: [...DENO, ...words] });
  const { success, stderr } = await command.output();
  const ms = performance.now() - began;
  assert.ok(success, new TextDecoder().decode(stderr));
  return { ms };
}

/** Until the port of an engine takes a connection. */
async function listens(main: string, directory: string): Promise<Took> {
  const port = freePort();
  const config = `${directory}/config.yaml`;
  await Deno.writeTextFile(config, `engine:\n  port: ${port}\nlog:\n  level: warn\nworkers: []\n`);
  const began = performance.now();
  const words = [...DENO, main, "--config", config];
  const starting = startProgram(Deno.execPath(), words, LISTENS);
  let failed = false;
  starting.catch(() => failed = true); // The error is reported below.
  while (!failed && !await takesConnections(port)) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const ms = performance.now() - began;
  await using _engine = await starting;
  return { ms };
}

async function takesConnections(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch {
    return false; // Not yet.
  }
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** Megabytes that an engine holds some time after its start. */
async function idle(main: string, directory: string): Promise<number> {
  const config = `${directory}/config.yaml`;
  await Deno.writeTextFile(config, "engine:\n  port: 0\nlog:\n  level: warn\nworkers: []\n");
  const words = [...DENO, main, "--config", config];
  await using engine: Program = await startProgram(Deno.execPath(), words, LISTENS);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const status = await Deno.readTextFile(`/proc/${engine.pid}/status`);
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) / 1_024;
}
