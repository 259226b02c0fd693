/**
 * `deno run -A tests/bench/scale.ts`: what an engine holds and does when there is much of it.
 *
 * Ten thousand workers that do nothing: memory of each, processor time of all while they rest. A
 * hundred thousand functions and triggers: what a registration costs, and a call among them beside
 * one among few. Five thousand workers that come and go, beside five hundred: what each costs.
 * Expected: a call and a worker cost what they cost alone. Processor time and memory are those of
 * the engine's process (Linux only); takes under a minute. The connections of this side read
 * nothing, so what is measured must be over before the engine misses their pongs.
 *
 * @module
 */
import { registerWorker, type Worker } from "../../mod.ts";
import { median, table } from "./figures.ts";
import { type Server, startEngine } from "./servers.ts";

const IDLE = 10_000;
/** Those that have sent nothing: of one address the engine takes no more than some 8,000. */
const SILENT = 7_500;
const FEW = 500;
const MANY = 5_000;
const REGISTRATIONS = 100_000;
/** The engine's bound for one worker is above this. */
const PER_WORKER = 5_000;
const REST_MS = 5_000;
const CALLS = 500;
/** Lines that shake hands at the same time; the kernel's queue of new ones is bounded. */
const AT_ONCE = 200;
/** Hundredths of a second, which /proc counts processor time in. */
const TICK_MS = 10;
const UNTIL_MS_MAX = 30_000;

const encoder = new TextEncoder();

/** A connection that sends and does not read. */
class SilentConnection implements Disposable {
  readonly #tcp: Deno.TcpConn;

  private constructor(tcp: Deno.TcpConn) {
    this.#tcp = tcp;
  }

  static async open(port: number): Promise<SilentConnection> {
    const tcp = await Deno.connect({ hostname: "127.0.0.1", port });
    const head = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n" +
      "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    await tcp.write(encoder.encode(head));
    const answer = new Uint8Array(1_024);
    const count = await tcp.read(answer) ?? 0;
    const text = new TextDecoder().decode(answer.subarray(0, count));
    if (!text.startsWith("HTTP/1.1 101")) throw new Error(`expected an upgrade, got ${text}`);
    return new SilentConnection(tcp);
  }

  /** Sends messages, each in a frame whose mask changes nothing. */
  async say(messages: readonly object[]): Promise<void> {
    const parts = messages.flatMap((message) => {
      const text = encoder.encode(JSON.stringify(message));
      const length = text.length < 126 ? [text.length] : [126, text.length >> 8, text.length & 255];
      return [...[0x81, 0x80 | length[0]!, ...length.slice(1), 0, 0, 0, 0], ...text];
    });
    const bytes = new Uint8Array(parts);
    for (let sent = 0; sent < bytes.length;) sent += await this.#tcp.write(bytes.subarray(sent));
  }

  [Symbol.dispose](): void {
    this.#tcp.close();
  }
}

/** The engine's process at a moment. */
interface Reading {
  readonly cpuMs: number;
  readonly bytes: number;
  readonly atMs: number;
}

function read({ pid }: Server): Reading {
  const [, , ...rest] = Deno.readTextFileSync(`/proc/${pid}/stat`).split(" ");
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return {
    cpuMs: (Number(rest[11]) + Number(rest[12])) * TICK_MS,
    bytes: Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) * 1_024,
    atMs: performance.now(),
  };
}

const rows: string[][] = [];
function note(what: string, figure: string): void {
  rows.push([what, figure]);
}

/** One function each, as an idle worker has. */
function offer(i: number): readonly object[] {
  return [{ type: "registerfunction", id: `idle${i}::f` }];
}

async function openConnections(port: number, count: number): Promise<SilentConnection[]> {
  const connections: SilentConnection[] = [];
  while (connections.length < count) {
    const some = Math.min(AT_ONCE, count - connections.length);
    connections.push(
      ...await Promise.all(Array.from({ length: some }, () => SilentConnection.open(port))),
    );
  }
  return connections;
}

/** Until the engine knows a function, or does not any more; with so many workers that offer it. */
async function until(
  worker: Worker,
  function_id: string,
  isThere: boolean,
  workers = 1,
): Promise<void> {
  for (const end = performance.now() + UNTIL_MS_MAX; performance.now() < end;) {
    const found = await worker.trigger<object, { workers?: readonly unknown[] }>({
      function_id: "engine::functions::info",
      payload: { function_id, include_replicas: true },
    }).catch(() => undefined);
    const isAll = found !== undefined && (workers === 1 || found.workers?.length === workers);
    if (isAll === isThere) return;
    await wait(5);
  }
  throw new Error(`expected ${function_id} to be ${isThere ? "there" : "gone"} by now`);
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function idle(engine: Server, probe: Worker): Promise<void> {
  const before = read(engine);
  const connections = await openConnections(engine.ports[0]!, SILENT);
  await wait(1_000);
  const open = read(engine);
  for (const [i, connection] of connections.entries()) await connection.say(offer(i));
  await until(probe, `idle${SILENT - 1}::f`, true);
  connections.push(...await openConnections(engine.ports[0]!, IDLE - SILENT));
  for (let i = SILENT; i < IDLE; i++) await connections[i]!.say(offer(i));
  await until(probe, `idle${IDLE - 1}::f`, true);
  await wait(1_000);
  const offering = read(engine);
  await wait(REST_MS);
  const rested = read(engine);
  const held = (now: Reading, count: number) =>
    `${((now.bytes - before.bytes) / count / 1_024).toFixed(1)} KiB`;
  const share = (rested.cpuMs - offering.cpuMs) / (rested.atMs - offering.atMs);
  note(`${SILENT} connections: opening one`, `${us(open.cpuMs - before.cpuMs, SILENT)} of CPU`);
  note(`${SILENT} connections: memory of each`, held(open, SILENT));
  note(`${IDLE} workers of a function: memory of each`, held(offering, IDLE));
  note(`${IDLE} workers at rest`, `${(share * 100).toFixed(1)} % of a core`);
  for (const connection of connections) connection[Symbol.dispose]();
  await until(probe, `idle${IDLE - 1}::f`, false);
}

async function registrations(engine: Server, probe: Worker): Promise<void> {
  const alone = await callTime(probe);
  const connections = await openConnections(engine.ports[0]!, REGISTRATIONS / PER_WORKER);
  const before = read(engine);
  for (const [at, connection] of connections.entries()) {
    const first = at * PER_WORKER;
    await connection.say(Array.from({ length: PER_WORKER }, (_, i) => offer(first + i)).flat());
    await connection.say(Array.from({ length: PER_WORKER }, (_, i) => ({
      type: "registertrigger",
      id: `t${first + i}`,
      trigger_type: "tick",
      function_id: `idle${first + i}::f`,
      config: { every: first + i },
    })));
  }
  const last = { type: "registerfunction", id: "last::f" };
  for (const connection of connections) await connection.say([last]);
  await until(probe, "last::f", true, connections.length);
  const after = read(engine);
  const each = (after.bytes - before.bytes) / REGISTRATIONS / 1_024;
  note(`${REGISTRATIONS} functions and triggers: one of each`, `${each.toFixed(1)} KiB`);
  const cost = us(after.cpuMs - before.cpuMs, REGISTRATIONS);
  note(`${REGISTRATIONS} functions and triggers: registering one of each`, `${cost} of CPU`);
  const among = await callTime(probe);
  note(`a call among ${REGISTRATIONS} over one among few`, `${(among / alone).toFixed(2)} ×`);
  for (const connection of connections) connection[Symbol.dispose]();
  await until(probe, `idle${REGISTRATIONS - 1}::f`, false);
}

/** Median milliseconds of a call to the probe itself, one at a time. */
async function callTime(probe: Worker): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < CALLS; i++) {
    const begun = performance.now();
    await probe.trigger({ function_id: "probe::echo", payload: { i } });
    times.push(performance.now() - begun);
  }
  return median(times);
}

/** CPU milliseconds per worker, of coming and of going. */
async function comeAndGo(engine: Server, probe: Worker, count: number): Promise<[number, number]> {
  const before = read(engine);
  const connections = await openConnections(engine.ports[0]!, count);
  for (const [i, connection] of connections.entries()) await connection.say(offer(i));
  await until(probe, `idle${count - 1}::f`, true);
  const here = read(engine);
  for (const connection of connections) connection[Symbol.dispose]();
  await until(probe, `idle${count - 1}::f`, false);
  await wait(500); // The last is not the last that the engine hears of.
  const gone = read(engine);
  return [(here.cpuMs - before.cpuMs) / count, (gone.cpuMs - here.cpuMs) / count];
}

function us(cpuMs: number, count: number): string {
  return `${(cpuMs * 1_000 / count).toFixed(0)} µs`;
}

if (import.meta.main) {
  const tree = new URL("../../", import.meta.url).pathname;
  await using engine = await startEngine({ tree, transport: "raw" });
  const probe = registerWorker(`ws://127.0.0.1:${engine.ports[0]}`, { telemetry: false });
  probe.registerFunction("probe::echo", (payload) => payload);
  const nothing = { registerTrigger: () => {}, unregisterTrigger: () => {} };
  probe.registerTriggerType({ id: "tick", description: "Ticks" }, nothing);
  await callTime(probe); // What is compiled once is compiled now.
  await idle(engine, probe);
  await registrations(engine, probe);
  const few = await comeAndGo(engine, probe, FEW);
  const many = await comeAndGo(engine, probe, MANY);
  for (const [at, what] of ["coming", "going"].entries()) {
    note(`one of ${MANY} workers, ${what}`, `${us(many[at]!, 1)} of CPU`);
    note(`over one of ${FEW}, ${what}`, `${(many[at]! / few[at]!).toFixed(2)} ×`);
  }
  await probe.shutdown();
  console.log(table(["what", "figure"], rows));
}
