/**
 * Traces and logs survive a restart of the engine when disk_mb is set.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { observe, type Observed, outcome } from "../../tests/fakes/local_engine.ts";
import { DiskWriter, LineFiles } from "./disk.ts";

type Item = Record<string, Json>;
const ON_DISK = { traces: { disk_mb: 1 }, logs: { disk_mb: 1 } };

async function folder() {
  const path = await Deno.makeTempDir();
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** One engine run: a purchase and a log record. */
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

Deno.test("An engine restores what the previous run recorded", async () => {
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

Deno.test("Secrets are not written to disk", async () => {
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

Deno.test("With disk_mb 0 nothing is written", async () => {
  await using at = await folder();
  {
    await using it = await observe({}, at.path);
    await live(it);
  }

  assert.deepEqual([...Deno.readDirSync(at.path)], []);
});

Deno.test("Truncated and foreign lines are skipped", async () => {
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

Deno.test("A change of the configuration does not restore what is in memory already", async () => {
  await using at = await folder();
  await using it = await observe(ON_DISK, at.path);
  await live(it);
  await it.stop();

  const { observability } = await import("./mod.ts");
  await it.local.start(observability, { ...ON_DISK, redact: ["x"] });
  const { traces, logs } = await found(it);

  assert.deepEqual([traces.length, traces[0]!.span_count, logs.length], [1, 2, 1]);
});

Deno.test("Cleared records are not restored", async () => {
  await using at = await folder();
  {
    await using it = await observe(ON_DISK, at.path);
    await live(it);
    await it.pass(250);
    await it.askAsOperator("engine::traces::clear");
    await it.askAsOperator("engine::logs::clear");
  }

  await using it = await observe(ON_DISK, at.path);
  const { traces, logs } = await found(it);

  assert.deepEqual([traces, logs], [[], []]);
});

Deno.test("An unusable disk is logged, and the engine continues", async () => {
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

Deno.test("LineFiles returns the lines of previous writers in order", async () => {
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

Deno.test("LineFiles removes the oldest files beyond its bound", async () => {
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

Deno.test("LineFiles reads the newest files up to the requested size", async () => {
  await using it = await setup(8_000);
  const files = await it.open();
  for (let i = 0; i < 50; i++) await files.append(`${String(i).padStart(99, "0")}\n`);
  files.close();

  const lines = await read(files, 1_500);

  assert.ok(lines.length >= 15 && lines.length <= 30, `${lines.length}`);
  assert.equal(Number(lines.at(-1)), 49);
});

Deno.test("LineFiles are private to the user, and other files stay untouched", async () => {
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

Deno.test("LineFiles continues after its files were removed by another process", async () => {
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

Deno.test("DiskWriter writes pending lines together after a delay", async () => {
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

Deno.test("DiskWriter runs one write at a time, and flushes when disposed", async () => {
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

Deno.test("DiskWriter drops lines when the disk is too slow, and logs how many", async () => {
  const { writer, clock, written, lines } = setupWriter();
  const line = "x".repeat(1024 * 1024);

  for (let i = 0; i < 20; i++) writer.add(line);
  clock.tick(500);
  await settle();

  assert.equal(written[0]!.length, 16 * (1024 * 1024 + 1));
  assert.equal(lines[0]!.fields.dropped, 4);
});

Deno.test("DiskWriter logs a failing disk once and retries", async () => {
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

Deno.test("DiskWriter.clear() discards pending lines too", async () => {
  const { writer, clock, written } = setupWriter();

  writer.add("before");
  writer.clear();
  writer.add("after");
  clock.tick(500);
  await settle();

  assert.deepEqual(written, ["cleared", "after\n"]);
});
