/**
 * QEMU's command line for one guest. It only builds the arguments; `machine.ts` runs them.
 *
 * The machine has processors, memory, a serial line as console, one 9p device for each shared
 * folder, one network device, a balloon, and ports. Each port is a unix socket on which the engine
 * already listens when QEMU starts.
 *
 * @module
 */
import { shellWord } from "../../process/programs.ts";
import type { Share } from "../../install/guest_access.ts";
import type { Accelerator, Network, Resources } from "../../ports/launcher.ts";
import type { Image } from "../image/image.ts";

/** A shared folder as a 9p device. */
export interface SharedFolder extends Share {
  /** Mount tag, such as `s0`. */
  readonly tag: string;
}

/** A virtio serial port between guest and engine. */
export interface GuestPort {
  /** Name of the port in the guest. */
  readonly name: string;
  /** Path of the unix socket on the host. */
  readonly socket: string;
}

/** Address on which the engine listens on the host. */
export interface EngineAddress {
  readonly hostname: string;
  readonly port: number;
}

/** Configuration of a machine, apart from its shared folders and ports. */
export interface MachineOptions {
  /** Name of the worker, used in messages and as host name. */
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

/** Complete configuration of a machine. */
export interface QemuOptions extends MachineOptions {
  readonly shares: readonly SharedFolder[];
  readonly ports: readonly GuestPort[];
  /** Rate of the time stamp counter in kHz, needed in software emulation. */
  readonly clockKhz: number | undefined;
}

/** Address of the host in the guest's network. */
const HOST_ADDRESS = "10.0.2.2";
/** Address from which QEMU forwards each connection to the engine through a program. */
const FORWARDED_ADDRESS = "10.0.2.4";
/** Cache for translated code in software emulation, in MiB; QEMU's default is 1,024. */
const TRANSLATED_MB = 128;

/** QEMU's path and arguments. */
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
 * All processors share one thread: with a thread for each, one boot in forty hung while the kernel
 * loaded its certificates, and the others took longer.
 */
function emulation(cpus: number): string {
  return `tcg,thread=${cpus > 1 ? "single" : "multi"},tb-size=${TRANSLATED_MB}`;
}

/** Command line of the guest's kernel. */
export function kernelCommandLine({ accelerator, clockKhz }: QemuOptions): string {
  const words = [
    "console=ttyS0",
    "quiet",
    "reboot=t", // A microvm machine has no ACPI, so a triple fault is its only power-off.
    "panic=-1",
    "cryptomgr.notests", // Saves a third of a second in software emulation.
    "8250.nr_uarts=1",
  ];
  if (accelerator === "tcg" && clockKhz !== undefined) {
    words.push(`tsc_early_khz=${clockKhz}`, "tsc=reliable");
  }
  return words.join(" ");
}

/** Host and port at which programs in the guest reach the engine. */
export function engineUrlHost(network: Network, engine: EngineAddress): string {
  const { hostname, port } = engine;
  if (isForwarded(network, engine)) return `${FORWARDED_ADDRESS}:${port}`;
  return `${isOnHost(hostname) ? HOST_ADDRESS : hostname}:${port}`;
}

/** QEMU may start programs only if it forwards connections; see {@linkcode networkArguments}. */
function sandbox({ network, engine }: QemuOptions): string {
  const programs = isForwarded(network, engine) ? "allow" : "deny";
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
 * `restrict` blocks all connections, including those to the host. `guestfwd` is its only exception:
 * QEMU starts a program for each connection to the forwarded address.
 */
function networkArguments({ busybox, engine, network }: QemuOptions): string[] {
  let user = "user,id=n,ipv6=off";
  if (network === "engine") user += ",restrict=on";
  if (isForwarded(network, engine)) {
    const { port } = engine;
    const host = isOnHost(engine.hostname) ? "127.0.0.1" : unbracketed(engine.hostname);
    // QEMU splits the command like a shell, without running one.
    const forward = `${shellWord(busybox)} nc ${shellWord(host)} ${port}`;
    user += `,guestfwd=tcp:${FORWARDED_ADDRESS}:${port}-cmd:${quote(forward)}`;
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

/**
 * Whether QEMU forwards connections to the engine: if the network is restricted, or if the engine's
 * address is not reachable from the guest (IPv6, or a loopback address other than 127.0.0.1).
 */
function isForwarded(network: Network, { hostname }: EngineAddress): boolean {
  if (network === "engine") return true;
  return !isOnHost(hostname) && (hostname.includes(":") || hostname.startsWith("127."));
}

/** Whether a server on this address accepts connections to the host's 127.0.0.1. */
function isOnHost(hostname: string): boolean {
  return ["127.0.0.1", "localhost", "0.0.0.0", "::"].includes(unbracketed(hostname));
}

function unbracketed(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

/** Quotes an option value: QEMU reads a doubled comma as one. */
function quote(value: string): string {
  return value.replaceAll(",", ",,");
}
