import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeGuest } from "../../tests/fakes/fake_vm.ts";
import type { Containment, Ended, LaunchSpec } from "../ports/launcher.ts";
import type { VmHost } from "./machine/host_tools.ts";
import {
  addressedEnv,
  MicroVmLauncher,
  type MicroVmOptions,
  RunFolders,
} from "./microvm_launcher.ts";
import { until } from "../../tests/fakes/until.ts";

const HOST: VmHost = {
  image: { version: "6.1.0", kernel: "/cache/vmlinux", initrd: "/cache/initrd.gz" },
  qemu: "/usr/bin/qemu-system-x86_64",
  busybox: "/usr/bin/busybox",
};
const DONE: Ended = { code: 0, signal: null };

/** A project with a worker, and a launcher with fake machines. */
async function setup(more: Partial<MicroVmOptions> = {}) {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const dataDirectory = `${root}/.engine`;
  const directory = `${root}/w`;
  for (const path of [directory, dataDirectory]) await Deno.mkdir(path);
  const clock = new FakeClock();
  const machines: FakeGuest[] = [];
  const warnings: unknown[] = [];
  const phases: string[] = [];
  const lines: string[] = [];
  const quiet = () => {};
  const launcher = new MicroVmLauncher({
    dataDirectory,
    clock,
    log: { debug: quiet, info: quiet, error: quiet, warn: (...all) => void warnings.push(all) },
    engine: () => ({ hostname: "127.0.0.1", port: 49134 }),
    findHost: () => Promise.resolve(HOST),
    accelerators: { choose: () => Promise.resolve({ accelerator: "tcg", warning: null }) },
    boot: (options) => {
      machines.push(new FakeGuest(options));
      return Promise.resolve(machines.at(-1)!);
    },
    home: `${root}/home`,
    ...more,
  });
  const start = (spec: Partial<LaunchSpec> = {}) =>
    launcher.start(
      { name: "w", command: "run", directory, env: {}, ...spec },
      ({ text }) => void lines.push(text),
      (what) => void phases.push(what),
    );
  /** Names of the remaining pid files. */
  const left = (): string[] => {
    const entries = [...Deno.readDirSync(dataDirectory)];
    if (!entries.some(({ name }) => name === "run")) return [];
    const files = [...Deno.readDirSync(`${dataDirectory}/run`)].filter(({ isFile }) => isFile);
    return files.map(({ name }) => name);
  };
  const close = async (): Promise<void> => {
    await launcher.close();
    for (const machine of machines) machine.end(DONE);
    await until(() => left().length === 0);
    await Deno.remove(root, { recursive: true });
  };
  const seen = { machines, warnings, phases, lines, left };
  return {
    ...seen,
    root,
    dataDirectory,
    directory,
    clock,
    launcher,
    start,
    [Symbol.asyncDispose]: close,
  };
}

function containment(more: Partial<Containment> = {}): Containment {
  const resources = { cpus: 2, memory_mb: 256 };
  return { reads: [], writes: [], network: "full", resources, accel: "auto", ...more };
}

Deno.test("MicroVmLauncher boots the machine that the containment describes", async () => {
  await using there = await setup();
  const { dataDirectory, directory, root } = there;
  const [deps, runtime] = [`${dataDirectory}/deps/w`, `${root}/python`];
  for (const path of [deps, runtime]) await Deno.mkdir(path, { recursive: true });

  const running = await there.start({
    containment: containment({ reads: [runtime], writes: [deps] }),
  });

  const { runDirectory, shares, ...rest } = there.machines[0]!.options;
  assert.ok(runDirectory.startsWith(`${dataDirectory}/run/vm/`));
  assert.deepEqual(rest, {
    ...HOST,
    name: "w",
    accelerator: "tcg",
    network: "full",
    resources: { cpus: 2, memory_mb: 256 },
    engine: { hostname: "127.0.0.1", port: 49134 },
  });
  assert.deepEqual(
    shares.toSorted((a, b) => a.path < b.path ? -1 : 1),
    [
      { path: "/usr", writable: false },
      { path: deps, writable: true },
      { path: runtime, writable: false },
      { path: directory, writable: true },
    ].toSorted((a, b) => a.path < b.path ? -1 : 1),
  );
  assert.deepEqual([running.pid, running.accelerator], [Deno.pid, "tcg"]);
  assert.deepEqual(there.phases, ["booting a microVM (tcg)"]);
});

Deno.test("MicroVmLauncher gives a program without containment the least resources", async () => {
  await using there = await setup();

  await there.start();

  const { network, resources, shares } = there.machines[0]!.options;
  assert.deepEqual([network, resources], ["engine", { cpus: 1, memory_mb: 128 }]);
  assert.deepEqual(shares.map(({ path }) => path).sort(), ["/usr", there.directory].sort());
});

Deno.test("MicroVmLauncher adapts ENGINE_URL for the program and passes on its output", async () => {
  await using there = await setup();

  await there.start({ env: { ENGINE_URL: "ws://127.0.0.1:49134?token=x", A: "b" } });
  const program = there.machines[0]!.programs[0]!;
  program.print("hello");

  assert.deepEqual(program.env, { ENGINE_URL: "ws://10.0.2.2:7?token=x", A: "b" });
  assert.equal(program.directory, there.directory);
  assert.deepEqual(there.lines, ["hello"]);
});

Deno.test("MicroVmLauncher powers the machine off when the program has ended", async () => {
  await using there = await setup();
  const running = await there.start({ env: { ENGINE_LAUNCH_ID: "launch-1" } });
  const [machine] = there.machines;
  assert.deepEqual(there.left(), [`w#${running.pid}.json`]);

  machine!.programs[0]!.end({ code: 7, signal: null });

  assert.deepEqual(await running.ended, { code: 7, signal: null });
  assert.equal(machine!.powerOffs.length, 1);
  assert.deepEqual(there.left(), []);
});

Deno.test("MicroVmLauncher reports the reason when the machine ends with the program", async () => {
  await using there = await setup();
  const running = await there.start({ keep: true });
  const reason = "kernel panic: Attempted to kill init!";

  there.machines[0]!.end({ code: 0, signal: null, reason });

  assert.deepEqual(await running.ended, { code: null, signal: "SIGKILL", reason });
  await there.start();
  assert.equal(there.machines.length, 2);
});

Deno.test("MicroVmLauncher keeps a machine for the next program of its worker", async () => {
  await using there = await setup();
  const installing = await there.start({ keep: true, containment: containment() });
  there.machines[0]!.programs[0]!.end(DONE);
  await installing.ended;
  assert.deepEqual(there.machines[0]!.powerOffs, []);

  const running = await there.start({ containment: containment() });

  assert.equal(there.machines.length, 1);
  assert.deepEqual(there.phases, ["booting a microVM (tcg)"]);
  const [, program] = there.machines[0]!.programs;
  program!.end(DONE);
  await running.ended;
  assert.equal(there.machines[0]!.powerOffs.length, 1);
});

Deno.test("MicroVmLauncher keeps a machine over a restart, without a boot", async () => {
  await using there = await setup();
  const running = await there.start();

  const ended = await running.stop(1_000, { keep: true });
  await there.start();

  assert.deepEqual(ended, { code: null, signal: "SIGTERM" });
  assert.deepEqual([there.machines.length, there.machines[0]!.programs.length], [1, 2]);
});

Deno.test("MicroVmLauncher powers a kept machine off after 10 s", async () => {
  await using there = await setup();
  await (await there.start()).stop(1_000, { keep: true });

  there.clock.tick(10_000);
  await there.machines[0]!.ended;
  await there.start();

  assert.deepEqual([there.machines.length, there.machines[0]!.powerOffs.length], [2, 1]);
});

for (
  const [what, change] of [
    ["resources", { resources: { cpus: 1, memory_mb: 256 } }],
    ["network", { network: "engine" }],
    ["folders", { reads: ["/work"] }],
  ] as const
) {
  Deno.test(`MicroVmLauncher boots a new machine for other ${what}`, async () => {
    await using there = await setup();
    await Deno.mkdir(`${there.root}/work`);
    await (await there.start({ containment: containment() })).stop(1_000, { keep: true });

    const reads = "reads" in change ? [`${there.root}/work`] : [];
    await there.start({ containment: containment({ ...change, reads }) });

    assert.equal(there.machines.length, 2);
    assert.equal(there.machines[0]!.powerOffs.length, 1);
  });
}

Deno.test("MicroVmLauncher never gives a worker's machine to another worker", async () => {
  await using there = await setup();
  await Deno.mkdir(`${there.root}/other`);
  await (await there.start()).stop(1_000, { keep: true });

  await there.start({ name: "other", directory: `${there.root}/other` });

  assert.equal(there.machines.length, 2);
});

Deno.test("MicroVmLauncher boots a new machine when a kept one cannot run the program", async () => {
  await using there = await setup();
  await (await there.start()).stop(1_000, { keep: true });
  there.machines[0]!.isBroken = true;

  await there.start();

  assert.equal(there.machines.length, 2);
  assert.equal(there.machines[0]!.powerOffs.length, 1);
});

Deno.test("MicroVmLauncher.start() aborts a boot when its signal aborts", async () => {
  const booting = Promise.withResolvers<AbortSignal | undefined>();
  await using there = await setup({
    boot: (_options, signal) => {
      booting.resolve(signal);
      return new Promise((_, reject) => signal!.addEventListener("abort", () => reject("aborted")));
    },
  });
  const aborted = new AbortController();
  const spec = { name: "w", command: "run", directory: there.directory, env: {} };

  const starting = there.launcher.start(spec, () => {}, () => {}, aborted.signal);
  await booting.promise;
  aborted.abort();

  await assert.rejects(starting, {
    code: "cancelled",
    message: "The start of w was cancelled",
  });
});

Deno.test("MicroVmLauncher.start() boots nothing when its signal is already aborted", async () => {
  await using there = await setup();
  const spec = { name: "w", command: "run", directory: there.directory, env: {} };

  const starting = there.launcher.start(spec, () => {}, () => {}, AbortSignal.abort());

  await assert.rejects(starting, { code: "cancelled" });
  assert.deepEqual(there.machines, []);
});

Deno.test("MicroVmLauncher passes on the reason why a boot fails", async () => {
  const boot = () => Promise.reject(new EngineError("launch_failed", "no answer"));
  await using there = await setup({ boot });

  await assert.rejects(there.start(), { code: "launch_failed", message: "no answer" });
});

Deno.test("MicroVmLauncher reports why a machine cannot run the program", async () => {
  await using there = await setup({
    boot: (options) => Promise.resolve(Object.assign(new FakeGuest(options), { isBroken: true })),
  });

  await assert.rejects(there.start(), {
    code: "launch_failed",
    message: "Worker w cannot be started in a microVM: the connection to the guest is closed",
  });
});

Deno.test("MicroVmLauncher ends a machine if it cannot write its pid file", async () => {
  const machines: FakeGuest[] = [];
  await using there = await setup({
    boot: async (options) => {
      await Deno.writeTextFile(`${there.dataDirectory}/run`, "in the way of the folder");
      machines.push(new FakeGuest(options));
      return machines[0]!;
    },
  });

  await assert.rejects(there.start(), { code: "launch_failed" });

  assert.deepEqual(machines[0]!.powerOffs, [5_000]);
  await Deno.remove(`${there.dataDirectory}/run`);
});

Deno.test("MicroVmLauncher warns once about software emulation that was not requested", async () => {
  const warning = "KVM opens and runs no guest";
  const choose = () => Promise.resolve({ accelerator: "tcg", warning } as const);
  await using there = await setup({ accelerators: { choose } });

  await there.launcher.check("w", "auto");
  await there.start();

  const text = "microVMs run in software emulation, which is slow";
  assert.deepEqual(there.warnings, [[text, { worker: "w", reason: warning }]]);
});

Deno.test("MicroVmLauncher.check() searches the parts of a machine and boots none", async () => {
  const calls: unknown[] = [];
  const failure = new EngineError("isolation_unavailable", "KVM not accessible");
  await using there = await setup({
    findHost: (name) => {
      calls.push(name);
      return Promise.resolve(HOST);
    },
    accelerators: {
      choose: (...all) => {
        calls.push(all);
        return Promise.reject(failure);
      },
    },
  });

  await assert.rejects(there.launcher.check("math", "kvm"), failure);
  await assert.rejects(there.start({ name: "math" }), failure);

  assert.deepEqual(calls.slice(0, 2), ["math", ["math", "kvm", HOST]]);
  assert.equal(there.machines.length, 0);
});

Deno.test("MicroVmLauncher refuses private folders before it boots a machine", async () => {
  await using there = await setup();
  await Deno.mkdir(`${there.directory}/inner`);
  const refused = { code: "isolation_unavailable" };

  await assert.rejects(there.start({ directory: there.root }), refused);
  assert.equal(there.machines.length, 0);

  await there.start();
  await assert.rejects(there.start({ name: "in", directory: `${there.directory}/inner` }), refused);
  await assert.rejects(there.start({ directory: `${there.root}/nowhere` }), {
    code: "launch_failed",
  });
  assert.equal(there.machines.length, 1);
});

Deno.test("MicroVmLauncher ends the machine of a killed engine before it boots another", async () => {
  await using there = await setup();
  const sleep = new Deno.Command("sleep", { args: ["1000"], detached: true }).spawn();
  const { processStart } = await import("../process/process_group.ts");
  await Deno.mkdir(`${there.dataDirectory}/run`);
  const engine = { pid: 4_194_303, started: "before" };
  const record = {
    pid: sleep.pid,
    started: await processStart(sleep.pid),
    launch_id: null,
    engine,
  };
  await Deno.writeTextFile(`${there.dataDirectory}/run/w#7.json`, JSON.stringify(record));

  await there.start();

  assert.equal((await sleep.status).signal, "SIGTERM");
});

async function withFolder(check: (parent: string) => Promise<void>): Promise<void> {
  const root = await Deno.makeTempDir();
  await check(`${root}/run/vm`);
  await Deno.remove(root, { recursive: true });
}

Deno.test("RunFolders.next() returns a new path each time and creates nothing", () =>
  withFolder(async (parent) => {
    const folders = new RunFolders(parent);
    const paths = [await folders.next(), await folders.next(), await new RunFolders(parent).next()];

    assert.equal(new Set(paths).size, 3);
    for (const path of paths) {
      assert.ok(path.startsWith(`${parent}/${Deno.pid}-`));
      await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
    }
  }));

Deno.test("RunFolders.next() removes folders of engines that are gone, and nothing else", () =>
  withFolder(async (parent) => {
    const living = await new RunFolders(parent).next();
    const left = ["999999999-1-ab12cd", "1-0-ab12cd", `${Deno.pid}-1-ab12cd`];
    for (const path of [living, ...[...left, "other"].map((name) => `${parent}/${name}`)]) {
      await Deno.mkdir(`${path}/inner`, { recursive: true });
    }

    await new RunFolders(parent).next();

    const paths = [...Deno.readDirSync(parent)].map(({ name }) => `${parent}/${name}`).sort();
    assert.deepEqual(paths, [living, `${parent}/other`].sort());
  }));

Deno.test("addressedEnv() points ENGINE_URL to the engine's address in the guest", () => {
  const url = (text: string) => addressedEnv({ ENGINE_URL: text }, "10.0.2.2:7").ENGINE_URL;

  assert.equal(url("ws://127.0.0.1:49134"), "ws://10.0.2.2:7");
  assert.equal(url("ws://[::1]:49134?token=a%2Fb"), "ws://10.0.2.2:7?token=a%2Fb");
  assert.equal(url("ws://localhost:49134/path"), "ws://10.0.2.2:7/path");
});

Deno.test("addressedEnv() points loopback proxies to the host and excludes the engine from them", () => {
  const env = {
    http_proxy: "http://user:word@127.0.0.1:3128/",
    HTTPS_PROXY: "localhost:3128",
    all_proxy: "socks5://[::1]:1080",
    ftp_proxy: "http://127.0.0.1.example:80",
    no_proxy: ".corp",
  };

  const addressed = addressedEnv(env, "10.0.2.2:7");

  assert.equal(addressed.http_proxy, "http://user:word@10.0.2.2:3128/");
  assert.equal(addressed.HTTPS_PROXY, "10.0.2.2:3128");
  assert.equal(addressed.all_proxy, "socks5://10.0.2.2:1080");
  assert.equal(addressed.ftp_proxy, "http://127.0.0.1.example:80");
  assert.equal(addressed.no_proxy, ".corp,10.0.2.2");
  assert.equal(addressed.NO_PROXY, ".corp,10.0.2.2");
});

Deno.test("addressedEnv() adds no proxy settings", () => {
  const names = Object.keys(addressedEnv({ LANG: "C" }, "10.0.2.2:7"));

  assert.deepEqual(names, ["LANG"]);
});
