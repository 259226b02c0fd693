import assert from "node:assert/strict";
import { type Connection, type ConnectionEvents, SEND_AHEAD_BYTES } from "../ports/connection.ts";
import type { TransportEvents } from "../../sdk/typescript/wire/transport.ts";
import { localDial, TextJoiner } from "./local_connection.ts";
import { TickBudget } from "./tick_budget.ts";

Deno.test("localDial() opens in a microtask and tells the router which worker dialled", async () => {
  const { log, peers, dial } = setup();

  dial();
  assert.deepEqual(log, []);
  await turn();

  assert.deepEqual(log, ["worker opened"]);
  assert.deepEqual(peers, [{ address: null, launch_id: null, builtin: "engine-state" }]);
});

Deno.test("what the worker sends is handled before send returns", async () => {
  const { log, dial } = setup();
  const { transport } = dial();
  await turn();
  log.length = 0;

  transport.send("one");
  transport.send(Uint8Array.of(1, 2));

  assert.deepEqual(log, ["engine text one", "engine binary 1,2"]);
});

Deno.test("frames that the worker sends before the connection is open are dropped", async () => {
  const { log, dial } = setup();

  const { transport } = dial();
  transport.send("early");
  await turn();

  assert.deepEqual(log, ["worker opened"]);
});

Deno.test("what the engine sends arrives in a microtask, in order, whole", async () => {
  const { log, dial } = setup();
  const { connection } = await dial().open();
  log.length = 0;

  connection().send("one");
  connection().forward(bytes("tw?"), 2, bytes("?o?"), 1, 2);
  connection().forward(bytes("gr\u00f6"), 3, bytes("\u00f6\u00dfe"), 1, 5);
  connection().sendBinary(Uint8Array.of(4));
  assert.deepEqual(log, []);
  await turn();

  assert.deepEqual(log, [
    "worker text one",
    "worker text two",
    "worker text gr\u00f6\u00dfe",
    "worker binary 4",
  ]);
});

Deno.test("what the engine sends while it opens the line arrives after opened", async () => {
  const { log, dial } = setup({ onOpen: (connection) => connection.send("first") });

  dial();
  await turn();

  assert.deepEqual(log, ["worker opened", "worker text first"]);
});

Deno.test("an answer that is sent from within a message arrives after it", async () => {
  const { log, dial } = setup({
    onWorkerText: (text, transport) => text === "ping" && transport.send("pong"),
    onEngineText: (text, connection) => text === "pong" && connection.send("thanks"),
  });
  const { connection } = await dial().open();
  log.length = 0;

  connection().send("ping");
  connection().send("next");
  await turn();

  assert.deepEqual(log, [
    "worker text ping",
    "engine text pong",
    "worker text next",
    "worker text thanks",
  ]);
});

Deno.test("what is bytes is copied before forward and sendBinary return", async () => {
  const { log, dial } = setup();
  const { connection } = await dial().open();
  const [head, text] = [bytes("so "), bytes("good")];
  const binary = Uint8Array.of(1);

  connection().forward(head, head.length, text, 0, text.length);
  connection().sendBinary(binary);
  head.fill(0);
  text.fill(0);
  binary.fill(0);
  await turn();

  assert.deepEqual(log.slice(-2), ["worker text so good", "worker binary 1"]);
});

Deno.test("queuedBytes counts what the worker has not been handed", async () => {
  const { dial } = setup();
  const { connection } = await dial().open();

  connection().send("12345");
  connection().forward(bytes("6"), 1, bytes("78"), 0, 2);
  assert.equal(connection().queuedBytes, 8);
  await turn();

  assert.equal(connection().queuedBytes, 0);
});

Deno.test("drained comes once when a line that was behind has caught up", async () => {
  const { log, dial } = setup({ quiet: true });
  const { connection } = await dial().open();
  log.length = 0;

  connection().send("x");
  await turn();
  assert.deepEqual(log, []);
  for (let i = 0; i < 3; i++) connection().send("x".repeat(SEND_AHEAD_BYTES));
  await turn();

  assert.deepEqual(log, ["engine drained"]);
});

Deno.test("a line on which too much waits is cut, and keeps nothing", async () => {
  const { log, dial } = setup({ maxQueuedBytes: 100 });
  const { connection } = await dial().open();
  log.length = 0;

  for (let i = 0; i < 200; i++) connection().send("x");
  assert.equal(connection().queuedBytes, 0);
  await turn();

  const reason = "1008 cut: 101 bytes wait for a worker in this process";
  assert.deepEqual(log, [`engine closed ${reason}`, `worker closed ${reason}`]);
});

Deno.test("the engine's close comes after what it sent, once on both sides", async () => {
  const { log, dial } = setup();
  const { connection, transport } = await dial().open();
  log.length = 0;

  connection().send("last words");
  connection().close(1001, "going down");
  connection().close(1008, "again");
  connection().send("too late");
  transport.send("too late");
  transport.close();
  await turn();

  assert.deepEqual(log, [
    "worker text last words",
    "engine closed 1001 going down",
    "worker closed 1001 going down",
  ]);
});

Deno.test("the worker's close is known to the engine at once", async () => {
  const { log, dial } = setup();
  const { connection, transport } = await dial().open();
  log.length = 0;

  connection().send("never read");
  transport.close();
  assert.deepEqual(log, ["engine closed 1000 "]);
  transport.close();
  connection().close(1001, "late");
  connection().send("late");
  transport.send("late");
  await turn();

  assert.deepEqual(log, ["engine closed 1000 ", "worker closed 1000 "]);
});

Deno.test("a worker that leaves while it reads is handed nothing more", async () => {
  const { log, dial } = setup({ onWorkerText: (_, transport) => transport.close() });
  const { connection } = await dial().open();
  log.length = 0;

  connection().send("one");
  connection().send("two");
  await turn();

  assert.deepEqual(log, ["worker text one", "engine closed 1000 ", "worker closed 1000 "]);
});

Deno.test("a line closed before it opened is never shown to the router", async () => {
  const { log, peers, dial } = setup();

  dial().transport.close(4000, "changed my mind");
  await turn();

  assert.deepEqual(log, ["worker closed 4000 changed my mind"]);
  assert.deepEqual(peers, []);
});

Deno.test("pause() of a local connection returns false", async () => {
  const { dial } = setup();
  const { connection } = await dial().open();

  assert.equal(connection().pause(), false);
  connection().resume();
});

Deno.test("every local connection has its own id", async () => {
  const { dial } = setup();
  const a = await dial().open();
  const first = a.connection().id;
  const b = await dial().open();

  assert.notEqual(first, b.connection().id);
});

Deno.test("of many messages the first arrive at once, the others in turns, in order", async () => {
  let [now, perMessage] = [0, 1];
  const tasks: (() => void)[] = [];
  const ticks = new TickBudget({ now: () => now, atTickEnd: (task) => void tasks.push(task) });
  const seen: string[] = [];
  const onWorkerText = (text: string) => (now += perMessage, seen.push(text));
  const { log, dial } = setup({ ticks, quiet: true, onWorkerText });
  const { connection } = await dial().open();
  log.length = 0;
  const sent = Array.from({ length: 10_000 }, (_, i) => `${i}`);

  for (const text of sent.slice(0, 5_000)) connection().send(text);
  await turn();
  assert.equal(seen.length, 256);
  const before = seen.length;
  for (let i = 0; i < 70; i++) tasks.shift()?.();
  assert.ok(seen.length > before && seen.length < before + 50, `${seen.length - before} in a turn`);
  for (const text of sent.slice(5_000)) connection().send(text);
  perMessage = 0.01;
  while (seen.length < 8_000) tasks.shift()!();
  connection().close(1000, "over");
  await turn();

  assert.deepEqual(seen, sent);
  assert.deepEqual(log, ["engine closed 1000 over", "worker closed 1000 over"]);
});

interface Setup {
  ticks?: TickBudget;
  maxQueuedBytes?: number;
  /** Messages are not logged. */
  quiet?: boolean;
  onOpen?(connection: Connection): void;
  onWorkerText?(text: string, transport: { send(m: string): void; close(): void }): unknown;
  onEngineText?(text: string, connection: Connection): unknown;
}

function setup(options: Setup = {}) {
  const log: string[] = [];
  const peers: unknown[] = [];
  let connection: Connection;
  const router = {
    open(opened: Connection, peer: unknown): ConnectionEvents {
      connection = opened;
      peers.push(peer);
      options.onOpen?.(opened);
      return {
        text(frame) {
          log.push(`engine text ${frame}`);
          options.onEngineText?.(frame, opened);
        },
        textBytes: () => assert.fail("what is said as text arrives as text"),
        binary: (frame) => void log.push(`engine binary ${frame}`),
        drained: () => void log.push("engine drained"),
        suspected: (isSuspect) => void log.push(`engine suspected ${isSuspect}`),
        closed: (code, reason) => void log.push(`engine closed ${code} ${reason}`),
      };
    },
  };
  const dial = () => {
    const events: TransportEvents = {
      opened: () => void log.push("worker opened"),
      text(message) {
        if (!options.quiet) log.push(`worker text ${message}`);
        options.onWorkerText?.(message, transport);
      },
      binary: (frame) => void log.push(`worker binary ${frame}`),
      closed: (code, reason) => void log.push(`worker closed ${code} ${reason}`),
    };
    const transport = localDial(router, "engine-state", options)("", events, {});
    const line = { transport, connection: () => connection, open: () => turn().then(() => line) };
    return line;
  };
  return { log, peers, dial };
}

/** Lets every microtask run. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const encoder = new TextEncoder();

function join(joiner: TextJoiner, head: string, text: string): string {
  const [headBytes, memory] = [encoder.encode(`${head}???`), encoder.encode(`ä${text}ö`)];
  return joiner.join(headBytes, headBytes.length - 3, memory, 2, memory.length - 2);
}

Deno.test("TextJoiner makes one text of two parts, and of nothing around them", () => {
  const joiner = new TextJoiner();

  for (const head of ["", "head ", "größe ", "😀"]) {
    for (const text of ["", "x", "東京", "\u0000\u007f", "x".repeat(1_000), "é".repeat(1_000)]) {
      assert.equal(join(joiner, head, text), head + text);
    }
  }
});

Deno.test("TextJoiner joins a character whose bytes are in both parts", () => {
  const joiner = new TextJoiner();
  const bytes = encoder.encode("a😀ü");

  for (let cut = 0; cut <= bytes.length; cut++) {
    assert.equal(joiner.join(bytes, cut, bytes, cut, bytes.length), "a😀ü");
  }
});

Deno.test("TextJoiner takes texts around the size of the memory that it keeps, and beyond", () => {
  const joiner = new TextJoiner();

  for (const bytes of [65_535, 65_536, 65_537, 1_000_000]) {
    for (const character of ["x", "ü"]) {
      const text = character.repeat(bytes / encoder.encode(character).length);

      assert.equal(join(joiner, "", text), text);
      assert.equal(join(joiner, "h", text), `h${text}`);
      assert.equal(join(joiner, text, "t"), `${text}t`);
    }
  }
  assert.equal(join(joiner, "short", " again"), "short again");
});

Deno.test("a text stays what it was when the next one is joined", () => {
  const joiner = new TextJoiner();
  const texts = Array.from({ length: 100 }, (_, i) => join(joiner, `${i}:`, i % 2 ? "ü" : "u"));

  assert.deepEqual(texts, Array.from({ length: 100 }, (_, i) => `${i}:${i % 2 ? "ü" : "u"}`));
});

Deno.test("a byte order mark is a character like others", () => {
  const joiner = new TextJoiner();

  assert.equal(join(joiner, "\ufeff", "a"), "\ufeffa");
  assert.equal(join(joiner, "a", "\ufeffb"), "a\ufeffb");
});
