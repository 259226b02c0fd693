/**
 * The command line of one guest. Computes texts only; `machine.ts` runs them.
 *
 * The machine has what a guest needs and no more: processors, memory, a serial line for the
 * kernel's last words, one 9p device for each share, one network device, and ports. Each port is a
 * unix socket on which the engine already listens when QEMU starts.
 *
 * @module
 */
import { shellWord } from "../../process/programs.ts";
import type { Accelerator, Network, Resources } from "../../ports/launcher.ts";
import type { Image } from "../image/image.ts";

/** A folder of the host as the guest's kernel sees it. */
export interface SharedFolder {
  /** Name of the device, such as `s0`. */
  readonly tag: string;
  /** Absolute path on the host. */
  readonly path: string;
  readonly writable: boolean;
}

/** A way between guest and engine. */
export interface GuestPort {
  /** As the guest finds it. */
  readonly name: string;
  /** Path of the socket. */
  readonly socket: string;
}

/** Where on the host the engine listens. */
export interface EngineAddress {
  readonly hostname: string;
  readonly port: number;
}

/** What a machine is, whatever it sees of the host. */
export interface MachineOptions {
  /** The worker's name, for messages and as host name. */
  readonly name: string;
  readonly image: Image;
  /** Path of `qemu-system-x86_64`. */
  readonly qemu: string;
  /** Path of a static busybox. */
  readonly busybox: string;
  readonly accelerator: Accelerator;
  readonly resources: Resources;
  readonly network: Network;
  readonly engine: EngineAddress;
}

/** All that a command line says. */
export interface QemuOptions extends MachineOptions {
  readonly shares: readonly SharedFolder[];
  readonly ports: readonly GuestPort[];
  /** Kilohertz of the time stamp counter, for software emulation. */
  readonly clockKhz: number | undefined;
}

/** The host, as the guest sees it. */
const HOST_ADDRESS = "10.0.2.2";
/** Where connections to the engine go that have to be carried there one by one. */
const CARRIED_ADDRESS = "10.0.2.4";
/** Translated code that is kept by software emulation, in MiB: QEMU's own default is 1,024. */
const TRANSLATED_MB = 128;

/** Program and arguments. */
export function qemuCommand(options: QemuOptions): string[] {
  const { accelerator, image, resources } = options;
  const isKvm = accelerator === "kvm";
  return [
    options.qemu,
    ...["-name", `engine-${quote(options.name)}`],
    ...["-M", "microvm,pcie=on,x-option-roms=off,auto-kernel-cmdline=off"],
    ...["-accel", isKvm ? "kvm" : emulation(resources.cpus)],
    ...["-cpu", isKvm ? "host" : "max"],
    ...["-smp", `${resources.cpus}`, "-m", `${resources.memory_mb}`],
    ...["-nodefaults", "-no-user-config", "-nographic", "-no-reboot"],
    ...["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"],
    ...["-sandbox", sandbox(options)],
    ...["-kernel", image.kernel, "-initrd", image.initrd],
    ...["-append", kernelCommandLine(options)],
    ...options.shares.flatMap(shareArguments),
    ...networkArguments(options),
    ...["-device", "virtio-balloon-pci,free-page-reporting=on"],
    ...portArguments(options.ports),
  ];
}

/**
 * Several processors take turns on one thread: with a thread each, one boot in forty stopped for
 * ever while the kernel loaded its certificates, and the others took longer.
 */
function emulation(cpus: number): string {
  return `tcg,thread=${cpus > 1 ? "single" : "multi"},tb-size=${TRANSLATED_MB}`;
}

/** What the guest's kernel is told. */
export function kernelCommandLine({ accelerator, clockKhz }: QemuOptions): string {
  const words = [
    "console=ttyS0",
    "quiet",
    "reboot=t", // The only way out of a machine without ACPI's power button.
    "panic=-1",
    "cryptomgr.notests", // A third of a second in software emulation.
    "8250.nr_uarts=1",
  ];
  if (accelerator === "tcg" && clockKhz !== undefined) {
    words.push(`tsc_early_khz=${clockKhz}`, "tsc=reliable");
  }
  return words.join(" ");
}

/** Host and port at which a guest's programs find the engine. */
export function engineUrlHost(network: Network, engine: EngineAddress): string {
  const { hostname, port } = engine;
  if (isCarried(network, engine)) return `${CARRIED_ADDRESS}:${port}`;
  return `${isAtHost(hostname) ? HOST_ADDRESS : hostname}:${port}`;
}

/**
 * QEMU may start programs, and give them a session of their own, only where connections are carried
 * one by one: see {@linkcode networkArguments}.
 */
function sandbox({ network, engine }: QemuOptions): string {
  const programs = isCarried(network, engine) ? "allow" : "deny";
  return `on,obsolete=deny,resourcecontrol=deny,elevateprivileges=${programs},spawn=${programs}`;
}

function shareArguments({ tag, path, writable }: SharedFolder): string[] {
  const access = writable ? "" : ",readonly=on";
  return [
    "-fsdev",
    `local,id=${tag},path=${quote(path)},security_model=none,multidevs=remap${access}`,
    "-device",
    `virtio-9p-pci,fsdev=${tag},mount_tag=${tag}`,
  ];
}

/**
 * `restrict` cuts the guest off from everything, the host included. What may pass goes to an
 * address of its own, where QEMU starts a program for each connection.
 */
function networkArguments({ busybox, engine, network }: QemuOptions): string[] {
  let user = "user,id=n,ipv6=off";
  if (network === "engine") user += ",restrict=on";
  if (isCarried(network, engine)) {
    const { port } = engine;
    const host = isAtHost(engine.hostname) ? "127.0.0.1" : bare(engine.hostname);
    // QEMU splits it as a shell does, without running one.
    const carry = `${shellWord(busybox)} nc ${shellWord(host)} ${port}`;
    user += `,guestfwd=tcp:${CARRIED_ADDRESS}:${port}-cmd:${quote(carry)}`;
  }
  return ["-netdev", user, "-device", "virtio-net-pci,netdev=n,romfile="];
}

function portArguments(ports: readonly GuestPort[]): string[] {
  return [
    ...["-device", "virtio-serial-pci,max_ports=31"],
    ...ports.flatMap(({ name, socket }) => [
      ...["-chardev", `socket,id=${name},path=${quote(socket)}`],
      ...["-device", `virtserialport,chardev=${name},name=${name}`],
    ]),
  ];
}

/** The guest's network knows IPv4 only, and `restrict` knows no exception but this. */
function isCarried(network: Network, { hostname }: EngineAddress): boolean {
  if (network === "engine") return true;
  return !isAtHost(hostname) && (hostname.includes(":") || hostname.startsWith("127."));
}

/** Whether what listens there is reached through the host's 127.0.0.1. */
function isAtHost(hostname: string): boolean {
  return ["127.0.0.1", "localhost", "0.0.0.0", "::"].includes(bare(hostname));
}

function bare(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

/** A value of an option: QEMU reads a doubled comma as one. */
function quote(value: string): string {
  return value.replaceAll(",", ",,");
}
