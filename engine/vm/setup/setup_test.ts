import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import {
  debian,
  FakeBoot,
  type FakeHostOptions,
  FakeMachine,
  type FakeMachineOptions,
  fakeVmPlaces,
  REACHED,
  withoutLists,
  writeBusybox,
  writeFakeKernel,
} from "../../../tests/fakes/fake_vm.ts";
import { openKernel } from "../image/kernel_store.ts";
import type { KvmAccess } from "../machine/accelerators.ts";
import { setUpVm } from "./setup.ts";
import type { NamedKernel } from "./plan.ts";

const GRANTED: KvmAccess = { state: "granted" };
const NOTHING: FakeHostOptions = { qemu: false, busybox: "none", kernel: false };

/** A Debian whose commands have the effects of the real ones. */
async function setup(host: FakeHostOptions = {}, options: FakeMachineOptions = {}) {
  const at = await fakeVmPlaces(host);
  const printed: string[] = [];
  const machine = new FakeMachine(at, {
    ...options,
    run: async (command, directory) => {
      const other = await options.run?.(command, directory);
      if (other) return other;
      if (/install.*qemu-system-x86/.test(command)) {
        await Deno.writeTextFile(`${at.path}/bin/qemu-system-x86_64`, "", { mode: 0o755 });
      }
      for (
        const [, name] of command.matchAll(/(?:download| )(?: )?((?:linux-image|busybox)-\S+)/g)
      ) {
        if (command.includes("download")) {
          await Deno.writeTextFile(`${directory}/${name}_1.deb`, "");
        }
      }
      if (command.startsWith("dpkg -x linux-image")) {
        await writeFakeKernel(directory);
      }
      if (command.startsWith("dpkg -x busybox")) {
        await Deno.mkdir(`${directory}/bin`);
        await writeBusybox(`${directory}/bin/busybox`, "static");
      }
      return { success: true, output: "done" };
    },
  });
  const run = (
    { fake = new FakeBoot(REACHED), access = GRANTED, kernel }: {
      fake?: FakeBoot;
      access?: KvmAccess;
      kernel?: NamedKernel;
    } = {},
  ) =>
    setUpVm({ print: (line) => printed.push(line), kernel }, {
      machine,
      boot: fake.boot,
      kvm: {
        access: () => Promise.resolve(access),
        cache: undefined,
        bootId: () => Promise.resolve("b"),
      },
    });
  return { ...at, machine, printed, run };
}

Deno.test("setup installs all parts and prints each command before it runs", async () => {
  await using at = await setup(NOTHING);
  const fake = new FakeBoot(REACHED);

  const report = await at.run({ fake });

  assert.deepEqual(report, {
    ready: true,
    accelerator: "kvm",
    why: null,
    boot_ms: 812,
    kernel: "6.1.0-7-amd64",
    cache: at.places.cache,
  });
  assert.deepEqual(at.machine.ran.slice(0, 2), [
    "sudo apt-get install -y --no-install-recommends qemu-system-x86",
    "apt-get download busybox-static linux-image-6.1.0-7-amd64",
  ]);
  assert.deepEqual(at.machine.ran.slice(2).sort(), [
    "dpkg -x busybox-static_1.deb .",
    "dpkg -x linux-image-6.1.0-7-amd64_1.deb .",
  ]);
  const commands = at.printed.filter((line) => line.startsWith("$ "));
  assert.deepEqual(commands, at.machine.ran.map((command) => `$ ${command}`));
  assert.match(at.printed[0]!, /sudo runs it and may ask for a password/);
  assert.ok(at.printed.includes("  done"), "the output of commands is printed");
  const last = fake.requests.at(-1)!;
  assert.deepEqual([last.accelerator, last.until], ["kvm", "loaded"]);
});

Deno.test("setup with all parts installed runs no command and boots the check", async () => {
  await using at = await setup();
  const fake = new FakeBoot(REACHED);

  await at.run({ fake });
  await at.run({ fake });

  assert.deepEqual(at.machine.ran, []);
  assert.equal(at.printed[0], "Nothing is missing");
  assert.equal(fake.requests.filter(({ until }) => until === "loaded").length, 2);
});

Deno.test("a repeated setup fetches nothing and leaves no packages behind", async () => {
  await using at = await setup(NOTHING);
  await at.run();
  const ran = at.machine.ran.length;

  await at.run();

  assert.equal(at.machine.ran.length, ran);
  const names = (await Array.fromAsync(Deno.readDir(at.places.cache))).map(({ name }) => name);
  assert.deepEqual(names.sort(), ["busybox", "images", "kernels"]);
});

Deno.test("setup updates the package lists and plans again", async () => {
  let hasLists = false;
  await using at = await setup({ kernel: false }, {
    ask: (question) => (hasLists ? debian : withoutLists)(question),
    run: (command) => {
      if (command === "sudo apt-get update") hasLists = true;
      return Promise.resolve();
    },
  });

  await at.run();

  assert.deepEqual(at.machine.ran, [
    "sudo apt-get update",
    "apt-get download linux-image-6.1.0-7-amd64",
    "dpkg -x linux-image-6.1.0-7-amd64_1.deb .",
  ]);
});

Deno.test("setup rejects with advice if updated package lists still lack a package", async () => {
  await using at = await setup({ kernel: false }, { ask: withoutLists });

  await assert.rejects(at.run(), {
    code: "install_failed",
    message: /does not know all that is needed; check the sources .* --kernel FILE --modules DIR/,
  });
  assert.deepEqual(at.machine.ran, ["sudo apt-get update"]);
});

Deno.test("setup rejects with command and advice when a command fails", async () => {
  await using at = await setup(NOTHING, {
    run: (command) =>
      Promise.resolve(
        command.includes("download")
          ? { success: false, output: "E: Failed to fetch x  Temporary failure resolving 'x'" }
          : undefined,
      ),
  });

  await assert.rejects(at.run(), {
    code: "install_failed",
    message: "apt-get download busybox-static linux-image-6.1.0-7-amd64 failed: there is no way " +
      "to the package server; check the network and http_proxy",
  });
  assert.equal(at.machine.ran.some((command) => command.startsWith("dpkg")), false);
  assert.deepEqual(await Array.fromAsync(Deno.readDir(at.places.cache)), []);
});

Deno.test("setup rejects when parts are missing although all commands succeeded", async () => {
  await using at = await setup({ qemu: false }, {
    run: () => Promise.resolve({ success: true, output: "" }),
  });

  await assert.rejects(at.run(), {
    code: "install_failed",
    message: "Every command has run, and this machine still lacks qemu-system-x86_64",
  });
});

Deno.test("setup rejects a kernel package without the guest modules, with the reason", async () => {
  await using at = await setup({ kernel: false }, {
    run: async (command, directory) => {
      if (!command.startsWith("dpkg")) return;
      await writeFakeKernel(directory, { modules: {} });
      return { success: true, output: "" };
    },
  });

  await assert.rejects(at.run(), {
    code: "install_failed",
    message: /kernel of linux-image-6.1.0-7-amd64 cannot be used: .* module virtio_pci/,
  });
});

Deno.test("setup fetches the kernel again if the cached one is damaged", async () => {
  await using at = await setup();
  const { kernel } = await openKernel(at.places.cache) as { kernel: string };
  await Deno.truncate(kernel, 10);

  await at.run();

  assert.equal(at.machine.ran[0], "apt-get download linux-image-6.1.0-7-amd64");
  assert.ok("kernel" in await openKernel(at.places.cache));
});

Deno.test("a named kernel replaces the cached one", async () => {
  await using at = await setup();
  const own = await writeFakeKernel(`${at.path}/own`, { version: "6.12.1-custom" });

  const { kernel } = await at.run({ kernel: own });

  assert.equal(kernel, "6.12.1-custom");
  assert.deepEqual(at.machine.ran, []);
});

Deno.test("a named file that is not a kernel leaves the cached one in use", async () => {
  await using at = await setup();
  const before = await openKernel(at.places.cache);
  const own = await writeFakeKernel(`${at.path}/own`);
  await Deno.writeFile(own.kernel, gzipSync("no kernel"));

  await assert.rejects(at.run({ kernel: own }), /cannot be used: it is not a Linux kernel/);

  assert.deepEqual(await openKernel(at.places.cache), before);
});

Deno.test("setup without KVM checks with software emulation and returns why", async () => {
  await using at = await setup();
  const fake = new FakeBoot(REACHED);
  const access = { state: "absent", reason: "this machine has no /dev/kvm" } as const;

  const { accelerator, ready, why } = await at.run({ fake, access });

  assert.equal(ready, false);
  assert.equal(accelerator, "tcg");
  assert.match(why!, /^this machine has no \/dev\/kvm; choose --accel tcg/);
  assert.deepEqual(fake.requests.map((request) => request.accelerator), ["tcg"]);
});

Deno.test("setup rejects and prints the last console lines when the check does not boot", async () => {
  await using at = await setup();
  const fake = new FakeBoot(({ until }) =>
    until === "runs" ? REACHED : { outcome: "timeout", afterMs: 60_000, tail: ["Kernel panic"] }
  );

  await assert.rejects(at.run({ fake }), {
    code: "launch_failed",
    message:
      "A guest with kernel 6.1.0-7-amd64 did not come up within 60 s; try another one with " +
      "--kernel FILE --modules DIR",
  });
  assert.equal(at.printed.at(-1), "  Kernel panic");
});

Deno.test("setup rejects when the check cannot load a module", async () => {
  await using at = await setup();
  const tail = ["engine-probe: module 9p failed", "engine-probe: modules loaded"];

  await assert.rejects(at.run({ fake: new FakeBoot({ ...REACHED, tail }) }), /A guest with kernel/);
  assert.ok(at.printed.includes("  engine-probe: module 9p failed"));
});

Deno.test("setup under sudo prints whose cache it fills", async () => {
  await using at = await setup({}, { uid: 0, sudoUser: "ada" });

  await at.run();

  assert.match(at.printed[0]!, /cache of root, not that of ada; leave out sudo/);
});
