import assert from "node:assert/strict";
import { engineUrlHost, kernelCommandLine, qemuCommand, type QemuOptions } from "./qemu.ts";

const OPTIONS: QemuOptions = {
  name: "math",
  image: { version: "6.1.0", kernel: "/cache/vmlinux", initrd: "/cache/initrd.cpio" },
  qemu: "/usr/bin/qemu-system-x86_64",
  busybox: "/usr/bin/busybox",
  accelerator: "tcg",
  resources: { cpus: 2, memory_mb: 300 },
  network: "full",
  engine: { hostname: "127.0.0.1", port: 49134 },
  shares: [
    { tag: "s0", path: "/usr", writable: false },
    { tag: "s1", path: "/home/me/a, b", writable: true },
  ],
  ports: [{ name: "out0", socket: "/tmp/x/out0" }, { name: "control", socket: "/tmp/x/control" }],
  clockKhz: 2_445_424,
};

/** The arguments that follow each occurrence of a word. */
function after(word: string, options: Partial<QemuOptions> = {}): string[] {
  const command = qemuCommand({ ...OPTIONS, ...options });
  return command.filter((_, i) => command[i - 1] === word);
}

Deno.test("qemuCommand() gives the machine the configured resources and no other devices", () => {
  assert.equal(qemuCommand(OPTIONS)[0], "/usr/bin/qemu-system-x86_64");
  assert.deepEqual([...after("-smp"), ...after("-m")], ["2", "300"]);
  assert.ok(qemuCommand(OPTIONS).includes("-nodefaults"));
  assert.deepEqual(after("-device").map((device) => device.split(",")[0]), [
    "virtio-9p-pci",
    "virtio-9p-pci",
    "virtio-net-pci",
    "virtio-balloon-pci",
    "virtio-serial-pci",
    "virtserialport",
    "virtserialport",
  ]);
});

Deno.test("qemuCommand() shares exactly the folders, read-only unless they may be written", () => {
  assert.deepEqual(after("-fsdev"), [
    "local,id=s0,path=/usr,security_model=none,multidevs=remap,readonly=on",
    "local,id=s1,path=/home/me/a,, b,security_model=none,multidevs=remap",
  ]);
});

Deno.test("qemuCommand() keeps the guest's ports in their order", () => {
  assert.deepEqual(after("-chardev").slice(1), [
    "socket,id=out0,path=/tmp/x/out0",
    "socket,id=control,path=/tmp/x/control",
  ]);
});

Deno.test("qemuCommand() forbids QEMU to start programs", () => {
  assert.deepEqual(after("-sandbox"), [
    "on,obsolete=deny,resourcecontrol=deny,elevateprivileges=deny,spawn=deny",
  ]);
});

Deno.test("qemuCommand() selects processor and accelerator", () => {
  assert.deepEqual([...after("-accel"), ...after("-cpu")], [
    "tcg,thread=single,tb-size=128",
    "max",
  ]);
  const one = { resources: { cpus: 1, memory_mb: 256 } };
  assert.deepEqual(after("-accel", one), ["tcg,thread=multi,tb-size=128"]);
  const kvm = { accelerator: "kvm" } as const;
  assert.deepEqual([...after("-accel", kvm), ...after("-cpu", kvm)], ["kvm", "host"]);
});

Deno.test("kernelCommandLine() passes the TSC rate in software emulation only", () => {
  assert.match(kernelCommandLine(OPTIONS), / tsc_early_khz=2445424 tsc=reliable$/);
  assert.doesNotMatch(kernelCommandLine({ ...OPTIONS, clockKhz: undefined }), /tsc/);
  assert.doesNotMatch(kernelCommandLine({ ...OPTIONS, accelerator: "kvm" }), /tsc/);
});

Deno.test("network full: the internet, and the engine at the host's address", () => {
  assert.deepEqual(after("-netdev"), ["user,id=n,ipv6=off"]);
  for (const hostname of ["127.0.0.1", "localhost", "0.0.0.0", "::", "[::]"]) {
    assert.equal(engineUrlHost("full", { hostname, port: 7 }), "10.0.2.2:7", hostname);
  }
  assert.equal(engineUrlHost("full", { hostname: "192.168.1.5", port: 7 }), "192.168.1.5:7");
});

Deno.test("network full: QEMU forwards to an engine that 10.0.2.2 and IPv4 do not reach", () => {
  for (
    const [hostname, dialled] of [["::1", "::1"], ["[fd00::5]", "fd00::5"], [
      "127.0.0.9",
      "127.0.0.9",
    ]]
  ) {
    const engine = { hostname: hostname!, port: 7 };
    assert.equal(engineUrlHost("full", engine), "10.0.2.4:7");
    assert.deepEqual(after("-netdev", { engine }), [
      `user,id=n,ipv6=off,guestfwd=tcp:10.0.2.4:7-cmd:/usr/bin/busybox nc ${dialled} 7`,
    ]);
  }
});

Deno.test("network engine: only the engine, wherever it listens", () => {
  const cases = [["0.0.0.0", "127.0.0.1"], ["127.0.0.1", "127.0.0.1"], [
    "192.168.1.5",
    "192.168.1.5",
  ]];
  for (const [hostname, dialled] of cases) {
    const engine = { hostname: hostname!, port: 7 };
    assert.equal(engineUrlHost("engine", engine), "10.0.2.4:7");
    assert.deepEqual(
      after("-netdev", { engine, network: "engine", busybox: "/opt/it's, here/bb" }),
      [
        "user,id=n,ipv6=off,restrict=on," +
        `guestfwd=tcp:10.0.2.4:7-cmd:'/opt/it'\\''s,, here/bb' nc ${dialled} 7`,
      ],
    );
  }
});
