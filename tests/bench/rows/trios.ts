/**
 * What both sections of trios do: measure several ways in turn, and say which process is busiest.
 *
 * @module
 */
import type { Bench } from "../bench.ts";
import { count, duration, median, size, table } from "../figures.ts";
import { type Program, startProgram } from "../program.ts";
import type { LoadAnswer, LoadOrder } from "../sdk_peer.ts";
import { type EngineSetup, startEngine } from "../servers.ts";

/** How much is asked at once. */
export type Load = Omit<LoadOrder, "seconds">;

/** The way a load is written in tables and names. */
export function nameOf({ bytes, window }: Load): string {
  return `${size(bytes)}, ${window.toLocaleString("en-US")} in flight`;
}

/** Measures all of them with one load, in turn. */
export function measureTrios<Name extends string>(
  bench: Bench,
  load: Load,
  trios: Readonly<Record<Name, Trio>>,
): Promise<Record<Name, TrioFigures[]>> {
  const { seconds } = bench.options;
  const tasks = Object.entries<Trio>(trios)
    .map(([name, trio]) => [name, () => trio.measure({ ...load, seconds })]);
  return bench.alternately(nameOf(load), Object.fromEntries(tasks));
}

/** A table of rows that {@linkcode trioRows} made. */
export function trioTable(what: string, rows: readonly (readonly string[])[]): string {
  const cpu = "CPU µs per call: requester / broker / responder";
  return table([what, "calls/s", "p50", "p99", cpu, "of all", "busiest process"], rows);
}

/** A row for each way. */
export function trioRows(
  load: Load,
  found: Readonly<Record<string, readonly TrioFigures[]>>,
): string[][] {
  return Object.entries(found).map(([name, rounds]) => {
    const of = (figure: keyof TrioFigures) => median(rounds.map((round) => round[figure]));
    const cpu = { requester: of("requester_us"), broker: of("broker_us") };
    const all = { ...cpu, responder: of("responder_us") };
    return [
      `${nameOf(load)}, ${name}`,
      count(of("rate")),
      duration(of("p50_us")),
      duration(of("p99_us")),
      Object.values(all).map((us) => us === 0 ? "–" : us.toFixed(1)).join(" / "),
      of("total_us").toFixed(0),
      busiest(all, of("rate")),
    ];
  });
}

/** Who used most, and how much of one core. */
function busiest(cpu: Readonly<Record<string, number>>, rate: number): string {
  const [name, us] = Object.entries(cpu).toSorted(([, a], [, b]) => b - a)[0]!;
  return `${name} ${Math.round(us * rate / 1e4)} %`;
}

/** What one order came to. */
export interface TrioFigures {
  /** Requests per second. */
  readonly rate: number;
  readonly p50_us: number;
  readonly p99_us: number;
  /** CPU microseconds per request, of each process. */
  readonly requester_us: number;
  /** 0: there is no such process. */
  readonly broker_us: number;
  readonly responder_us: number;
  /** Of all together. */
  readonly total_us: number;
}

/** Processes that ask and answer. */
export interface Trio extends AsyncDisposable {
  measure(order: LoadOrder): Promise<TrioFigures>;
}

/** Parts of a trio, for those that start one. */
export interface TrioParts {
  readonly requester: Program;
  readonly responder: Program;
  /** Process ids of what lies between them, if anything does. */
  readonly broker?: number | readonly number[];
}

/** As `getconf CLK_TCK` says on every Linux. */
const TICKS_PER_SECOND = 100;
const WARM_UP: LoadOrder = { window: 64, bytes: 100, seconds: 0.5 };
const READY = [/^(ready)$/m];

/** Starts the engine and the SDK of a checkout, in three processes of Deno. */
export async function startSdkTrio(setup: EngineSetup): Promise<Trio> {
  await using stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine(setup));
  const url = `ws://127.0.0.1:${engine.ports[0]}`;
  const peer = new URL("../sdk_peer.ts", import.meta.url).pathname;
  const start = async (role: string): Promise<Program> => {
    const args = ["run", "-A", "--no-check", peer, role, url, `${setup.tree}mod.ts`];
    return stack.use(await startProgram(Deno.execPath(), args, READY));
  };
  const responder = await start("worker");
  const requester = await start("caller");
  return await makeTrio({ requester, responder, broker: engine.pid }, stack);
}

/** Puts the parts together and warms them up; `stack`, which holds them, is taken over. */
export async function makeTrio(parts: TrioParts, stack: AsyncDisposableStack): Promise<Trio> {
  await measure(parts, WARM_UP);
  const owned = stack.move();
  return {
    measure: (order) => measure(parts, order),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function measure(parts: TrioParts, order: LoadOrder): Promise<TrioFigures> {
  const { requester, broker, responder } = parts;
  const pids = [[requester.pid], [broker ?? []].flat(), [responder.pid]];
  const before = pids.map(sumOf);
  const answer: LoadAnswer = JSON.parse(await requester.ask(JSON.stringify(order)));
  const { calls, seconds, p50_us, p99_us } = answer;
  const used = pids.map((pid, at) => (sumOf(pid) - before[at]!) / calls * 1e6);
  const [requester_us = 0, broker_us = 0, responder_us = 0] = used;
  const total_us = requester_us + broker_us + responder_us;
  const rate = calls / seconds;
  return { rate, p50_us, p99_us, requester_us, broker_us, responder_us, total_us };
}

function sumOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
}

/** CPU that a process has used so far; 0 without one. */
export function cpuSeconds(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
