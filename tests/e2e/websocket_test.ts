/**
 * WebSocket routes of a real engine: the documents' chat in both languages, a worker that starts
 * anew, a client that never reads, and an engine that stops.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject, Worker } from "../../mod.ts";
import { exampleWith } from "../docs/pages.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { findPython, PYTHON_ENV } from "../fakes/programs.ts";
import { RawWsClient } from "../fakes/raw_ws_client.ts";
import { until } from "../fakes/until.ts";

const HTTP = "  - name: engine-http\n    config: { port: 0 }\n";
const ROOT = new URL("../../", import.meta.url);
/** More than kernels keep for both ends of a connection. */
const FLOOD_MESSAGES = 300;

/** A worker as a program; ended with the test. */
class Program implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;

  constructor(engine: EngineProcess, command: string, args: string[]) {
    this.#child = new Deno.Command(command, {
      args,
      env: { ...PYTHON_ENV, ENGINE_URL: engine.url },
      stdin: "null",
      stdout: "null",
      stderr: "inherit",
    }).spawn();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
  }
}

async function httpPort(worker: Worker): Promise<number> {
  const { endpoints } = await worker.trigger<
    object,
    { endpoints: { name: string; url: string }[] }
  >({
    function_id: "engine::supervisor::info",
    payload: {},
  });
  return Number(new URL(endpoints.find(({ name }) => name === "http")!.url).port);
}

/** A client of the platform, with what it has received. */
async function openClient(url: string) {
  const socket = new WebSocket(url);
  const texts: string[] = [];
  let closed: { code: number; reason: string } | undefined;
  socket.onmessage = ({ data }) => void texts.push(data);
  socket.onclose = ({ code, reason }) => closed = { code, reason };
  socket.onerror = () => {};
  await until(() => socket.readyState !== WebSocket.CONNECTING);
  return {
    socket,
    texts,
    closed: () => closed,
    async [Symbol.asyncDispose]() {
      socket.close();
      await until(() => closed !== undefined);
    },
  };
}

async function statusOf(url: string): Promise<number> {
  const { status, body } = await fetch(url);
  await body?.cancel();
  return status;
}

async function send(worker: Worker, payload: JsonObject): Promise<JsonObject> {
  return await worker.trigger<Json, JsonObject>({ function_id: "websocket::send", payload });
}

/** The chat of the documents, with two clients in one room and one in another. */
async function proveChat(engine: EngineProcess): Promise<void> {
  await using worker = engine.connect("asks");
  const url = `ws://127.0.0.1:${await httpPort(worker)}/chat`;
  await until(async () => {
    const { routes } = await worker.trigger<object, { routes: Json[] }>({
      function_id: "websocket::routes",
      payload: {},
    });
    return routes.length === 1;
  }, "the route is there");
  await using nameless = await openClient(`${url}/lobby`);
  assert.equal(nameless.socket.readyState, WebSocket.CLOSED);
  await using ada = await openClient(`${url}/lobby?name=Ada`);
  await using bob = await openClient(`${url}/lobby?name=Bob`);
  await using other = await openClient(`${url}/attic?name=Eve`);

  ada.socket.send("hi");
  await until(() => ada.texts.length === 1 && bob.texts.length === 1);
  bob.socket.send("hello");
  await until(() => ada.texts.length === 2);

  const said = [{ from: "Ada", text: "hi" }, { from: "Bob", text: "hello" }];
  assert.deepEqual(ada.texts.map((text) => JSON.parse(text)), said);
  assert.deepEqual(other.texts, []);
}

Deno.test("the documents' chat in TypeScript reaches all in the room", async () => {
  await using engine = await EngineProcess.start(HTTP);
  await engine.write("chat/worker.ts", await exampleWith("ts", "chat::connect"));
  const config = new URL("deno.json", ROOT).pathname;
  const file = `${engine.directory}/chat/worker.ts`;
  const args = ["run", "-A", "--no-check", "--config", config, file];
  await using _worker = new Program(engine, Deno.execPath(), args);

  await proveChat(engine);
});

Deno.test("the documents' chat in Python reaches all in the room", async () => {
  if (!await findPython("the chat in Python")) return;
  await using engine = await EngineProcess.start(HTTP);
  await engine.write("chat/worker.py", await exampleWith("python", "chat::connect"));
  await using _worker = new Program(engine, "python3", [`${engine.directory}/chat/worker.py`]);

  await proveChat(engine);
});

Deno.test("clients stay connected while their worker starts anew, and their messages wait", async () => {
  await using engine = await EngineProcess.start(HTTP);
  const start = (answer: string) => {
    const worker = engine.connect("echo");
    worker.registerFunction("echo::said", () => answer);
    worker.registerTrigger({
      type: "websocket",
      function_id: "echo::said",
      config: { api_path: "/echo" },
    });
    return worker;
  };
  await using asks = engine.connect("asks");
  const port = await httpPort(asks);
  const before = start("before");
  await until(async () => (await statusOf(`http://127.0.0.1:${port}/echo`)) === 426);
  await using client = await openClient(`ws://127.0.0.1:${port}/echo`);
  client.socket.send("1");
  await until(() => client.texts.length === 1);

  await before.shutdown();
  client.socket.send("2");
  await until(async () => (await statusOf(`http://127.0.0.1:${port}/echo`)) === 404);
  await using _after = start("after");
  await until(() => client.texts.length === 2);

  assert.deepEqual(client.texts, ["before", "after"]);
  assert.equal(client.closed(), undefined);
});

Deno.test("a client that never reads is closed in a broadcast, and others get all of it", async () => {
  await using engine = await EngineProcess.start(HTTP);
  await using worker = engine.connect("news");
  worker.registerFunction("news::said", () => {});
  worker.registerTrigger({
    type: "websocket",
    function_id: "news::said",
    config: { api_path: "/news" },
  });
  const port = await httpPort(worker);
  await until(async () => (await statusOf(`http://127.0.0.1:${port}/news`)) === 426);
  using _silent = await RawWsClient.connect(port, { path: "/news" });
  await using reader = await openClient(`ws://127.0.0.1:${port}/news`);

  let sent = 0;
  let closed = 0;
  while (closed === 0 && sent < FLOOD_MESSAGES) {
    const data = `${sent++}`.padEnd(1024 * 1024, ".");
    const outcome = await send(worker, { api_path: "/news", data });
    closed += outcome.closed as number;
    await until(() => reader.texts.length === sent);
  }

  assert.equal(closed, 1);
  assert.deepEqual(await send(worker, { api_path: "/news", data: "last" }), {
    reached: 1,
    closed: 0,
  });
  await until(() => reader.texts.at(-1) === "last");
});

Deno.test("an engine that stops closes clients with 1001 and delivers each close", async () => {
  await using engine = await EngineProcess.start(HTTP);
  await using worker = engine.connect("leaves");
  const codes: Json[] = [];
  worker.registerFunction("leaves::said", () => {});
  worker.registerFunction("leaves::left", (payload) => {
    codes.push((payload as JsonObject).code!);
  });
  worker.registerTrigger({
    type: "websocket",
    function_id: "leaves::said",
    config: { api_path: "/", close_function_id: "leaves::left" },
  });
  const port = await httpPort(worker);
  await until(async () => (await statusOf(`http://127.0.0.1:${port}/`)) === 426);
  await using one = await openClient(`ws://127.0.0.1:${port}/`);
  await using two = await openClient(`ws://127.0.0.1:${port}/`);

  await engine.kill("SIGTERM");
  await until(() => one.closed() !== undefined && two.closed() !== undefined && codes.length === 2);

  assert.deepEqual([one.closed()?.code, two.closed()?.code], [1001, 1001]);
  assert.deepEqual(codes, [1001, 1001]);
});
