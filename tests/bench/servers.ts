/**
 * What is measured, each in a process of its own: the engine, and the two ceilings beside it.
 *
 * @module
 */
import assert from "node:assert/strict";

const ROOT = new URL("../../", import.meta.url).pathname;
const START_MS_MAX = 30_000;

/** A server that listens. */
export interface Server extends AsyncDisposable {
  readonly pid: number;
  /** What the patterns found in its output. */
  readonly ports: readonly number[];
}

/** Deno's WebSocket, and nothing else. */
export function startEcho(): Promise<Server> {
  return start(["run", "-A", `${ROOT}tests/bench/echo_server.ts`], [/listening on (\d+)/]);
}

/** A route of hono, and nothing else. */
export function startHono(): Promise<Server> {
  return start(["run", "-A", `${ROOT}tests/bench/hono_server.ts`], [/listening on (\d+)/]);
}

/** A router that records calls, or not: see `traced_router.ts`. */
export function startTraced(mode: "bare" | "off" | "on"): Promise<Server> {
  const words = ["run", "-A", `${ROOT}tests/bench/traced_router.ts`, mode];
  return start(words, [/listening on (\d+)/]);
}

/** The engine with state and HTTP, its data in `directory`. Ports: workers, HTTP. */
export async function startEngine(directory: string): Promise<Server> {
  const config = `${directory}/config.yaml`;
  await Deno.writeTextFile(
    config,
    `engine:
  port: 0
log:
  level: warn
workers:
  - name: engine-state
  - name: engine-http
    config:
      port: 0
`,
  );
  const patterns = [/ws:\/\/127\.0\.0\.1:(\d+)/, /http:\/\/127\.0\.0\.1:(\d+)/];
  return await start(["run", "-A", `${ROOT}cli/main.ts`, "--config", config], patterns);
}

async function start(words: readonly string[], patterns: readonly RegExp[]): Promise<Server> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...words],
    cwd: ROOT,
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const kill = setTimeout(() => child.kill("SIGKILL"), START_MS_MAX);
  const output = child.stdout.pipeThrough(new TextDecoderStream());
  let text = "";
  for await (const part of output.values({ preventCancel: true })) {
    text += part;
    if (patterns.every((pattern) => pattern.test(text))) break;
  }
  clearTimeout(kill);
  assert.ok(patterns.every((pattern) => pattern.test(text)), `did not start:\n${text}`);
  const rest = drain(output);
  return {
    pid: child.pid,
    ports: patterns.map((pattern) => Number(pattern.exec(text)![1])),
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await Promise.all([child.status, rest]);
    },
  };
}

/** A pipe that nobody empties would stop its writer. */
async function drain(output: ReadableStream<string>): Promise<void> {
  for await (const _ of output);
}
