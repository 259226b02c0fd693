import assert from "node:assert/strict";
import { FakeBoot, fakeVmPlaces, REACHED, temporaryFolder } from "../../../tests/fakes/fake_vm.ts";
import { vmHere } from "../../../tests/fakes/vm_project.ts";
import { findVmHost, type VmHost } from "./host_tools.ts";
import { Accelerators, type KvmAccess, openKvm } from "./accelerators.ts";

const GRANTED: KvmAccess = { state: "granted" };
const DENIED: KvmAccess = { state: "denied", reason: "this user may not open /dev/kvm" };
const ABSENT: KvmAccess = { state: "absent", reason: "this machine has no /dev/kvm" };
const HUNG = { outcome: "timeout", afterMs: 5_003, tail: [] } as const;
const HOST: VmHost = {
  image: { version: "6.1", kernel: "/k/vmlinux", initrd: "/i/initrd.cpio" },
  qemu: "/usr/bin/qemu-system-x86_64",
  busybox: "/usr/bin/busybox",
};

function setup(access: KvmAccess, fake = new FakeBoot(REACHED), cache?: string, bootId = "boot-1") {
  const accelerators = new Accelerators({
    access: () => Promise.resolve(access),
    boot: fake.boot,
    cache,
    bootId: () => Promise.resolve(bootId),
  });
  return { accelerators, fake };
}

Deno.test("choose() selects KVM without a warning if guests run", async () => {
  const { accelerators, fake } = setup(GRANTED);

  for (const requested of ["auto", "kvm"] as const) {
    assert.deepEqual(await accelerators.choose("math", requested, HOST), {
      accelerator: "kvm",
      warning: null,
    });
  }
  assert.equal(fake.requests.length, 1);
  assert.equal(fake.requests[0]!.accelerator, "kvm");
  assert.equal(fake.requests[0]!.limitMs, 5_000);
});

Deno.test("choose() rejects without permission for KVM, with the remedy and both alternatives", async () => {
  const { accelerators, fake } = setup(DENIED);

  for (const requested of ["auto", "kvm"] as const) {
    await assert.rejects(accelerators.choose("math", requested, HOST), {
      code: "isolation_unavailable",
      message: "KVM not accessible: worker math cannot have a microVM, because this user may not " +
        "open /dev/kvm; run sudo usermod -aG kvm $USER and log in again, or choose --accel tcg " +
        "(software emulation, slow) or --isolation process (no VM)",
    });
  }
  assert.equal(fake.requests.length, 0);
});

Deno.test("choose() rejects on a machine without KVM, with both alternatives", async () => {
  const { accelerators } = setup(ABSENT);

  await assert.rejects(accelerators.choose("math", "auto", HOST), {
    code: "isolation_unavailable",
    message: "KVM not accessible: worker math cannot have a microVM, because this machine has no " +
      "/dev/kvm; choose --accel tcg (software emulation, slow) or --isolation process (no VM)",
  });
});

Deno.test("choose() selects software emulation with the reason if KVM opens and runs no guest", async () => {
  const { accelerators, fake } = setup(GRANTED, new FakeBoot(HUNG));

  const first = await accelerators.choose("math", "auto", HOST);
  const other = await accelerators.choose("text", "auto", HOST);

  assert.deepEqual(first, {
    accelerator: "tcg",
    warning: "/dev/kvm opens, but no guest ran under it within 5 s",
  });
  assert.deepEqual(other, first);
  assert.equal(fake.requests.length, 1);
});

Deno.test("choose() rejects if KVM was requested and runs no guest", async () => {
  const tail = ["qemu: failed to initialize kvm"];
  const { accelerators } = setup(GRANTED, new FakeBoot({ outcome: "ended", afterMs: 90, tail }));

  await assert.rejects(
    accelerators.choose("math", "kvm", HOST),
    /^EngineError: KVM not accessible: .* QEMU cannot run a guest under it \(qemu: failed to initialize kvm\); choose --accel tcg/,
  );
});

Deno.test("choose() neither opens nor probes KVM if software emulation was requested", async () => {
  const { accelerators, fake } = setup(ABSENT);

  assert.deepEqual(await accelerators.choose("math", "tcg", HOST), {
    accelerator: "tcg",
    warning: null,
  });
  assert.equal(fake.requests.length, 0);
});

Deno.test("concurrent calls of choose() share one probe boot", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { accelerators, fake } = setup(GRANTED, new FakeBoot(HUNG, promise));

  const choosing = Promise.all(
    Array.from({ length: 10 }, (_, i) => accelerators.choose(`w${i}`, "auto", HOST)),
  );
  resolve();
  const choices = await choosing;

  assert.equal(fake.requests.length, 1);
  assert.ok(choices.every(({ accelerator }) => accelerator === "tcg"));
});

Deno.test("the probe result is cached until host boot or kernel change", async () => {
  await using cache = await temporaryFolder();
  const choose = async (bootId: string, host: VmHost, fresh = false) => {
    const fake = new FakeBoot(HUNG);
    const accelerators = new Accelerators({
      access: () => Promise.resolve(GRANTED),
      boot: fake.boot,
      cache: cache.path,
      bootId: () => Promise.resolve(bootId),
      fresh,
    });
    assert.equal((await accelerators.choose("math", "auto", host)).accelerator, "tcg");
    return fake.requests.length;
  };
  const newKernel = { ...HOST, image: { ...HOST.image, kernel: "/k2/vmlinux" } };

  assert.equal(await choose("boot-1", HOST), 1);
  assert.equal(await choose("boot-1", HOST), 0);
  assert.equal(await choose("boot-2", HOST), 1);
  assert.equal(await choose("boot-2", newKernel), 1);
  assert.equal(await choose("boot-2", newKernel), 0);
  assert.equal(await choose("boot-2", newKernel, true), 1);
});

Deno.test("a damaged cache file leads to a new probe", async () => {
  await using cache = await temporaryFolder();
  const key = `boot-1 ${HOST.qemu} ${HOST.image.kernel}`;
  for (const text of ["", "{", "null", JSON.stringify({ key }), JSON.stringify({ key, runs: 1 })]) {
    await Deno.writeTextFile(`${cache.path}/kvm-probe.json`, text);
    const { accelerators, fake } = setup(GRANTED, new FakeBoot(REACHED), cache.path);

    assert.equal((await accelerators.choose("math", "auto", HOST)).accelerator, "kvm");
    assert.equal(fake.requests.length, 1, text);
  }
});

Deno.test("a probe result that cannot be cached is still used", async () => {
  await using cache = await temporaryFolder();
  await Deno.writeTextFile(`${cache.path}/file`, "");
  const { accelerators } = setup(GRANTED, new FakeBoot(REACHED), `${cache.path}/file/below`);

  assert.equal((await accelerators.choose("math", "auto", HOST)).accelerator, "kvm");
});

Deno.test("openKvm() distinguishes granted, absent and denied", async () => {
  await using folder = await temporaryFolder();
  const device = `${folder.path}/kvm`;
  const denied = () => Promise.reject(new Deno.errors.PermissionDenied("EACCES"));
  const broken = () => Promise.reject(new Error("No such device (os error 19)"));

  assert.deepEqual(await openKvm(device), {
    state: "absent",
    reason: `this machine has no ${device}`,
  });
  assert.deepEqual(await openKvm(device, denied), {
    state: "denied",
    reason: `this user may not open ${device}`,
  });
  assert.deepEqual(await openKvm(device, broken), {
    state: "absent",
    reason: `${device} cannot be opened: No such device (os error 19)`,
  });
  await Deno.writeTextFile(device, "");
  assert.deepEqual(await openKvm(device), GRANTED);
});

Deno.test({
  name: "openKvm() is denied for a device without permission",
  ignore: Deno.uid() === 0, // Root may open everything.
  async fn() {
    await using folder = await temporaryFolder();
    await Deno.writeTextFile(`${folder.path}/kvm`, "", { mode: 0o000 });

    assert.equal((await openKvm(`${folder.path}/kvm`)).state, "denied");
  },
});

const device = await openKvm();
const skipped = typeof vmHere === "string" ? vmHere : "reason" in device ? device.reason : null;
if (skipped !== null) console.error(`Skipping tests with the real KVM: ${skipped}`);

Deno.test({
  name:
    "choose() on this machine selects KVM if it runs a guest, else software emulation with a warning",
  ignore: skipped !== null,
  async fn() {
    const accelerators = new Accelerators({ cache: undefined });
    const start = performance.now();

    const { accelerator, warning } = await accelerators.choose("math", "auto", vmHere as VmHost);

    assert.ok(performance.now() - start < 15_000, "the probe is bounded");
    if (accelerator === "kvm") assert.equal(warning, null);
    else assert.match(warning!, /^\/dev\/kvm opens, but/);
  },
});

Deno.test("choose() accepts the host that findVmHost() returns", async () => {
  await using at = await fakeVmPlaces();
  const host = await findVmHost("math", at.places);
  const { accelerators, fake } = setup(GRANTED);

  await accelerators.choose("math", "auto", host);

  assert.equal(fake.requests[0]!.host, host);
});
