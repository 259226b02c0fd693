import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeLauncher } from "../../tests/fakes/fake_launcher.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { WorkerSpec } from "./manifest.ts";
import { isolationOf, prepareLaunch } from "./prepare.ts";

const SPEC: WorkerSpec = {
  name: "w",
  directory: "/",
  kind: "javascript",
  packageManager: "npm",
  entry: null,
  install: null,
  start: "run",
  env: { A: "manifest", B: "manifest", ENGINE_WORKER_NAME: "odd" },
  watch: [],
};
const ENTRY: DirectoryEntry = { kind: "directory", name: "w", path: "/", env: { B: "entry" } };

/** Prepares a worker that has nothing to install. */
async function prepare(entry: DirectoryEntry, spec: WorkerSpec) {
  const dataDirectory = await Deno.makeTempDir();
  const launchers = { process: new FakeLauncher() };
  const around = { clock: new FakeClock(), launchers, dataDirectory, platform: "linux" } as const;
  try {
    return await prepareLaunch(around, {
      entry,
      spec: { ...spec, directory: dataDirectory },
      reinstall: false,
      signal: new AbortController().signal,
      output: () => {},
      began: () => {},
    });
  } finally {
    await Deno.remove(dataDirectory, { recursive: true });
  }
}

Deno.test("prepareLaunch() lets the entry win over the manifest, and the engine over both", async () => {
  const { env, dependencies } = await prepare({ ...ENTRY, isolation: "process" }, SPEC);

  assert.equal(dependencies, "none");
  assert.deepEqual([env.A, env.B], ["manifest", "entry"]);
  assert.deepEqual([env.ENGINE_WORKER_NAME, env.ENGINE_ISOLATION], ["w", "process"]);
  assert.equal(env.PATH!.startsWith(Deno.env.get("PATH")!), true);
});

Deno.test("prepareLaunch() refuses an isolation that nobody can give", async () => {
  await assert.rejects(prepare(ENTRY, SPEC), { code: "isolation_unavailable" });
});

Deno.test("isolationOf() asks the entry, then the manifest, then the platform", () => {
  const inManifest = { ...SPEC, isolation: "process" } as const;

  assert.equal(isolationOf({ ...ENTRY, isolation: "microvm" }, inManifest, "linux"), "microvm");
  assert.equal(isolationOf(ENTRY, inManifest, "linux"), "process");
  assert.equal(isolationOf(ENTRY, SPEC, "linux"), "microvm");
  assert.equal(isolationOf(ENTRY, undefined, "darwin"), "process");
});
