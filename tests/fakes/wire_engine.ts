/**
 * A whole engine in this process, with state and HTTP, and claims about what it does on the wire; the
 * client reads and writes JSON on a raw WebSocket and knows no SDK.
 *
 * The claims of one subject share an engine, since starting one takes longer than most of them.
 * They run one after another as steps of one test, which ends when the engine has left nothing
 * behind; so each uses names of its own. Every read has a limit, so a missing message fails the test.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type Engine, startEngine } from "../../engine/mod.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { OP, RawWsClient, type UpgradeShape } from "./raw_ws_client.ts";
import { PATIENCE_MS } from "./until.ts";

/** What a claim works with. */
export interface Wire {
  /** Port of the worker listener. */
  readonly port: number;
  /** Such as `http://127.0.0.1:40000`. */
  readonly httpUrl: string;
  readonly engine: Engine;
  /** Opens a connection that is closed when the claim ends. */
  open(shape?: UpgradeShape): Promise<WireClient>;
  /** Sends an upgrade request; the claim checks the answer. */
  ask(shape?: UpgradeShape): Promise<RawWsClient>;
}

/** Claims by name, each with its proof. */
export type Claims = Readonly<Record<string, (wire: Wire) => Promise<void>>>;

/** How the engine of some claims is configured. */
export interface WireSettings {
  /** Lines below `engine:` in its config.yaml. */
  readonly engine?: readonly string[];
  /** `false`: it has no spans, so it adds no `traceparent` to what it sends on. */
  readonly traces?: boolean;
}

/** Proves claims on one engine. */
export function proveOnWire(subject: string, claims: Claims, settings: WireSettings = {}): void {
  Deno.test(`the engine on the wire: ${subject}`, async (t) => {
    await using engine = await start(settings);
    for (const [name, proof] of Object.entries(claims)) {
      // Resources that the engine keeps open between claims are checked when it has stopped.
      const [sanitizeOps, sanitizeResources] = [false, false];
      const fn = () => prove(engine, proof);
      await t.step({ name, fn, sanitizeOps, sanitizeResources });
    }
  });
}

async function prove(engine: Engine, proof: (wire: Wire) => Promise<void>): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const urlOf = (name: string) => engine.endpoints.find((each) => each.name === name)!.url;
  const port = Number(new URL(urlOf("workers")).port);
  await proof({
    engine,
    port,
    httpUrl: urlOf("http"),
    open: async (shape) => stack.use(await WireClient.connect(port, shape)),
    ask: async (shape) => stack.use(await RawWsClient.connect(port, shape)),
  });
}

async function start({ engine: settings = [], traces = true }: WireSettings): Promise<Engine> {
  const directory = await Deno.makeTempDir({ prefix: "wire-engine-" });
  const lines = [
    ...settings.length > 0 ? ["engine:"] : [],
    ...settings.map((line) => `  ${line}`),
    "workers:",
    "  - name: engine-observability",
    `    config: { traces: { enabled: ${traces} } }`,
    "  - name: engine-state",
    "  - name: engine-pubsub",
    "  - name: engine-cron",
    "  - name: engine-configuration",
    "  - name: engine-stream",
    "    config: { port: 0 }",
    "  - name: engine-http",
    "    config: { port: 0, body_bytes_max: 65536, streamed_body_bytes_max: 65536, timeout_ms: 3000 }",
  ];
  await Deno.writeTextFile(`${directory}/config.yaml`, lines.join("\n") + "\n");
  const engine = await startEngine({ directory, port: 0, logLevel: "error" });
  return {
    get endpoints() {
      return engine.endpoints;
    },
    handleFault: (thrown) => engine.handleFault(thrown),
    finished: engine.finished,
    info: () => engine.info(),
    stop: (options) => engine.stop(options),
    async [Symbol.asyncDispose]() {
      await engine.stop({ drain: false });
      await Deno.remove(directory, { recursive: true });
    },
  };
}

/** A message as it came. */
export interface Received {
  readonly text: string;
  readonly message: JsonObject;
}

/** One connection to an engine. */
export class WireClient implements AsyncDisposable {
  readonly raw: RawWsClient;
  /** The `workerregistered` of this connection. */
  readonly hello: JsonObject;
  #isOver = false;

  private constructor(raw: RawWsClient, hello: JsonObject) {
    this.raw = raw;
    this.hello = hello;
  }

  /** Connects, and reads what the engine says first. */
  static async connect(port: number, shape?: UpgradeShape): Promise<WireClient> {
    const raw = await RawWsClient.connect(port, shape);
    assert.equal(raw.status, 101, raw.head);
    const hello = JSON.parse(await raw.nextText() ?? "null");
    assert.equal(hello.type, "workerregistered");
    return new WireClient(raw, hello);
  }

  /** The id the engine gave this connection. */
  get id(): string {
    return this.hello.worker_id as string;
  }

  /** Sends messages, each in a frame of its own; a string is sent as it is. */
  async send(...messages: (JsonObject | string)[]): Promise<void> {
    for (const message of messages) {
      await this.raw.text(typeof message === "string" ? message : JSON.stringify(message));
    }
  }

  /** The next message. */
  async receive(): Promise<JsonObject> {
    return (await this.receiveRaw()).message;
  }

  /** The next message and its text. */
  async receiveRaw(): Promise<Received> {
    const payload = await this.#next();
    assert.ok(typeof payload === "string", `the connection is closed: ${JSON.stringify(payload)}`);
    return { text: payload, message: JSON.parse(payload) };
  }

  /** Asserts that the engine has handled all frames so far, and has sent nothing in reply. */
  async receivesNothing(): Promise<void> {
    await this.send({ type: "ping" });
    assert.deepEqual(await this.receive(), { type: "pong" });
  }

  /** Calls a function; the next message has to be the answer, which is returned whole. */
  async call(function_id: string, data?: Json, more: JsonObject = {}): Promise<JsonObject> {
    const invocation_id = crypto.randomUUID();
    const payload = data === undefined ? {} : { data };
    await this.send({ type: "invokefunction", invocation_id, function_id, ...more, ...payload });
    const answer = await this.receive();
    assert.deepEqual([answer.type, answer.invocation_id], ["invocationresult", invocation_id]);
    return answer;
  }

  /** As {@linkcode call}, for a value; a failure fails the test. */
  async value<T = Json>(function_id: string, data?: Json, more?: JsonObject): Promise<T> {
    const { result, error } = await this.call(function_id, data, more);
    assert.equal(error, undefined, JSON.stringify(error));
    return result as T;
  }

  /** As {@linkcode call}, for the error; a value fails the test. */
  async failure(function_id: string, data?: Json, more?: JsonObject): Promise<JsonObject> {
    const answer = await this.call(function_id, data, more);
    assert.ok(answer.error, JSON.stringify(answer));
    assert.ok(!("result" in answer));
    return answer.error as JsonObject;
  }

  /** Registers functions; the engine has handled the frames when this resolves. */
  async offer(...ids: (string | JsonObject)[]): Promise<void> {
    for (const each of ids) {
      const fields = typeof each === "string" ? { id: each } : each;
      await this.send({ type: "registerfunction", ...fields });
    }
    await this.receivesNothing();
  }

  /** Announces the worker. */
  async announce(name: string, ...capabilities: string[]): Promise<void> {
    const data = { runtime: "other", version: "0.1", name, os: "linux", pid: 1, capabilities };
    const action = { type: "void" };
    await this.send({
      type: "invokefunction",
      function_id: "engine::workers::register",
      action,
      data,
    });
    await this.receivesNothing();
  }

  /** Answers a call it was sent. */
  async answer(call: JsonObject, outcome: JsonObject = {}): Promise<void> {
    const { invocation_id, function_id } = call;
    const type = "invocationresult";
    await this.send({ type, invocation_id: invocation_id!, function_id: function_id!, ...outcome });
  }

  /** Takes the next call and answers it. */
  async run(outcome: JsonObject = {}): Promise<JsonObject> {
    const call = await this.receive();
    assert.equal(call.type, "invokefunction", JSON.stringify(call));
    await this.answer(call, outcome);
    return call;
  }

  /** The close frame of the engine, which has to come next. */
  async closeFrame(): Promise<{ code: number; reason: string }> {
    const end = await this.#next();
    assert.ok(typeof end !== "string", `expected a close frame, received ${end}`);
    return end ?? { code: 1006, reason: "" };
  }

  /** Drops the connection without a close frame. */
  destroy(): void {
    this.#isOver = true;
    this.raw.destroy();
  }

  /** Closes the connection and waits until the engine has closed it, too. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOver) {
      await this.raw.close(1000);
      while (typeof await this.#next() === "string");
    }
    this.destroy();
  }

  /** A message, a close frame, or `undefined` at the end of the connection. */
  async #next(): Promise<string | { code: number; reason: string } | undefined> {
    const limit = setTimeout(() => this.raw.destroy(), PATIENCE_MS);
    try {
      for (;;) {
        const frame = await this.raw.next();
        if (frame === undefined) return undefined;
        const text = (from = 0): string => new TextDecoder().decode(frame.payload.subarray(from));
        if (frame.opcode === OP.text) return text();
        if (frame.opcode === OP.ping) await this.raw.frame(OP.pong, frame.payload);
        if (frame.opcode !== OP.close) continue;
        const [high = 3, low = 237] = frame.payload; // No code is 1005.
        return { code: high << 8 | low, reason: text(2) };
      }
    } finally {
      clearTimeout(limit);
    }
  }
}
