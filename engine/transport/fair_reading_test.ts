/**
 * What a peer sends without end, or all at once, leaves time for everything else.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { ConnectionEvents } from "../ports/connection.ts";
import { RawConnection } from "./raw_connection.ts";
import type { RawSocket } from "./socket.ts";
import { TICK_MS, TickBudget } from "./tick_budget.ts";
import { BlockPool } from "./write_queue.ts";

/** A text message of one byte, without a mask that changes it. */
const MESSAGE = [0x81, 0x81, 0, 0, 0, 0, 120];

Deno.test("a peer whose bytes are always there leaves the loop its ticks", async () => {
  const bytes = repeated(MESSAGE, 400_000);
  let isOver = false;
  let ticks = 0;
  const count = (): void => {
    ticks++;
    if (!isOver) setTimeout(count, 0);
  };
  setTimeout(count, 0);

  const { run } = setup(bytes, { ticks: new TickBudget() });
  await run;
  isOver = true;
  await new Promise((resolve) => setTimeout(resolve, 5));

  assert.ok(ticks > 3, `${ticks} ticks`);
});

for (const isBatching of [false, true]) {
  const how = isBatching ? "in one frame" : "in frames of their own";
  Deno.test(`messages that come at once, ${how}, are handled over many ticks`, async () => {
    let now = 0;
    const ends: (() => void)[] = [];
    const ticks = new TickBudget({ now: () => now, atTickEnd: (task) => void ends.push(task) });
    const bytes = isBatching
      ? Uint8Array.of(0x81, 0xfe, 0x27, 0x10, 0, 0, 0, 0, ...repeated([120, 10], 5_000))
      : repeated(MESSAGE, 5_000);
    let handled = 0;
    const textBytes = (): void => {
      now += 1;
      handled++;
    };
    const { run } = setup(bytes, { ticks, isBatching, textBytes });
    const perTick: number[] = [];

    while (handled < 5_000) {
      const before = handled;
      for (const end of ends.splice(0)) end();
      await Promise.resolve();
      perTick.push(handled - before);
    }
    while (ends.length > 0) {
      for (const end of ends.splice(0)) end();
      await Promise.resolve();
    }
    await run;

    assert.equal(handled, 5_000);
    const most = Math.max(...perTick.slice(1));
    assert.ok(most <= 32, `${most} messages of 1 ms in a tick`);
  });
}

function repeated(part: readonly number[], times: number): Uint8Array {
  const bytes = new Uint8Array(part.length * times);
  for (let at = 0; at < bytes.length; at += part.length) bytes.set(part, at);
  return bytes;
}

Deno.test("connections that end together take turns, and each ends behind its report", async () => {
  let now = 0;
  const ends: (() => void)[] = [];
  const ticks = new TickBudget({ now: () => now, atTickEnd: (task) => void ends.push(task) });
  const log: string[] = [];
  const closed = (): void => void (now += 2 * TICK_MS, log.push("reported"));
  const runs = [1, 2, 3].map((i) =>
    setup(new Uint8Array(), { ticks, closed }).run.then(() => log.push(`over ${i}`))
  );

  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual(log, ["reported", "over 1"], "the others wait for a tick");
  for (let tick = 0; tick < 400 && log.length < 6; tick++) {
    for (const end of ends.splice(0)) end();
    await Promise.resolve();
  }

  await Promise.all(runs);
  assert.deepEqual(log.filter((entry) => entry === "reported").length, 3);
  assert.equal(log.indexOf("over 2") > log.indexOf("reported", 1), true);
});

for (const how of ["an end", "a close frame"]) {
  Deno.test(`the many registrations of a peer that ends with ${how} are removed in turns`, async () => {
    let now = 0;
    const ends: (() => void)[] = [];
    const ticks = new TickBudget({ now: () => now, atTickEnd: (task) => void ends.push(task) });
    const log: string[] = [];
    let left = 40;
    const retire = (): boolean => {
      now += 1;
      log.push("retired");
      return --left > 0;
    };
    const closed = (): void => void log.push("closed");
    const frame = how === "an end" ? [] : [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8];

    const { run } = setup(Uint8Array.from(frame), { ticks, retire, closed });
    await new Promise((resolve) => setTimeout(resolve, 0));
    let most = log.length;
    let isOver = false;
    void run.then(() => isOver = true);
    for (let tick = 0; tick < 2_000 && !isOver; tick++) {
      const before = log.length;
      for (const end of ends.splice(0)) end();
      await Promise.resolve();
      most = Math.max(most, log.length - before);
    }

    assert.ok(isOver, "the connection has ended");
    assert.deepEqual(log, [...Array.from({ length: 40 }, () => "retired"), "closed"]);
    assert.ok(most <= TICK_MS + 1, `${most} steps of 1 ms in a tick`);
  });
}

interface Setup {
  readonly ticks: TickBudget;
  readonly isBatching?: boolean;
  readonly textBytes?: ConnectionEvents["textBytes"];
  readonly closed?: () => void;
  readonly retire?: () => boolean;
}

/** A connection whose peer has sent `bytes` and then its end; reads never wait. */
function setup(
  bytes: Uint8Array,
  { ticks, isBatching = false, textBytes = () => {}, closed = () => {}, retire }: Setup,
): { run: Promise<void> } {
  let at = 0;
  const socket = {
    read(into: Uint8Array): Promise<number | null> {
      const part = bytes.subarray(at, at + into.length);
      into.set(part);
      at += part.length;
      return Promise.resolve(part.length === 0 ? null : part.length);
    },
    write: (sent: Uint8Array) => Promise.resolve(sent.length),
    finish: () => Promise.resolve(),
    destroy() {},
  };
  const connection = new RawConnection(
    socket as unknown as RawSocket,
    "127.0.0.1",
    { accepted: new Uint8Array(1), isBatching },
    {
      pool: new BlockPool(),
      ticks,
      maxMessageBytes: 1_000_000,
      maxQueuedBytes: 10_000_000,
      silenceMs: 60_000,
      pingMs: 20_000,
      flushDue: (flushed) => ticks.atTickEnd(() => flushed.flush()),
      cut: (_address, reason) => assert.fail(reason),
      ended() {},
    },
  );
  const events = {
    text() {},
    textBytes,
    binary() {},
    drained() {},
    suspected() {},
    closed,
    ...retire && { retire },
  };
  return { run: connection.run(events) };
}
