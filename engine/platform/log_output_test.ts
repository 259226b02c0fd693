/**
 * The log beside a reader that reads, is slow, or is gone.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LOG_FLUSH_MS, LOG_QUEUE_BYTES_MAX, LogOutput } from "./log_output.ts";

const decoder = new TextDecoder();

/** A stream whose writes end when the test says so; each takes at most `bytesMax` bytes. */
function stream(bytesMax = Infinity) {
  const pending: (() => void)[] = [];
  let text = "";
  const take = (bytes: Uint8Array): number => {
    const taken = bytes.subarray(0, Math.min(bytes.length, bytesMax));
    text += decoder.decode(taken);
    return taken.length;
  };
  const target = {
    write: (bytes: Uint8Array) =>
      new Promise<number>((resolve) => pending.push(() => resolve(take(bytes)))),
    writeSync: take,
  };
  /** Lets one write end. */
  const read = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await Promise.resolve();
    pending.shift()?.();
    for (let i = 0; i < 10; i++) await Promise.resolve();
  };
  return { target, read, pending, text: () => text };
}

Deno.test("lines are written in order, those of one tick at once, and partial writes go on", async () => {
  const it = stream(4);
  using output = new LogOutput(() => {}, it.target);

  output.write("one");
  output.write("two");
  assert.equal(it.text(), "");
  await it.read();
  assert.equal(it.text(), "one\n");
  output.write("six");
  for (let i = 0; i < 3; i++) await it.read();

  assert.equal(it.text(), "one\ntwo\nsix\n");
  assert.equal(it.pending.length, 0);
});

Deno.test("a reader that does not read costs lines and no time, and the lines are counted", async () => {
  const it = stream();
  const dropped: number[] = [];
  using output = new LogOutput((lines) => {
    dropped.push(lines);
    output.write(`${lines} lines were dropped`);
  }, it.target);
  const line = "x".repeat(1_023);

  for (let i = 0; i < LOG_QUEUE_BYTES_MAX / 1_024 + 7; i++) output.write(line);
  assert.deepEqual(dropped, []);
  for (let i = 0; i < 20; i++) await it.read();

  assert.deepEqual(dropped, [7]);
  assert.equal(it.text().length, LOG_QUEUE_BYTES_MAX + "7 lines were dropped\n".length);
  assert.ok(it.text().endsWith("x\n7 lines were dropped\n"));
});

Deno.test("flush() waits for what was written before, and not for ever", async () => {
  const it = stream();
  const clock = new FakeClock();
  using output = new LogOutput(() => {}, it.target);
  await output.flush(clock);

  output.write("last");
  let isDone = false;
  const flushed = output.flush(clock).then(() => isDone = true);
  for (let i = 0; i < 20; i++) await Promise.resolve();
  assert.equal(isDone, false);
  await it.read();
  await flushed;
  assert.equal(it.text(), "last\n");

  output.write("never read");
  const given = output.flush(clock);
  clock.tick(LOG_FLUSH_MS);
  await given;
});

Deno.test("a stream that is closed takes no further lines, and no error comes of it", async () => {
  const closed = () => Promise.reject(new Deno.errors.BrokenPipe("closed"));
  using output = new LogOutput(() => {}, { write: closed, writeSync: () => 0 });

  for (let i = 0; i < 3; i++) {
    output.write("lost");
    for (let wait = 0; wait < 10; wait++) await Promise.resolve();
  }
  await output.flush(new FakeClock());
});

Deno.test("what waits when the process ends is written", async () => {
  const program = `
    import { LogOutput } from "${import.meta.resolve("./log_output.ts")}";
    const output = new LogOutput(() => {});
    for (let i = 0; i < 3; i++) output.write("line " + i);
    Deno.exit(3);
  `;
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", program],
    env: { NO_COLOR: "1" },
  }).output();

  assert.equal(code, 3);
  assert.equal(decoder.decode(stderr), "line 0\nline 1\nline 2\n");
});
