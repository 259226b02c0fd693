/**
 * What every {@linkcode StateLog} and {@linkcode LeaderKey} promises, as tests that each
 * implementation runs.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  isNotOwner,
  type LeaderKey,
  LOG_MESSAGE_BYTES_MAX,
  type LogMessage,
  type SnapshotPiece,
  type StateLog,
} from "../../engine/ports/state_log.ts";

/** One empty log, as several engines see it. */
export interface LogUnderTest extends AsyncDisposable {
  /** Opens it as one more engine. */
  open(): Promise<StateLog>;
  openKey(): Promise<LeaderKey>;
  /** From now on, requests of all engines arrive and answers do not, or both do again. */
  loseAnswers(areLost: boolean): void;
}

/** Makes a log of a name that no other test uses. */
export type SetUpLog = () => Promise<LogUnderTest>;

type Check = (what: string, body: (setup: LogUnderTest) => Promise<void>) => void;

/** Registers the tests of the contract for one implementation. */
export function testStateLog(name: string, setUp: SetUpLog, ignore = false): void {
  const check: Check = (what, body) =>
    Deno.test({
      name: `${name} ${what}`,
      ignore,
      async fn() {
        await using setup = await setUp();
        await body(setup);
      },
    });
  testMessages(check);
  testOwners(check);
  testSnapshots(check);
  testKey(check);
}

function testMessages(check: Check): void {
  check("numbers messages from 1 and gives them back in order", async (setup) => {
    await using log = await setup.open();
    const before = await log.end();
    for (let i = 1; i <= 20; i++) assert.equal(await log.append(text(`m${i}`), i - 1), i);

    assert.equal(before.number, 0);
    assert.deepEqual(await log.end(), { id: before.id, number: 20 });
    assert.deepEqual(await contents(log, 1), counting(1, 20));
    assert.deepEqual(await contents(log, 18), counting(18, 20));
    assert.deepEqual(await contents(log, 21), []);
  });

  check("keeps bytes as they are, from none to the largest message", async (setup) => {
    await using log = await setup.open();
    const sizes = [0, 1, 65_536, LOG_MESSAGE_BYTES_MAX];
    const sent = sizes.map((size) => randomBytes(size));
    for (const [i, bytes] of sent.entries()) await log.append(bytes, i);

    const found: Uint8Array[] = [];
    for await (const { bytes } of log.read(1)) found.push(bytes);
    assert.deepEqual(found.map(({ length }) => length), sizes);
    assert.ok(found.every((bytes, i) => equals(bytes, sent[i]!)));
    assert.ok(log.bytes >= LOG_MESSAGE_BYTES_MAX);
  });

  check("reads up to what was the end, while others go on", async (setup) => {
    await using log = await setup.open();
    for (let i = 0; i < 700; i++) await log.append(text(`m${i + 1}`), i);

    const numbers: number[] = [];
    for await (const item of log.read(1)) {
      numbers.push((item as LogMessage).number);
      if (numbers.length === 1) await log.append(text("later"), 700);
    }
    assert.deepEqual(numbers, Array.from({ length: 700 }, (_, i) => i + 1));
  });
}

function testOwners(check: Check): void {
  check("refuses a message that does not come after the last one", async (setup) => {
    await using first = await setup.open();
    await using second = await setup.open();
    await first.append(text("m1"), 0);
    await second.append(text("m2"), 1);

    await assert.rejects(first.append(text("no"), 1), isNotOwner);
    await assert.rejects(first.append(text("no"), 0), isNotOwner);
    assert.deepEqual(await contents(first, 1), ["m1", "m2"]);
    assert.equal(await first.append(text("m3"), 2), 3);
  });

  check("takes one of several messages after the same one", async (setup) => {
    await using first = await setup.open();
    await using second = await setup.open();
    for (let after = 0; after < 20; after++) {
      const attempts = await Promise.allSettled([
        first.append(text(`a${after}`), after),
        second.append(text(`b${after}`), after),
      ]);

      const taken = attempts.filter(({ status }) => status === "fulfilled");
      assert.equal(taken.length, 1, `after ${after}`);
      const failed = attempts.find((attempt) => attempt.status === "rejected");
      assert.ok(isNotOwner(failed?.reason));
      const [text_] = await contents(first, after + 1);
      assert.equal(text_![0], attempts[0]!.status === "fulfilled" ? "a" : "b");
    }
  });

  check("appends once when the answer is lost", async (setup) => {
    await using log = await setup.open();
    await log.append(text("m1"), 0);

    setup.loseAnswers(true);
    const appended = log.append(text("m2"), 1);
    await new Promise((resolve) => setTimeout(resolve, 300)); // Attempts without an answer.
    setup.loseAnswers(false);

    assert.equal(await appended, 2);
    assert.equal(await log.append(text("m3"), 2), 3);
    assert.deepEqual(await contents(log, 1), ["m1", "m2", "m3"]);
  });

  check("says that it does not know when no answer comes", async (setup) => {
    await using log = await setup.open();
    await log.append(text("m1"), 0);
    const ending = new AbortController();

    setup.loseAnswers(true);
    const appended = log.append(text("m2"), 1, ending.signal);
    setTimeout(() => ending.abort(), 300);
    await assert.rejects(appended, { code: "SET_ERROR", details: { unknown: true } });
    setup.loseAnswers(false);

    await using other = await setup.open();
    const { number } = await other.end();
    assert.ok(number === 1 || number === 2);
    await other.append(text("m"), number);
  });

  check("does not try when it is to stop", async (setup) => {
    await using log = await setup.open();
    const failure = await log.append(text("m1"), 0, AbortSignal.abort()).catch((thrown) => thrown);

    assert.equal(failure.code, "SET_ERROR");
    assert.equal(failure.details?.unknown, undefined);
    assert.equal((await log.end()).number, 0);
  });
}

function testSnapshots(check: Check): void {
  check("has a snapshot in place of older messages", async (setup) => {
    await using log = await setup.open();
    for (let i = 1; i <= 10; i++) await log.append(randomBytes(10_000), i - 1);
    const before = log.bytes;

    await log.snapshot(pieces("s1", "s2", "s3"), 8);

    assert.ok(log.bytes < before / 2, `${log.bytes} of ${before} bytes`);
    const items = await all(log, 1);
    assert.deepEqual(items.slice(0, 3).map((item) => ({ ...item, bytes: textOf(item) })), [
      { kind: "piece", upTo: 8, isFirst: true, isLast: false, bytes: "s1" },
      { kind: "piece", upTo: 8, isFirst: false, isLast: false, bytes: "s2" },
      { kind: "piece", upTo: 8, isFirst: false, isLast: true, bytes: "s3" },
    ]);
    assert.deepEqual(items.slice(3).map((item) => (item as LogMessage).number), [9, 10]);
    assert.deepEqual((await all(log, 9)).map(({ kind }) => kind), ["message", "message"]);
    assert.deepEqual(await all(log, 11), []);
    assert.equal(await log.append(text("m"), 10), 11);
  });

  check("has the last of several snapshots, for other engines too", async (setup) => {
    await using log = await setup.open();
    for (let i = 1; i <= 6; i++) await log.append(text(`m${i}`), i - 1);
    await log.snapshot(pieces("old"), 2);
    await log.snapshot(pieces("new"), 6);

    await using other = await setup.open();
    assert.deepEqual(await contents(other, 1), ["new"]);
    assert.equal((await other.end()).number, 6);
  });

  check("takes messages while a snapshot is made", async (setup) => {
    await using log = await setup.open();
    for (let i = 1; i <= 3; i++) await log.append(text(`m${i}`), i - 1);

    await log.snapshot(
      (async function* () {
        yield text("s1");
        await log.append(text("m4"), 3);
        yield text("s2");
      })(),
      3,
    );

    assert.deepEqual(await contents(log, 1), ["s1", "s2", "m4"]);
  });

  check("does not count half a snapshot", async (setup) => {
    await using log = await setup.open();
    for (let i = 1; i <= 3; i++) await log.append(text(`m${i}`), i - 1);
    const half = (async function* () {
      yield text("half");
      await Promise.resolve();
      throw new Error("the engine is killed");
    })();

    await assert.rejects(log.snapshot(half, 3));

    assert.deepEqual(await contents(log, 1), ["m1", "m2", "m3"]);
    await log.snapshot(pieces("whole"), 2);
    assert.deepEqual(await contents(log, 1), ["whole", "m3"]);
  });

  check("keeps the later snapshot when an earlier one is finished after it", async (setup) => {
    await using first = await setup.open();
    await using second = await setup.open();
    for (let i = 1; i <= 6; i++) await first.append(text(`m${i}`), i - 1);
    const overtaken = (async function* () {
      yield text("old1");
      await second.snapshot(pieces("new1", "new2"), 5);
      yield text("old2");
    })();

    await assert.rejects(first.snapshot(overtaken, 3), isNotOwner);

    assert.deepEqual(await contents(first, 1), ["new1", "new2", "m6"]);
  });

  check("refuses an engine behind a snapshot, whose numbers are free again", async (setup) => {
    await using first = await setup.open();
    await using second = await setup.open();
    await first.append(text("m1"), 0);
    for (let i = 2; i <= 4; i++) await second.append(text(`m${i}`), i - 1);
    await second.snapshot(pieces("s"), 4);

    await assert.rejects(first.append(text("no"), 1), isNotOwner);

    assert.deepEqual(await contents(second, 1), ["s"]);
    assert.equal(await second.append(text("m5"), 4), 5);
  });
}

function testKey(check: Check): void {
  check("gives the leader's key to one of those who saw the same revision", async (setup) => {
    const [first, second] = [await setup.openKey(), await setup.openKey()];
    assert.equal(await first.read(), undefined);

    const attempts = await Promise.allSettled([first.write("a", 0), second.write("b", 0)]);

    const taken = attempts.filter((attempt) => attempt.status === "fulfilled");
    assert.equal(taken.length, 1);
    const found = await second.read();
    assert.equal(found?.life, attempts[0]!.status === "fulfilled" ? "a" : "b");
    assert.equal(found?.revision, taken[0]!.value);

    const next = await second.write("c", found!.revision);
    assert.ok(next > found!.revision);
    await assert.rejects(first.write("d", found!.revision), isNotOwner);
    await assert.rejects(first.write("d", 0), isNotOwner);
    assert.deepEqual(await first.read(), { life: "c", revision: next });
    await first.write("", next);
    assert.equal((await second.read())?.life, "");
    for (const key of [first, second]) {
      await (key as Partial<AsyncDisposable>)[Symbol.asyncDispose]?.();
    }
  });
}

async function all(log: StateLog, from: number): Promise<(LogMessage | SnapshotPiece)[]> {
  const items: (LogMessage | SnapshotPiece)[] = [];
  for await (const item of log.read(from)) items.push(item);
  return items;
}

async function contents(log: StateLog, from: number): Promise<string[]> {
  return (await all(log, from)).map(textOf);
}

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const piece of texts) yield await Promise.resolve(text(piece));
}

function text(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

function textOf({ bytes }: { readonly bytes: Uint8Array }): string {
  return new TextDecoder().decode(bytes);
}

function counting(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, i) => `m${from + i}`);
}

function randomBytes(size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 65_536) {
    crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  }
  return bytes;
}

function equals(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}
