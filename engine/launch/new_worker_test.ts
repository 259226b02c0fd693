import assert from "node:assert/strict";
import { checkNewWorker, defaultIsolation } from "./new_worker.ts";

async function withManifest(more: string, check: (path: string) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempDir();
  const manifest = `name: math\nruntime: { kind: python }\nscripts: { start: run }\n${more}`;
  await Deno.writeTextFile(`${path}/engine.worker.yaml`, manifest);
  await check(path);
  await Deno.remove(path, { recursive: true });
}

Deno.test("checkNewWorker() gives the name and how the worker would run", () =>
  withManifest("", async (path) => {
    const asked = await checkNewWorker(path, "process", "linux");
    const onMac = await checkNewWorker(path, undefined, "darwin");

    assert.deepEqual(asked, { name: "math", isolation: "process" });
    assert.deepEqual(onMac, asked);
  }));

Deno.test("checkNewWorker() takes the isolation of the manifest when nobody asks for one", () =>
  withManifest("isolation: process\n", async (path) => {
    const { isolation } = await checkNewWorker(path, undefined, "linux");

    assert.equal(isolation, "process");
  }));

Deno.test("checkNewWorker() refuses a microVM and names the way on without one", () =>
  withManifest("", async (path) => {
    const refusal = {
      code: "isolation_unavailable",
      message: "Worker math would run in a microVM, which this version cannot start; add it with " +
        "--isolation process, which runs it as a plain process without containment",
      details: { isolation: "microvm" },
    };

    await assert.rejects(checkNewWorker(path, undefined, "linux"), refusal);
    await assert.rejects(checkNewWorker(path, "microvm", "darwin"), refusal);
  }));

Deno.test("checkNewWorker() refuses a directory without a usable manifest", async () => {
  const invalid = { code: "manifest_invalid" };

  await assert.rejects(checkNewWorker("/nowhere", "process", "linux"), invalid);
  await withManifest(
    "naem: x\n",
    (path) => assert.rejects(checkNewWorker(path, "process", "linux"), invalid),
  );
});

Deno.test("defaultIsolation() is a microVM on Linux only", () => {
  assert.equal(defaultIsolation("linux"), "microvm");
  assert.equal(defaultIsolation("darwin"), "process");
  assert.equal(defaultIsolation("windows"), "process");
});
