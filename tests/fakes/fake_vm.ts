/**
 * The parts of microVMs as fakes: a host with or without its tools, kernels and modules in the right
 * format, a guest whose programs end when the test says so. None of them runs anything.
 *
 * @module
 */
import { gzipSync, zstdCompressSync } from "node:zlib";
import type { Ended, OutputChunk, OutputLine } from "../../engine/ports/launcher.ts";
import type { GuestOptions, GuestProgram } from "../../engine/vm/guest/guest.ts";
import { createDecompress } from "../../engine/vm/image/kernel_file.ts";
import { GUEST_MODULES, storeKernel } from "../../engine/vm/image/kernel_store.ts";
import type { VmPlaces } from "../../engine/vm/machine/host_tools.ts";
import type { ProbeBoot, ProbeRequest, ProbeResult } from "../../engine/vm/machine/probe_boot.ts";
import type { BootedGuest } from "../../engine/vm/microvm_program.ts";
import type { CommandEnd, SetupMachine } from "../../engine/vm/setup/setup_machine.ts";

/** Which parts there are; all that is left out is there. */
export interface FakeHostOptions {
  readonly qemu?: boolean;
  readonly busybox?: "static" | "dynamic" | "none";
  readonly kernel?: boolean;
}

/** Places in a folder that is gone at the end of a test. */
export async function fakeVmPlaces(
  { qemu = true, busybox = "static", kernel = true }: FakeHostOptions = {},
): Promise<{ path: string; places: VmPlaces & { cache: string } } & AsyncDisposable> {
  const folder = await temporaryFolder();
  const bin = `${folder.path}/bin`;
  const cache = `${folder.path}/cache`;
  await Deno.mkdir(bin);
  await Deno.mkdir(cache);
  if (qemu) {
    const script = "#!/bin/sh\necho 'QEMU emulator version 7.2.22 (Debian)'\n";
    await Deno.writeTextFile(`${bin}/qemu-system-x86_64`, script, { mode: 0o755 });
  }
  if (busybox !== "none") await writeBusybox(`${bin}/busybox`, busybox);
  if (kernel) {
    const source = await writeFakeKernel(`${folder.path}/package`);
    await storeKernel(cache, source, createDecompress(undefined));
  }
  return { ...folder, places: { os: "linux", arch: "x86_64", path: bin, cache } };
}

/** Writes a file that looks like busybox. */
export async function writeBusybox(path: string, form: "static" | "dynamic"): Promise<void> {
  await Deno.writeFile(path, fakeElf({ type: form === "static" ? 1 : 3 }), { mode: 0o755 });
}

/** A probe that comes to a result at once, or when a test lets it, and remembers what it was asked. */
export class FakeBoot {
  readonly requests: ProbeRequest[] = [];
  readonly #result: ProbeResult | ((request: ProbeRequest) => ProbeResult);
  readonly #until: Promise<void>;

  constructor(
    result: ProbeResult | ((request: ProbeRequest) => ProbeResult),
    until: Promise<void> = Promise.resolve(),
  ) {
    this.#result = result;
    this.#until = until;
  }

  readonly boot: ProbeBoot = async (request) => {
    this.requests.push(request);
    await this.#until;
    return typeof this.#result === "function" ? this.#result(request) : this.#result;
  };
}

/** A guest that came up. */
export const REACHED: ProbeResult = { outcome: "reached", afterMs: 812, tail: [] };

/** What a {@linkcode FakeMachine} is like. */
export interface FakeMachineOptions {
  /** Default: 1000. */
  readonly uid?: number;
  /** Default: `apt-get`, `sudo` and `xz`. */
  readonly programs?: readonly string[];
  /** Answers questions; the default knows a kernel package, QEMU, busybox and xz. */
  readonly ask?: (command: string) => string;
  /** What a command does, in the folder it runs in. Default: nothing, with success. */
  readonly run?: (command: string, directory: string) => Promise<CommandEnd | void>;
  readonly sudoUser?: string;
  readonly os?: string;
}

/** Remembers what was run. */
export class FakeMachine implements SetupMachine {
  readonly places: VmPlaces & { cache: string };
  readonly uid: number;
  readonly sudoUser: string | undefined;
  readonly root: string;
  readonly ran: string[] = [];
  readonly #options: FakeMachineOptions;

  /** @param host Where its parts lie; what is installed on it lies in `<path>/root`. */
  constructor(
    host: { path: string; places: VmPlaces & { cache: string } },
    options: FakeMachineOptions = {},
  ) {
    this.places = { ...host.places, ...options.os ? { os: options.os } : {} };
    this.uid = options.uid ?? 1000;
    this.sudoUser = options.sudoUser;
    this.root = `${host.path}/root`;
    this.#options = options;
  }

  find(program: string): Promise<string | undefined> {
    const programs = this.#options.programs ?? ["apt-get", "sudo", "xz"];
    return Promise.resolve(programs.includes(program) ? `/usr/bin/${program}` : undefined);
  }

  ask(command: readonly string[]): Promise<string> {
    return Promise.resolve((this.#options.ask ?? debian)(command.join(" ")));
  }

  async run(
    command: readonly string[],
    directory: string,
    output: (line: string) => void,
  ): Promise<CommandEnd> {
    const line = command.join(" ");
    this.ran.push(line);
    const end = await this.#options.run?.(line, directory) ?? { success: true, output: "" };
    for (const line of end.output.split("\n")) output(line);
    return end;
  }
}

/** What a Debian with its lists of packages answers. */
export function debian(question: string): string {
  const policy = /^apt-cache policy (\S+)$/.exec(question)?.[1];
  if (policy) return `${policy}:\n  Installed: (none)\n  Candidate: 1.2\n  Version table:\n`;
  if (question === "apt-cache depends linux-image-amd64") {
    return "linux-image-amd64\n  Depends: linux-image-6.1.0-7-amd64\n";
  }
  if (question === "apt-cache depends linux-image-6.1.0-7-amd64") {
    return "linux-image-6.1.0-7-amd64\n  Depends: kmod\n |Depends: linux-initramfs-tool\n";
  }
  return "";
}

/** What a Debian without lists answers. */
export function withoutLists(question: string): string {
  const policy = /^apt-cache policy (\S+)$/.exec(question)?.[1];
  return policy ? `${policy}:\n  Installed: (none)\n  Candidate: (none)\n` : "";
}

/** What a fake kernel is like. */
export interface FakeKernelOptions {
  /** Default: `6.1.0-7-amd64`. */
  readonly version?: string;
  /** Which modules there are, and what each depends on. Default: all that guests need. */
  readonly modules?: Readonly<Record<string, readonly string[]>>;
  /** The version that the modules are for. Default: that of the kernel. */
  readonly modulesFor?: string;
  /** Names in `modules.builtin`. */
  readonly builtin?: readonly string[];
  /** How the kernel is packed. Default: `gzip`. */
  readonly packing?: "gzip" | "zstd";
  /** Whether it can be booted without unpacking itself. Default: `true`. */
  readonly pvh?: boolean;
}

/** The version of a fake kernel that says nothing else. */
export const FAKE_VERSION = "6.1.0-7-amd64";

/** A program for x86-64, as far as its headers go. */
export function fakeElf({ type = 4, note = true }: { type?: number; note?: boolean } = {}) {
  const bytes = new Uint8Array(256);
  const view = new DataView(bytes.buffer);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  view.setUint16(18, 62, true); // x86-64
  view.setBigUint64(32, 64n, true); // One program header, right behind this one.
  view.setUint16(54, 56, true);
  view.setUint16(56, 1, true);
  view.setUint32(64, type, true);
  view.setBigUint64(64 + 8, 128n, true);
  view.setBigUint64(64 + 32, 44n, true);
  // Two notes: another one of Xen's, then the entry.
  for (const [at, kind] of [[128, 6], [148, note ? 18 : 7]] as const) {
    view.setUint32(at, 4, true);
    view.setUint32(at + 4, 4, true);
    view.setUint32(at + 8, kind, true);
    bytes.set(new TextEncoder().encode("Xen\0"), at + 12);
  }
  return bytes;
}

/** A `vmlinuz` with a packed payload. */
export function fakeVmlinuz(
  { version = FAKE_VERSION, packing = "gzip", pvh = true }: FakeKernelOptions = {},
): Uint8Array<ArrayBuffer> {
  const vmlinux = fakeElf({ note: pvh });
  const size = new Uint8Array(new Uint32Array([vmlinux.length]).buffer);
  const payload = packing === "gzip"
    ? gzipSync(vmlinux)
    : new Uint8Array([...zstdCompressSync(vmlinux), ...size]);
  const offset = 64;
  const bytes = new Uint8Array(5 * 512 + offset + payload.length + 32);
  const view = new DataView(bytes.buffer);
  view.setUint16(0x1fe, 0xaa55, true);
  bytes.set(new TextEncoder().encode("HdrS"), 0x202);
  view.setUint16(0x206, 0x020f, true);
  view.setUint16(0x20e, 0x100, true);
  bytes.set(new TextEncoder().encode(`${version} (builder@host) #1\0`), 0x300);
  view.setUint32(0x248, offset, true);
  view.setUint32(0x24c, payload.length, true);
  bytes.set(payload, 5 * 512 + offset);
  return bytes;
}

/** A module's file. */
export function fakeModule(
  name: string,
  depends: readonly string[] = [],
  kernel = FAKE_VERSION,
): Uint8Array<ArrayBuffer> {
  const texts = ["license=GPL", `depends=${depends.join(",")}`, `name=${name}`];
  const info = [...texts, `vermagic=${kernel} SMP mod_unload`].join("\0");
  return new TextEncoder().encode(`ELF of ${name}\0${info}\0`);
}

/** What guests need, each depending on what real ones depend on. */
const MODULES: Readonly<Record<string, readonly string[]>> = {
  virtio_ring: [],
  virtio: ["virtio_ring"],
  "9pnet": [],
  ...Object.fromEntries(GUEST_MODULES.map((name) => [name, ["virtio", "virtio_ring"]])),
  "9p": ["9pnet"],
};

/** Writes a kernel below a folder, as a package would; returns its paths. */
export async function writeFakeKernel(
  root: string,
  options: FakeKernelOptions = {},
): Promise<{ kernel: string; modules: string; origin: string }> {
  const { version = FAKE_VERSION, modules = MODULES, builtin = [] } = options;
  const folder = `${root}/lib/modules/${version}`;
  await Deno.mkdir(`${folder}/kernel/drivers/virtio`, { recursive: true });
  await Deno.mkdir(`${root}/boot`, { recursive: true });
  for (const [name, depends] of Object.entries(modules)) {
    const bytes = fakeModule(name, depends, options.modulesFor ?? version);
    // As in real kernels, the name of the file has dashes.
    const file = `${name.replaceAll("_", "-")}.ko`;
    await Deno.writeFile(`${folder}/kernel/drivers/virtio/${file}`, bytes);
  }
  const lines = builtin.map((name) => `kernel/lib/${name}.ko\n`);
  await Deno.writeTextFile(`${folder}/modules.builtin`, lines.join(""));
  const kernel = `${root}/boot/vmlinuz-${version}`;
  await Deno.writeFile(kernel, fakeVmlinuz(options));
  return { kernel, modules: folder, origin: `linux-image-${version}` };
}

/** A folder that is gone at the end of a test. */
export async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await Deno.makeTempDir({ prefix: "engine-vm-" });
  return {
    path,
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

/** A program of a {@linkcode FakeGuest}. */
export class FakeGuestProgram implements GuestProgram {
  readonly ended: Promise<Ended>;
  readonly end: (ended: Ended) => void;
  readonly signals: string[] = [];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly print: (text: string) => void;
  /** What a signal does. */
  onSignal: (name: "TERM" | "KILL") => unknown = () => this.end({ code: null, signal: "SIGTERM" });

  constructor(program: Parameters<BootedGuest["run"]>[0], output: (line: OutputLine) => void) {
    ({ promise: this.ended, resolve: this.end } = Promise.withResolvers<Ended>());
    this.env = program.env;
    this.directory = program.directory;
    this.print = (text) => output({ stream: "stdout", text });
  }

  signal(name: "TERM" | "KILL"): void {
    this.signals.push(name);
    this.onSignal(name);
  }
}

/** A machine that is booted in no time and runs nothing. */
export class FakeGuest implements BootedGuest {
  readonly pid = Deno.pid;
  readonly engineUrlHost = "10.0.2.2:7";
  readonly ended: Promise<Ended>;
  readonly options: GuestOptions;
  readonly #end: (ended: Ended) => void;
  readonly programs: FakeGuestProgram[] = [];
  readonly powerOffs: number[] = [];
  readonly execs: { program: Parameters<BootedGuest["exec"]>[0]; signal: AbortSignal }[] = [];
  /** While set, no program can be run in it. */
  isBroken = false;

  constructor(options: GuestOptions) {
    this.options = options;
    ({ promise: this.ended, resolve: this.#end } = Promise.withResolvers<Ended>());
  }

  /** What ran in it has ended with it. */
  end(ended: Ended): void {
    this.#end(ended);
    const reason = ended.reason ?? "its microVM ended";
    for (const program of this.programs) program.end({ code: null, signal: "SIGKILL", reason });
  }

  run(program: Parameters<BootedGuest["run"]>[0], output: (line: OutputLine) => void) {
    if (this.isBroken) return Promise.reject(new Error("the connection to the guest is closed"));
    this.programs.push(new FakeGuestProgram(program, output));
    return Promise.resolve(this.programs.at(-1)!);
  }

  exec(
    program: Parameters<BootedGuest["exec"]>[0],
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended> {
    this.execs.push({ program, signal });
    output({ stream: "stdout", bytes: new TextEncoder().encode("hello") });
    return Promise.resolve({ code: 3, signal: null });
  }

  powerOff(graceMs: number): Promise<Ended> {
    this.powerOffs.push(graceMs);
    this.end({ code: 0, signal: null });
    return this.ended;
  }
}
