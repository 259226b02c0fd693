import assert from "node:assert/strict";
import { Command } from "@commander-js/extra-typings";
import type { NamedKernel, VmSetupReport, VmStatus } from "../../engine/mod.ts";
import { EngineError } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import { addVm, type VmMachine } from "./vm.ts";

const READY: VmStatus = {
  ready: true,
  missing: [],
  accelerator: "tcg",
  accelerator_reason: "/dev/kvm opens, but no guest ran under it within 5 s",
  qemu: { path: "/usr/bin/qemu-system-x86_64", version: "7.2.22" },
  kernel: { version: "6.1.0-7-amd64", path: "/c/kernels/k/vmlinux", origin: "linux-image" },
  initramfs: { path: "/c/images/i/initrd.cpio", bytes: 3_210_740 },
  busybox: { path: "/usr/bin/busybox" },
  cache: { path: "/c", bytes: 74_845_195 },
};

const BARE: VmStatus = {
  ready: false,
  missing: ["qemu-system-x86_64; run engine vm setup", "a guest kernel; run engine vm setup"],
  accelerator: null,
  accelerator_reason: null,
  qemu: null,
  kernel: null,
  initramfs: null,
  busybox: null,
  cache: null,
};

const REPORT: VmSetupReport = {
  ready: true,
  accelerator: "kvm",
  why: null,
  boot_ms: 812,
  kernel: "6.1.0-7-amd64",
  cache: "/c",
};

function setup(machine: Partial<VmMachine> = {}) {
  const terminal = new FakeTerminal();
  const kernels: (NamedKernel | undefined)[] = [];
  const run = async (...args: string[]) => {
    const program = new Command("engine").exitOverride().configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
    });
    addVm(program as Command, terminal, {
      setUp: ({ print, kernel }) => {
        kernels.push(kernel);
        print("$ apt-get download linux-image");
        return Promise.resolve(REPORT);
      },
      commands: (kernel) => {
        kernels.push(kernel);
        return Promise.resolve([]);
      },
      status: () => Promise.resolve(READY),
      ...machine,
    });
    return await terminal.runWith(program as Command, ...args);
  };
  return { terminal, run, kernels };
}

Deno.test("setup prints its progress on standard error and its result on standard output", async () => {
  const { terminal, run } = setup();

  assert.equal(await run("vm", "setup"), 0);

  assert.deepEqual(terminal.errLines, ["$ apt-get download linux-image"]);
  assert.deepEqual(terminal.outLines, ["Ready: kernel 6.1.0-7-amd64 boots in 0.8 s with KVM"]);
});

Deno.test("setup without KVM says why", async () => {
  const why = "/dev/kvm opens, but no guest ran under it within 5 s";
  const { terminal, run } = setup({
    setUp: () => Promise.resolve({ ...REPORT, accelerator: "tcg", why, boot_ms: 2_960 }),
  });

  assert.equal(await run("vm", "setup"), 0);

  assert.deepEqual(terminal.outLines, [
    "Ready: kernel 6.1.0-7-amd64 boots in 3.0 s with software emulation (tcg)",
    `Not with KVM: ${why}`,
  ]);
});

Deno.test("setup of a machine whose KVM workers cannot open does not call it ready", async () => {
  const why = "this machine has no /dev/kvm; choose --accel tcg";
  const { terminal, run } = setup({
    setUp: () => Promise.resolve({ ...REPORT, ready: false, accelerator: "tcg", why }),
  });

  assert.equal(await run("vm", "setup"), 0);

  assert.deepEqual(terminal.outLines, [
    "Set up: kernel 6.1.0-7-amd64 boots in 0.8 s with software emulation (tcg)",
    `KVM not accessible: ${why}`,
  ]);
});

Deno.test("setup that fails says why and ends with 1", async () => {
  const { terminal, run } = setup({
    setUp: () => Promise.reject(new EngineError("install_failed", "there is no space left")),
  });

  assert.equal(await run("vm", "setup"), 1);

  assert.match(terminal.errText, /there is no space left/);
  assert.deepEqual(terminal.outLines, []);
});

Deno.test("a dry run prints the commands and sets nothing up", async () => {
  const { terminal, run } = setup({
    commands: () => Promise.resolve(["sudo apt-get update", "apt-get download x"]),
    setUp: () => assert.fail("it was set up"),
  });

  assert.equal(await run("vm", "setup", "--dry-run"), 0);

  assert.deepEqual(terminal.outLines, ["sudo apt-get update", "apt-get download x"]);
});

Deno.test("a dry run with nothing to do prints no command", async () => {
  const { terminal, run } = setup();

  assert.equal(await run("vm", "setup", "--dry-run"), 0);

  assert.deepEqual(terminal.outLines, []);
  assert.match(terminal.errText, /Nothing is missing/);
});

Deno.test("a kernel and its modules are named by paths relative to the current directory", async () => {
  const { run, kernels } = setup();
  const args = ["--kernel", "vmlinuz", "--modules", "/lib/modules/6"];

  assert.equal(await run("vm", "setup", ...args), 0);
  assert.equal(await run("vm", "setup", "--dry-run", ...args), 0);
  assert.equal(await run("vm", "setup"), 0);

  const named = { kernel: "/project/vmlinuz", modules: "/lib/modules/6" };
  assert.deepEqual(kernels, [named, named, undefined]);
});

Deno.test("a kernel without modules, or an unknown word, is not understood", async () => {
  for (
    const args of [
      ["setup", "--kernel", "x"],
      ["setup", "--modules", "x"],
      ["setup", "--kernel", "", "--modules", "x"],
      ["setup", "--kernel"],
      ["setup", "now"],
      ["status", "--all"],
      ["stauts"],
    ]
  ) {
    const { run, kernels } = setup();

    assert.equal(await run("vm", ...args), 2, args.join(" "));
    assert.deepEqual(kernels, []);
  }
});

Deno.test("status of a machine that is ready", async () => {
  const { terminal, run } = setup();

  assert.equal(await run("vm", "status"), 0);

  assert.deepEqual(terminal.outLines, [
    "accelerator  software emulation (tcg): /dev/kvm opens, but no guest ran under it within 5 s",
    "qemu         7.2.22  /usr/bin/qemu-system-x86_64",
    "kernel       6.1.0-7-amd64  /c/kernels/k/vmlinux",
    "initramfs    /c/images/i/initrd.cpio  3.1 MiB",
    "busybox      /usr/bin/busybox",
    "cache        /c  71.4 MiB",
    "Ready",
  ]);
  assert.deepEqual(terminal.calls, [], "no engine is asked");
});

Deno.test("status of a machine that is not ready names what is missing and ends with 1", async () => {
  const { terminal, run } = setup({ status: () => Promise.resolve(BARE) });

  assert.equal(await run("vm", "status"), 1);

  assert.deepEqual(terminal.outLines, [
    "accelerator  none",
    "qemu         none",
    "kernel       none",
    "initramfs    none",
    "busybox      none",
    "cache        none",
    "Not ready:",
    "  qemu-system-x86_64; run engine vm setup",
    "  a guest kernel; run engine vm setup",
  ]);
  assert.deepEqual(terminal.errLines, []);
});

Deno.test("status --json is the whole status on one line, with the same exit code", async () => {
  for (const status of [READY, BARE]) {
    const { terminal, run } = setup({ status: () => Promise.resolve(status) });

    assert.equal(await run("vm", "status", "--json"), status.ready ? 0 : 1);

    assert.equal(terminal.outLines.length, 1);
    assert.deepEqual(JSON.parse(terminal.outText), status);
    assert.deepEqual(terminal.errLines, []);
  }
});

Deno.test("the commands are part of the program", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("vm", "--help"), 0);

  assert.match(terminal.outText, /setup[\s\S]*status/);
});
