/**
 * Builds and runs the load generator, `load.c`.
 *
 * @module
 */
import assert from "node:assert/strict";

/** What one run found. */
export interface Figures {
  /** Per second. */
  readonly rate: number;
  readonly p50_us: number;
  readonly p99_us: number;
  /** CPU seconds of the server per 100,000. */
  readonly cpu_s: number;
  readonly rss_mb: number;
}

/** What one run does; `load.c` says what the modes are. */
export interface Run {
  readonly mode: "echo" | "relay" | "call" | "set" | "get" | "enqueue" | "http";
  readonly port: number;
  /** Port of the engine, where the generator is to be the worker behind an HTTP route. */
  readonly enginePort?: number;
  /** The server, whose CPU is read. */
  readonly pid: number;
  readonly window?: number;
  readonly connections?: number;
  readonly bytes: number;
  /** What `call` calls. */
  readonly functionId?: string;
  /** HTTP routes beside the one that is asked. */
  readonly routes?: number;
  /** Worker and caller speak `engine.batch.v1`. */
  readonly batched?: boolean;
}

/** Before each measurement; the server was warm before, its new connections are not. */
const WARM_UP_S = 0.25;
/** What a run may take beyond its time. */
const PATIENCE_MS = 20_000;

/** Compiles the generator into a directory and returns its path. @throws {Error} Without gcc. */
export async function buildLoad(directory: string): Promise<string> {
  const source = new URL("load.c", import.meta.url).pathname;
  const path = `${directory}/load`;
  const args = ["-O2", "-o", path, source];
  try {
    const { success, stderr } = await new Deno.Command("gcc", { args }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
    return path;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new Error("gcc is not installed; the load generator is compiled with it");
  }
}

/** Loads a server for so many seconds, after a warm-up. @throws {Error} With what it said. */
export async function runLoad(path: string, run: Run, seconds: number): Promise<Figures> {
  const args = [run.mode, ...words(run, seconds)];
  const limit = AbortSignal.timeout(seconds * 1_000 + PATIENCE_MS);
  const command = new Deno.Command(path, { args, signal: limit, stderr: "piped" });
  const { success, stdout, stderr } = await command.output();
  if (success) return JSON.parse(new TextDecoder().decode(stdout));
  throw new Error(`load ${args.join(" ")}: ${new TextDecoder().decode(stderr).trim()}`);
}

function words(run: Run, seconds: number): string[] {
  const { port, pid, window = 1, connections = 1, bytes, enginePort, functionId, routes } = run;
  const given = { e: enginePort, f: functionId, r: routes, b: run.batched ? 1 : undefined };
  const always = { p: port, P: pid, w: window, c: connections, s: bytes, d: seconds, W: WARM_UP_S };
  return Object.entries({ ...always, ...given })
    .flatMap(([name, value]) => value === undefined ? [] : [`-${name}`, `${value}`]);
}
