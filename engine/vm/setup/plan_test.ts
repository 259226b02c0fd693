import assert from "node:assert/strict";
import { writeFakeKernel } from "../../../tests/fakes/fake_kernel.ts";
import {
  debian,
  type FakeHostOptions,
  FakeMachine,
  type FakeMachineOptions,
  fakeVmPlaces,
  withoutLists,
} from "../../../tests/fakes/fake_vm_host.ts";
import { planLines, planSetup } from "./plan.ts";

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

Deno.test("a machine that has all parts needs no command", async () => {
  await using at = await setup({});

  assert.deepEqual(await at.lines(), []);
});

Deno.test("a machine that has nothing gets all parts, QEMU with sudo", async () => {
  await using at = await setup({ qemu: false, busybox: "none", kernel: false });

  assert.deepEqual(await at.lines(), [
    "sudo apt-get install -y --no-install-recommends qemu-system-x86",
    "# in a temporary folder of /cache:",
    "apt-get download busybox-static linux-image-6.1.0-7-amd64",
    "dpkg -x busybox-static_*.deb .",
    "dpkg -x linux-image-6.1.0-7-amd64_*.deb .",
  ]);
});

Deno.test("a machine gets only what it lacks", async (t) => {
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

Deno.test("root needs no sudo", async () => {
  await using at = await setup({ qemu: false }, { uid: 0, programs: ["apt-get"] });

  assert.deepEqual(await at.lines(), [
    "apt-get install -y --no-install-recommends qemu-system-x86",
  ]);
});

Deno.test("lists of packages that do not know all are fetched first", async () => {
  await using at = await setup({ qemu: false, kernel: false }, { ask: withoutLists });

  assert.deepEqual(await at.lines(), [
    "sudo apt-get update",
    "sudo apt-get install -y --no-install-recommends qemu-system-x86",
    "# the same with the package that linux-image-amd64 or linux-image-generic depends on",
  ]);
});

Deno.test("xz is installed where a kernel has to be unpacked, if that is possible", async () => {
  const host = { kernel: false };
  await using withSudo = await setup(host, { programs: ["apt-get", "sudo"] });
  await using without = await setup(host, { programs: ["apt-get"] });

  assert.deepEqual(await withSudo.lines(), [
    "sudo apt-get install -y --no-install-recommends xz-utils",
    ...DOWNLOAD,
  ]);
  assert.deepEqual(await without.lines(), DOWNLOAD);
});

Deno.test("an installed kernel that has what guests need is copied, nothing is fetched", async () => {
  await using at = await setup({ kernel: false });
  const { kernel } = await writeFakeKernel(at.machine.root);

  assert.deepEqual(await at.lines(), [`# copy ${kernel} and its modules into /cache`]);
});

Deno.test("a kernel that was named is used instead of any other", async () => {
  await using at = await setup({});
  const { kernel, modules } = await writeFakeKernel(`${at.path}/own`);

  const plan = await planSetup(at.machine, { kernel, modules });

  assert.deepEqual(plan.kernel, { kernel, modules, origin: kernel });
  assert.deepEqual(plan.fetch, []);
});

Deno.test("a named kernel or folder of modules that is not there is refused", async () => {
  await using at = await setup({});
  const { kernel, modules } = await writeFakeKernel(`${at.path}/own`);

  for (const named of [{ kernel: `${at.path}/none`, modules }, { kernel, modules: kernel }]) {
    await assert.rejects(planSetup(at.machine, named), {
      code: "INVALID_ARGUMENTS",
      message: /^There is no (file|folder) \S+ that can be read$/,
    });
  }
});

Deno.test("without root and sudo it says what root has to run", async () => {
  await using at = await setup({ qemu: false }, { programs: ["apt-get"], ask: withoutLists });

  await assert.rejects(planSetup(at.machine), {
    code: "isolation_unavailable",
    message: "This needs root, and there is no sudo; let root run apt-get update && apt-get " +
      "install -y --no-install-recommends qemu-system-x86, then repeat this",
  });
});

Deno.test("without apt it says what to do by hand", async () => {
  await using at = await setup({ qemu: false, kernel: false }, { programs: ["pacman", "sudo"] });

  await assert.rejects(planSetup(at.machine), (thrown: Error) => {
    assert.match(thrown.message, /lacks qemu-system-x86_64, a guest kernel, and has no apt-get/);
    assert.match(thrown.message, /pacman -S qemu-system-x86 busybox/);
    assert.match(thrown.message, /engine vm setup --kernel/);
    return true;
  });
});

Deno.test("without apt a machine that has all but a named kernel needs nothing else", async () => {
  await using at = await setup({ kernel: false }, { programs: [] });
  const { kernel, modules } = await writeFakeKernel(`${at.path}/own`);

  assert.equal((await planSetup(at.machine, { kernel, modules })).kernel?.kernel, kernel);
});

Deno.test("what is no Linux on x86-64 cannot be set up", async () => {
  await using at = await setup({}, { os: "darwin" });

  await assert.rejects(planSetup(at.machine), {
    code: "isolation_unavailable",
    message: "microVMs run only on Linux on x86-64, this is darwin on x86_64; " +
      "run workers with --isolation process",
  });
});

Deno.test("planning asks and runs nothing", async () => {
  const asked: string[] = [];
  await using at = await setup({ qemu: false, kernel: false }, {
    ask: (question) => {
      asked.push(question);
      return debian(question);
    },
  });

  await at.lines();

  assert.deepEqual(at.machine.ran, []);
  assert.ok(asked.every((question) => /^apt-cache (policy|depends) /.test(question)));
});
