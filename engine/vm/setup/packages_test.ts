import assert from "node:assert/strict";
import {
  debian,
  FakeMachine,
  type FakeMachineOptions,
  fakeVmPlaces,
  withoutLists,
} from "../../../tests/fakes/fake_vm_host.ts";
import { adviceOn, byHand, isKnown, kernelPackages } from "./packages.ts";

async function setup(options: FakeMachineOptions = {}) {
  const host = await fakeVmPlaces({ kernel: false });
  return { ...host, machine: new FakeMachine(host, options) };
}

Deno.test("the kernel package is the one that Debian's newest depends on", async () => {
  await using at = await setup();

  assert.deepEqual(await kernelPackages(at.machine), ["linux-image-6.1.0-7-amd64"]);
});

Deno.test("Ubuntu's kernel is in several packages, and its firmware is left out", async () => {
  const depends: Record<string, string> = {
    "linux-image-generic": "  Depends: linux-image-6.8.0-45-generic\n" +
      "  Depends: linux-modules-extra-6.8.0-45-generic\n  Depends: linux-firmware\n" +
      "  Depends: <amd64-microcode>\n",
    "linux-image-6.8.0-45-generic": "  Depends: kmod\n  Depends: linux-modules-6.8.0-45-generic\n",
  };
  await using at = await setup({
    ask: (question) => depends[question.replace("apt-cache depends ", "")] ?? "",
  });

  assert.deepEqual(await kernelPackages(at.machine), [
    "linux-image-6.8.0-45-generic",
    "linux-modules-6.8.0-45-generic",
    "linux-modules-extra-6.8.0-45-generic",
  ]);
});

Deno.test("without lists of packages there is no kernel and nothing is known", async () => {
  await using at = await setup({ ask: withoutLists });

  assert.deepEqual(await kernelPackages(at.machine), []);
  assert.equal(await isKnown(at.machine, ["qemu-system-x86"]), false);
  assert.equal(await isKnown(at.machine, []), true);
});

Deno.test("packages are known when each has a candidate", async () => {
  await using at = await setup({
    ask: (question) => question.endsWith("absent") ? "" : debian(question),
  });

  assert.equal(await isKnown(at.machine, ["qemu-system-x86", "busybox-static"]), true);
  assert.equal(await isKnown(at.machine, ["qemu-system-x86", "absent"]), false);
});

Deno.test("each distribution without apt is told its own command, and how to name a kernel", async () => {
  for (
    const [program, command] of [["dnf", "dnf install"], ["apk", "apk add"], ["no", ""]] as const
  ) {
    await using at = await setup({ programs: [program] });

    const lines = await byHand(at.machine);

    assert.ok(lines[0]!.includes(command), lines[0]);
    assert.match(lines.join("\n"), /engine vm setup --kernel .* --modules /);
  }
});

Deno.test("what apt, dpkg and sudo say is understood", () => {
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
  for (const [output, advice] of cases) assert.match(adviceOn(output), advice, output);
});
