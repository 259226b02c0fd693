import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeLauncher } from "../../tests/fakes/fake_supervision.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { Isolation, Launcher } from "../ports/launcher.ts";
import { type ContainmentRequest, pinContainment } from "./containment.ts";
import { SYSTEM_PATH } from "./guest_access.ts";
import type { WorkerSpec } from "./manifest.ts";
import { checkNewWorker, type Host, isolationOf, prepareLaunch } from "./prepare.ts";

const SPEC: WorkerSpec = {
  name: "w",
  directory: "/",
  kind: "javascript",
  packageManager: "deno",
  entry: null,
  install: null,
  start: "run",
  env: { A: "manifest", B: "manifest", ENGINE_WORKER_NAME: "odd" },
  watch: [],
  network: "engine",
  resources: { cpus: 2, memory_mb: 256 },
  replicas: 1,
  reload: "start-first",
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

Deno.test("prepareLaunch() prefers the entry's environment to the manifest's, and the engine's to both", async () => {
  await using there = await setup();

  const { env, dependencies } = await there.prepare({ isolation: "process" });

  assert.equal(dependencies, "none");
  assert.deepEqual([env.A, env.B], ["manifest", "entry"]);
  assert.deepEqual([env.ENGINE_WORKER_NAME, env.ENGINE_ISOLATION], ["w", "process"]);
  assert.equal(env.PATH!.startsWith(Deno.env.get("PATH")!), true);
});

Deno.test("prepareLaunch() refuses an isolation without a launcher", async () => {
  await using there = await setup();
  delete there.launchers.microvm;

  await assert.rejects(there.prepare(), { code: "isolation_unavailable" });
});

Deno.test("prepareLaunch() gives a plain process no containment", async () => {
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
  const script = `#!/bin/sh\necho ${there.root}/deno/bin/deno\n`;
  await Deno.writeTextFile(`${bin}/deno`, script, { mode: 0o755 });
  await Deno.mkdir(`${there.root}/deno/bin`, { recursive: true });
  await Deno.writeTextFile(`${there.root}/deno/bin/deno`, "");

  const env = { PATH: `${bin}:/usr/bin:/bin` };
  const prepared = await there.prepare({ accel: "tcg", env });

  assert.equal(prepared.containment!.accel, "tcg");
  const runtime = prepared.containment!.reads[1]!; // A folder with that program alone.
  assert.ok(runtime.startsWith(`${there.dataDirectory}/runtimes/deno-`), runtime);
  assert.equal(prepared.env.PATH, `${runtime}:${bin}:/usr/bin:/bin`);
});

Deno.test("prepareLaunch() runs no program on the host that a contained worker's manifest names", async () => {
  await using there = await setup();
  const script = `#!/bin/sh\ntouch ${there.root}/RAN\necho ${there.directory}\n`;
  await Deno.writeTextFile(`${there.directory}/deno`, script, { mode: 0o755 });

  const env = { PATH: there.directory, NODE_OPTIONS: `--require ${there.directory}/evil.js` };
  const prepared = await there.prepare({}, { env });

  assert.ok(prepared.env.PATH!.endsWith(`:${there.directory}`));
  assert.equal(await Deno.stat(`${there.root}/RAN`).then(() => true, () => false), false);
});

Deno.test("prepareLaunch() passes only safe variables of the engine's environment to a microVM", async () => {
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

Deno.test("prepareLaunch() does not weaken containment because a manifest asks for it", async () => {
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

Deno.test("isolationOf() prefers the entry to the manifest, and both to the platform", () => {
  const inManifest = { ...SPEC, isolation: "process" } as const;

  assert.equal(isolationOf({ ...ENTRY, isolation: "microvm" }, inManifest, "linux"), "microvm");
  assert.equal(isolationOf(ENTRY, inManifest, "linux"), "process");
  assert.equal(isolationOf(ENTRY, SPEC, "linux"), "microvm");
  assert.equal(isolationOf(ENTRY, undefined, "darwin"), "process");
  assert.equal(isolationOf(ENTRY, undefined, "windows"), "process");
});

async function withManifest(more: string, check: (path: string) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempDir();
  const manifest = `name: math\nruntime: { kind: python }\nscripts: { start: run }\n${more}`;
  await Deno.writeTextFile(`${path}/engine.worker.yaml`, manifest);
  await check(path);
  await Deno.remove(path, { recursive: true });
}

/** A launcher that starts nothing and notes what it was asked. */
function launcher(isolation: Isolation, check?: Launcher["check"]): Launcher {
  const start = () => Promise.reject(new Error("nothing is to be started"));
  return { isolation, start, ...check ? { check } : {} };
}

function around(check?: Launcher["check"]): Host {
  const launchers = { process: launcher("process"), microvm: launcher("microvm", check) };
  return { platform: "linux", launchers, dataDirectory: "/nowhere/.engine" };
}

Deno.test("checkNewWorker() returns the name and isolation of the worker", () =>
  withManifest("", async (path) => {
    const asked = await checkNewWorker({ path, isolation: "process" }, around());
    const usual = await checkNewWorker({ path }, around());
    const onMac = await checkNewWorker({ path }, { ...around(), platform: "darwin" });

    assert.deepEqual(asked, { name: "math", isolation: "process" });
    assert.deepEqual(usual, { name: "math", isolation: "microvm" });
    assert.deepEqual(onMac, asked);
  }));

Deno.test("checkNewWorker() uses the manifest's isolation when the request has none", () =>
  withManifest("isolation: process\n", async (path) => {
    const found = await checkNewWorker({ path }, around());
    const asked = await checkNewWorker({ path, isolation: "microvm" }, around());

    assert.deepEqual([found.isolation, asked.isolation], ["process", "microvm"]);
  }));

Deno.test("checkNewWorker() asks the launcher whether it could start the worker", () =>
  withManifest("", async (path) => {
    const asked: unknown[] = [];
    const check = (name: string, accel: string): Promise<void> => {
      asked.push([name, accel]);
      return Promise.resolve();
    };

    await checkNewWorker({ path }, around(check));
    await checkNewWorker({ path, accel: "tcg" }, around(check));
    await checkNewWorker({ path, accel: "tcg", isolation: "process" }, around(check));

    assert.deepEqual(asked, [["math", "auto"], ["math", "tcg"]]);
  }));

Deno.test("checkNewWorker() rejects with the launcher's error", () =>
  withManifest("", async (path) => {
    const refusal = new EngineError("isolation_unavailable", "KVM not accessible");
    const refusing = around(() => Promise.reject(refusal));

    await assert.rejects(checkNewWorker({ path }, refusing), refusal);
    await checkNewWorker({ path, isolation: "process" }, refusing);
  }));

Deno.test("checkNewWorker() refuses a microVM where there is no launcher for one", () =>
  withManifest("", async (path) => {
    const launchers = { process: launcher("process") };

    await assert.rejects(
      checkNewWorker({ path, isolation: "microvm" }, {
        ...around(),
        platform: "darwin",
        launchers,
      }),
      {
        code: "isolation_unavailable",
        message: "Worker math would run in a microVM, which only Linux can start; add it with " +
          "--isolation process, which runs it as a plain process without containment",
        details: { isolation: "microvm" },
      },
    );
  }));

Deno.test("checkNewWorker() refuses a microVM for a directory that holds the engine's files", () =>
  withManifest("", async (path) => {
    const dataDirectory = `${path}/.engine`;

    await assert.rejects(checkNewWorker({ path }, { ...around(), dataDirectory }), {
      code: "isolation_unavailable",
      message: `Worker math cannot run in a microVM: its directory is ${path}, which holds ` +
        `${dataDirectory}; move it, or run it with --isolation process, which contains nothing`,
    });
    await checkNewWorker({ path, isolation: "process" }, { ...around(), dataDirectory });
  }));

Deno.test("checkNewWorker() refuses a microVM for a directory that holds the command line's key", () =>
  withManifest("", async (path) => {
    const before = Deno.env.get("XDG_STATE_HOME");
    Deno.env.set("XDG_STATE_HOME", path);
    try {
      await assert.rejects(checkNewWorker({ path }, around()), {
        code: "isolation_unavailable",
        message: new RegExp(`which holds ${path}/engine;`),
      });
    } finally {
      if (before === undefined) Deno.env.delete("XDG_STATE_HOME");
      else Deno.env.set("XDG_STATE_HOME", before);
    }
  }));

Deno.test("checkNewWorker() allows the network of the manifest", () =>
  withManifest("", async (path) => {
    const dataDirectory = await Deno.makeTempDir();
    const resources = { cpus: 1, memory_mb: 512 };
    const request: Omit<ContainmentRequest, "network"> = {
      name: "math",
      path,
      isolation: "microvm",
      resources,
      replicas: 1,
      configured: [],
    };
    await pinContainment(dataDirectory, { ...request, network: "engine" });

    await checkNewWorker({ path }, { ...around(), dataDirectory });

    await pinContainment(dataDirectory, { ...request, network: "full" });
    await Deno.remove(dataDirectory, { recursive: true });
  }));

Deno.test("checkNewWorker() refuses a directory without a usable manifest", async () => {
  const invalid = { code: "manifest_invalid" };

  await assert.rejects(checkNewWorker({ path: "/nowhere" }, around()), invalid);
  await withManifest(
    "naem: x\n",
    (path) => assert.rejects(checkNewWorker({ path }, around()), invalid),
  );
});
