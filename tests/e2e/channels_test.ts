/**
 * Channels between programs, over a real engine: Deno, Node, slow readers, ends that leave.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { ChannelReader, ChannelWriter, Json, Worker } from "../../mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { findNode, findPython, NodeProgram, PYTHON_ENV } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

const MIB = 1024 * 1024;
const hasNode = await findNode("tests/e2e/channels_test.ts");
const hasPython = await findPython("tests/e2e/channels_test.ts");

async function connect(engine: EngineProcess, name: string): Promise<Worker> {
  const worker = engine.connect(name);
  await worker.trigger({ function_id: "engine::workers::list", payload: {} });
  return worker;
}

/** Resident memory of a process, in bytes. */
function memoryOf(pid: number): number {
  const text = Deno.readTextFileSync(`/proc/${pid}/status`);
  return Number(/VmRSS:\s+(\d+)/.exec(text)![1]) * 1024;
}

/** Reads everything, and stops for a moment after each mebibyte; a checksum of what it got. */
async function readSlowly(reader: ChannelReader, pauseMs: number): Promise<[number, number]> {
  let [bytes, sum, next] = [0, 0, MIB];
  for await (const part of reader) {
    assert.ok(typeof part !== "string");
    bytes += part.length;
    sum = (sum + part[0]! * (bytes % 251)) % 1_000_003;
    if (bytes < next) continue;
    next += MIB;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return [bytes, sum];
}

async function writeMiB(writer: ChannelWriter, count: number): Promise<number> {
  let [bytes, sum] = [0, 0];
  for (let i = 0; i < count * 16; i++) {
    const part = new Uint8Array(MIB / 16).fill(i);
    await writer.write(part);
    bytes += part.length;
    sum = (sum + part[0]! * (bytes % 251)) % 1_000_003;
  }
  await writer.close();
  return sum;
}

Deno.test("a reference in a payload is an end of the channel in the handler", async () => {
  await using engine = await EngineProcess.start();
  await using caller = await connect(engine, "caller");
  await using worker = await connect(engine, "worker");
  worker.registerFunction("text::upper", async ({ input, output }: {
    input: ChannelReader;
    output: ChannelWriter;
  }) => {
    for await (const part of input) {
      if (typeof part === "string") await output.write(part.toUpperCase());
      else await output.write(part.map((byte) => byte + 1));
    }
    await output.close();
    return { done: true };
  });
  const [there, back] = [await caller.createChannel(), await caller.createChannel()];

  const payload = { input: there.reader, output: back.writer };
  const called = caller.trigger({ function_id: "text::upper", payload });
  await there.writer.write("é");
  await there.writer.write(Uint8Array.of(1, 2));
  await there.writer.close();

  const parts = [];
  for await (const part of back.reader) parts.push(part);
  assert.deepEqual(parts, ["É", Uint8Array.of(2, 3)]);
  assert.deepEqual(await called, { done: true });
});

Deno.test("a result may hold a reference, written before the caller reads", async () => {
  await using engine = await EngineProcess.start();
  await using caller = await connect(engine, "caller");
  await using worker = await connect(engine, "worker");
  worker.registerFunction("report::make", async () => {
    const { writer, reader } = await worker.createChannel();
    await writer.write("a short report");
    await writer.close();
    return { report: reader };
  });
  await worker.trigger({ function_id: "engine::workers::list", payload: {} }); // It is registered.

  const { report } = await caller.trigger<Json, { report: ChannelReader }>({
    function_id: "report::make",
    payload: {},
  });

  assert.equal(await report.text(), "a short report");
});

Deno.test("when the program of one end is gone, the other end learns it", async () => {
  await using engine = await EngineProcess.start();
  await using caller = await connect(engine, "caller");
  const worker = await connect(engine, "worker");
  const [one, two] = [await caller.createChannel(), await caller.createChannel()];
  const running = Promise.withResolvers<void>();
  worker.registerFunction("both::hold", async ({ input, output }: {
    input: ChannelReader;
    output: ChannelWriter;
  }) => {
    await output.write("part");
    await input.read();
    running.resolve();
    await new Promise(() => {});
  });
  const payload = { input: one.reader, output: two.writer };
  const called = caller.trigger({ function_id: "both::hold", payload });
  called.catch(() => {}); // It is stopped below.
  await one.writer.write("first");
  await running.promise;

  await worker.shutdown();

  assert.equal(await two.reader.read(), "part");
  await assert.rejects(two.reader.read(), { code: "channel_closed" });
  await until(() => one.writer.signal.aborted);
  await assert.rejects(one.writer.write("more"), { code: "channel_closed" });
});

Deno.test("a reference is used once, and an engine that stops ends both ends", async () => {
  await using engine = await EngineProcess.start();
  await using caller = await connect(engine, "caller");
  await using worker = await connect(engine, "worker");
  const { writer, reader } = await caller.createChannel();
  worker.registerFunction("twice::read", async ({ from }: { from: ChannelReader }) => {
    return await from.read() as string;
  });
  await writer.write("once");
  assert.equal(await reader.read(), "once");

  const again = worker.trigger({ function_id: "twice::read", payload: { from: reader } });
  await assert.rejects(again, { code: "channel_not_found" });
  const [left, read] = [until(() => writer.signal.aborted), reader.read()];
  read.catch(() => {}); // It is awaited below.
  await engine.kill("SIGTERM");

  await assert.rejects(read, { code: "channel_closed" });
  await left;
});

Deno.test({
  name: "256 MiB to a slow reader leave the engine's memory as it is",
  ignore: Deno.build.os !== "linux",
  async fn() {
    await using engine = await EngineProcess.start();
    await using caller = await connect(engine, "caller");
    await using worker = await connect(engine, "worker");
    worker.registerFunction("bytes::read", ({ from, pauseMs }: {
      from: ChannelReader;
      pauseMs: number;
    }) => readSlowly(from, pauseMs));
    const stream = async (count: number, pauseMs: number): Promise<void> => {
      const { writer, reader } = await caller.createChannel();
      const payload = { from: reader, pauseMs };
      const request = { function_id: "bytes::read", payload, timeout_ms: 300_000 };
      const [sum, got] = await Promise.all([writeMiB(writer, count), caller.trigger(request)]);
      assert.deepEqual(got, [count * MIB, sum]);
    };
    await stream(64, 0); // So that what the engine allocates once is there.
    const before = memoryOf(engine.pid);
    let most = 0;
    const watch = setInterval(() => most = Math.max(most, memoryOf(engine.pid)), 20);

    await stream(256, 5);

    clearInterval(watch);
    const growth = (most - before) / MIB;
    assert.ok(growth < 32, `${growth.toFixed(1)} MiB`);
  },
});

Deno.test({
  name: "Node reads, writes and pipes a channel, and holds a writer back",
  ignore: !hasNode,
  async fn() {
    await using engine = await EngineProcess.start();
    await using node = new NodeProgram(
      engine.url,
      `
      const worker = registerWorker();
      worker.registerFunction("node::pipe", async ({ input, output }) => {
        await input.readable.pipeTo(output.writable);
        return "piped";
      });
      worker.registerFunction("node::stuck", async ({ input }) => {
        say(typeof await input.read());
        return await new Promise(() => {});
      });
      await worker.trigger({ function_id: "no::such" }).catch(() => {});
      say("ready");
      process.stdin.on("end", () => worker.shutdown()).resume();`,
    );
    await using caller = await connect(engine, "caller");
    assert.equal(await node.said(), "ready");
    const [there, back] = [await caller.createChannel(), await caller.createChannel()];
    const payload = { input: there.reader, output: back.writer };
    const piped = caller.trigger({ function_id: "node::pipe", payload });

    const [sum, [bytes, got]] = await Promise.all([
      writeMiB(there.writer, 16),
      readSlowly(back.reader, 0),
    ]);
    assert.deepEqual([bytes, got], [16 * MIB, sum]);
    assert.equal(await piped, "piped");

    const held = await caller.createChannel();
    const stuck = caller.trigger({ function_id: "node::stuck", payload: { input: held.reader } });
    stuck.catch(() => {}); // Node leaves before it ends.
    let taken = 0;
    const flood = (async () => {
      for (; taken < 512; taken++) await held.writer.write(new Uint8Array(MIB));
    })();
    flood.catch(() => {}); // The same.
    assert.equal(await node.said(), "object");
    let last = -1;
    await until(async () => {
      const before = last;
      last = taken;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return before === taken;
    });
    assert.ok(taken < 512, `${taken} MiB were taken`);
    assert.equal(await node.end(), 0);
  },
});

const PYTHON_WORKER = `
import asyncio, sys, threading
from engine_sdk import InitOptions, register_worker

worker = register_worker(options=InitOptions(worker_name="python-worker"))

async def pipe(payload):
    async with payload["output"] as output:
        async for part in payload["input"]:
            await output.write_async(part)
    return "piped"

def copy(payload):
    size = 0
    with payload["input"].as_file() as source, payload["output"].as_file() as target:
        while part := source.read(100_000):
            size += target.write(part)
    return size

def make(payload):
    channel = worker.create_channel()
    def write():
        with channel.writer as writer:
            for number in range(payload["count"]):
                writer.write(f"{number}")
    threading.Thread(target=write).start()
    return {"numbers": channel.reader}

worker.register_function("py::pipe", pipe)
worker.register_function("py::copy", copy)
worker.register_function("py::make", make)
sys.stdin.read()
worker.shutdown()
`;

Deno.test({
  name: "Python reads and writes channels in threads and coroutines, at full size",
  ignore: !hasPython,
  async fn() {
    await using engine = await EngineProcess.start();
    await using caller = await connect(engine, "caller");
    const python = new Deno.Command("python3", {
      args: ["-c", PYTHON_WORKER],
      env: { ...PYTHON_ENV, ENGINE_URL: engine.url },
      stdin: "piped",
    }).spawn();
    try {
      const names = ["py::pipe", "py::copy", "py::make"];
      for (const function_id of names) {
        await until(async () => {
          const { functions } = await caller.trigger<Json, { functions: unknown[] }>({
            function_id: "engine::functions::list",
            payload: { search: function_id },
          });
          return functions.length > 0;
        });
      }
      for (const [function_id, outcome] of [["py::pipe", "piped"], ["py::copy", 16 * MIB]]) {
        const [there, back] = [await caller.createChannel(), await caller.createChannel()];
        const payload = { input: there.reader, output: back.writer };
        const called = caller.trigger({ function_id: function_id as string, payload });
        const [sum, [bytes, got]] = await Promise.all([
          writeMiB(there.writer, 16),
          readSlowly(back.reader, 1),
        ]);
        assert.equal(bytes, 16 * MIB);
        if (function_id === "py::pipe") assert.equal(got, sum, "frames of bytes keep their size");
        assert.equal(await called, outcome);
      }

      const { numbers } = await caller.trigger<Json, { numbers: ChannelReader }>({
        function_id: "py::make",
        payload: { count: 1_000 },
      });
      const texts = [];
      for await (const text of numbers) texts.push(text);
      assert.deepEqual(texts, Array.from({ length: 1_000 }, (_, i) => `${i}`));
    } finally {
      await python.stdin.close();
      await python.status;
    }
  },
});
