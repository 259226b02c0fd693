import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { type Connection, ConnectionListeners, ReconnectingConnection } from "./connection.ts";
import type { ReconnectOptions } from "./options.ts";
import type { EngineError } from "./wire/errors.ts";
import type { Dial } from "./wire/transport.ts";

function setup(reconnect: ReconnectOptions = {}, random = 0.5, dial?: Dial) {
  const clock = new FakeClock();
  const fake = new FakeDial();
  const log: string[] = [];
  const opened: Connection[] = [];
  const connection = new ReconnectingConnection({
    url: "ws://127.0.0.1:1/",
    dial: dial ?? fake.dial,
    dialOptions: {},
    clock,
    reconnect,
    random: () => random,
  }, {
    opened(current) {
      opened.push(current);
      log.push("opened");
      current.send("hello");
    },
    text: (message) => log.push(`text ${message}`),
    lost: () => log.push("lost"),
    failed: (reason, retryMs) => log.push(`failed ${reason} ${retryMs}`),
    state: (state) => log.push(state),
  });
  return { clock, fake, connection, opened, log };
}

function isOpen({ current }: ReconnectingConnection): boolean {
  return current?.isOpen ?? false;
}

Deno.test("ReconnectingConnection sends what `opened` sends before its state is connected", () => {
  const { fake, connection, log } = setup();

  connection.start();
  assert.equal(connection.state, "connecting");
  assert.equal(isOpen(connection), false);
  fake.transport.open();

  assert.deepEqual(log, ["opened", "connected"]);
  assert.deepEqual(fake.transport.texts, ["hello"]);
  assert.ok(isOpen(connection));
});

Deno.test("ReconnectingConnection doubles its delay with each attempt, up to the longest", () => {
  const { clock, fake, connection } = setup({ firstMs: 1_000, maxMs: 5_000 });
  connection.start();

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
  Deno.test(`ReconnectingConnection waits ${wait} ms if the random number is ${random}`, () => {
    const { clock, fake, connection } = setup({}, random);
    connection.start();

    fake.transport.drop();

    assert.equal(clock.nextIn, wait);
  });
}

Deno.test("ReconnectingConnection resets its count of failures when a connection opens", () => {
  const { clock, fake, connection, log } = setup({ maxAttempts: 3 });
  connection.start();
  for (const _ of [1, 2]) {
    fake.transport.drop();
    clock.tick(30_000);
  }

  fake.transport.open();
  fake.transport.drop(1001, "engine is going down");

  assert.equal(connection.state, "reconnecting");
  assert.equal(clock.nextIn, 1_000);
  assert.deepEqual(log.slice(-3), ["lost", "reconnecting", "failed engine is going down 1000"]);
});

for (const code of [1000, 1001, 1002, 1005, 1006, 1008, 1009, 1011, 1012, 3000, 4999]) {
  Deno.test(`ReconnectingConnection reconnects after close code ${code}`, () => {
    const { clock, fake, connection } = setup();
    connection.start();
    fake.transport.open();

    fake.transport.drop(code);
    clock.tick(1_000);
    fake.transport.open();

    assert.equal(connection.state, "connected");
    assert.equal(fake.transports.length, 2);
  });
}

Deno.test("ReconnectingConnection fails after `maxAttempts` attempts", () => {
  const { clock, fake, connection, log } = setup({ maxAttempts: 2 });
  connection.start();

  fake.transport.drop(1006, "HTTP 401");
  clock.tick(1_000);
  fake.transport.drop(1006, "HTTP 401");

  assert.equal(connection.state, "failed");
  assert.equal(clock.waiting, 0);
  assert.deepEqual(log.slice(-2), ["failed HTTP 401 undefined", "failed"]);
});

Deno.test("ReconnectingConnection sends responses on the connection of the request, or not at all", () => {
  const { clock, fake, connection, opened } = setup();
  connection.start();
  fake.transport.open();
  fake.transport.drop();
  clock.tick(1_000);
  fake.transport.open();

  opened[0]!.send("late");
  opened[1]!.send("in time");

  assert.deepEqual(fake.transports.map(({ texts }) => texts), [["hello"], ["hello", "in time"]]);
});

Deno.test("ReconnectingConnection.stop() closes the transport and resolves when it is closed", async () => {
  const { clock, fake, connection, log } = setup();
  connection.start();
  fake.transport.open();

  await connection.stop("disconnected");
  fake.transport.deliverText("late");

  assert.ok(fake.transport.isClosed);
  assert.equal(connection.state, "disconnected");
  assert.equal(clock.waiting, 0);
  assert.deepEqual(log, ["opened", "connected", "disconnected"]);
});

Deno.test("ReconnectingConnection.stop() cancels a delay or an attempt, and has no effect the second time", async () => {
  const waiting = setup();
  waiting.connection.start();
  waiting.fake.transport.drop();
  await waiting.connection.stop("disconnected");
  assert.equal(waiting.clock.waiting, 0);

  const dialing = setup();
  dialing.connection.start();
  await dialing.connection.stop("disconnected");
  await dialing.connection.stop("disconnected");
  assert.ok(dialing.fake.transport.isClosed);
  assert.deepEqual(dialing.log, ["disconnected"]);
});

Deno.test("ReconnectingConnection uses a transport that opens before dial() has returned it", () => {
  const sent: string[] = [];
  const dial: Dial = (_url, events) => {
    events.opened();
    return { send: (message) => sent.push(message as string), close() {} };
  };
  const { connection } = setup({}, 0.5, dial);

  connection.start();

  assert.equal(connection.state, "connected");
  assert.deepEqual(sent, ["hello"]);
});

Deno.test("ReconnectingConnection ignores empty frames and reads binary ones as text", () => {
  const { fake, connection, log } = setup();
  connection.start();
  fake.transport.open();

  fake.transport.deliverText("");
  fake.transport.deliverBinary(new TextEncoder().encode("{}"));

  assert.deepEqual(log.slice(2), ["text {}"]);
});

function setupListeners() {
  const errors: EngineError[] = [];
  return { errors, listeners: new ConnectionListeners((error) => errors.push(error)) };
}

Deno.test("ConnectionListeners calls each as often as it was added, until it is removed", () => {
  const { listeners } = setupListeners();
  const heard: string[] = [];
  const listener = (state: string): void => void heard.push(state);
  const remove = listeners.add(listener);
  listeners.add(listener);

  listeners.notify("connected");
  remove();
  remove();
  listeners.notify("reconnecting");

  assert.deepEqual(heard, ["connected", "connected", "reconnecting"]);
});

Deno.test("ConnectionListeners reports one that throws and calls the others", () => {
  const { errors, listeners } = setupListeners();
  const heard: string[] = [];
  listeners.add(() => {
    throw new Error("broken");
  });
  listeners.add((state) => heard.push(state));

  listeners.notify("failed");

  assert.deepEqual(heard, ["failed"]);
  const [error] = errors;
  assert.match(error!.message, /A listener for the connection state failed: .*broken/);
});

Deno.test("ConnectionListeners rejects what is not a function", () => {
  const { listeners } = setupListeners();

  assert.throws(() => listeners.add("x" as never), { code: "INVALID_ARGUMENTS" });
});
