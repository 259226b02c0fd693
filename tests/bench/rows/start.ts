/**
 * How long a person waits: until an engine listens, until `engine trigger` has printed a result;
 * and what an idle engine holds in memory. Each for the program as it is installed, which is built
 * (`deno task build`), and for the sources of the same tree.
 *
 * Beside each stands a program of Deno that does nothing, which is what can be had at best.
 * Expected: the built engine adds less than three times as much again, the sources half as much
 * more, since each of their 240 files takes a third of a millisecond. Times are told as they are,
 * since they are what is asked for; what is held against another run is their ratio to the empty
 * program.
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

const LISTENING_MS = 150;
const TRIGGER_MS = 120;
const IDLE_MB = 70;
/** What was held while starting has been given back by then. */
const SETTLE_MS = 2_000;
const LISTENS = [/(ws:\/\/127\.0\.0\.1:\d+)/];
const DENO = ["run", "-A", "--no-check"];
const EMPTY = "empty program";
/** What is asked of the built program; the sources are shown beside it. */
const ASKED: Readonly<Record<string, number>> = {
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
  const programs = { "": await built(tree, directory), ", from sources": [main] };
  const runs: Record<string, () => Promise<Took>> = { [EMPTY]: () => ends([empty]) };
  for (const [suffix, program] of Object.entries(programs)) {
    const trigger = [...program, "trigger", "--url", url, "bench::echo", "a=1"];
    runs[`engine listens${suffix}`] = () => listens(program, directory);
    runs[`engine trigger${suffix}`] = () => ends(trigger);
  }
  const found = await bench.inTurn("listening, and engine trigger", runs);
  const memory = [];
  for (const [suffix, program] of Object.entries(programs)) {
    memory.push({ name: `idle memory${suffix}`, value: await idle(program, directory) });
  }
  tell(bench, found, memory);
}

/** Builds the program of a tree; words behind {@linkcode DENO}. A tree of before has its sources. */
async function built(tree: string, directory: string): Promise<readonly string[]> {
  const builder = `${tree}cli/build.ts`;
  const out = `${directory}/built`;
  if (!await Deno.stat(builder).catch(() => false)) return [`${tree}cli/main.ts`];
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", builder, out],
  }).output();
  if (!success) throw new Error(`${tree} is not built: ${new TextDecoder().decode(stderr)}`);
  return ["--config", `${tree}deno.json`, `${out}/built.js`];
}

function tell(
  bench: Bench,
  found: Readonly<Record<string, readonly Took[]>>,
  memory: readonly { readonly name: string; readonly value: number }[],
): void {
  const of = (rounds: readonly Took[]) => median(rounds.map(({ ms }) => ms));
  const times = (rounds: readonly Took[]) =>
    median(rounds.map(({ ms }, round) => ms / found[EMPTY]![round]!.ms));
  for (const [name, rounds] of Object.entries(found)) {
    if (name === EMPTY) continue;
    const target = ASKED[name];
    const value = of(rounds);
    bench.find({ name, value, unit: "ms", better: "less", ...target !== undefined && { target } });
    const over = `${name}, over an empty program`;
    bench.find({ name: over, value: times(rounds), unit: "times", better: "less" });
  }
  for (const { name, value } of memory) {
    const target = name === "idle memory" ? { target: IDLE_MB } : {};
    bench.find({ name, value, unit: "MB", better: "less", ...target });
  }
  const rows = Object.entries(found).map(([name, rounds]) => [
    name,
    `${of(rounds).toFixed(0)} ms`,
    `${times(rounds).toFixed(2)} ×`,
  ]);
  const held = memory.map(({ value }) => value.toFixed(0));
  bench.show(
    "Start",
    table(["from the command on", "time", "of an empty program"], rows),
    `An idle engine without workers of its own holds ${held[0]} MB after ${SETTLE_MS / 1_000} s, ` +
      `from sources ${held[1]} MB.`,
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
async function listens(program: readonly string[], directory: string): Promise<Took> {
  const port = freePort();
  const config = `${directory}/config.yaml`;
  await Deno.writeTextFile(config, `engine:\n  port: ${port}\nlog:\n  level: warn\nworkers: []\n`);
  const began = performance.now();
  const words = [...DENO, ...program, "--config", config];
  const starting = startProgram(Deno.execPath(), words, LISTENS);
  let failed = false;
  starting.catch(() => failed = true); // What is wrong is told below.
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
async function idle(program: readonly string[], directory: string): Promise<number> {
  const config = `${directory}/config.yaml`;
  await Deno.writeTextFile(config, "engine:\n  port: 0\nlog:\n  level: warn\nworkers: []\n");
  const words = [...DENO, ...program, "--config", config];
  await using engine: Program = await startProgram(Deno.execPath(), words, LISTENS);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const status = await Deno.readTextFile(`/proc/${engine.pid}/status`);
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) / 1_024;
}
