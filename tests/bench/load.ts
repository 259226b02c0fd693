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
  readonly mode: "echo" | "relay" | "state" | "http";
  readonly port: number;
  /** Port of the engine, where the generator is to be the worker behind an HTTP route. */
  readonly enginePort?: number;
  readonly pid: number;
  readonly window?: number;
  readonly connections?: number;
  readonly bytes: number;
}

/** Compiles the generator into a directory and returns its path. */
export async function buildLoad(directory: string): Promise<string> {
  const source = new URL("load.c", import.meta.url).pathname;
  const path = `${directory}/load`;
  const args = ["-O2", "-o", path, source];
  const { success, stderr } = await new Deno.Command("gcc", { args }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return path;
}

/** Loads a server for so many seconds, after a warm-up. */
export async function runLoad(path: string, run: Run, seconds: number): Promise<Figures> {
  const { mode, port, enginePort, pid, window = 1, connections = 1, bytes } = run;
  const options = { p: port, P: pid, w: window, c: connections, s: bytes, d: seconds, W: 0.4 };
  const all = enginePort === undefined ? options : { ...options, e: enginePort };
  const args = [mode, ...Object.entries(all).flatMap(([name, value]) => [`-${name}`, `${value}`])];
  const limit = AbortSignal.timeout((seconds + 10) * 1_000);
  const command = new Deno.Command(path, { args, signal: limit, stderr: "piped" });
  const { success, stdout, stderr } = await command.output();
  assert.ok(success, `${path} ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
  return JSON.parse(new TextDecoder().decode(stdout));
}
