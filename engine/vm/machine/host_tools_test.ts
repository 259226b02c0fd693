import assert from "node:assert/strict";
import { fakeVmPlaces, writeBusybox } from "../../../tests/fakes/fake_vm.ts";
import { vmHostOrReason } from "../../../tests/fakes/vm_project.ts";
import { findVmHost, findVmParts, vmPlaces } from "./host_tools.ts";

Deno.test("findVmHost() finds QEMU and busybox and builds the image", async () => {
  await using at = await fakeVmPlaces();

  const host = await findVmHost("math", at.places);

  assert.equal(host.qemu, `${at.path}/bin/qemu-system-x86_64`);
  assert.equal(host.busybox, `${at.path}/bin/busybox`);
  assert.equal(host.image.version, "6.1.0-7-amd64");
  assert.ok((await Deno.stat(host.image.initrd)).isFile);
});

Deno.test("findVmHost() names the worker, all missing parts, and both alternatives", async () => {
  await using at = await fakeVmPlaces({ qemu: false, busybox: "none", kernel: false });

  await assert.rejects(findVmHost("math", at.places), {
    code: "isolation_unavailable",
    message: "Worker math cannot run in a microVM: this machine lacks qemu-system-x86_64, " +
      "a static busybox, a guest kernel; run engine vm setup, or choose --isolation process",
  });
});

Deno.test("findVmHost() does not suggest the setup where microVMs are not supported", async () => {
  await using at = await fakeVmPlaces();

  for (const other of [{ os: "darwin" }, { arch: "aarch64" }]) {
    const finding = findVmHost("math", { ...at.places, ...other });

    await assert.rejects(finding, (thrown: Error) => {
      assert.match(thrown.message, /only on Linux on x86-64, this is .*; use --isolation process$/);
      return !thrown.message.includes("vm setup");
    });
  }
});

Deno.test("findVmHost() reports that the cache cannot be written", async () => {
  await using at = await fakeVmPlaces();
  await Deno.writeTextFile(`${at.places.cache}/images`, "in the way");

  const finding = findVmHost("math", at.places);

  await assert.rejects(finding, { code: "isolation_unavailable" });
  await assert.rejects(finding, /image cannot be made in .*cache: .*run engine vm setup/);
});

Deno.test("findVmParts() ignores a dynamically linked busybox and uses the one in the cache", async () => {
  await using at = await fakeVmPlaces({ busybox: "dynamic" });
  assert.deepEqual((await findVmParts(at.places)).missing, ["a static busybox"]);

  await writeBusybox(`${at.places.cache}/busybox`, "static");

  assert.equal((await findVmParts(at.places)).busybox, `${at.places.cache}/busybox`);
});

Deno.test("findVmParts() finds busybox under the names of all distributions", async () => {
  await using at = await fakeVmPlaces({ busybox: "none" });

  await writeBusybox(`${at.path}/bin/busybox.static`, "static");

  assert.equal((await findVmParts(at.places)).busybox, `${at.path}/bin/busybox.static`);
});

Deno.test("vmPlaces() takes the cache folder from XDG_CACHE_HOME, else from HOME", () => {
  const cache = (env: Record<string, string>) => vmPlaces((name) => env[name]).cache;

  assert.equal(cache({ XDG_CACHE_HOME: "/c/", HOME: "/h" }), "/c/engine/vm");
  assert.equal(cache({ XDG_CACHE_HOME: "relative", HOME: "/h" }), "/h/.cache/engine/vm");
  assert.equal(cache({ XDG_CACHE_HOME: "", HOME: "/h" }), "/h/.cache/engine/vm");
  assert.equal(cache({ HOME: "" }), undefined);
  assert.equal(cache({}), undefined);
});

Deno.test("findVmParts() names the variables to set when there is no home", async () => {
  await using at = await fakeVmPlaces();

  const { missing } = await findVmParts({ ...at.places, cache: undefined });

  assert.deepEqual(missing, ["a place for the cache (set HOME or XDG_CACHE_HOME)"]);
});

Deno.test("vmHostOrReason() tells why there is no host", async () => {
  await using at = await fakeVmPlaces({ kernel: false });

  assert.match(await vmHostOrReason(at.places) as string, /lacks a guest kernel/);
});
