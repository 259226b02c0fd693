/**
 * Streams between HTTP clients and workers, over a real engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { CallContext, ChannelReader, ChannelWriter, Json, Worker } from "../../mod.ts";
import { EngineProcess, freePort } from "../fakes/engine_process.ts";
import { findPython, PYTHON_ENV } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

const MIB = 1024 * 1024;
const hasPython = await findPython("tests/e2e/http_stream_test.ts");
const OCTETS = { "content-type": "application/octet-stream" };

/** An engine with HTTP. */
async function start(): Promise<{ engine: EngineProcess; url: string }> {
  const port = freePort();
  const workers = `  - name: engine-http\n    config: { port: ${port}, timeout_ms: 120000 }\n`;
  return { engine: await EngineProcess.start(workers), url: `http://127.0.0.1:${port}` };
}

/** Serves a route of a worker; it answers when this resolves. */
async function serve(worker: Worker, route: string, handler: (...args: never[]) => unknown) {
  const [http_method, api_path] = route.split(" ") as [string, string];
  const function_id = `stream::${api_path.slice(1)}`;
  worker.registerFunction(function_id, handler as never);
  worker.registerTrigger({ type: "http", function_id, config: { http_method, api_path } });
  await worker.trigger({ function_id: "engine::workers::list", payload: {} });
}

function memoryOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))![1]) * 1024;
}

/** A body of so many MiB that is made while it is read. */
function bodyOf(count: number): ReadableStream<Uint8Array> {
  let left = count * 16;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(new Uint8Array(MIB / 16).fill(left));
      else controller.close();
    },
  });
}

async function sizeOf(response: Response, pauseMs: number): Promise<number> {
  let [size, next] = [0, MIB];
  for await (const part of response.body!) {
    size += part.length;
    if (size < next || pauseMs === 0) continue;
    next += MIB;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return size;
}

Deno.test({
  name: "uploads and downloads of 256 MiB leave the engine's memory as it is",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const { engine, url } = await start();
    await using _engine = engine;
    await using worker = engine.connect();
    await serve(worker, "POST /up", async ({ request_body }: { request_body: ChannelReader }) => {
      let size = 0;
      for await (const part of request_body) size += part.length;
      return { body: size };
    });
    await serve(worker, "GET /down", ({ query_params }: { query_params: { mib: string } }) => {
      return bodyOf(Number(query_params.mib));
    });
    const upload = async (mib: number): Promise<void> => {
      const init = { method: "POST", headers: OCTETS, body: bodyOf(mib) };
      assert.equal(await (await fetch(`${url}/up`, init)).json(), mib * MIB);
    };
    const download = async (mib: number, pauseMs: number): Promise<void> => {
      assert.equal(await sizeOf(await fetch(`${url}/down?mib=${mib}`), pauseMs), mib * MIB);
    };
    await upload(64); // So that what the engine allocates once is there.
    await download(64, 0);
    const before = memoryOf(engine.pid);
    let most = 0;
    const watch = setInterval(() => most = Math.max(most, memoryOf(engine.pid)), 20);

    await upload(256);
    await download(256, 2);

    clearInterval(watch);
    const growth = (most - before) / MIB;
    assert.ok(growth < 32, `${growth.toFixed(1)} MiB`);
  },
});

Deno.test("what a handler may return as a stream, and what it may write itself", async () => {
  const { engine, url } = await start();
  await using _engine = engine;
  await using worker = engine.connect();
  await serve(worker, "GET /texts", async function* () {
    yield "one ";
    await Promise.resolve();
    yield "two";
  });
  await serve(worker, "GET /events", () => ({
    headers: { "content-type": "text/event-stream", "cache-control": "no-cache" },
    body: (function* () {
      yield { n: 1 };
      yield { event: "end", data: "bye" };
    })(),
  }));
  await serve(worker, "GET /fails", function* () {
    yield "part";
    throw new Error("broken");
  });
  await serve(worker, "POST /echo", async (
    { request_body, response }: { request_body: ChannelReader; response: ChannelWriter },
  ) => {
    await response.write('{"type":"set_status","status_code":202}');
    await request_body.readable.pipeTo(response.writable);
  });

  const texts = await fetch(`${url}/texts`);
  assert.equal(texts.headers.get("content-type"), "text/plain; charset=utf-8");
  assert.equal(await texts.text(), "one two");
  const events = await fetch(`${url}/events`);
  assert.equal(events.headers.get("cache-control"), "no-cache");
  assert.equal(await events.text(), 'data: {"n":1}\n\nevent: end\ndata: bye\n\n');
  const fails = await fetch(`${url}/fails`);
  assert.equal(fails.status, 200);
  await assert.rejects(fails.text());
  const echo = await fetch(`${url}/echo`, { method: "POST", headers: OCTETS, body: bodyOf(4) });
  assert.equal(echo.status, 202);
  assert.equal(await sizeOf(echo, 0), 4 * MIB);
});

Deno.test("a client that leaves ends the handler's generator and aborts its signal", async () => {
  const { engine, url } = await start();
  await using _engine = engine;
  await using worker = engine.connect();
  const [ended, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await serve(worker, "GET /ticks", (_payload: Json, _metadata: Json, context: CallContext) => {
    context.signal.addEventListener("abort", () => aborted.resolve());
    return (async function* () {
      try {
        for (;;) {
          yield "tick\n";
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      } finally {
        ended.resolve();
      }
    })();
  });
  const leaving = new AbortController();
  const response = await fetch(`${url}/ticks`, { signal: leaving.signal });
  await response.body!.getReader().read();

  leaving.abort();

  await ended.promise;
  await aborted.promise;
});

const PYTHON_WORKER = `
import asyncio, sys
from engine_sdk import InitOptions, register_worker

worker = register_worker(options=InitOptions(worker_name="python-worker"))
left = asyncio.Event()

def route(path, handler, method="GET"):
    worker.register_function("py::" + path, handler)
    config = {"api_path": "/" + path, "http_method": method}
    worker.register_trigger({"type": "http", "function_id": "py::" + path, "config": config})

def texts(payload):
    yield "one "
    yield b"two"

async def ticks(payload):
    try:
        yield "tick"
        await asyncio.sleep(3600)
    finally:
        left.set()

async def events(payload):
    async def body():
        yield {"n": 1}
    return {"status_code": 202, "headers": {"content-type": "text/event-stream"}, "body": body()}

async def wait_left(payload):
    await left.wait()
    return {"body": "left"}

route("texts", texts)
route("ticks", ticks)
route("events", events)
route("left", wait_left)
route("size", lambda payload: {"body": len(payload["request_body"].read_all())}, "POST")
sys.stdin.read()
worker.shutdown()
`;

Deno.test({
  name: "Python streams bodies and responses",
  ignore: !hasPython,
  async fn() {
    const { engine, url } = await start();
    await using _engine = engine;
    const python = new Deno.Command("python3", {
      args: ["-c", PYTHON_WORKER],
      env: { ...PYTHON_ENV, ENGINE_URL: engine.url },
      stdin: "piped",
    }).spawn();
    try {
      await until(async () => {
        const response = await fetch(`${url}/size`, { method: "POST", headers: OCTETS, body: "x" });
        return await response.text() === "1";
      });

      assert.equal(await (await fetch(`${url}/texts`)).text(), "one two");
      const events = await fetch(`${url}/events`);
      assert.equal(events.status, 202);
      assert.equal(await events.text(), 'data: {"n":1}\n\n');
      const init = { method: "POST", headers: OCTETS, body: bodyOf(16) };
      assert.equal(await (await fetch(`${url}/size`, init)).json(), 16 * MIB);

      const leaving = new AbortController();
      const ticks = await fetch(`${url}/ticks`, { signal: leaving.signal });
      await ticks.body!.getReader().read();
      leaving.abort();
      assert.equal(await (await fetch(`${url}/left`)).json(), "left");
    } finally {
      await python.stdin.close();
      await python.status;
    }
  },
});
