/**
 * `engine::supervisor::*`: what is passed to the supervisor, what is rejected, and for which
 * callers.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { ConfigValue } from "../../engine/ports/config.ts";
import type { Ended, OutputChunk } from "../../engine/ports/launcher.ts";
import type {
  AddRequest,
  EngineInfo,
  Supervision,
  WorkerStatus,
} from "../../engine/ports/supervision.ts";
import { localDial } from "../../engine/transport/local_connection.ts";
import type { CallRequest, Handler } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { workerStatus } from "../../tests/fakes/samples.ts";
import { CheckedFunctions } from "./functions.ts";
import { engine } from "./mod.ts";
import { runExec } from "./exec.ts";
import { registerSettings } from "./supervision.ts";

const STATUS = workerStatus();

const INFO: EngineInfo = {
  listeners: [],
  version: "0.1.0",
  pid: 1,
  config_path: null,
  data_directory: "/project/.engine",
  endpoints: [{ name: "http", url: "http://127.0.0.1:3111" }],
  started_at_ms: 5,
  platform: "linux",
  descriptors: { limit: 20_000, open: 40 },
  control_key: { path: "/state/engine/49134.json", problem: null },
};

/** Output and end of a command; by default it ends when its signal aborts. */
type Program = (output: (chunk: OutputChunk) => void, signal: AbortSignal) => Promise<Ended>;

const untilAborted: Program = (_output, signal) =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve({ code: null, signal: "SIGTERM" }));
  });

/** A supervisor with one worker that records its calls. */
function recordingSupervision(asked: unknown[], program: Program, info = INFO): Supervision {
  const known = (name: string): Promise<WorkerStatus> => {
    if (name === "math") return Promise.resolve(STATUS);
    const message = `There is no worker ${name}; known: math`;
    return Promise.reject(new EngineError("NOT_FOUND", message));
  };
  return {
    list: () => Promise.resolve([STATUS]),
    status: known,
    start: (name) => (asked.push(["start", name]), known(name)),
    stop: (name) => (asked.push(["stop", name]), known(name)),
    restart: (name, options) => (asked.push(["restart", name, options]), known(name)),
    add: (request: AddRequest) => {
      asked.push(["add", request]);
      const config_path = "/project/config.yaml";
      return Promise.resolve({ added: true, changed: false, config_path, worker: STATUS });
    },
    remove: async (name) => {
      asked.push(["remove", name]);
      return { config_path: `/project/${await known(name) && "config.yaml"}` };
    },
    exec: async (request, output, signal) => {
      asked.push(["exec", request]);
      await known(request.name);
      return await program(output, signal);
    },
    logs: async (name, tail) => [`${(await known(name)).name} ${tail}`],
    info: () => info,
  };
}

/** A caller over a real router; an operator unless `operator` is `false`. */
async function setup({ operator = true, program = untilAborted, info = INFO } = {}) {
  const asked: unknown[] = [];
  const local = new LocalEngine({ supervision: recordingSupervision(asked, program, info) });
  await local.start(engine);
  const connect = async (name: string, isOperator: boolean): Promise<Worker> => {
    const peer = { address: "127.0.0.1", launch_id: null, builtin: null, operator: isOperator };
    const open = {
      open: (line: Parameters<typeof local.router.open>[0]) => local.router.open(line, peer),
    };
    return await local.connect(name, { dial: localDial(open, name) });
  };
  const worker = await connect("cli", operator);
  const ask = (name: string, payload?: Json, more: Partial<CallRequest> = {}) =>
    worker.trigger({ function_id: `engine::supervisor::${name}`, payload, ...more });
  return { asked, ask, local, connect, [Symbol.asyncDispose]: () => local[Symbol.asyncDispose]() };
}

const ADDED = { added: true, changed: false, config_path: "/project/config.yaml", worker: STATUS };

for (
  const [name, payload, result, received] of [
    ["list", undefined, { workers: [STATUS] }, []],
    ["status", { name: "math" }, STATUS, []],
    ["start", { name: "math" }, STATUS, [["start", "math"]]],
    ["stop", { name: "math" }, STATUS, [["stop", "math"]]],
    ["restart", { name: "math" }, STATUS, [["restart", "math", { reinstall: false }]]],
    [
      "restart",
      { name: "math", reinstall: true },
      STATUS,
      [["restart", "math", { reinstall: true }]],
    ],
    [
      "add",
      {
        path: "/p/math",
        isolation: "microvm",
        accel: "tcg",
        replicas: 3,
        reinstall: true,
        name: null,
      },
      ADDED,
      [["add", {
        path: "/p/math",
        isolation: "microvm",
        accel: "tcg",
        replicas: 3,
        reinstall: true,
      }]],
    ],
    [
      "add",
      { name: "engine-http", config: { port: 0, cors: { origins: ["*"] } } },
      ADDED,
      [["add", { name: "engine-http", config: { port: 0, cors: { origins: ["*"] } } }]],
    ],
    [
      "add",
      { path: "/p", isolation: null, accel: null, replicas: null, reinstall: null, config: null },
      ADDED,
      [["add", { path: "/p" }]],
    ],
    ["remove", { name: "math" }, { config_path: "/project/config.yaml" }, [["remove", "math"]]],
    ["logs", { name: "math" }, { lines: ["math 100"] }, []],
    ["logs", { name: "math", tail: 0 }, { lines: ["math 0"] }, []],
    ["info", undefined, INFO, []],
  ] as [string, Json | undefined, unknown, unknown[]][]
) {
  Deno.test(`engine::supervisor::${name} passes on ${JSON.stringify(payload)}`, async () => {
    await using it = await setup();

    assert.deepEqual(await it.ask(name, payload), result);
    assert.deepEqual(it.asked, received);
  });
}

for (
  const [name, payload, code] of [
    ["status", { name: "moth" }, "NOT_FOUND"],
    ["start", { name: "moth" }, "NOT_FOUND"],
    ["remove", { name: "moth" }, "NOT_FOUND"],
    ["logs", { name: "moth" }, "NOT_FOUND"],
    ["exec", { name: "moth", command: ["ls"] }, "NOT_FOUND"],
    ["status", {}, "deserialization_error"],
    ["status", { name: "" }, "deserialization_error"],
    ["restart", { name: "math", reinstall: "yes" }, "deserialization_error"],
    ["logs", { name: "math", tail: -1 }, "deserialization_error"],
    ["logs", { name: "math", tail: 1.5 }, "deserialization_error"],
    ["logs", { name: "math", tail: 10_001 }, "deserialization_error"],
    ["add", {}, "INVALID_ARGUMENTS"],
    ["add", { name: null, path: null }, "INVALID_ARGUMENTS"],
    ["add", { name: "engine-http", path: "/x" }, "INVALID_ARGUMENTS"],
    ["add", { path: "/x", isolation: "jail" }, "deserialization_error"],
    ["add", { path: "/x", accel: "hvf" }, "deserialization_error"],
    ["add", { path: "/x", replicas: 0 }, "deserialization_error"],
    ["add", { path: "/x", replicas: 65 }, "deserialization_error"],
    ["add", { name: "engine-http", config: [] }, "deserialization_error"],
    ["exec", { name: "math" }, "deserialization_error"],
    ["exec", { name: "math", command: [] }, "deserialization_error"],
    ["exec", { name: "math", command: "ls" }, "deserialization_error"],
    ["exec", { name: "math", command: ["ls"], replica: 0 }, "deserialization_error"],
    ["list", "text", "deserialization_error"],
  ] as [string, Json, string][]
) {
  Deno.test(`engine::supervisor::${name} answers ${JSON.stringify(payload)} with ${code}`, async () => {
    await using it = await setup();

    await assert.rejects(it.ask(name, payload), { code });
  });
}

const CHANGES: readonly [string, Json][] = [
  ["add", { path: "/x" }],
  ["remove", { name: "math" }],
  ["start", { name: "math" }],
  ["stop", { name: "math" }],
  ["restart", { name: "math" }],
  ["exec", { name: "math", command: ["id"] }],
];

for (const [name, payload] of CHANGES) {
  Deno.test(`engine::supervisor::${name} is refused to a caller that is not an operator`, async () => {
    await using it = await setup({ operator: false });

    await assert.rejects(it.ask(name, payload), {
      code: "FORBIDDEN",
      message:
        "FORBIDDEN: Only the command line of the engine's own user on its machine may call " +
        `engine::supervisor::${name} (its key is in /state/engine/49134.json); ` +
        "list, status, logs and info are open to all",
    });
    assert.deepEqual(it.asked, []);
  });
}

for (
  const [name, payload] of [["list"], ["status", { name: "math" }], ["logs", { name: "math" }], [
    "info",
  ]] as const
) {
  Deno.test(`engine::supervisor::${name} is open to a caller that is not an operator`, async () => {
    await using it = await setup({ operator: false });

    await it.ask(name, payload);
  });
}

Deno.test("an engine without a control key says why it refuses", async () => {
  const problem = "/state/engine/49134.json cannot be written (read-only file system)";
  const info = { ...INFO, control_key: { path: "/state/engine/49134.json", problem } };
  await using it = await setup({ operator: false, info });

  await assert.rejects(it.ask("stop", { name: "math" }), (thrown) => {
    assert.ok(
      String(thrown).includes(`(the key is unavailable: ${problem}); list, status`),
      String(thrown),
    );
    return true;
  });
});

Deno.test("a worker cannot claim an operator's connection as its caller", async () => {
  await using it = await setup();
  const operator = it.local.router.directory.workers().find((view) => view.operator)!.id;
  const frames: string[] = [];
  const other = { address: "127.0.0.1", launch_id: null, builtin: null };
  const events = it.local.router.open({
    id: "other",
    isBatching: false,
    queuedBytes: 0,
    send: (text) => void frames.push(text),
    forward: (head, headBytes, memory, start, end) => {
      const parts = [head.subarray(0, headBytes), memory.subarray(start, end)];
      frames.push(parts.map((part) => new TextDecoder().decode(part)).join(""));
    },
    sendBinary: () => {},
    pause: () => true,
    resume: () => {},
    probe: () => {},
    close: () => {},
  }, other);
  const id = '"function_id":"engine::supervisor::stop"';
  const rest = `"data":{"name":"math"}`;

  events.text(`{"type":"invokefunction","invocation_id":"1",${id},"caller":"${operator}",${rest}}`);
  events.text(`{"type":"invokefunction","invocation_id":"2",${id},${rest},"caller":"${operator}"}`);
  await it.local.settle();

  const results = frames.filter((frame) => frame.includes("invocationresult"));
  assert.equal(results.length, 2, frames.join("\n"));
  for (const result of results) assert.match(result, /"FORBIDDEN"/);
  assert.deepEqual(it.asked, []);
  events.closed(1000, "");
});

Deno.test("a trigger cannot make a built-in worker change workers", async () => {
  await using it = await setup({ operator: false });
  const name = "engine-http";
  const builtin = await it.local.connect(name, { dial: localDial(it.local.router, name) });

  const asking = builtin.trigger({
    function_id: "engine::supervisor::stop",
    payload: { name: "math" },
  });

  await assert.rejects(asking, { code: "FORBIDDEN" });
  assert.deepEqual(it.asked, []);
});

Deno.test("engine::supervisor::exec streams the output and returns how the command ended", async () => {
  const program: Program = (output) => {
    output({ stream: "stdout", bytes: new Uint8Array([0, 255, 10]) });
    output({ stream: "stderr", bytes: new TextEncoder().encode("ü") });
    return Promise.resolve({ code: 3, signal: null });
  };
  await using it = await setup({ program });
  const seen: Json[] = [];

  const ended = await it.ask("exec", { name: "math", command: ["make", "-k"], replica: 2 }, {
    onProgress: (data) => seen.push(data),
  });

  assert.deepEqual(ended, { code: 3, signal: null });
  assert.deepEqual(seen, [{ stream: "stdout", data: "AP8K" }, { stream: "stderr", data: "w7w=" }]);
  assert.deepEqual(it.asked, [["exec", { name: "math", command: ["make", "-k"], replica: 2 }]]);
});

Deno.test("a caller that cancels ends its command", async () => {
  const ended = Promise.withResolvers<Ended>();
  const program: Program = async (output, signal) => {
    const end = await untilAborted(output, signal);
    ended.resolve(end);
    return end;
  };
  await using it = await setup({ program });
  const giveUp = new AbortController();
  const call = it.ask("exec", { name: "math", command: ["cat"] }, { signal: giveUp.signal });
  await it.local.settle();

  giveUp.abort();

  await assert.rejects(call);
  assert.deepEqual(await ended.promise, { code: null, signal: "SIGTERM" });
});

Deno.test("the schema of engine::supervisor::add requires a name or a path", async () => {
  await using it = await setup({ operator: false });
  const worker = await it.connect("asks", false);
  const payload = { function_id: "engine::supervisor::add" };

  const info = await worker.trigger({ function_id: "engine::functions::info", payload });

  const { request_schema } = info as { request_schema: { anyOf: Json } };
  assert.deepEqual(request_schema.anyOf, [{ required: ["name"] }, { required: ["path"] }]);
});

/** Runs a command with the given output and end; returns what was sent, and how it ended. */
async function setupOfExec(printed: readonly OutputChunk[], ended: Ended) {
  const sent: { stream: string; data: string }[] = [];
  const exec = (_request: unknown, output: (chunk: OutputChunk) => void) => {
    for (const chunk of printed) output(chunk);
    return Promise.resolve(ended);
  };
  const context = {
    signal: new AbortController().signal,
    progress: (data: Json) => void sent.push(data as { stream: string; data: string }),
  };
  const result = await runExec({ exec }, { name: "m", command: ["c"] }, context);
  return { sent, result };
}

Deno.test("output is chunked without loss, in order", async () => {
  const bytes = new Uint8Array(100_000).map((_, i) => i % 251);

  const { sent, result } = await setupOfExec([
    { stream: "stdout", bytes },
    { stream: "stderr", bytes: new Uint8Array() },
    { stream: "stderr", bytes: new Uint8Array([0, 255]) },
  ], { code: 0, signal: null });

  assert.deepEqual(result, { code: 0, signal: null });
  assert.deepEqual(sent.map(({ stream }) => stream), ["stdout", "stdout", "stdout", "stderr"]);
  const received = sent.flatMap(({ data }) => [...Uint8Array.fromBase64(data)]);
  assert.deepEqual(received, [...bytes, 0, 255]);
});

Deno.test("the reason why a command was ended is passed on", async () => {
  const ended = { code: null, signal: "SIGKILL", reason: "took longer than 600 s" };

  assert.deepEqual((await setupOfExec([], ended)).result, ended);
});

Deno.test("a command that cannot be started fails the call", async () => {
  const exec = () => Promise.reject(new Error("no such program"));
  const context = { signal: new AbortController().signal, progress: () => {} };

  const running = runExec({ exec }, { name: "m", command: ["c"] }, context);

  await assert.rejects(running, /no such program/);
});

Deno.test("engine::config::list returns each value with its source, and the file's path", async () => {
  const settings: ConfigValue[] = [{
    key: "engine.port",
    value: 49134,
    default: 49134,
    source: "default",
    line: null,
    variable: null,
    needs_restart: true,
  }];
  const functions = new Map<string, Handler>();
  const worker = {
    registerFunction: (id: string, handler: Handler) => {
      functions.set(id, handler);
      return { id, unregister() {} };
    },
  };
  const supervision = { info: () => ({ config_path: "/project/config.yaml" }) };
  registerSettings(new CheckedFunctions(worker as never), {
    configuration: () => settings,
    supervision: supervision as never,
  });

  const answer = await functions.get("engine::config::list")!(null, undefined, {} as never);

  assert.deepEqual(answer, { settings, path: "/project/config.yaml" });
});

const TOO_LONG: readonly [string, Json][] = [
  ["status", { name: "x".repeat(257) }],
  ["logs", { name: "x".repeat(1_000_000) }],
  ["add", { path: `/${"x".repeat(4_096)}` }],
  ["add", { name: "x".repeat(257) }],
  ["exec", { name: "math", command: Array(1_001).fill("x") }],
  ["exec", { name: "math", command: ["x".repeat(200_000)] }],
];

for (const [name, payload] of TOO_LONG) {
  const what = JSON.stringify(payload).slice(0, 24);
  Deno.test(`engine::supervisor::${name} refuses what is too long, such as ${what}`, async () => {
    await using it = await setup({ operator: true });

    await assert.rejects(it.ask(name, payload), { code: "deserialization_error" });
    assert.deepEqual(it.asked, []);
  });
}
