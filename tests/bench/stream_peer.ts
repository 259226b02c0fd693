/**
 * The programs that streams are measured with; the first argument says which.
 *
 * `server`: `Deno.serve` alone. `worker` and `writer`: the SDK, whose module is the third argument,
 * on the engine at the second. `clients`: plain sockets that read server-sent events. Both servers
 * have `/bytes?chunks=N`, N chunks of 64 KiB, `/events`, an event per second, and `/first`, one event with
 * the time when it was made. `writer` and
 * `clients` take orders as lines of JSON on standard input and reply to each with one on standard
 * output. All end with their standard input or with SIGTERM.
 *
 * @module
 */
import type { ChannelReader, registerWorker, Worker } from "../../mod.ts";

/** Bytes of a chunk. */
export const CHUNK_BYTES = 64 * 1024;

/** What `writer` is to send through a channel to `worker`. */
export interface ChannelOrder {
  readonly chunks: number;
}

/** How long that took, from the call to its result. */
export interface ChannelAnswer {
  readonly bytes: number;
  readonly seconds: number;
}

/** What `clients` are to do: read events for a while, counted once all have had one. */
export interface ClientsOrder {
  readonly port: number;
  readonly clients: number;
  readonly seconds: number;
}

/** What `clients` say: `ready` when counting begins, then this. */
export interface ClientsAnswer {
  readonly events: number;
  readonly seconds: number;
}

const EVENT_MS = 1_000;
/** Clients that connect at once: a port accepts so many without refusing one. */
const DIALS = 50;

const chunk = new Uint8Array(CHUNK_BYTES).fill(7);
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function* bytes(chunks: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let sent = 0; sent < chunks; sent++) yield chunk;
}

/** The time as all processes of this machine have it, in milliseconds with fractions. */
export function exactTime(): number {
  return performance.timeOrigin + performance.now();
}

async function* moment(): AsyncGenerator<{ at: number }> {
  yield { at: exactTime() };
}

async function* events(): AsyncGenerator<{ at: number }> {
  for (;;) {
    yield { at: Date.now() };
    await pause(EVENT_MS);
  }
}

/** `Deno.serve` and nothing else. */
function serve(): void {
  const encoder = new TextEncoder();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/bytes") {
      return new Response(ReadableStream.from(bytes(Number(searchParams.get("chunks")))));
    }
    const source = pathname === "/first" ? moment() : events();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value, done } = await source.next();
        if (done) return controller.close();
        controller.enqueue(encoder.encode(`data: ${JSON.stringify(value)}\n\n`));
      },
      cancel: () => void source.return(undefined),
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
  console.log(`listening on ${server.addr.port}`);
}

/** Routes, and the reading end of channels. */
function offer(worker: Worker): void {
  const route = (function_id: string, api_path: string): void => {
    worker.registerTrigger({ type: "http", function_id, config: { api_path } });
  };
  interface Asked {
    query_params: { chunks: string };
  }
  worker.registerFunction("bench::bytes", ({ query_params }: Asked) => ({
    headers: { "content-type": "application/octet-stream" },
    body: bytes(Number(query_params.chunks)),
  }));
  worker.registerFunction("bench::events", () => ({
    headers: { "content-type": "text/event-stream" },
    body: (async function* () {
      for await (const data of events()) yield { data };
    })(),
  }));
  worker.registerFunction("bench::first", () => ({
    headers: { "content-type": "text/event-stream" },
    body: (async function* () {
      for await (const data of moment()) yield { data };
    })(),
  }));
  worker.registerFunction("bench::drain", async ({ from }: { from: ChannelReader }) => {
    let count = 0;
    for await (const part of from) count += part.length;
    return count;
  });
  route("bench::bytes", "/bytes");
  route("bench::events", "/events");
  route("bench::first", "/first");
}

/** Sends bytes through a channel, and waits until the reader has them all. */
async function write(worker: Worker, { chunks }: ChannelOrder): Promise<ChannelAnswer> {
  const start = performance.now();
  const { writer, reader } = await worker.createChannel();
  const request = { function_id: "bench::drain", payload: { from: reader }, timeout_ms: 60_000 };
  const drained = worker.trigger<unknown, number>(request);
  for (let sent = 0; sent < chunks; sent++) await writer.write(chunk);
  await writer.close();
  const bytes = await drained;
  return { bytes, seconds: (performance.now() - start) / 1_000 };
}

/** Reads events with plain sockets; an event is what comes in one piece. */
async function listen({ port, clients, seconds }: ClientsOrder): Promise<ClientsAnswer> {
  const sockets: Deno.TcpConn[] = [];
  const first: Promise<void>[] = [];
  let events = 0;
  const read = async (socket: Deno.TcpConn, begun: () => void): Promise<void> => {
    const buffer = new Uint8Array(4_096);
    const decoder = new TextDecoder();
    try {
      for (let n = await socket.read(buffer); n; n = await socket.read(buffer)) {
        if (!decoder.decode(buffer.subarray(0, n)).includes("data: ")) continue;
        events++;
        begun();
      }
    } catch {
      // It was closed at the end of the measurement.
    }
  };
  const request = new TextEncoder().encode("GET /events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
  for (let begun = 0; begun < clients; begun += DIALS) {
    await Promise.all(Array.from({ length: Math.min(DIALS, clients - begun) }, async () => {
      const socket = await Deno.connect({ hostname: "127.0.0.1", port });
      sockets.push(socket);
      await socket.write(request);
      first.push(new Promise((resolve) => void read(socket, resolve)));
    }));
    // A request takes a place until its stream begins, and one client has not so many of them.
    await Promise.all(first);
  }
  console.log("ready");
  events = 0;
  const start = performance.now();
  await pause(seconds * 1_000);
  const answer = { events, seconds: (performance.now() - start) / 1_000 };
  for (const socket of sockets) socket.close();
  return answer;
}

/** Lines of standard input, until it ends. */
async function* lines(): AsyncGenerator<string> {
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split("\n");
    rest = parts.pop()!;
    yield* parts;
  }
}

async function connect(role: string, url: string, sdk: string): Promise<Worker> {
  const module: { registerWorker: typeof registerWorker } = await import(sdk);
  const worker = module.registerWorker(url, { workerName: `bench-${role}` });
  if (role === "worker") offer(worker);
  while (worker.connectionState !== "connected") {
    await new Promise<void>((resolve) => {
      const stop = worker.onConnectionState(() => (stop(), resolve()));
    });
  }
  return worker;
}

async function main([role = "", url = "", sdk = "../../mod.ts"]: readonly string[]): Promise<void> {
  if (role === "server") return serve();
  const worker = role === "clients" ? undefined : await connect(role, url, sdk);
  // Its answer comes when the routes are registered, too.
  await worker?.trigger({ function_id: "engine::registered-triggers::list", payload: {} });
  console.log("started");
  for await (const line of lines()) {
    const order = JSON.parse(line);
    const answer = await (worker ? write(worker, order) : listen(order));
    console.log(JSON.stringify(answer));
  }
  await worker?.shutdown();
}

if (import.meta.main) await main(Deno.args);
