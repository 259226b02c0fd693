import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { ConnectionListeners, type Line, ReconnectingLine } from "./connection.ts";
import type { ReconnectOptions } from "./options.ts";
import type { EngineError } from "./wire/errors.ts";
import type { Dial } from "./wire/transport.ts";

function setup(reconnect: ReconnectOptions = {}, random = 0.5, dial?: Dial) {
  const clock = new FakeClock();
  const fake = new FakeDial();
  const log: string[] = [];
  const lines: Line[] = [];
  const line = new ReconnectingLine({
    url: "ws://127.0.0.1:1/",
    dial: dial ?? fake.dial,
    dialOptions: {},
    clock,
    reconnect,
    random: () => random,
  }, {
    opened(opened) {
      lines.push(opened);
      log.push("opened");
      opened.send("hello");
    },
    text: (message) => log.push(`text ${message}`),
    lost: () => log.push("lost"),
    failed: (reason, retryMs) => log.push(`failed ${reason} ${retryMs}`),
    state: (state) => log.push(state),
  });
  return { clock, fake, line, lines, log };
}

function isOpen({ line }: ReconnectingLine): boolean {
  return line?.isOpen ?? false;
}

Deno.test("ReconnectingLine says hello before it counts as connected", () => {
  const { fake, line, log } = setup();

  line.start();
  assert.equal(line.state, "connecting");
  assert.equal(isOpen(line), false);
  fake.transport.open();

  assert.deepEqual(log, ["opened", "connected"]);
  assert.deepEqual(fake.transport.texts, ["hello"]);
  assert.ok(isOpen(line));
});

Deno.test("ReconnectingLine waits twice as long with every attempt, up to its bound", () => {
  const { clock, fake, line } = setup({ firstMs: 1_000, maxMs: 5_000 });
  line.start();

  const waits = [1, 2, 3, 4, 5].map(() => {
    fake.transport.drop(1006, "refused");
    const wait = clock.nextIn;
    clock.tick(wait ?? 0);
    return wait;
  });

  assert.deepEqual(waits, [1_000, 2_000, 4_000, 5_000, 5_000]);
  assert.equal(fake.transports.length, 6);
});

for (const [random, wait] of [[0, 700], [0.5, 1_000], [1, 1_300]] as const) {
  Deno.test(`ReconnectingLine waits ${wait} ms when chance says ${random}`, () => {
    const { clock, fake, line } = setup({}, random);
    line.start();

    fake.transport.drop();

    assert.equal(clock.nextIn, wait);
  });
}

Deno.test("ReconnectingLine starts counting anew once a line was open", () => {
  const { clock, fake, line, log } = setup({ maxAttempts: 3 });
  line.start();
  for (const _ of [1, 2]) {
    fake.transport.drop();
    clock.tick(30_000);
  }

  fake.transport.open();
  fake.transport.drop(1001, "engine is going down");

  assert.equal(line.state, "reconnecting");
  assert.equal(clock.nextIn, 1_000);
  assert.deepEqual(log.slice(-3), ["lost", "reconnecting", "failed engine is going down 1000"]);
});

for (const code of [1000, 1001, 1002, 1005, 1006, 1008, 1009, 1011, 1012, 3000, 4999]) {
  Deno.test(`ReconnectingLine comes back after close code ${code}`, () => {
    const { clock, fake, line } = setup();
    line.start();
    fake.transport.open();

    fake.transport.drop(code);
    clock.tick(1_000);
    fake.transport.open();

    assert.equal(line.state, "connected");
    assert.equal(fake.transports.length, 2);
  });
}

Deno.test("ReconnectingLine gives up after the attempts it was given", () => {
  const { clock, fake, line, log } = setup({ maxAttempts: 2 });
  line.start();

  fake.transport.drop(1006, "HTTP 401");
  clock.tick(1_000);
  fake.transport.drop(1006, "HTTP 401");

  assert.equal(line.state, "failed");
  assert.equal(clock.waiting, 0);
  assert.deepEqual(log.slice(-2), ["failed HTTP 401 undefined", "failed"]);
});

Deno.test("ReconnectingLine sends answers on the line that asked, or nowhere", () => {
  const { clock, fake, line, lines } = setup();
  line.start();
  fake.transport.open();
  fake.transport.drop();
  clock.tick(1_000);
  fake.transport.open();

  lines[0]!.send("late");
  lines[1]!.send("in time");

  assert.deepEqual(fake.transports.map(({ texts }) => texts), [["hello"], ["hello", "in time"]]);
});

Deno.test("ReconnectingLine.stop() closes the line and resolves when it is closed", async () => {
  const { clock, fake, line, log } = setup();
  line.start();
  fake.transport.open();

  await line.stop("disconnected");
  fake.transport.sayText("late");

  assert.ok(fake.transport.isOver);
  assert.equal(line.state, "disconnected");
  assert.equal(clock.waiting, 0);
  assert.deepEqual(log, ["opened", "connected", "disconnected"]);
});

Deno.test("ReconnectingLine.stop() ends a wait, an attempt, and a second time nothing", async () => {
  const waiting = setup();
  waiting.line.start();
  waiting.fake.transport.drop();
  await waiting.line.stop("disconnected");
  assert.equal(waiting.clock.waiting, 0);

  const dialling = setup();
  dialling.line.start();
  await dialling.line.stop("disconnected");
  await dialling.line.stop("disconnected");
  assert.ok(dialling.fake.transport.isOver);
  assert.deepEqual(dialling.log, ["disconnected"]);
});

Deno.test("ReconnectingLine takes a line that opens before the dialler has returned it", () => {
  const sent: string[] = [];
  const dial: Dial = (_url, events) => {
    events.opened();
    return { send: (message) => sent.push(message as string), close() {} };
  };
  const { line } = setup({}, 0.5, dial);

  line.start();

  assert.equal(line.state, "connected");
  assert.deepEqual(sent, ["hello"]);
});

Deno.test("ReconnectingLine ignores empty frames and reads binary ones as text", () => {
  const { fake, line, log } = setup();
  line.start();
  fake.transport.open();

  fake.transport.sayText("");
  fake.transport.sayBinary(new TextEncoder().encode("{}"));

  assert.deepEqual(log.slice(2), ["text {}"]);
});

function setupListeners() {
  const errors: EngineError[] = [];
  return { errors, listeners: new ConnectionListeners((error) => errors.push(error)) };
}

Deno.test("ConnectionListeners tells each as often as it was added, until it is taken out", () => {
  const { listeners } = setupListeners();
  const heard: string[] = [];
  const listener = (state: string): void => void heard.push(state);
  const remove = listeners.add(listener);
  listeners.add(listener);

  listeners.tell("connected");
  remove();
  remove();
  listeners.tell("reconnecting");

  assert.deepEqual(heard, ["connected", "connected", "reconnecting"]);
});

Deno.test("ConnectionListeners reports one that fails, and the others still hear", () => {
  const { errors, listeners } = setupListeners();
  const heard: string[] = [];
  listeners.add(() => {
    throw new Error("broken");
  });
  listeners.add((state) => heard.push(state));

  listeners.tell("failed");

  assert.deepEqual(heard, ["failed"]);
  const [error] = errors;
  assert.match(error!.message, /A listener for the connection state failed: .*broken/);
});

Deno.test("ConnectionListeners refuses what cannot be called", () => {
  const { listeners } = setupListeners();

  assert.throws(() => listeners.add("x" as never), { code: "INVALID_ARGUMENTS" });
});
