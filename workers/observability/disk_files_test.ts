/**
 * Files of lines: bounded, in order, for one user alone.
 *
 * @module
 */
import assert from "node:assert/strict";
import { LineFiles } from "./disk_files.ts";

async function setup(bytesMax = 8_000) {
  const folder = `${await Deno.makeTempDir()}/telemetry`;
  const open = async (name = "logs") => {
    const files = new LineFiles(folder, name, bytesMax);
    await files.find();
    return files;
  };
  return {
    folder,
    open,
    names: () => [...Deno.readDirSync(folder)].map(({ name }) => name).sort(),
    [Symbol.asyncDispose]: () => Deno.remove(`${folder}/..`, { recursive: true }),
  };
}

async function read(files: LineFiles, bytes = 1e9): Promise<string[]> {
  return await Array.fromAsync(files.lines(bytes));
}

Deno.test("LineFiles gives back the lines of all that wrote before, in order", async () => {
  await using it = await setup();
  const first = await it.open();
  await first.append("a\nb\n");
  await first.append("c\n");
  first.close();
  const second = await it.open();
  await second.append("d\n");
  second.close();

  assert.deepEqual(await read(await it.open()), ["a", "b", "c", "d"]);
  assert.deepEqual(it.names(), ["logs-1.jsonl", "logs-2.jsonl"]);
});

Deno.test("LineFiles keeps to its bytes: the oldest files go", async () => {
  await using it = await setup(8_000);
  const files = await it.open();
  const line = `${"x".repeat(99)}\n`;

  for (let i = 0; i < 500; i++) await files.append(line);
  files.close();

  const sizes = it.names().map((name) => Deno.statSync(`${it.folder}/${name}`).size);
  assert.ok(sizes.every((size) => size <= 1_000), `${sizes}`);
  assert.equal(sizes.reduce((a, b) => a + b), files.bytes);
  assert.ok(files.bytes <= 8_000 && files.bytes > 6_000);
  assert.ok(it.names().includes("logs-50.jsonl"));
});

Deno.test("LineFiles reads no more than it is asked for, the newest", async () => {
  await using it = await setup(8_000);
  const files = await it.open();
  for (let i = 0; i < 50; i++) await files.append(`${String(i).padStart(99, "0")}\n`);
  files.close();

  const lines = await read(files, 1_500);

  assert.ok(lines.length >= 15 && lines.length <= 30, `${lines.length}`);
  assert.equal(Number(lines.at(-1)), 49);
});

Deno.test("LineFiles are for their user alone, and leave other files be", async () => {
  await using it = await setup();
  const traces = await it.open("traces");
  await Deno.writeTextFile(`${it.folder}/logs-x.jsonl`, "no");
  await Deno.writeTextFile(`${it.folder}/logs-1.jsonl.bak`, "no");
  await Deno.mkdir(`${it.folder}/logs-3.jsonl`);
  const files = await it.open();
  await traces.append("t\n");
  await files.append("a\n");
  traces.close();
  files.close();

  assert.deepEqual(await read(files), ["a"]);
  if (Deno.build.os !== "windows") {
    assert.equal(Deno.statSync(it.folder).mode! & 0o777, 0o700);
    assert.equal(Deno.statSync(`${it.folder}/logs-1.jsonl`).mode! & 0o777, 0o600);
  }
  await files.clear();
  assert.deepEqual(it.names(), [
    "logs-1.jsonl.bak",
    "logs-3.jsonl",
    "logs-x.jsonl",
    "traces-1.jsonl",
  ]);
});

Deno.test("LineFiles goes on after its files were removed by somebody else", async () => {
  await using it = await setup(800);
  const files = await it.open();
  await files.append(`${"a".repeat(90)}\n`);
  await files.append(`${"b".repeat(90)}\n`);
  await Deno.remove(`${it.folder}/logs-1.jsonl`);

  for (let i = 0; i < 20; i++) await files.append(`${"c".repeat(90)}\n`);
  files.close();

  assert.ok(files.bytes <= 800);
});
