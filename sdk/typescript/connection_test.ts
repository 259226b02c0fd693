import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { Random } from "../../tests/fakes/random.ts";
import {
  type Connection,
  ConnectionListeners,
  ReconnectingConnection,
  STALLED_MS,
} from "./connection.ts";
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
    lost: (reason) => log.push(`lost ${reason}`),
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
  const { clock, fake, connection } = setup({ firstMs: 1_000, maxMs: 6_500 });
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
    clock.tick(1_900);
  }

  fake.transport.open();
  fake.transport.drop(1001, "engine is stopping");

  assert.equal(connection.state, "reconnecting");
  assert.equal(clock.nextIn, 1_000);
  const reason = "engine is stopping";
  assert.deepEqual(log.slice(-3), [`lost ${reason}`, "reconnecting", `failed ${reason} 1000`]);
});

Deno.test("ReconnectingConnection waits twice as long with each refusal, up to 30 s", () => {
  const { clock, fake, connection, opened } = setup();
  connection.start();
  const refuse = (): number => {
    fake.transport.open();
    opened.at(-1)!.judged!(false);
    fake.transport.drop(1008, "not authorised");
    const wait = clock.nextIn ?? 0;
    clock.tick(wait);
    return Math.round(wait);
  };

  assert.deepEqual([1, 2, 3, 4, 5, 6, 7].map(refuse), [
    ...[1_000, 2_000, 4_000, 8_000, 16_000],
    ...[23_077, 23_077], // 30 s with the longest variation.
  ]);
  assert.equal(clock.nextIn, 1_000, "a dial that is not answered is no refusal");

  fake.transport.open();
  opened.at(-1)!.judged!(true);
  fake.transport.drop(1001, "engine is stopping");
  assert.equal(clock.nextIn, 1_000, "after it was let in");
  clock.tick(1_000);
  assert.equal(refuse(), 1_000);
});

Deno.test("ReconnectingConnection forgets refusals when the engine is gone", () => {
  const { clock, fake, connection, opened } = setup();
  connection.start();
  const refuse = (): void => {
    fake.transport.open();
    opened.at(-1)!.judged!(false);
    fake.transport.drop(1008, "not authorised");
  };
  for (const waitMs of [1_000, 2_000]) {
    refuse();
    clock.tick(waitMs);
  }

  fake.transport.drop(1006, "refused");
  clock.tick(1_000);
  refuse();

  assert.equal(clock.nextIn, 1_000);
});

Deno.test("ReconnectingConnection counts refusals as attempts", () => {
  const { clock, fake, connection, opened } = setup({ maxAttempts: 2 });
  connection.start();

  for (const state of ["reconnecting", "failed"]) {
    fake.transport.open();
    opened.at(-1)!.judged!(false);
    fake.transport.drop(1008, "not authorised");
    assert.equal(connection.state, state);
    clock.tick(1_000);
  }
});

Deno.test("ReconnectingConnection dials at least every 1,800 ms, its variation included", () => {
  const { clock, fake, connection } = setup({}, 1);
  connection.start();

  const waits = [1, 2, 3, 4, 5, 6].map(() => {
    fake.transport.drop(1006, "refused");
    const wait = clock.nextIn;
    clock.tick(wait ?? 0);
    return Math.round(wait ?? 0);
  });

  assert.deepEqual(waits, [1_300, 1_800, 1_800, 1_800, 1_800, 1_800]);
});

Deno.test("ReconnectingConnection dials beside a dial that is not answered, and uses the first that opens", () => {
  const { clock, fake, connection, opened, log } = setup();
  connection.start();

  clock.tick(1_000);
  assert.equal(connection.state, "reconnecting");
  const [oldest, second] = fake.transports;
  clock.tick(1_400);
  const third = fake.transport;

  assert.equal(fake.transports.length, 3);
  assert.deepEqual([oldest!.isClosed, second!.isClosed, third.isClosed], [false, true, false]);
  third.open();
  assert.deepEqual([oldest!.isClosed, third.isClosed], [true, false]);
  oldest!.deliverText("late");
  assert.equal(opened.length, 1);
  assert.deepEqual(log, ["reconnecting", "opened", "connected"]);
  assert.equal(clock.waiting, 0);
});

Deno.test("ReconnectingConnection keeps the oldest dial, so that a slow network connects", () => {
  const { clock, fake, connection } = setup();
  connection.start();
  const [oldest] = fake.transports;

  clock.tick(9_000);
  oldest!.open();

  assert.ok(isOpen(connection));
  assert.ok(fake.transports.slice(1).every(({ isClosed }) => isClosed));
  oldest!.drop();
  assert.equal(clock.nextIn, 1_000);
});

Deno.test("ReconnectingConnection goes on with the newer dial when the older one fails", () => {
  const { clock, fake, connection, log } = setup();
  connection.start();
  const [oldest] = fake.transports;
  clock.tick(1_000);

  oldest!.drop(1006, "no answer within 10000 ms");
  fake.transport.open();

  assert.ok(isOpen(connection));
  assert.equal(fake.transports.length, 2);
  assert.ok(log.includes("failed no answer within 10000 ms 0"));
});

Deno.test("ReconnectingConnection counts dials without an answer as attempts", () => {
  const { clock, fake, connection } = setup({ maxAttempts: 3 });
  connection.start();

  clock.tick(60_000);
  assert.equal(fake.transports.length, 3);
  fake.transports[0]!.drop();
  assert.equal(connection.state, "reconnecting");
  fake.transports[2]!.drop();

  assert.equal(connection.state, "failed");
});

Deno.test("ReconnectingConnection with one attempt waits for its answer in the state connecting", () => {
  const { clock, fake, connection, log } = setup({ maxAttempts: 1 });
  connection.start();

  clock.tick(9_000);
  assert.equal(connection.state, "connecting");
  fake.transport.open();

  assert.deepEqual(log, ["opened", "connected"]);
});

Deno.test("ReconnectingConnection.stop() closes all dials", async () => {
  const { clock, fake, connection } = setup();
  connection.start();
  clock.tick(2_000);

  await connection.stop("disconnected");

  assert.ok(fake.transports.every(({ isClosed }) => isClosed));
  assert.equal(clock.waiting, 0);
});

/** An engine at which dials are refused, or not answered, until it returns. */
class Outage {
  isOver = false;
  /** Times of the connections that opened. */
  readonly openings: number[] = [];
  readonly #clock: FakeClock;
  readonly #isBlackHole: boolean;

  constructor(clock: FakeClock, isBlackHole: boolean) {
    this.#clock = clock;
    this.#isBlackHole = isBlackHole;
  }

  readonly dial: Dial = (_url, events) => {
    let isOver = false;
    const cancel = this.isOver
      ? this.#clock.after(20, () => {
        this.openings.push(this.#clock.now());
        events.opened();
      })
      : this.#clock.after(this.#isBlackHole ? 10_000 : 1, () => end(1006));
    const end = (code: number): void => {
      if (isOver) return;
      isOver = true;
      cancel();
      events.closed(code, "");
    };
    return { send() {}, close: (code = 1000) => end(code) };
  };
}

for (const [isBlackHole, name] of [[false, "are refused"], [true, "are not answered"]] as const) {
  Deno.test(`1,000 workers whose dials ${name} return within 2 s, not at the same moment`, async () => {
    const clock = new FakeClock();
    const outage = new Outage(clock, isBlackHole);
    const events = { opened() {}, text() {}, lost() {}, failed() {}, state() {} };
    const seed = new Random(13);
    const random = () => seed.below(1_000_000) / 1_000_000;
    const workers = Array.from({ length: 1_000 }, () => {
      const setup = { url: "ws://127.0.0.1:1/", dial: outage.dial, dialOptions: {}, reconnect: {} };
      return new ReconnectingConnection({ ...setup, clock, random }, events);
    });
    for (const worker of workers) worker.start();

    clock.tick(60_000);
    outage.isOver = true;
    const back = clock.now();
    clock.tick(2_000);

    assert.equal(workers.filter(isOpen).length, workers.length);
    const tenths = Array.from({ length: 20 }, () => 0);
    for (const at of outage.openings) tenths[Math.floor((at - back) / 100)]!++;
    assert.ok(Math.max(...tenths) < 150, `openings in each 100 ms: ${tenths}`);
    await Promise.all(workers.map((worker) => worker.stop("disconnected")));
  });
}

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

Deno.test("a connection is full while over 64 MiB are unsent, and is closed beyond 192 MiB", () => {
  const { clock, fake, connection, opened, log } = setup();
  connection.start();
  fake.transport.open();
  const [current] = opened;
  const message = "x".repeat(1024 * 1024);

  fake.transport.queuedBytes = 64 * 1024 * 1024 + 1;
  current!.send(message);
  assert.ok(current!.isFull);
  fake.transport.queuedBytes = 0;
  clock.tick(100);
  assert.ok(!current!.isFull);

  fake.transport.queuedBytes = 192 * 1024 * 1024 + 1;
  current!.send(message);
  assert.deepEqual(log.slice(-2), ["reconnecting", "failed the engine does not read 1000"]);
});

Deno.test("late messages are sent in order while there is room, and fail if the engine reads nothing", () => {
  const { clock, fake, connection, opened } = setup();
  connection.start();
  fake.transport.open();
  const [current] = opened;
  const MIB = 1024 * 1024;
  const log: string[] = [];
  const late = (name: string, bytes = 0) =>
    current!.sendLate!({
      send() {
        log.push(name);
        fake.transport.queuedBytes = (fake.transport.queuedBytes ?? 0) + bytes;
        current!.send("x".repeat(MIB));
      },
      fail: () => log.push(`${name} fails`),
    });
  late("at once");
  fake.transport.queuedBytes = 80 * MIB;
  current!.send("x".repeat(MIB));
  for (const name of ["1", "2", "3"]) late(name, 45 * MIB);
  assert.deepEqual(log.splice(0), ["at once"]);

  for (let left = 70; left > 66; left--) {
    fake.transport.queuedBytes = left * MIB;
    clock.tick(STALLED_MS - 100); // Longer than that altogether, but it reads.
  }
  assert.deepEqual(log, []);
  fake.transport.queuedBytes = 60 * MIB;
  clock.tick(100);
  assert.deepEqual(log.splice(0), ["1"], "which fills it again");
  fake.transport.queuedBytes = 10 * MIB;
  clock.tick(100);
  assert.deepEqual(log.splice(0), ["2", "3"], "the second fits, the third is behind no full one");
  late("4");
  clock.tick(STALLED_MS + 200);
  assert.deepEqual(log.splice(0), ["4 fails"]);
  fake.transport.queuedBytes = 0;
  clock.tick(100);
  late("5");
  assert.deepEqual(log.splice(0), ["5"]);

  fake.transport.queuedBytes = 65 * MIB;
  current!.send("x".repeat(MIB));
  late("6");
  fake.transport.drop(1006, "lost");
  late("7");
  assert.deepEqual(log, ["6 fails", "7 fails"]);
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
