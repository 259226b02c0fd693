/**
 * What a call costs with the real SDK at both ends: caller, engine and worker in three processes.
 *
 * The question is how much of the listener's gain reaches people who use the SDK. Expected: with
 * one call in flight the wake-ups of three processes count and nothing else; with 1,024 the SDK
 * costs more than the engine, so what one turn has to say must leave in one write.
 *
 * `deno run -A tests/bench/sdk_peers.ts` prints a table of both transports, measured in turn.
 * `--seconds S` and `--rounds N` say how long; `--sdk PATH`, again and again, compares modules of
 * the SDK instead, on the raw transport; `--inspect PORT` lets a profiler look at the worker, and
 * with the next port at the caller.
 *
 * @module
 */
import assert from "node:assert/strict";
import { parseArgs } from "node:util";
import { count, duration, median, table } from "./figures.ts";
import type { LoadAnswer, LoadOrder } from "./sdk_peer.ts";

const PEER = new URL("sdk_peer.ts", import.meta.url).pathname;
const ENGINE = new URL("../../cli/main.ts", import.meta.url).pathname;
const READY_MS_MAX = 30_000;
/** As `getconf CLK_TCK` says on every Linux. */
const TICKS_PER_SECOND = 100;

/** What is measured with one pair of peers. */
export interface PeersFigures {
  readonly window: number;
  /** Calls per second. */
  readonly rate: number;
  readonly p50_us: number;
  readonly p99_us: number;
  /** CPU microseconds per call, of each process. */
  readonly caller_us: number;
  readonly engine_us: number;
  readonly worker_us: number;
}

/** Which peers, and how long. */
export interface PeersRun {
  /** `engine.transport` in config.yaml. */
  readonly transport: "raw" | "deno-serve";
  /** `traces.enabled` of `engine-observability`. @default true */
  readonly traces?: boolean;
  /** The SDK's module, as a path. @default this tree's `mod.ts` */
  readonly sdk?: string;
  /** A port for a profiler of the worker; the next one is for the caller. */
  readonly inspect?: number | undefined;
}

/** A caller and a worker on an engine of their own. */
export interface Peers extends AsyncDisposable {
  /** Keeps calls in flight; CPU of the three is that of the same time. */
  measure(order: LoadOrder): Promise<PeersFigures>;
}

/** Starts an engine, a worker and a caller. */
export async function startPeers(run: PeersRun): Promise<Peers> {
  await using stack = new AsyncDisposableStack();
  const directory = await Deno.makeTempDir({ prefix: "bench-peers-" });
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  const config = `${directory}/config.yaml`;
  await Deno.writeTextFile(
    config,
    `engine:
  port: 0
  transport: ${run.transport}
log:
  level: warn
workers:
  - name: engine-observability
    config: { traces: { enabled: ${run.traces ?? true} } }
`,
  );
  const engine = stack.use(await Program.start([ENGINE, "--config", config], [], /(ws:\S+)/));
  const peer = async (role: string, port: number): Promise<Program> => {
    const flags = run.inspect ? [`--inspect=127.0.0.1:${run.inspect + port}`] : [];
    const args = [PEER, role, engine.found, ...run.sdk ? [run.sdk] : []];
    return stack.use(await Program.start(args, flags, /^(ready)$/m));
  };
  const worker = await peer("worker", 0);
  const caller = await peer("caller", 1);
  const owned = stack.move();
  return {
    measure: (order) => measure(order, { caller, engine, worker }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The figures of several peers, measured in turn, round by round. */
export async function measureSdkPeers(
  runs: readonly PeersRun[],
  { windows = [1, 64, 1_024], bytes = 100, seconds = 1, rounds = 5 }: {
    readonly windows?: readonly number[];
    readonly bytes?: number;
    readonly seconds?: number;
    readonly rounds?: number;
  } = {},
): Promise<PeersFigures[][]> {
  await using stack = new AsyncDisposableStack();
  const all: Peers[] = [];
  for (const run of runs) all.push(stack.use(await startPeers(run)));
  for (const peers of all) await peers.measure({ window: 64, bytes, seconds: 0.5 }); // Warm.
  const found = runs.map((): PeersFigures[] => []);
  for (const window of windows) {
    const figures = runs.map((): PeersFigures[] => []);
    for (let round = 0; round < rounds; round++) {
      for (const [at, peers] of all.entries()) {
        figures[at]!.push(await peers.measure({ window, bytes, seconds }));
      }
    }
    figures.forEach((each, at) => found[at]!.push(middle(window, each)));
  }
  return found;
}

/** Each figure's own median. */
function middle(window: number, rounds: readonly PeersFigures[]): PeersFigures {
  const of = (name: keyof PeersFigures) => median(rounds.map((round) => round[name]));
  return {
    window,
    rate: of("rate"),
    p50_us: of("p50_us"),
    p99_us: of("p99_us"),
    caller_us: of("caller_us"),
    engine_us: of("engine_us"),
    worker_us: of("worker_us"),
  };
}

async function measure(
  order: LoadOrder,
  programs: { readonly caller: Program; readonly engine: Program; readonly worker: Program },
): Promise<PeersFigures> {
  const { caller, engine, worker } = programs;
  const all = [caller, engine, worker];
  const before = all.map((program) => program.cpuSeconds());
  const { calls, seconds, p50_us, p99_us } = JSON.parse(
    await caller.ask(JSON.stringify(order)),
  ) as LoadAnswer;
  const used = all.map((program, at) => (program.cpuSeconds() - before[at]!) / calls * 1e6);
  const [caller_us = 0, engine_us = 0, worker_us = 0] = used;
  const rate = calls / seconds;
  return { window: order.window, rate, p50_us, p99_us, caller_us, engine_us, worker_us };
}

/** One process that takes lines and gives lines. */
class Program implements AsyncDisposable {
  /** What the pattern found in its first output. */
  readonly found: string;
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #output: AsyncIterator<string>;

  private constructor(
    child: Deno.ChildProcess,
    output: AsyncIterator<string>,
    found: string,
  ) {
    this.#child = child;
    this.#input = child.stdin.getWriter();
    this.#output = output;
    this.found = found;
  }

  static async start(
    args: readonly string[],
    flags: readonly string[],
    pattern: RegExp,
  ): Promise<Program> {
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", ...flags, ...args],
      stdin: "piped",
      stdout: "piped",
      stderr: "null", // A peer that fails ends before it is ready, or its caller times out.
    }).spawn();
    const kill = setTimeout(() => child.kill("SIGKILL"), READY_MS_MAX);
    const output = child.stdout.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
    let text = "";
    while (!pattern.test(text)) {
      const { done, value } = await output.next();
      assert.ok(!done, `${args.join(" ")} ended before it was ready:\n${text}`);
      text += value;
    }
    clearTimeout(kill);
    return new Program(child, output, pattern.exec(text)![1]!);
  }

  /** Says a line and waits for the next one. */
  async ask(line: string): Promise<string> {
    await this.#input.write(new TextEncoder().encode(`${line}\n`));
    let text = "";
    while (!text.endsWith("\n")) {
      const { done, value } = await this.#output.next();
      assert.ok(!done, "the peer ended");
      text += value;
    }
    return text;
  }

  /** What the process has used so far. */
  cpuSeconds(): number {
    const stat = Deno.readTextFileSync(`/proc/${this.#child.pid}/stat`);
    const [, , ...fields] = stat.slice(stat.lastIndexOf(")")).split(" ");
    return (Number(fields[10]) + Number(fields[11])) / TICKS_PER_SECOND;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#input.close().catch(() => {}); // It may have ended by then.
    await this.#output.return?.();
    await this.#child.status;
  }
}

/** Rows of Markdown, one for each window. */
function print(names: readonly string[], found: readonly (readonly PeersFigures[])[]): void {
  const rows = names.flatMap((name, at) =>
    found[at]!.map((own, row) => [
      `${name}, ${own.window} in flight`,
      count(own.rate),
      `${(own.rate / found[0]![row]!.rate).toFixed(2)}`,
      duration(own.p50_us),
      duration(own.p99_us),
      own.caller_us.toFixed(1),
      own.engine_us.toFixed(1),
      own.worker_us.toFixed(1),
    ])
  );
  const cpu = ["caller", "engine", "worker"].map((name) => `${name}: CPU µs`);
  console.log(table(["SDK at both ends", "calls/s", "ratio", "p50", "p99", ...cpu], rows));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      seconds: { type: "string", default: "1" },
      rounds: { type: "string", default: "5" },
      bytes: { type: "string", default: "100" },
      window: { type: "string", multiple: true, default: ["1", "64", "1024"] },
      sdk: { type: "string", multiple: true, default: [] },
      inspect: { type: "string" },
    },
  });
  const inspect = values.inspect ? Number(values.inspect) : undefined;
  const runs: PeersRun[] = values.sdk.length > 0
    ? values.sdk.map((sdk) => ({ transport: "raw", sdk, inspect }))
    : [{ transport: "deno-serve", inspect }, { transport: "raw" }];
  const names = values.sdk.length > 0 ? values.sdk : runs.map((run) => run.transport);
  const found = await measureSdkPeers(runs, {
    windows: values.window.map(Number),
    bytes: Number(values.bytes),
    seconds: Number(values.seconds),
    rounds: Number(values.rounds),
  });
  print(names, found);
}

if (import.meta.main) await main();
