/**
 * The engine's queue, state and streams beside the products that are run for one of them: BullMQ on
 * Redis and JetStream, Redis, and rooms of Socket.IO.
 *
 * Every job and value is on the disk before it is acknowledged: `appendfsync always` in Redis,
 * `sync_interval: always` in JetStream, the defaults of the engine. One client process makes the
 * requests and does the work, one server process is between; the clients of the others run on Node,
 * the engine's on Deno.
 *
 * Expected: no guess. A job of the engine is a call, with a record and a trace, when it is
 * enqueued and again when it is done; Redis keeps no job, and BullMQ makes one of several keys.
 *
 * @module
 */
import { startNats, withoutNats } from "../../cluster/servers.ts";
import { type Bench, Missing, type Section } from "../bench.ts";
import { count, duration, median, ratio, table } from "../figures.ts";
import { freePort, installPeers } from "../peers/start.ts";
import { type Program, startProgram } from "../program.ts";
import type { LoadAnswer } from "../sdk_peer.ts";
import { startEngine } from "../servers.ts";
import { cpuSeconds } from "./trios.ts";

/** The section. */
export const services: Section = { name: "services", measure };

/** Connections that follow what is published. */
const SUBSCRIBERS = 200;
const ENGINE = "engine";
const READY = [/^(ready)$/m];

/** What is asked of the products that offer it. */
interface Task {
  readonly title: string;
  readonly operation: "enqueue" | "done" | "set" | "get" | "publish";
  readonly windows: readonly number[];
}

const TASKS: readonly Task[] = [
  { title: "enqueue", operation: "enqueue", windows: [1, 64, 1_024] },
  { title: "enqueue and do", operation: "done", windows: [1, 64, 1_024] },
  { title: "set", operation: "set", windows: [1, 64, 1_024] },
  { title: "get", operation: "get", windows: [1, 64, 1_024] },
  {
    title: `message to ${SUBSCRIBERS} subscribers`,
    operation: "publish",
    windows: [1, 4],
  },
];

/** A product that runs, and its client. */
interface Service extends AsyncDisposable {
  readonly client: Program;
  readonly serverPid: number;
  readonly operations: readonly Task["operation"][];
}

interface ServiceFigures {
  readonly rate: number;
  readonly p50_us: number;
  readonly p99_us: number;
  /** CPU microseconds per operation. */
  readonly client_us: number;
  readonly server_us: number;
}

async function measure(bench: Bench): Promise<void> {
  const directory = await installPeers();
  await using stack = new AsyncDisposableStack();
  const started: Record<string, Service> = {
    [ENGINE]: stack.use(await startEngineService(bench.options.tree, directory)),
  };
  const others = {
    "BullMQ on Redis": () => startRedis(directory, "bullmq.mjs", ["enqueue", "done"]),
    JetStream: () => startJetStream(directory),
    Redis: () => startRedis(directory, "redis.mjs", ["set", "get"]),
    "Socket.IO room": () => startRoom(directory),
  };
  for (const [name, start] of Object.entries(others)) {
    try {
      started[name] = stack.use(await start());
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      bench.skip(`${name}: ${error.message}`);
    }
  }
  const rows: string[][] = [];
  for (const task of TASKS) {
    for (const window of task.windows) rows.push(...await compare(bench, task, window, started));
  }
  const note = "100 B; each operation that writes is on the disk before it is acknowledged. " +
    "`enqueue and do` ends with the receipt and in the handler, a message with its last delivery.";
  const head = ["operation, in flight", "per second", "p50", "p99", "CPU µs: client / server"];
  bench.show("Queues, state and streams of others", table(head, rows), note);
}

/** Measures a task on all that offer it, in turn. */
async function compare(
  bench: Bench,
  { title, operation }: Task,
  window: number,
  started: Readonly<Record<string, Service>>,
): Promise<string[][]> {
  const { seconds } = bench.options;
  const situation = `${title}, ${window.toLocaleString("en-US")} in flight`;
  const offering = Object.entries(started)
    .filter(([, { operations }]) => operations.includes(operation));
  const order = JSON.stringify({ operation, window, bytes: 100, seconds });
  const found = await bench.alternately<string, ServiceFigures>(
    situation,
    Object.fromEntries(offering.map(([name, service]) => [name, () => ask(service, order)])),
  );
  for (const [name, rounds] of Object.entries(found)) {
    if (name === ENGINE) continue;
    bench.find({
      name: `${situation}: rate, engine over ${name}`,
      value: ratio(found[ENGINE]!, rounds, "rate"),
      unit: "times",
      better: "more",
    });
  }
  return Object.entries(found).map(([name, rounds]) => {
    const of = (figure: keyof ServiceFigures) => median(rounds.map((round) => round[figure]));
    return [
      `${situation}, ${name}`,
      count(of("rate")),
      duration(of("p50_us")),
      duration(of("p99_us")),
      `${of("client_us").toFixed(1)} / ${of("server_us").toFixed(1)}`,
    ];
  });
}

async function ask({ client, serverPid }: Service, order: string): Promise<ServiceFigures> {
  const pids = [client.pid, serverPid];
  const before = pids.map(cpuSeconds);
  const { calls, seconds, p50_us, p99_us }: LoadAnswer = JSON.parse(await client.ask(order));
  const used = pids.map((pid, at) => (cpuSeconds(pid) - before[at]!) / calls * 1e6);
  const [client_us = 0, server_us = 0] = used;
  return { rate: calls / seconds, p50_us, p99_us, client_us, server_us };
}

async function startEngineService(tree: string, directory: string): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const workers = ["engine-queue", "engine-stream"];
  const engine = stack.use(await startEngine({ tree, transport: "raw", workers }));
  const url = `ws://127.0.0.1:${engine.ports[0]}`;
  const modules = [`${tree}mod.ts`, `${tree}sdk/browser/mod.ts`];
  const words = [`${directory}/engine.mjs`, url, ...modules, String(SUBSCRIBERS)];
  const args = ["run", "-A", "--no-check", "--config", `${tree}deno.json`, ...words];
  const client = stack.use(await startProgram(Deno.execPath(), args, READY));
  const operations = TASKS.map(({ operation }) => operation);
  return made({ client, serverPid: engine.pid, operations }, stack);
}

async function startRedis(
  directory: string,
  program: string,
  operations: Service["operations"],
): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const data = await Deno.makeTempDir({ prefix: "engine-bench-redis-" });
  stack.defer(() => Deno.remove(data, { recursive: true }));
  const port = String(freePort());
  const disk = ["--dir", data, "--appendonly", "yes", "--appendfsync", "always", "--save", ""];
  const words = ["--bind", "127.0.0.1", "--port", port, ...disk];
  const server = stack.use(await startServer("redis-server", words, /Ready to accept (.*)/));
  const client = stack.use(await startProgram("node", [`${directory}/${program}`, port], READY));
  return made({ client, serverPid: server.pid, operations }, stack);
}

async function startJetStream(directory: string): Promise<Service> {
  if (withoutNats) throw new Missing("there is no nats-server with JetStream");
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const port = new URL(nats.urls[0]!).port;
  const program = `${directory}/jetstream.mjs`;
  const client = stack.use(await startProgram("node", [program, port], READY));
  const serverPid = nats.nodes[0]!.pid;
  return made({ client, serverPid, operations: ["enqueue", "done"] }, stack);
}

async function startRoom(directory: string): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const program = `${directory}/socket_io_room.mjs`;
  const server = stack.use(await startProgram("node", [program, "broker"], [/listening on (\d+)/]));
  const words = [program, "client", server.found[0]!, String(SUBSCRIBERS)];
  const client = stack.use(await startProgram("node", words, READY));
  return made({ client, serverPid: server.pid, operations: ["publish"] }, stack);
}

async function startServer(
  command: string,
  words: readonly string[],
  pattern: RegExp,
): Promise<Program> {
  try {
    return await startProgram(command, words, [pattern]);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new Missing(`${command} is not installed`);
  }
}

/** The service, which owns what is in the stack from now on. */
function made(
  service: Omit<Service, typeof Symbol.asyncDispose>,
  stack: AsyncDisposableStack,
): Service {
  const owned = stack.move();
  return { ...service, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
