/**
 * Traces and logs outlive the engine when the configuration has room on disk for them.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { observe, type Observed, outcome } from "../../tests/fakes/observed.ts";

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
