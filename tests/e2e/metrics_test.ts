/**
 * What a whole engine says of itself to Prometheus, to an orchestrator and to an OTLP receiver.
 *
 * @module
 */
import assert from "node:assert/strict";
import { startEngine } from "../../engine/mod.ts";
import { registerWorker } from "../../mod.ts";
import { OtlpReceiver } from "../fakes/otlp.ts";

interface Check {
  readonly name: string;
  readonly status: string;
  readonly measured: number | null;
}

const TOKEN = "a long secret";

/** Variables of the environment for a while. */
function withEnv(variables: Record<string, string>): Disposable {
  const before = Object.keys(variables).map((name) => [name, Deno.env.get(name)] as const);
  for (const [name, value] of Object.entries(variables)) Deno.env.set(name, value);
  return {
    [Symbol.dispose]() {
      for (const [name, value] of before) {
        if (value === undefined) Deno.env.delete(name);
        else Deno.env.set(name, value);
      }
    },
  };
}

async function setup() {
  const directory = await Deno.makeTempDir({ prefix: "metrics-engine-" });
  const lines = ["engine:", `  auth_token: ${TOKEN}`, "workers:", "  - name: engine-state"];
  await Deno.writeTextFile(`${directory}/config.yaml`, lines.join("\n") + "\n");
  const engine = await startEngine({ directory, port: 0, logLevel: "error" });
  const url = engine.endpoints.find(({ name }) => name === "workers")!.url;
  const worker = registerWorker(url, { workerName: "math", token: TOKEN });
  worker.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
  const get = async (path: string, token?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(url.replace("ws:", "http:") + path, { headers });
    return { status: answer.status, text: await answer.text() };
  };
  return {
    worker,
    get,
    async [Symbol.asyncDispose]() {
      await worker.shutdown();
      await engine.stop({ drain: false });
      await Deno.remove(directory, { recursive: true });
    },
  };
}

Deno.test("An engine is scraped with its token, and reports its readiness without one", async () => {
  await using it = await setup();
  const payload = { a: 2, b: 3 };
  for (let i = 0; i < 3; i++) await it.worker.trigger({ function_id: "math::add", payload });
  await it.worker.trigger({
    function_id: "state::set",
    payload: { scope: "s", key: "k", value: 1 },
  });

  assert.equal((await it.get("/metrics")).status, 401);
  assert.equal((await it.get("/metrics", "wrong")).status, 401);
  const { status, text } = await it.get("/metrics", TOKEN);
  assert.equal(status, 200);
  const labels = '{function="math::add",namespace="default"}';
  assert.ok(text.includes(`engine_calls_total${labels} 3\n`));
  assert.ok(text.includes(`engine_call_duration_seconds_count${labels} 3\n`));
  assert.match(text, /\nengine_state_commits_total [1-9]/);
  assert.match(text, /\nengine_worker_in_flight_calls\{worker="math",worker_id="[^"]+"\} 0\n/);
  assert.deepEqual(await it.get("/healthz"), { status: 200, text: '{"status":"ok"}\n' });
  assert.deepEqual(await it.get("/readyz"), { status: 200, text: '{"ready":true,"reasons":[]}\n' });
});

Deno.test("An engine exports calls, metrics and logs to the endpoint of OTEL_*", async () => {
  await using receiver = new OtlpReceiver();
  using _ = withEnv({
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_BSP_SCHEDULE_DELAY: "50",
    OTEL_BLRP_SCHEDULE_DELAY: "50",
    OTEL_METRIC_EXPORT_INTERVAL: "100",
  });
  await using it = await setup();
  await it.worker.trigger({ function_id: "math::add", payload: { a: 20, b: 3 } });
  await it.worker.trigger({
    function_id: "engine::log::info",
    payload: { message: "added up" },
  });

  const [spans] = await Promise.all([
    receiver.next("/v1/traces", (text) => text.includes('"math::add"')),
    receiver.next("/v1/logs", (text) => text.includes("added up")),
    receiver.next("/v1/metrics", (text) => text.includes('"engine.calls"')),
  ]);

  const text = new TextDecoder().decode(spans.body);
  assert.ok(text.includes("resourceSpans"));
  assert.ok(!text.includes('{"a":20'), "payloads stay here");
});

Deno.test("An engine measures its health", async () => {
  await using it = await setup();
  const { checks } = await it.worker.trigger<object, { checks: Check[] }>({
    function_id: "engine::health::measure",
    payload: {},
  });

  const disk = checks.find(({ name }) => name === "disk")!;
  assert.ok(disk.measured !== null && disk.measured > 0, "a write takes time");
  assert.equal(checks.find(({ name }) => name === "workers")!.status, "ok");
});
