/**
 * Traces and logs outlive the engine when the configuration has room on disk for them.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { observe, type Observed, outcome } from "../../tests/fakes/observed.ts";
import { DiskWriter, LineFiles } from "./disk.ts";

type Item = Record<string, Json>;
const ON_DISK = { traces: { disk_mb: 1 }, logs: { disk_mb: 1 } };

async function folder() {
  const path = await Deno.makeTempDir();
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** One engine's life: somebody buys something and logs it. */
async function live(it: Observed): Promise<void> {
  it.worker.registerFunction("shop::buy", async () => {
    const payload = { message: "bought", data: { token: "s3cret" } };
    await it.worker.trigger({ function_id: "engine::log::info", payload });
    return { token: "s3cret" };
  });
  const bought = outcome(it.worker, {
    function_id: "shop::buy",
    payload: { password: "s3cret", sku: 1 },
  });
  await it.local.settle();
  await bought;
}

async function found(it: Observed) {
  const { traces } = await it.ask("engine::traces::summaries");
  const { logs } = await it.ask("engine::logs::list", { text: "bought" });
  return { traces: traces as Item[], logs: logs as Item[] };
}

Deno.test("Another engine finds what one before it recorded", async () => {
  await using at = await folder();
  {
    await using it = await observe(ON_DISK, at.path);
    await live(it);
  }

  await using it = await observe(ON_DISK, at.path);
  const { traces, logs } = await found(it);

  assert.deepEqual(traces.map(({ name }) => name), ["shop::buy"]);
  assert.equal(logs.length, 1);
  const { lines } = await it.ask("engine::traces::explain", {
    invocation_id: traces[0]!.trace_id!,
  });
  assert.match((lines as string[])[0]!, /^shop called shop::buy/);
  const seen = await it.askAsOperator("engine::traces::list", { trace_id: traces[0]!.trace_id! });
  assert.match(JSON.stringify(seen), /\\"sku\\":1/);
});

Deno.test("Nothing secret is on disk", async () => {
  await using at = await folder();
  {
    await using it = await observe(ON_DISK, at.path);
    await live(it);
  }

  const texts = [...Deno.readDirSync(`${at.path}/telemetry`)].map(({ name }) =>
    Deno.readTextFileSync(`${at.path}/telemetry/${name}`)
  );

  assert.equal(texts.length, 2);
  assert.match(texts.join(""), /shop::buy/);
  assert.doesNotMatch(texts.join(""), /s3cret/);
});

Deno.test("Without room on disk nothing is written", async () => {
  await using at = await folder();
  {
    await using it = await observe({}, at.path);
    await live(it);
  }

  assert.deepEqual([...Deno.readDirSync(at.path)], []);
});

Deno.test("Lines that were cut or are not ours are left out", async () => {
  await using at = await folder();
  {
    await using it = await observe(ON_DISK, at.path);
    await live(it);
  }
  for (const name of ["traces", "logs"]) {
    const path = `${at.path}/telemetry/${name}-1.jsonl`;
    const text = await Deno.readTextFile(path);
    await Deno.writeTextFile(path, `null\n5\n{"a":1}\n\u0000\n${text}${text.slice(0, 40)}`);
  }

  await using it = await observe(ON_DISK, at.path);
  const { traces, logs } = await found(it);

  assert.deepEqual([traces.length, logs.length], [1, 1]);
});

Deno.test("Another configuration does not read back what is in memory already", async () => {
  await using at = await folder();
  await using it = await observe(ON_DISK, at.path);
  await live(it);
  await it.stop();

  const { observability } = await import("./mod.ts");
  await it.local.start(observability, { ...ON_DISK, redact: ["x"] });
  const { traces, logs } = await found(it);

  assert.deepEqual([traces.length, traces[0]!.span_count, logs.length], [1, 2, 1]);
});

Deno.test("What was cleared does not come back", async () => {
  await using at = await folder();
  {
    await using it = await observe(ON_DISK, at.path);
    await live(it);
    await it.pass(250);
    await it.ask("engine::traces::clear");
    await it.ask("engine::logs::clear");
  }

  await using it = await observe(ON_DISK, at.path);
  const { traces, logs } = await found(it);

  assert.deepEqual([traces, logs], [[], []]);
});

Deno.test("A disk that cannot be used is said, and the engine goes on", async () => {
  await using at = await folder();
  await Deno.writeTextFile(`${at.path}/telemetry`, "in the way");

  await using it = await observe(ON_DISK, at.path);
  await live(it);

  const said = it.local.lines.filter(({ text }) => text === "telemetry on disk cannot be used");
  assert.deepEqual(said.map(({ fields }) => fields.kind), ["traces", "logs"]);
  assert.equal((await found(it)).traces.length, 1);
});

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

function setupWriter() {
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
  const { writer, clock, written } = setupWriter();

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
  const { writer, clock, written, disk } = setupWriter();
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
  const { writer, clock, written, lines } = setupWriter();
  const line = "x".repeat(1024 * 1024);

  for (let i = 0; i < 20; i++) writer.add(line);
  clock.tick(500);
  await settle();

  assert.equal(written[0]!.length, 16 * (1024 * 1024 + 1));
  assert.equal(lines[0]!.fields.dropped, 4);
});

Deno.test("DiskWriter bears a disk that fails, says so once, and tries again", async () => {
  const { writer, clock, written, lines, disk } = setupWriter();
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
  const { writer, clock, written } = setupWriter();

  writer.add("before");
  writer.clear();
  writer.add("after");
  clock.tick(500);
  await settle();

  assert.deepEqual(written, ["cleared", "after\n"]);
});
