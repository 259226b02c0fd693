/**
 * What streams cost: bytes from a worker to curl beside a bare stream of `Deno.serve`, a channel
 * between two workers beside the echo of the raw listener, and server-sent events of one second.
 *
 * Expected: three processes instead of two share the cores, and the engine copies each byte once,
 * so more than half of the bare stream. The engine's part of an event is a frame in and a chunk
 * out, so that a thousand of them a second are some percent of a core. The first byte takes the
 * function a connection of its own, so about a millisecond.
 *
 * @module
 */
import { type Bench, Missing, type Section } from "../bench.ts";
import { median, percent, ratio, size, table } from "../figures.ts";
import { type Program, startProgram } from "../program.ts";
import { type Server, startEcho, startEngine } from "../servers.ts";
import {
  type ChannelAnswer,
  type ChannelOrder,
  CHUNK_BYTES,
  type ClientsAnswer,
  type ClientsOrder,
  exactTime,
} from "../stream_peer.ts";
import { cpuSeconds } from "./trios.ts";

/** The section. */
export const streams: Section = { name: "streams", measure };

const PEER = new URL("../stream_peer.ts", import.meta.url).pathname;
/** Of one measurement: 128 MiB. */
const CHUNKS = 2_048;
const ECHOES = 4;
const SSE_CLIENTS = 1_000;
const SSE_SECONDS = 5;
/** Times that events are measured: their rate is fixed, and only CPU counts. */
const SSE_ROUNDS = 2;
/** Requests for the time from the handler's first item to the client, after some for warmth. */
const FIRST_BYTES = 300;
const FIRST_WARM_UP = 50;
const WARM_UP_CHUNKS = 512;
const CURL_MS_MAX = 60_000;
const CPU_UNITS = 1024 ** 3;

/** Least parts of what they are compared with, most of a core, and most milliseconds. */
const TARGETS = { stream: 0.6, channel: 0.4, events: 0.1, first_ms: 5 };

/** How fast bytes came, and what the server used for a GiB. */
interface BytesFigures {
  /** Bytes per second. */
  readonly rate: number;
  /** CPU seconds of the server, for a GiB. */
  readonly cpu_s: number;
}

/** Events per second, and the part of a core that the server used. */
interface EventFigures {
  readonly rate: number;
  readonly core: number;
}

/** Milliseconds from the handler's first item to the client. */
interface FirstByteFigures {
  readonly p50_ms: number;
  readonly p90_ms: number;
}

async function measure(bench: Bench): Promise<void> {
  const { tree } = bench.options;
  await using stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine({ tree, transport: "raw" }));
  const url = `ws://127.0.0.1:${engine.ports[0]}`;
  const peer = async (...args: string[]): Promise<Program> => {
    const words = ["run", "-A", "--no-check", PEER, ...args];
    return stack.use(await startProgram(Deno.execPath(), words, [/(started|\d+)/]));
  };
  const bare = await peer("server");
  const server = { pid: bare.pid, ports: [0, Number(bare.found[0])] };
  await peer("worker", url, `${tree}mod.ts`);
  await download(engine, 1).catch(() => {
    throw new Missing("the engine does not stream, or curl is not installed");
  });
  await measureFirstByte(bench, { engine, server });
  await measureDownloads(bench, { engine, server });
  const writer = await peer("writer", url, `${tree}mod.ts`);
  const echo = stack.use(await startEcho("raw"));
  await measureChannels(bench, { engine, echo, writer });
  await measureEvents(bench, { engine, server }, () => peer("clients"));
}

/** What a server is known by here: its process, and its HTTP port as the second one. */
type Served = Pick<Server, "pid" | "ports">;

/** How long the first item of a stream takes from its handler to the client. */
async function measureFirstByte(
  bench: Bench,
  servers: { readonly engine: Served; readonly server: Served },
): Promise<void> {
  const of = ({ ports }: Served) => () => firstByte(ports[1]!);
  for (const each of Object.values(servers)) await firstByte(each.ports[1]!, FIRST_WARM_UP);
  const found = await bench.alternately(`first byte of ${FIRST_BYTES} streams`, {
    "bare Deno.serve": of(servers.server),
    "from a worker": of(servers.engine),
  });
  const p90 = (rounds: readonly FirstByteFigures[]) => median(rounds.map(({ p90_ms }) => p90_ms));
  bench.find({
    name: "first byte of a stream after the handler's, 90 % of requests",
    value: p90(found["from a worker"]),
    unit: "ms",
    better: "less",
    target: TARGETS.first_ms,
  });
  const rows = Object.entries(found).map(([name, rounds]) => {
    const p50 = median(rounds.map(({ p50_ms }) => p50_ms));
    return [name, `${p50.toFixed(2)} ms`, `${p90(rounds).toFixed(2)} ms`];
  });
  const head = ["first byte, one request at a time", "p50 after the handler", "p90"];
  bench.show("First byte", table(head, rows));
}

async function measureDownloads(
  bench: Bench,
  { engine, server }: { readonly engine: Served; readonly server: Served },
): Promise<void> {
  for (const each of [server, engine]) await download(each, WARM_UP_CHUNKS);
  const found = await bench.alternately(`download of ${size(CHUNKS * CHUNK_BYTES)} with curl`, {
    "bare Deno.serve": () => download(server, CHUNKS),
    "from a worker": () => download(engine, CHUNKS),
  });
  const [over, under] = [found["from a worker"], found["bare Deno.serve"]];
  bench.find({
    name: "bytes from a worker to curl over a bare stream",
    value: ratio(over, under, "rate"),
    unit: "share",
    better: "more",
    target: TARGETS.stream,
  });
  bench.find({
    name: "server CPU of a byte to curl over a bare stream",
    value: ratio(over, under, "cpu_s"),
    unit: "times",
    better: "less",
  });
  const head = ["download, chunks of 64 KiB", "MiB/s", "server CPU per GiB", "of the bare stream"];
  bench.show("Streams", table(head, bytesRows(found, under)));
}

async function measureChannels(
  bench: Bench,
  { engine, echo, writer }: {
    readonly engine: Served;
    readonly echo: Served;
    readonly writer: Program;
  },
): Promise<void> {
  await transfer(engine, writer, { chunks: WARM_UP_CHUNKS });
  const run = { mode: "echo", port: echo.ports[0]!, pid: echo.pid, bytes: CHUNK_BYTES } as const;
  await bench.load({ ...run, window: ECHOES });
  const found = await bench.alternately(`channel of ${size(CHUNKS * CHUNK_BYTES)}`, {
    "raw echo": async (): Promise<BytesFigures> => {
      const { rate, cpu_s } = await bench.load({ ...run, window: ECHOES });
      const perGib = CPU_UNITS / CHUNK_BYTES / 100_000;
      return { rate: rate * CHUNK_BYTES, cpu_s: cpu_s * perGib };
    },
    "worker to worker": () => transfer(engine, writer, { chunks: CHUNKS }),
  });
  const [over, under] = [found["worker to worker"], found["raw echo"]];
  bench.find({
    name: "bytes of a channel between workers over the raw listener's echo",
    value: ratio(over, under, "rate"),
    unit: "share",
    better: "more",
    target: TARGETS.channel,
  });
  bench.find({
    name: "engine CPU of a byte of a channel over the raw listener's echo",
    value: ratio(over, under, "cpu_s"),
    unit: "times",
    better: "less",
  });
  const head = ["frames of 64 KiB", "MiB/s", "server CPU per GiB", "of the echo"];
  const note =
    "The echo's other end is the C program, the channel's ends are two workers with the SDK.";
  bench.show("Channels", table(head, bytesRows(found, under)), note);
}

async function measureEvents(
  bench: Bench,
  servers: { readonly engine: Served; readonly server: Served },
  startClients: () => Promise<Program>,
): Promise<void> {
  const clients = await startClients();
  const of = ({ pid, ports }: Served) => () => listen(clients, pid, ports[1]!);
  const found = await bench.alternately(
    `${SSE_CLIENTS} clients of server-sent events`,
    { "bare Deno.serve": of(servers.server), "from a worker": of(servers.engine) },
    SSE_ROUNDS,
  );
  const core = (rounds: readonly EventFigures[]) => median(rounds.map((round) => round.core));
  bench.find({
    name: `part of a core that the engine uses for ${SSE_CLIENTS} events a second`,
    value: core(found["from a worker"]),
    unit: "share",
    better: "less",
    target: TARGETS.events,
  });
  bench.find({
    name: `server CPU of ${SSE_CLIENTS} events a second over a bare server`,
    value: ratio(found["from a worker"], found["bare Deno.serve"], "core"),
    unit: "times",
    better: "less",
  });
  const rows = Object.entries(found).map(([name, rounds]) => {
    const rate = median(rounds.map((round) => round.rate));
    return [name, rate.toFixed(0), percent(core(rounds))];
  });
  const head = [`${SSE_CLIENTS} clients, an event a second each`, "events/s", "server, of a core"];
  bench.show("Server-sent events", table(head, rows));
}

function bytesRows(
  found: Readonly<Record<string, readonly BytesFigures[]>>,
  under: readonly BytesFigures[],
): string[][] {
  return Object.entries(found).map(([name, rounds]) => [
    name,
    (median(rounds.map(({ rate }) => rate)) / 1024 ** 2).toFixed(0),
    `${median(rounds.map(({ cpu_s }) => cpu_s)).toFixed(2)} s`,
    percent(ratio(rounds, under, "rate")),
  ]);
}

/** Asks for streams, each on a connection of its own, and compares when their item was made. */
async function firstByte(port: number, requests: number = FIRST_BYTES): Promise<FirstByteFigures> {
  const head = "GET /first HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
  const times: number[] = [];
  for (let asked = 0; asked < requests; asked++) {
    using socket = await Deno.connect({ hostname: "127.0.0.1", port });
    socket.setNoDelay(true);
    await socket.write(new TextEncoder().encode(head));
    const buffer = new Uint8Array(4_096);
    let text = "";
    let made: RegExpExecArray | null = null;
    while (made === null) {
      const count = await socket.read(buffer);
      const now = exactTime();
      if (count === null) throw new Error(`a stream ended without an item: ${text}`);
      text += new TextDecoder().decode(buffer.subarray(0, count));
      made = /"at":([\d.]+)\}/.exec(text);
      if (made) times.push(now - Number(made[1]));
    }
  }
  times.sort((one, other) => one - other);
  const at = (part: number) => times[Math.floor(times.length * part)]!;
  return { p50_ms: at(0.5), p90_ms: at(0.9) };
}

/** Downloads once with curl. @throws {Error} When not every byte came. */
async function download({ pid, ports }: Served, chunks: number): Promise<BytesFigures> {
  const url = `http://127.0.0.1:${ports[1]}/bytes?chunks=${chunks}`;
  const before = cpuSeconds(pid);
  const { success, stdout } = await new Deno.Command("curl", {
    args: ["-sf", "-o", "/dev/null", "-w", "%{size_download} %{time_total}", url],
    signal: AbortSignal.timeout(CURL_MS_MAX),
  }).output();
  const [bytes = 0, seconds = 0] = new TextDecoder().decode(stdout).split(" ").map(Number);
  if (!success || bytes !== chunks * CHUNK_BYTES) {
    throw new Error(`curl got ${bytes} bytes of ${url}`);
  }
  return { rate: bytes / seconds, cpu_s: (cpuSeconds(pid) - before) / bytes * CPU_UNITS };
}

/** Sends bytes through a channel once. */
async function transfer(
  { pid }: Served,
  writer: Program,
  order: ChannelOrder,
): Promise<BytesFigures> {
  const before = cpuSeconds(pid);
  const { bytes, seconds }: ChannelAnswer = JSON.parse(await writer.ask(JSON.stringify(order)));
  if (bytes !== order.chunks * CHUNK_BYTES) throw new Error(`a channel carried ${bytes} bytes`);
  return { rate: bytes / seconds, cpu_s: (cpuSeconds(pid) - before) / bytes * CPU_UNITS };
}

/** Reads events for a while; the clients say when all have begun, and what they counted. */
async function listen(clients: Program, pid: number, port: number): Promise<EventFigures> {
  const order: ClientsOrder = { port, clients: SSE_CLIENTS, seconds: SSE_SECONDS };
  await clients.ask(JSON.stringify(order));
  const before = cpuSeconds(pid);
  const { events, seconds }: ClientsAnswer = JSON.parse(await clients.next());
  return { rate: events / seconds, core: (cpuSeconds(pid) - before) / seconds };
}
