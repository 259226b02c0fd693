import assert from "node:assert/strict";
import {
  FakeBoot,
  type FakeHostOptions,
  fakeVmPlaces,
  REACHED,
} from "../../../tests/fakes/fake_vm.ts";
import type { KvmAccess } from "../machine/accelerators.ts";
import { vmStatus } from "./status.ts";

const GRANTED: KvmAccess = { state: "granted" };

async function setup(options: FakeHostOptions = {}) {
  const at = await fakeVmPlaces(options);
  const status = (access: KvmAccess = GRANTED, fake = new FakeBoot(REACHED)) =>
    vmStatus(at.places, {
      access: () => Promise.resolve(access),
      boot: fake.boot,
      cache: undefined,
    });
  return { ...at, status };
}

Deno.test("vmStatus() is ready with all parts and KVM", async () => {
  await using at = await setup();

  const status = await at.status();

  assert.equal(status.ready, true);
  assert.deepEqual(status.missing, []);
  assert.equal(status.accelerator, "kvm");
  assert.equal(status.accelerator_reason, null);
  assert.deepEqual(status.qemu, { path: `${at.path}/bin/qemu-system-x86_64`, version: "7.2.22" });
  assert.equal(status.kernel?.version, "6.1.0-7-amd64");
  assert.equal(status.kernel?.origin, "linux-image-6.1.0-7-amd64");
  assert.equal(status.initramfs?.bytes, (await Deno.stat(status.initramfs!.path)).size);
  assert.deepEqual(status.busybox, { path: `${at.path}/bin/busybox` });
  assert.equal(status.cache?.path, at.places.cache);
  assert.ok(status.cache!.bytes > status.initramfs!.bytes);
});

Deno.test("vmStatus() is ready with software emulation and the reason if KVM runs no guest", async () => {
  await using at = await setup();

  const status = await at.status(
    GRANTED,
    new FakeBoot({ outcome: "timeout", afterMs: 5_000, tail: [] }),
  );

  assert.equal(status.ready, true);
  assert.equal(status.accelerator, "tcg");
  assert.match(status.accelerator_reason!, /no guest ran under it within 5 s/);
});

Deno.test("vmStatus() is not ready if KVM cannot be opened, with what to do", async () => {
  await using at = await setup();

  const status = await at.status({ state: "denied", reason: "this user may not open /dev/kvm" });

  assert.equal(status.ready, false);
  assert.equal(status.accelerator, null);
  assert.match(status.missing.join(), /^KVM: this user may not open \/dev\/kvm; run sudo usermod/);
});

Deno.test("vmStatus() lists each missing part with what to do, and boots nothing", async () => {
  await using at = await setup({ qemu: false, busybox: "none", kernel: false });
  const fake = new FakeBoot(REACHED);

  const status = await at.status(GRANTED, fake);

  assert.equal(status.ready, false);
  assert.deepEqual(status.missing, [
    "qemu-system-x86_64; run engine vm setup",
    "a static busybox; run engine vm setup",
    "a guest kernel; run engine vm setup",
  ]);
  const { qemu, kernel, busybox, initramfs, accelerator } = status;
  assert.deepEqual([qemu, kernel, busybox, initramfs, accelerator], [null, null, null, null, null]);
  assert.equal(fake.requests.length, 0);
});

Deno.test("vmStatus() lists an image that cannot be built as missing", async () => {
  await using at = await setup();
  await Deno.writeTextFile(`${at.places.cache}/images`, "in the way");

  const status = await at.status();

  assert.equal(status.ready, false);
  assert.match(status.missing.join(), /^an image, which cannot be made in /);
});

Deno.test("vmStatus() is not ready on other systems and does not suggest the setup", async () => {
  await using at = await setup();

  const status = await vmStatus({ ...at.places, os: "darwin" });

  assert.deepEqual(status.missing, [
    "microVMs run only on Linux on x86-64, this is darwin on x86_64; " +
    "run workers with --isolation process",
  ]);
});

Deno.test("vmStatus() has no QEMU version if QEMU is not executable, and no cache without a home", async () => {
  await using at = await setup();
  await Deno.writeTextFile(`${at.path}/bin/qemu-system-x86_64`, "#!/nowhere/sh\n");

  const status = await vmStatus({ ...at.places, cache: undefined });

  assert.equal(status.qemu?.version, "unknown");
  assert.equal(status.cache, null);
  assert.match(status.missing.join(), /set HOME or XDG_CACHE_HOME/);
});
