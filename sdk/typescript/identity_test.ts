import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { describeWorker, SDK_VERSION } from "./identity.ts";

Deno.test("the SDK announces the version of the package", () => {
  assert.equal(SDK_VERSION, manifest.version);
});

Deno.test("describeWorker() uses the name of the options, then that of the environment", () => {
  Deno.env.set("ENGINE_WORKER_NAME", "from-env");
  try {
    assert.equal(describeWorker({ workerName: "mine" }).name, "mine");
    assert.equal(describeWorker({}).name, "from-env");
  } finally {
    Deno.env.delete("ENGINE_WORKER_NAME");
  }
  assert.equal(describeWorker({}).name, `${Deno.hostname()}:${Deno.pid}`);
});

Deno.test("describeWorker() contains runtime, system, process and capabilities", () => {
  Deno.env.set("ENGINE_ISOLATION", "process");
  const announcement = describeWorker({ workerName: "x", description: "one", namespace: "n" });
  Deno.env.delete("ENGINE_ISOLATION");

  assert.equal(announcement.runtime, "deno");
  assert.equal(announcement.pid, Deno.pid);
  assert.match(announcement.os, /^\w+ \S+ \(\w+\)$/);
  assert.equal(announcement.isolation, "process");
  assert.equal(announcement.description, "one");
  assert.equal(announcement.namespace, "n");
  assert.deepEqual(announcement.capabilities, ["cancel", "timeout", "progress", "batch"]);
});

Deno.test("describeWorker() omits what the options leave out", () => {
  const announcement = describeWorker({});

  assert.equal(announcement.isolation, null);
  assert.equal("description" in announcement, false);
  assert.equal("namespace" in announcement, false);
});

Deno.test("describeWorker() distinguishes Node, Bun and browsers", () => {
  const globals = globalThis as { process?: unknown; Deno?: unknown };
  const { process, Deno } = globals;
  try {
    Object.defineProperty(globals, "Deno", { value: undefined, configurable: true });
    const versions = { node: "20.16.0" };
    globals.process = { versions, pid: 7, platform: "linux", arch: "x64" };
    assert.equal(describeWorker({}).runtime, "node");
    assert.equal(describeWorker({}).name, "localhost:7");
    assert.equal(describeWorker({}).os, "linux unknown (x64)");

    globals.process = { versions: { ...versions, bun: "1.0.0" } };
    assert.equal(describeWorker({}).runtime, "bun");

    globals.process = undefined;
    assert.equal(describeWorker({}).runtime, "browser");
    assert.equal(describeWorker({}).name, "browser");
    assert.deepEqual(describeWorker({}).capabilities, ["cancel", "timeout", "progress"]);
    assert.equal(describeWorker({}).pid, 0);
  } finally {
    globals.process = process;
    Object.defineProperty(globals, "Deno", { value: Deno, configurable: true });
  }
});

Deno.test({
  name: "describeWorker() omits what Deno does not permit",
  permissions: { env: false, sys: false },
  fn(): void {
    const announcement = describeWorker({ workerName: "x" });

    assert.equal(announcement.runtime, "deno");
    assert.match(announcement.os, /^\w+ unknown \(\w+\)$/);
  },
});
