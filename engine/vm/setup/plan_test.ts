import assert from "node:assert/strict";
import {
  debian,
  type FakeHostOptions,
  FakeMachine,
  type FakeMachineOptions,
  fakeVmPlaces,
  withoutLists,
  writeFakeKernel,
} from "../../../tests/fakes/fake_vm.ts";
import {
  adviceFor,
  areAvailable,
  kernelPackages,
  manualSteps,
  planLines,
  planSetup,
} from "./plan.ts";

async function setup(host: FakeHostOptions, options: FakeMachineOptions = {}) {
  const places = await fakeVmPlaces(host);
  const machine = new FakeMachine(places, options);
  const lines = async () => planLines(await planSetup(machine), "/cache");
  return { ...places, machine, lines };
}

const DOWNLOAD = [
  "# in a temporary folder of /cache:",
  "apt-get download linux-image-6.1.0-7-amd64",
  "dpkg -x linux-image-6.1.0-7-amd64_*.deb .",
];

Deno.test("planSetup() is empty for a machine with all parts", async () => {
  await using at = await setup({});

  assert.deepEqual(await at.lines(), []);
});

Deno.test("planSetup() plans all parts for an empty machine, QEMU with sudo", async () => {
  await using at = await setup({ qemu: false, busybox: "none", kernel: false });

  assert.deepEqual(await at.lines(), [
    "sudo apt-get install -y --no-install-recommends qemu-system-x86",
    "# in a temporary folder of /cache:",
    "apt-get download busybox-static linux-image-6.1.0-7-amd64",
    "dpkg -x busybox-static_*.deb .",
    "dpkg -x linux-image-6.1.0-7-amd64_*.deb .",
  ]);
});

Deno.test("planSetup() plans only what is missing", async (t) => {
  const cases: [string, FakeHostOptions, string[]][] = [
    ["QEMU", { qemu: false }, [
      "sudo apt-get install -y --no-install-recommends qemu-system-x86",
    ]],
    ["busybox", { busybox: "dynamic" }, [
      "# in a temporary folder of /cache:",
      "apt-get download busybox-static",
      "dpkg -x busybox-static_*.deb .",
    ]],
    ["a kernel", { kernel: false }, DOWNLOAD],
  ];
  for (const [name, host, lines] of cases) {
    await t.step(name, async () => {
      await using at = await setup(host);

      assert.deepEqual(await at.lines(), lines);
    });
  }
});

Deno.test("planSetup() uses no sudo for root", async () => {
  await using at = await setup({ qemu: false }, { uid: 0, programs: ["apt-get"] });

  assert.deepEqual(await at.lines(), [
    "apt-get install -y --no-install-recommends qemu-system-x86",
  ]);
});

Deno.test("planSetup() updates package lists that lack a package", async () => {
  await using at = await setup({ qemu: false, kernel: false }, { ask: withoutLists });

  assert.deepEqual(await at.lines(), [
    "sudo apt-get update",
    "sudo apt-get install -y --no-install-recommends qemu-system-x86",
    "# the same with the package that linux-image-amd64 or linux-image-generic depends on",
  ]);
});

Deno.test("planSetup() installs xz if a kernel is fetched and root is available", async () => {
  const host = { kernel: false };
  await using withSudo = await setup(host, { programs: ["apt-get", "sudo"] });
  await using without = await setup(host, { programs: ["apt-get"] });

  assert.deepEqual(await withSudo.lines(), [
    "sudo apt-get install -y --no-install-recommends xz-utils",
    ...DOWNLOAD,
  ]);
  assert.deepEqual(await without.lines(), DOWNLOAD);
});

Deno.test("planSetup() copies an installed kernel with all guest modules instead of fetching one", async () => {
  await using at = await setup({ kernel: false });
  const { kernel } = await writeFakeKernel(at.machine.root);

  assert.deepEqual(await at.lines(), [`# copy ${kernel} and its modules into /cache`]);
});

Deno.test("planSetup() prefers a named kernel", async () => {
  await using at = await setup({});
  const { kernel, modules } = await writeFakeKernel(`${at.path}/own`);

  const plan = await planSetup(at.machine, { kernel, modules });

  assert.deepEqual(plan.kernel, { kernel, modules, origin: kernel });
  assert.deepEqual(plan.fetch, []);
});

Deno.test("planSetup() rejects a named kernel or module folder that does not exist", async () => {
  await using at = await setup({});
  const { kernel, modules } = await writeFakeKernel(`${at.path}/own`);

  for (const named of [{ kernel: `${at.path}/none`, modules }, { kernel, modules: kernel }]) {
    await assert.rejects(planSetup(at.machine, named), {
      code: "INVALID_ARGUMENTS",
      message: /^There is no (file|folder) \S+ that can be read$/,
    });
  }
});

Deno.test("planSetup() without root and sudo rejects with the commands for root", async () => {
  await using at = await setup({ qemu: false }, { programs: ["apt-get"], ask: withoutLists });

  await assert.rejects(planSetup(at.machine), {
    code: "isolation_unavailable",
    message: "This needs root, and there is no sudo; let root run apt-get update && apt-get " +
      "install -y --no-install-recommends qemu-system-x86, then repeat this",
  });
});

Deno.test("planSetup() without apt rejects with manual steps", async () => {
  await using at = await setup({ qemu: false, kernel: false }, { programs: ["pacman", "sudo"] });

  await assert.rejects(planSetup(at.machine), (thrown: Error) => {
    assert.match(thrown.message, /lacks qemu-system-x86_64, a guest kernel, and has no apt-get/);
    assert.match(thrown.message, /pacman -S qemu-system-x86 busybox/);
    assert.match(thrown.message, /engine vm setup --kernel/);
    return true;
  });
});

Deno.test("planSetup() needs no apt if only the kernel is missing and one is named", async () => {
  await using at = await setup({ kernel: false }, { programs: [] });
  const { kernel, modules } = await writeFakeKernel(`${at.path}/own`);

  assert.equal((await planSetup(at.machine, { kernel, modules })).kernel?.kernel, kernel);
});

Deno.test("planSetup() rejects other systems than Linux on x86-64", async () => {
  await using at = await setup({}, { os: "darwin" });

  await assert.rejects(planSetup(at.machine), {
    code: "isolation_unavailable",
    message: "microVMs run only on Linux on x86-64, this is darwin on x86_64; " +
      "run workers with --isolation process",
  });
});

Deno.test("planSetup() runs no commands", async () => {
  const queries: string[] = [];
  await using at = await setup({ qemu: false, kernel: false }, {
    ask: (query) => {
      queries.push(query);
      return debian(query);
    },
  });

  await at.lines();

  assert.deepEqual(at.machine.ran, []);
  assert.ok(queries.every((query) => /^apt-cache (policy|depends) /.test(query)));
});

async function setupPackages(options: FakeMachineOptions = {}) {
  const host = await fakeVmPlaces({ kernel: false });
  return { ...host, machine: new FakeMachine(host, options) };
}

Deno.test("kernelPackages() finds the dependency of Debian's kernel package", async () => {
  await using at = await setupPackages();

  assert.deepEqual(await kernelPackages(at.machine), ["linux-image-6.1.0-7-amd64"]);
});

Deno.test("kernelPackages() finds Ubuntu's kernel packages without firmware", async () => {
  const depends: Record<string, string> = {
    "linux-image-generic": "  Depends: linux-image-6.8.0-45-generic\n" +
      "  Depends: linux-modules-extra-6.8.0-45-generic\n  Depends: linux-firmware\n" +
      "  Depends: <amd64-microcode>\n",
    "linux-image-6.8.0-45-generic": "  Depends: kmod\n  Depends: linux-modules-6.8.0-45-generic\n",
  };
  await using at = await setupPackages({
    ask: (query) => depends[query.replace("apt-cache depends ", "")] ?? "",
  });

  assert.deepEqual(await kernelPackages(at.machine), [
    "linux-image-6.8.0-45-generic",
    "linux-modules-6.8.0-45-generic",
    "linux-modules-extra-6.8.0-45-generic",
  ]);
});

Deno.test("kernelPackages() and areAvailable() find nothing without package lists", async () => {
  await using at = await setupPackages({ ask: withoutLists });

  assert.deepEqual(await kernelPackages(at.machine), []);
  assert.equal(await areAvailable(at.machine, ["qemu-system-x86"]), false);
  assert.equal(await areAvailable(at.machine, []), true);
});

Deno.test("areAvailable() requires a candidate for each package", async () => {
  await using at = await setupPackages({
    ask: (query) => query.endsWith("absent") ? "" : debian(query),
  });

  assert.equal(await areAvailable(at.machine, ["qemu-system-x86", "busybox-static"]), true);
  assert.equal(await areAvailable(at.machine, ["qemu-system-x86", "absent"]), false);
});

Deno.test("manualSteps() gives the command of each distribution and how to name a kernel", async () => {
  for (
    const [program, command] of [["dnf", "dnf install"], ["apk", "apk add"], ["no", ""]] as const
  ) {
    await using at = await setupPackages({ programs: [program] });

    const lines = await manualSteps(at.machine);

    assert.ok(lines[0]!.includes(command), lines[0]);
    assert.match(lines.join("\n"), /engine vm setup --kernel .* --modules /);
  }
});

Deno.test("adviceFor() recognises errors of apt, dpkg and sudo", () => {
  const cases: [string, RegExp][] = [
    ["E: Failed to fetch http://x/y.deb  404  Not Found", /run apt-get update as root/],
    ["E: Failed to fetch http://x Temporary failure resolving 'x'", /no way to the package server/],
    ["Err:1 http://x\n  Could not connect to x:80, connection timed out", /no way to the package/],
    ["E: You don't have enough free space in /var/cache/apt/archives/.", /no space left/],
    ["dpkg: error: cannot copy: No space left on device", /no space left/],
    ["sudo: a password is required", /sudo was not allowed/],
    ["ada is not in the sudoers file.", /sudo was not allowed/],
    ["sudo: a terminal is required to read the password", /sudo was not allowed/],
    ["E: Could not get lock /var/lib/dpkg/lock-frontend", /another package manager/],
    ["E: Unable to locate package qemu-system-x86", /does not know the package/],
    ["E: Could not open lock file (13: Permission denied)", /as root/],
    ["something new\nhappened\n", /^it said: happened$/],
    ["", /^it said nothing/],
  ];
  for (const [output, advice] of cases) assert.match(adviceFor(output), advice, output);
});
