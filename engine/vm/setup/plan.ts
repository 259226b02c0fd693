/**
 * What has to be run on a machine before microVMs can run there; nothing is changed by planning.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { createDecompress } from "../image/kernel_file.ts";
import { findInstalledKernel, type KernelSource } from "../image/kernel_store.ts";
import { findVmParts, type VmParts } from "../machine/host_tools.ts";
import type { SetupMachine } from "./setup_machine.ts";

/** A kernel that was named by hand. */
export interface NamedKernel {
  /** Absolute path of a `vmlinuz` or `vmlinux`. */
  readonly kernel: string;
  /** Absolute path of the folder of its modules. */
  readonly modules: string;
}

/** What has to be done, in this order; an empty plan means that all is there. */
export interface SetupPlan {
  /** Gets apt's lists of packages, which do not know all that is needed. */
  readonly update: readonly string[] | null;
  /** Installs packages into the system. */
  readonly install: readonly string[] | null;
  /** Packages that are fetched and unpacked into the cache, without being installed. */
  readonly fetch: readonly string[];
  /** Whether a kernel has to be among them; apt without its lists does not know its name. */
  readonly fetchesKernel: boolean;
  /** A kernel that is on this machine and is copied into the cache. */
  readonly kernel: KernelSource | null;
}

const QEMU_PACKAGE = "qemu-system-x86";
const BUSYBOX_PACKAGE = "busybox-static";
const XZ_PACKAGE = "xz-utils";

/**
 * Looks at a machine and says what it lacks.
 *
 * @param named Used instead of any other kernel.
 * @throws {EngineError} `isolation_unavailable` when it cannot be had here, with what to do.
 */
export async function planSetup(machine: SetupMachine, named?: NamedKernel): Promise<SetupPlan> {
  const parts = await findVmParts(machine.places);
  if (parts.unsupported !== null) {
    throw impossible(`${parts.unsupported}; run workers with --isolation process`);
  }
  if (machine.places.cache === undefined) {
    throw impossible("There is no place for the cache; set HOME or XDG_CACHE_HOME");
  }
  const kernel = await chosenKernel(machine, parts, named);
  const fetchesKernel = parts.kernel === undefined && kernel === null;
  if (parts.qemu !== undefined && parts.busybox !== undefined && !fetchesKernel) {
    return { update: null, install: null, fetch: [], fetchesKernel, kernel };
  }
  return await planPackages(machine, parts, kernel, fetchesKernel);
}

/** The commands of a plan as a person would type them, for a dry run. */
export function planLines(plan: SetupPlan, cache: string): string[] {
  const lines = [plan.update, plan.install].filter((command) => command !== null)
    .map((command) => command.join(" "));
  if (plan.fetch.length > 0) {
    lines.push(`# in a temporary folder of ${cache}:`, downloadCommand(plan.fetch).join(" "));
    lines.push(...plan.fetch.map((name) => unpackCommand(`${name}_*.deb`).join(" ")));
  }
  if (plan.fetchesKernel && !plan.fetch.some((name) => name.startsWith("linux-image-"))) {
    lines.push(`# the same with the package that ${KERNEL_PACKAGES.join(" or ")} depends on`);
  }
  if (plan.kernel) lines.push(`# copy ${plan.kernel.kernel} and its modules into ${cache}`);
  return lines;
}

/** Fetches packages into the folder it is run in. */
export function downloadCommand(names: readonly string[]): string[] {
  return ["apt-get", "download", ...names];
}

/** Unpacks a package into the folder it is run in. */
export function unpackCommand(file: string): string[] {
  return ["dpkg", "-x", file, "."];
}

async function planPackages(
  machine: SetupMachine,
  parts: VmParts,
  kernel: KernelSource | null,
  fetchesKernel: boolean,
): Promise<SetupPlan> {
  if (await machine.find("apt-get") === undefined) {
    const lines = await byHand(machine);
    const what = parts.missing.join(", ");
    throw impossible(
      [`This machine lacks ${what}, and has no apt-get; ${lines[0]}`, ...lines.slice(1)]
        .join("\n"),
    );
  }
  const install: string[] = [];
  if (parts.qemu === undefined) install.push(QEMU_PACKAGE);
  // Without it guests boot the vmlinuz as it is, which takes twice as long.
  const lacksXz = fetchesKernel && await machine.find("xz") === undefined;
  const root = await rootPrefix(machine);
  if (lacksXz && root) install.push(XZ_PACKAGE);
  const fetch = [
    ...parts.busybox === undefined ? [BUSYBOX_PACKAGE] : [],
    ...fetchesKernel ? await kernelPackages(machine) : [],
  ];
  const knowsKernel = !fetchesKernel || fetch.some((name) => name.startsWith("linux-image-"));
  const known = knowsKernel && await isKnown(machine, [...install, ...fetch]);
  const commands = {
    update: known ? null : ["apt-get", "update"],
    install: install.length === 0
      ? null
      : ["apt-get", "install", "-y", "--no-install-recommends", ...install],
  };
  const asRoot = [commands.update, commands.install].filter((command) => command !== null);
  if (!root && asRoot.length > 0) {
    const line = asRoot.map((command) => command.join(" ")).join(" && ");
    throw impossible(
      `This needs root, and there is no sudo; let root run ${line}, then repeat this`,
    );
  }
  return {
    update: commands.update && [...root!, ...commands.update],
    install: commands.install && [...root!, ...commands.install],
    fetch,
    fetchesKernel,
    kernel,
  };
}

/** The kernel to copy: the one that was named, or an installed one when the cache has none. */
async function chosenKernel(
  machine: SetupMachine,
  parts: VmParts,
  named: NamedKernel | undefined,
): Promise<KernelSource | null> {
  if (named) {
    await Promise.all([needs(named.kernel, "isFile"), needs(named.modules, "isDirectory")]);
    return { ...named, origin: named.kernel };
  }
  if (parts.kernel !== undefined) return null;
  return await findInstalledKernel(machine.root, createDecompress(await machine.find("xz"))) ??
    null;
}

async function needs(path: string, kind: "isFile" | "isDirectory"): Promise<void> {
  const info = await Deno.stat(path).catch(() => undefined);
  if (info?.[kind]) return;
  const what = kind === "isFile" ? "file" : "folder";
  throw new EngineError("INVALID_ARGUMENTS", `There is no ${what} ${path} that can be read`);
}

/** What a command of root begins with; `undefined` when this user cannot run one. */
async function rootPrefix(machine: SetupMachine): Promise<readonly string[] | undefined> {
  if (machine.uid === 0) return [];
  return await machine.find("sudo") === undefined ? undefined : ["sudo"];
}

function impossible(message: string): EngineError {
  return new EngineError("isolation_unavailable", message);
}

/** Packages that depend on the newest kernel: Debian's, Ubuntu's. Flavours for clouds lack 9p. */
export const KERNEL_PACKAGES: readonly string[] = ["linux-image-amd64", "linux-image-generic"];
/** Of what they depend on, the packages with the files of a kernel. */
const KERNEL_FILES = /^linux-(image|modules|modules-extra)-\d/;

/** What to install by hand where no apt is: QEMU and a static busybox. */
const BY_HAND: readonly (readonly [string, string])[] = [
  ["dnf", "dnf install qemu-system-x86-core busybox"],
  ["pacman", "pacman -S qemu-system-x86 busybox"],
  ["zypper", "zypper install qemu-x86 busybox-static"],
  ["apk", "apk add qemu-system-x86_64 busybox-static"],
];

/** What to do on a machine without apt, line by line. */
export async function byHand(machine: SetupMachine): Promise<string[]> {
  const found = await Promise.all(BY_HAND.map(([program]) => machine.find(program)));
  const install = BY_HAND.find((_, i) => found[i] !== undefined)?.[1];
  return [
    install === undefined
      ? "install qemu-system-x86_64 and a static busybox"
      : `install QEMU and a static busybox, such as: ${install}`,
    "then name a kernel that has 9p and virtio as modules, such as this machine's own:",
    '  engine vm setup --kernel "/boot/vmlinuz-$(uname -r)" --modules "/lib/modules/$(uname -r)"',
  ];
}

/** Whether apt knows where to get all the packages. */
export async function isKnown(machine: SetupMachine, names: readonly string[]): Promise<boolean> {
  for (const name of names) {
    const policy = await machine.ask(["apt-cache", "policy", name]);
    if (!/^\s*Candidate: (?!\(none\))\S/m.test(policy)) return false;
  }
  return true;
}

/** The packages with the newest kernel and its modules; empty when apt knows none. */
export async function kernelPackages(machine: SetupMachine): Promise<string[]> {
  for (const name of KERNEL_PACKAGES) {
    const found = new Set<string>();
    const visit = async (of: string): Promise<void> => {
      const text = await machine.ask(["apt-cache", "depends", of]);
      for (const [, other] of text.matchAll(/^[ |]+Depends: ([^\s<]\S*)$/gm)) {
        if (!KERNEL_FILES.test(other!) || found.has(other!)) continue;
        found.add(other!);
        await visit(other!);
      }
    };
    await visit(name);
    if ([...found].some((other) => other.startsWith("linux-image-"))) return [...found];
  }
  return [];
}

const NO_NETWORK = "there is no way to the package server; check the network and http_proxy";

/** What apt, dpkg or sudo said, by a part of it, and what to do then. */
const FAILURES: readonly (readonly [RegExp, string])[] = [
  [
    /No space left on device|don't have enough free space/i,
    "there is no space left; free some (a kernel takes 600 MB while it is unpacked)",
  ],
  [
    /Could not get lock|is another process using it/i,
    "another package manager is at work; try again when it has finished",
  ],
  [
    /not in the sudoers|may not run|password is required|incorrect password|terminal is required/i,
    "sudo was not allowed; let somebody who may run it by hand, then repeat this",
  ],
  [
    /\b404\b|Hash Sum mismatch|size mismatch/i,
    "the lists of packages are old; run apt-get update as root, then repeat this",
  ],
  [/Temporary failure|Could not (resolve|connect)|Cannot initiate|Unable to connect/i, NO_NETWORK],
  [/Network is unreachable|Failed to fetch|timed out/i, NO_NETWORK],
  [
    /Unable to locate package|No packages found|has no installation candidate|Can't find a source/i,
    "apt does not know the package; check the sources in /etc/apt",
  ],
  [/Permission denied|are you root/i, "this user may not do that; run it as root"],
];

/** What to do after a command that failed, in a few words. */
export function adviceOn(output: string): string {
  const known = FAILURES.find(([pattern]) => pattern.test(output));
  if (known) return known[1];
  const said = output.split("\n").map((line) => line.trim()).findLast((line) => line !== "");
  return said === undefined ? "it said nothing; run it by hand" : `it said: ${said}`;
}
