import assert from "node:assert/strict";
import { TAIL_LINES_MAX } from "../../sdk/typescript/wire/limits.ts";
import { OutputLog } from "./output_log.ts";

const TIME = Date.UTC(2026, 10, 21, 13, 0, 0, 123);

async function setup(maxBytes?: number) {
  const directory = await Deno.makeTempDir();
  const log = new OutputLog(`${directory}/logs/w.log`, () => TIME, maxBytes);
  const print = (text: string) => log.write({ stream: "stdout", text });
  const remove = () => Deno.remove(directory, { recursive: true });
  return { directory, log, print, [Symbol.asyncDispose]: remove };
}

Deno.test("OutputLog writes lines with their time and stream", async () => {
  await using there = await setup();
  const { log, print } = there;

  print("hello");
  log.write({ stream: "stderr", text: "oh" });
  await log.close();

  const lines = ["2026-11-21T13:00:00.123Z out hello", "2026-11-21T13:00:00.123Z err oh"];
  assert.equal(await Deno.readTextFile(log.path), `${lines.join("\n")}\n`);
  assert.deepEqual(await log.tail(10), lines);
  assert.deepEqual(await log.tail(1), lines.slice(1));
  assert.deepEqual(await log.tail(0), []);
});

Deno.test("OutputLog keeps one older file and reads both", async () => {
  await using there = await setup(1_000);
  const { log, print, directory } = there;

  for (let i = 0; i < 300; i++) {
    print(`line ${i}`);
    if (i % 10 === 0) await log.close();
  }
  await log.close();

  const files = [...Deno.readDirSync(`${directory}/logs`)].map(({ name }) => name).sort();
  assert.deepEqual(files, ["w.log", "w.log.1"]);
  assert.ok((await Deno.stat(log.path)).size <= 1_000);
  const later = new OutputLog(log.path, () => TIME);
  const tail = await later.tail(40);
  const kept = tail.map((line) => Number(line.split(" ").at(-1)));
  assert.deepEqual(kept, Array.from({ length: kept.length }, (_, i) => 300 - kept.length + i));
  assert.ok(kept.length > 20);
});

Deno.test("OutputLog keeps the last lines in memory and reads more from the file", async () => {
  await using there = await setup();
  const { log, print } = there;

  for (let i = 0; i < TAIL_LINES_MAX * 20; i++) print(`line ${i} ${"x".repeat(50)}`);

  assert.equal((await log.tail(TAIL_LINES_MAX)).length, TAIL_LINES_MAX);
  const all = await log.tail(1_000_000);
  assert.equal(all.length, TAIL_LINES_MAX * 20);
  assert.match(all[0]!, /line 0 /);
  assert.equal((await log.tail(TAIL_LINES_MAX + 5)).length, TAIL_LINES_MAX + 5);
});

Deno.test("OutputLog drops what the disk cannot take and says how much", async () => {
  await using there = await setup();
  const { log, print } = there;
  const long = "x".repeat(1024 * 1024);

  for (let i = 0; i < 10; i++) print(long);
  await log.close();
  print("after");
  await log.close();

  const lines = (await Deno.readTextFile(log.path)).trimEnd().split("\n");
  assert.match(lines.at(-2)!, /^… \d+ lines were dropped here$/);
  assert.match(lines.at(-1)!, /out after$/);
});

Deno.test("OutputLog bears a place where it cannot write", async () => {
  const log = new OutputLog("/proc/nowhere/w.log", () => TIME);

  log.write({ stream: "stdout", text: "kept" });
  await log.close();

  assert.match((await log.tail(5))[0]!, / kept$/);
});
