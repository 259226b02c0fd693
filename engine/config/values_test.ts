import assert from "node:assert/strict";
import { fitConfig } from "../../workers/kit/fit.ts";
import * as v from "../../workers/kit/schema.ts";
import { defaultConfig, parseConfig } from "./config.ts";
import { withOption, withRunning } from "./values.ts";
import type { ConfigValue, KnownWorker } from "../ports/config.ts";

const Http = v.strictObject({
  port: v.optional(v.int(), 3111),
  token: v.optional(v.string()),
  cors: v.optional(v.strictObject({ origins: v.optional(v.array(v.string()), ["*"]) }), {}),
});
const Eyes = v.strictObject({
  traces: v.optional(v.boolean(), true),
  to: v.optional(v.array(v.strictObject({ url: v.string(), token: v.string() })), []),
});
const builtins: KnownWorker[] = [
  { name: "engine-http", runsByDefault: true, parse: (raw) => fitConfig(Http, raw) },
  { name: "engine-state", parse: () => ({}) },
  { name: "engine-observability", runsAlways: true, parse: (raw) => fitConfig(Eyes, raw) },
];

/** Values by key. */
function valuesOf(text: string, env: Record<string, string> = {}): Map<string, ConfigValue> {
  const { values } = parseConfig(text, "/config.yaml", builtins, env);
  return new Map(values.map((value) => [value.key, value]));
}

Deno.test("a value that the file does not set is a default", () => {
  const values = valuesOf("engine:\n  port: 4000\n");

  assert.deepEqual(values.get("engine.host"), {
    key: "engine.host",
    value: "127.0.0.1",
    default: "127.0.0.1",
    source: "default",
    line: null,
    variable: null,
    needs_restart: true,
  });
  assert.equal(values.get("log.level")!.needs_restart, false);
});

Deno.test("a value of the file has its line, also when it equals the default", () => {
  const values = valuesOf("engine:\n  port: 4000\n  host: 127.0.0.1\nlog:\n  level: info\n");

  const places = ["engine.port", "engine.host", "log.level"].map((key) => {
    const { value, source, line } = values.get(key)!;
    return [value, source, line];
  });
  assert.deepEqual(places, [[4000, "file", 2], ["127.0.0.1", "file", 3], ["info", "file", 5]]);
});

Deno.test("a value out of a variable names it, set or not", () => {
  const text = "engine:\n  port: ${PORT:4000}\n  host: ${HOST}\n";

  const values = valuesOf(text, { HOST: "localhost" });

  assert.deepEqual(values.get("engine.port")!.variable, "PORT");
  assert.deepEqual(values.get("engine.port")!.value, 4000);
  const { value, source, line, variable } = values.get("engine.host")!;
  assert.deepEqual([value, source, line, variable], ["localhost", "variable", 3, "HOST"]);
});

Deno.test("a worker's configuration is listed member by member, written or not", () => {
  const values = valuesOf(
    "workers:\n  - name: engine-state\n  - name: engine-http\n    config:\n      port: 80\n",
  );

  const port = values.get("workers[1].config.port")!;
  assert.deepEqual([port.value, port.default, port.source, port.line], [80, 3111, "file", 5]);
  const origins = values.get("workers[1].config.cors.origins")!;
  assert.deepEqual([origins.value, origins.source, origins.line], [["*"], "default", null]);
  assert.equal(values.get("workers[0].name")!.line, 2);
});

Deno.test("a built-in that always runs is listed by its name until the file names it", () => {
  assert.equal(valuesOf("log:\n").get("workers.engine-observability.config.traces")!.value, true);

  const named = valuesOf("workers:\n  - name: engine-observability\n    config: {traces: false}\n");
  assert.equal(named.get("workers[0].config.traces")!.value, false);
  assert.ok(!named.has("workers.engine-observability.config.traces"));
});

Deno.test("secrets are shortened at every depth", () => {
  const text = "engine:\n  auth_token: supersecretvalue\nworkers:\n  - name: engine-http\n" +
    "    config:\n      token: short\n";
  const values = valuesOf(text);

  assert.equal(values.get("engine.auth_token")!.value, "supe…");
  assert.equal(values.get("engine.auth_token")!.default, null);
  assert.equal(values.get("workers[0].config.token")!.value, "…");
  assert.doesNotMatch(JSON.stringify([...values]), /supersecret|short/);
});

Deno.test("the environment of a worker is shortened", async () => {
  const directory = await Deno.makeTempDir();
  const text =
    "workers:\n  - name: shop\n    path: .\n    env: {DATABASE_URL: 'postgres://me:pw@db'}\n";

  const { values } = parseConfig(text, `${directory}/config.yaml`, builtins, {});

  const env = values.find(({ key }) => key === "workers[0].env.DATABASE_URL")!;
  assert.deepEqual([env.value, env.source, env.line], ["post…", "file", 4]);
  assert.equal(values.find(({ key }) => key === "workers[0].path")!.value, directory);
  await Deno.remove(directory);
});

Deno.test("without a file every value is a default, workers by their names", () => {
  const { values } = defaultConfig("/p", builtins);

  assert.ok(values.every(({ source, line }) => source === "default" && line === null));
  assert.ok(values.some(({ key }) => key === "workers.engine-http.config.port"));
});

Deno.test("an option of the command line overrides a value; without one nothing changes", () => {
  const { values } = defaultConfig("/p", builtins);

  const changed = withOption(withOption(values, "engine.port", 0), "log.level", undefined);

  const port = changed.find(({ key }) => key === "engine.port")!;
  assert.deepEqual([port.value, port.default, port.source], [0, 49134, "option"]);
  assert.equal(changed.find(({ key }) => key === "log.level")!.source, "default");
});

Deno.test("secrets in lists are cut short, and nothing else there", () => {
  const values = valuesOf(
    "workers:\n  - name: engine-observability\n    config:\n      to: [{url: here, token: supersecretvalue}]\n",
  );

  const { value } = values.get("workers[0].config.to")!;
  assert.deepEqual(value, [{ url: "here", token: "supe…" }]);
});

Deno.test("withRunning() shows what a worker runs with whose change failed, secrets shortened", () => {
  const text = "workers:\n  - name: engine-http\n    config: { port: 1, token: new-secret-text }\n";
  const config = parseConfig(text, "/config.yaml", builtins, {});
  const before = { port: 2, token: "old-secret-text", cors: { origins: ["a"] } };

  const values = withRunning(config.values, config, (name) => {
    return name === "engine-http" ? before : undefined;
  });

  const byKey = new Map(values.map(({ key, value }) => [key, value]));
  assert.equal(byKey.get("workers[0].config.port"), 2);
  assert.equal(byKey.get("workers[0].config.token"), "old-…");
  assert.deepEqual(byKey.get("workers[0].config.cors.origins"), ["a"]);
  assert.equal(byKey.get("workers[0].name"), "engine-http");
  assert.deepEqual(withRunning(config.values, config, () => undefined), config.values);
});
