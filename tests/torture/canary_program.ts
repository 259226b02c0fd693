/**
 * The canary: a worker and a caller on connections of their own, whose calls measure how long the
 * engine makes others wait. A program of its own, so that the load of a scenario does not delay it.
 *
 * It makes a call every few milliseconds, whether or not the one before has ended, so a pause of
 * the engine delays as many calls as it is long. Of each wait it knows how much of it the engine's
 * thread or its own could have run and the machine gave the processor to other programs: what is
 * left, `net`, is the engine's doing also on a machine that is busy.
 *
 * Arguments: port, process id of the engine. Each line of standard input is an order, `reset` or
 * `report`; it answers `report` with a line of JSON. It ends when standard input does.
 *
 * @module
 */
import { Peer } from "./peer.ts";
import { type CanaryReport, quantile } from "./report.ts";

const INTERVAL_MS = 5;
const FUNCTION = "canary::echo";
/** The peak of memory is read so often, for an engine that ends. */
const SAMPLE_MS = 100;
/** Calls that wait; further ones are not made, so that the canary is no flood after a pause. */
const WAITING_MAX = 10_000;

/** A call on its way. */
interface Call {
  readonly sent: number;
  /** Time that the engine had waited for a processor until then. */
  readonly delayed: number;
}

const port = Number(Deno.args[0]);
const pid = Number(Deno.args[1]);
const waiting = new Map<string, Call>();
let waits: { wait: number; net: number }[] = [];
let failed = 0;
let end: string | null = null;
let count = 0;
let peak = 0;
let since = performance.now();
/** Time that this program had waited for a processor when it was last awake. */
let ownDelay = delayOf(Deno.pid);

const worker = await Peer.connect(port);
await worker.announce("canary-worker");
await worker.send({ type: "registerfunction", id: FUNCTION });
worker.onText = (text) => {
  if (!text.startsWith('{"type":"invokefunction"')) return;
  const id = /"invocation_id":"([^"]*)"/.exec(text)![1];
  const head = `{"type":"invocationresult","invocation_id":"${id}","function_id":"${FUNCTION}"`;
  void worker.send(`${head},"result":1}`);
};
const caller = await Peer.connect(port);
await caller.announce("canary-caller");
caller.onText = (text) => {
  const id = /"invocation_id":"([^"]*)"/.exec(text)?.[1] ?? "";
  const call = waiting.get(id);
  if (call === undefined) return;
  waiting.delete(id);
  if (text.includes('"error"')) failed++;
  waits.push(measure(call));
  ownDelay = delayOf(Deno.pid);
};
for (const [name, peer] of Object.entries({ worker, caller })) {
  void peer.ended.then(({ code, reason }) => end ??= `${name}: ${code} ${reason}`);
}
await worker.settled(60_000);
const sampler = setInterval(() => {
  peak = memory("VmHWM") || peak;
}, SAMPLE_MS);
const timer = setInterval(() => {
  ownDelay = delayOf(Deno.pid);
  if (waiting.size >= WAITING_MAX) return;
  const id = `canary-${count++}`;
  waiting.set(id, { sent: performance.now(), delayed: delayOf(pid) });
  const head = `{"type":"invokefunction","invocation_id":"${id}","function_id":"${FUNCTION}"`;
  void caller.send(`${head},"timeout_ms":600000,"data":1}`);
}, INTERVAL_MS);
console.log("ready");

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop()!;
  for (const line of lines) follow(line);
}
clearInterval(timer);
clearInterval(sampler);
worker.destroy();
caller.destroy();

function follow(order: string): void {
  if (order === "reset") {
    waits = [];
    failed = 0;
    waiting.clear();
    since = performance.now();
    resetPeak();
  } else console.log(JSON.stringify(report()));
}

function report(): CanaryReport {
  const all = [...waits, ...[...waiting.values()].map(measure)];
  const raw = Float64Array.from(all, ({ wait }) => wait).sort();
  const net = Float64Array.from(all, ({ net }) => net).sort();
  return {
    calls: waits.length,
    waiting: waiting.size,
    failed,
    end,
    seconds: (performance.now() - since) / 1_000,
    p50_ms: quantile(raw, 0.5),
    p99_ms: quantile(raw, 0.99),
    max_ms: raw.at(-1) ?? 0,
    net_p99_ms: quantile(net, 0.99),
    net_max_ms: net.at(-1) ?? 0,
    peak_mib: memory("VmHWM") || peak,
    rss_mib: memory("VmRSS"),
  };
}

function measure({ sent, delayed: before }: Call): { wait: number; net: number } {
  const wait = performance.now() - sent;
  // Of its own delays only the last one, since it also wakes for other calls meanwhile.
  const delays = delayOf(pid) - before + delayOf(Deno.pid) - ownDelay;
  return { wait, net: Math.max(0, wait - delays) };
}

/** Milliseconds that a thread could have run and did not; 0 where the system does not say. */
function delayOf(process: number): number {
  try {
    return Number(Deno.readTextFileSync(`/proc/${process}/schedstat`).split(" ")[1]) / 1e6;
  } catch {
    return 0; // It has gone, or this is not Linux.
  }
}

function memory(field: string): number {
  try {
    const text = Deno.readTextFileSync(`/proc/${pid}/status`);
    return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(text)?.[1] ?? 0) / 1024;
  } catch {
    return 0; // It has gone, or this is not Linux.
  }
}

/** The peak of memory counts from now on. */
function resetPeak(): void {
  peak = 0;
  try {
    Deno.writeTextFileSync(`/proc/${pid}/clear_refs`, "5");
  } catch {
    // Then it counts from the start of the engine.
  }
}
