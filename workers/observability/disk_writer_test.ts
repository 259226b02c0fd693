/**
 * Lines get to disk some time later, in order; a disk that fails or is slow costs lines only.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { DiskWriter } from "./disk_writer.ts";

function setup() {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const written: string[] = [];
  const disk = { failure: undefined as Error | undefined, gate: Promise.resolve(), closed: 0 };
  const files = {
    append: async (text: string) => {
      await disk.gate;
      if (disk.failure) throw disk.failure;
      written.push(text);
    },
    clear: () => Promise.resolve(void written.push("cleared")),
    close: () => void disk.closed++,
  };
  const writer = new DiskWriter({ clock, log: recordingLog(lines), files, name: "logs" });
  return { clock, lines, written, disk, writer };
}

const settle = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

Deno.test("DiskWriter writes what came since in one piece, after a while", async () => {
  const { writer, clock, written } = setup();

  writer.add("a");
  writer.add("b");
  await settle();
  assert.deepEqual(written, []);
  clock.tick(500);
  await settle();

  assert.deepEqual(written, ["a\nb\n"]);
  assert.equal(clock.waiting, 0);
});

Deno.test("DiskWriter writes one piece at a time, and the rest when it is disposed of", async () => {
  const { writer, clock, written, disk } = setup();
  const { promise, resolve } = Promise.withResolvers<void>();
  disk.gate = promise;

  writer.add("a");
  clock.tick(500);
  await settle();
  writer.add("b");
  clock.tick(500);
  const ended = writer[Symbol.asyncDispose]();
  writer.add("too late");
  resolve();
  await ended;

  assert.deepEqual(written, ["a\n", "b\n"]);
  assert.equal(disk.closed, 1);
  assert.equal(clock.waiting, 0);
});

Deno.test("DiskWriter drops what a slow disk has no time for, and says how much", async () => {
  const { writer, clock, written, lines } = setup();
  const line = "x".repeat(1024 * 1024);

  for (let i = 0; i < 20; i++) writer.add(line);
  clock.tick(500);
  await settle();

  assert.equal(written[0]!.length, 16 * (1024 * 1024 + 1));
  assert.equal(lines[0]!.fields.dropped, 4);
});

Deno.test("DiskWriter bears a disk that fails, says so once, and tries again", async () => {
  const { writer, clock, written, lines, disk } = setup();
  disk.failure = new Error("No space left");
  for (let i = 0; i < 3; i++) {
    writer.add(`${i}`);
    clock.tick(500);
    await settle();
  }
  disk.failure = undefined;
  writer.add("again");
  clock.tick(500);
  await settle();

  assert.deepEqual(written, ["again\n"]);
  assert.equal(lines.length, 1);
  assert.match(String(lines[0]!.fields.reason), /No space left/);
  assert.equal(disk.closed, 3);
});

Deno.test("DiskWriter.clear() forgets what waits, too", async () => {
  const { writer, clock, written } = setup();

  writer.add("before");
  writer.clear();
  writer.add("after");
  clock.tick(500);
  await settle();

  assert.deepEqual(written, ["cleared", "after\n"]);
});
