import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeLauncher } from "../../tests/fakes/fake_launcher.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { Isolation, Launcher } from "../ports/launcher.ts";
import { SYSTEM_PATH } from "../vm/guest_env.ts";
import type { WorkerSpec } from "../install/manifest.ts";
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
  network: "engine",
  resources: { cpus: 2, memory_mb: 256 },
  replicas: 1,
  restart: { policy: "always", max: 5, within_s: 60, backoff_ms: 1_000 },
};
const ENTRY: DirectoryEntry = { kind: "directory", name: "w", path: "/", env: { B: "entry" } };

/** A project with a worker that has nothing to install, and launchers that start nothing. */
async function setup(spec: Partial<WorkerSpec> = {}) {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const dataDirectory = `${root}/.engine`;
  const directory = `${root}/w`;
  await Deno.mkdir(directory);
  const process = new FakeLauncher();
  const fake = new FakeLauncher();
  const microvm: Launcher = { isolation: "microvm", start: fake.start.bind(fake) };
  const launchers: Partial<Record<Isolation, Launcher>> = { process, microvm };
  const around = { clock: new FakeClock(), launchers, dataDirectory, platform: "linux" } as const;
  const prepare = (entry: Partial<DirectoryEntry> = {}, more: Partial<WorkerSpec> = {}) =>
    prepareLaunch(around, {
      entry: { ...ENTRY, path: directory, ...entry },
      spec: { ...SPEC, ...spec, ...more, directory },
      reinstall: false,
      signal: new AbortController().signal,
      output: () => {},
      began: () => {},
    });
  const remove = () => Deno.remove(root, { recursive: true });
  return {
    root,
    dataDirectory,
    directory,
    launchers,
    microvm,
    fake,
    prepare,
    [Symbol.asyncDispose]: remove,
  };
}

Deno.test("prepareLaunch() lets the entry win over the manifest, and the engine over both", async () => {
  await using there = await setup();

  const { env, dependencies } = await there.prepare({ isolation: "process" });

  assert.equal(dependencies, "none");
  assert.deepEqual([env.A, env.B], ["manifest", "entry"]);
  assert.deepEqual([env.ENGINE_WORKER_NAME, env.ENGINE_ISOLATION], ["w", "process"]);
  assert.equal(env.PATH!.startsWith(Deno.env.get("PATH")!), true);
});

Deno.test("prepareLaunch() refuses an isolation that nobody can give", async () => {
  await using there = await setup();
  delete there.launchers.microvm;

  await assert.rejects(there.prepare(), { code: "isolation_unavailable" });
});

Deno.test("prepareLaunch() contains no plain process", async () => {
  await using there = await setup();

  assert.equal((await there.prepare({ isolation: "process" })).containment, undefined);
});

Deno.test("prepareLaunch() gives a microVM the SDKs, its runtime and its dependencies", async () => {
  await using there = await setup();
  const { dataDirectory } = there;

  const { launcher, containment, env } = await there.prepare();

  assert.equal(launcher, there.microvm);
  const { reads, ...rest } = containment!;
  assert.equal(reads[0], `${dataDirectory}/sdk`);
  assert.deepEqual(rest, {
    writes: [`${dataDirectory}/deps/w`],
    network: "engine",
    resources: { cpus: 2, memory_mb: 256 },
    accel: "auto",
  });
  assert.equal((await Deno.stat(`${dataDirectory}/deps/w`)).isDirectory, true);
  assert.equal(env.ENGINE_ISOLATION, "microvm");
  assert.equal(env.npm_config_cache, `${dataDirectory}/deps/w/cache/npm`);
  assert.ok(env.PATH!.endsWith(`:${SYSTEM_PATH}`));
});

Deno.test("prepareLaunch() takes the accelerator and a PATH from the entry", async () => {
  await using there = await setup();
  const bin = `${there.root}/bin`;
  await Deno.mkdir(bin);
  const script = `#!/bin/sh\necho ${there.root}/node/bin/node\n`;
  await Deno.writeTextFile(`${bin}/node`, script, { mode: 0o755 });

  const env = { PATH: `${bin}:/usr/bin:/bin` };
  const prepared = await there.prepare({ accel: "tcg", env });

  assert.equal(prepared.containment!.accel, "tcg");
  assert.ok(prepared.containment!.reads.includes(`${there.root}/node`));
  assert.equal(prepared.env.PATH, `${there.root}/node/bin:${bin}:/usr/bin:/bin`);
});

Deno.test("prepareLaunch() runs nothing on this machine that a contained worker's manifest names", async () => {
  await using there = await setup();
  const script = `#!/bin/sh\ntouch ${there.root}/RAN\necho ${there.directory}\n`;
  await Deno.writeTextFile(`${there.directory}/node`, script, { mode: 0o755 });

  const env = { PATH: there.directory, NODE_OPTIONS: `--require ${there.directory}/evil.js` };
  const prepared = await there.prepare({}, { env });

  assert.ok(prepared.env.PATH!.endsWith(`:${there.directory}`));
  assert.equal(await Deno.stat(`${there.root}/RAN`).then(() => true, () => false), false);
});

Deno.test("prepareLaunch() gives a microVM nothing else of the engine's environment", async () => {
  await using there = await setup();
  Deno.env.set("LC_TIME", "de_DE.UTF-8");
  Deno.env.set("MY_SECRET_TOKEN", "secret");

  const contained = await there.prepare();
  Deno.env.delete("MY_SECRET_TOKEN");
  Deno.env.delete("LC_TIME");

  assert.equal(contained.env.LC_TIME, "de_DE.UTF-8");
  assert.equal(Object.values(contained.env).includes("secret"), false);
  assert.deepEqual([contained.env.HOME, contained.env.PYTHONPATH], [undefined, undefined]);
});

Deno.test("prepareLaunch() does not let a worker out because its own manifest says so", async () => {
  await using there = await setup();
  await there.prepare();

  await assert.rejects(there.prepare({}, { isolation: "process" }), {
    code: "isolation_unavailable",
    message: /to allow that: engine worker add \S+ --isolation process$/,
  });
  await assert.rejects(there.prepare({}, { network: "full" }), { code: "isolation_unavailable" });
  const { launcher } = await there.prepare({ isolation: "process" });
  assert.equal(launcher.isolation, "process");
});

Deno.test("isolationOf() asks the entry, then the manifest, then the platform", () => {
  const inManifest = { ...SPEC, isolation: "process" } as const;

  assert.equal(isolationOf({ ...ENTRY, isolation: "microvm" }, inManifest, "linux"), "microvm");
  assert.equal(isolationOf(ENTRY, inManifest, "linux"), "process");
  assert.equal(isolationOf(ENTRY, SPEC, "linux"), "microvm");
  assert.equal(isolationOf(ENTRY, undefined, "darwin"), "process");
});
