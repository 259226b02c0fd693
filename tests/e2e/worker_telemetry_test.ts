/**
 * The telemetry of a worker, as a program of its own: log lines, spans and gauges on `/otel`,
 * and marks in what it prints. The same claims hold for every language and platform.
 *
 * @module
 */
import assert from "node:assert/strict";
import { LineSplitter, OutputMarks, type UnmarkedLine } from "../../engine/process/output.ts";
import { findNode, findPython, PYTHON_ENV } from "../fakes/programs.ts";
import { type OtlpFrame, readOtlpFrame, valuesOf } from "../fakes/otlp.ts";
import { serveSockets } from "../fakes/socket_server.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const PATIENCE_MS = 60_000;
const TRACE = { trace_id: "0af7651916cd43dd8448eb211c80319c", span_id: "b7ad6b7169203331" };

const CODE = `
const worker = registerWorker(undefined, { token: "t" });
worker.registerFunction("shop::sell", async (payload) => {
  console.log("selling", payload);
  await new Promise((resolve) => setTimeout(resolve, 1));
  console.error("two\\nlines");
  new Logger().info("sold", { order: 7 });
  throw new Error("sold out");
});
console.log("ready");
process.on("SIGTERM", () => worker.shutdown());
`;

const PYTHON = `
from engine_sdk import InitOptions, Logger, register_worker
import asyncio, sys

worker = register_worker(options=InitOptions(token="t"))

async def sell(payload):
    print("selling", payload)
    await asyncio.sleep(0.001)
    print("two\\nlines", file=sys.stderr)
    Logger().info("sold", {"order": 7})
    raise ValueError("sold out")

worker.register_function("shop::sell", sell)
print("ready")
`;

/** One way to run a worker. */
interface Program {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly runtime: string;
  readonly shown: string;
  readonly ignore?: boolean;
}

const programs: Program[] = [
  {
    name: "Deno",
    command: [Deno.execPath(), "eval", "--no-config", importing(`${ROOT}sdk/npm/engine_sdk.js`)],
    runtime: "deno",
    shown: "selling { n: 1 }",
  },
  {
    name: "Node",
    command: ["node", "--input-type=module", "-e", importing(`${ROOT}sdk/npm/engine_sdk.js`)],
    runtime: "node",
    shown: "selling { n: 1 }",
    ignore: !await findNode("tests/e2e/worker_telemetry_test.ts"),
  },
  {
    name: "Python",
    command: ["python3", "-u", "-c", PYTHON],
    env: PYTHON_ENV,
    runtime: "cpython",
    shown: "selling {'n': 1}",
    ignore: !await findPython("tests/e2e/worker_telemetry_test.ts"),
  },
];

function importing(sdk: string): string {
  return `import { Logger, registerWorker } from "file://${sdk}";\n${CODE}`;
}

/** Waits until something is there. */
async function until<Found>(what: string, look: () => Found | undefined): Promise<Found> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end;) {
    const found = look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`There never was ${what}`);
}

/** A server that plays the engine, and the program as its worker. */
function setup({ command, env }: Program) {
  const stack = new AsyncDisposableStack();
  const frames: OtlpFrame[] = [];
  const own: WebSocket[] = [];
  const server = stack.use(serveSockets({
    opened(socket) {
      if (server.requests.at(-1)!.url.pathname === "/otel") return;
      own.push(socket);
      const capabilities = ["cancel", "timeout", "progress"];
      const ids = { worker_id: "w-1", reattach_token: "r" };
      socket.send(JSON.stringify({ type: "workerregistered", ...ids, capabilities }));
    },
    message(_socket, data) {
      if (typeof data !== "string") frames.push(readOtlpFrame(new Uint8Array(data)));
      else if (data.includes('"shop::sell"') && data.includes("registerfunction")) call(own[0]!);
    },
  }));
  const child = new Deno.Command(command[0]!, {
    args: command.slice(1),
    env: { ENGINE_URL: server.url, ENGINE_WORKER_NAME: "shop", ENGINE_OUTPUT_MARKS: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const lines: UnmarkedLine[] = [];
  const read = [collect("stdout", child.stdout, lines), collect("stderr", child.stderr, lines)];
  stack.defer(async () => {
    child.kill("SIGTERM");
    await Promise.all([child.status, ...read]);
  });
  return { frames, lines, server, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

function call(socket: WebSocket): void {
  const ids = { invocation_id: "i-1", function_id: "shop::sell" };
  const traceparent = `00-${TRACE.trace_id}-${TRACE.span_id}-01`;
  socket.send(JSON.stringify({ type: "invokefunction", ...ids, traceparent, data: { n: 1 } }));
}

async function collect(
  stream: UnmarkedLine["stream"],
  readable: ReadableStream<Uint8Array>,
  lines: UnmarkedLine[],
): Promise<void> {
  const marks = new OutputMarks();
  const splitter = new LineSplitter((text) => lines.push(marks.read({ stream, text })));
  for await (const bytes of readable) splitter.add(bytes);
  splitter.end();
}

for (const program of programs) {
  const { name, ignore = false, runtime, shown } = program;

  Deno.test(
    { ignore, name: `${name}: a worker sends logs, spans and gauges on /otel` },
    async () => {
      await using there = setup(program);
      const { frames, server } = there;
      const of = (signal: string) =>
        until(`a frame of ${signal}`, () => frames.find((frame) => frame.signal === signal));

      const [logs, spans, gauges] = await Promise.all([of("LOGS"), of("OTLP"), of("MTRC")]);

      const { headers } = server.requests.find(({ url }) => url.pathname === "/otel")!;
      assert.equal(headers.get("authorization"), "Bearer t");
      const [record] = logs.records;
      assert.equal(record!.body!.stringValue, "sold");
      assert.deepEqual([record!.traceId, record!.spanId], [TRACE.trace_id, TRACE.span_id]);
      assert.deepEqual(valuesOf(record!.attributes), { order: "7" });

      const [span] = spans.records;
      assert.equal(span!.name, "execute shop::sell");
      assert.deepEqual([span!.traceId, span!.parentSpanId], [TRACE.trace_id, TRACE.span_id]);
      assert.equal(span!.status!.code, 2);
      assert.match(span!.status!.message!, /sold out$/);
      assert.equal(valuesOf(span!.attributes)["engine.invocation.id"], "i-1");
      const ms = Number(BigInt(span!.endTimeUnixNano!) - BigInt(span!.startTimeUnixNano!)) / 1e6;
      assert.ok(ms >= 1 && ms < PATIENCE_MS, `${ms} ms`);
      assert.ok(Math.abs(Number(span!.startTimeUnixNano) / 1e6 - Date.now()) < PATIENCE_MS);

      const values = new Map(gauges.records.map((record) => [
        `${record.name} ${record.unit}`,
        record.gauge!.dataPoints[0]!.asDouble,
      ]));
      // Only Python runs handlers in threads.
      const threads = ["waiting 1", "threads.busy 1", "threads.max 1"]
        .map((name) => `engine.handlers.${name}`);
      assert.deepEqual([...values.keys()], [
        ...runtime === "cpython" ? threads : [],
        "process.memory.usage By",
        "process.cpu.utilization 1",
        "engine.event_loop.lag.p99 s",
        "engine.event_loop.lag.max s",
        ...runtime === "cpython" ? [] : ["engine.handlers.waiting 1"],
      ]);
      assert.ok(values.get("process.memory.usage By")! > 1024 * 1024);
      for (const frame of [logs, spans, gauges]) {
        const [resource] = frame.resources;
        assert.equal(resource!["service.name"], "shop");
        assert.equal(resource!["service.instance.id"], "w-1");
        assert.equal(resource!["process.runtime.name"], runtime);
      }
    },
  );

  Deno.test({ ignore, name: `${name}: what a handler prints names its call` }, async () => {
    await using there = setup(program);
    const { lines } = there;
    const find = (text: string) =>
      until(`a line ${text}`, () => lines.find((line) => line.text === text));

    const sold = await until("a line of the logger", () => lines.find(({ isLogger }) => isLogger));
    const found = await Promise.all([find(shown), find("two"), find("lines"), find("ready")]);

    assert.match(sold.text, /^INFO {2}\[shop\] sold \{"order": ?7\}$/);
    assert.deepEqual(sold.trace, TRACE);
    assert.deepEqual(found.map(({ trace }) => trace), [TRACE, TRACE, TRACE, null]);
    assert.deepEqual(found.map(({ isLogger }) => isLogger), [false, false, false, false]);
    assert.deepEqual(found.map(({ stream }) => stream), ["stdout", "stderr", "stderr", "stdout"]);
  });
}
