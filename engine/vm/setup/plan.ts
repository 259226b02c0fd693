/**
 * Plans the setup: what to run on a machine before microVMs can run there. Planning changes
 * nothing.
 *
 * Only apt is run; for other package managers the error message tells what to do by hand.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { createDecompress } from "../image/kernel_file.ts";
import { findInstalledKernel, type KernelSource } from "../image/kernel_store.ts";
import { findVmParts, type VmParts } from "../machine/host_tools.ts";
import type { SetupMachine } from "./setup_machine.ts";

/** A kernel that the user names. */
export interface NamedKernel {
  /** Absolute path of a `vmlinuz` or `vmlinux`. */
  readonly kernel: string;
  /** Absolute path of the folder of its modules. */
  readonly modules: string;
}

/** Steps of a setup, in this order; all are empty when nothing is missing. */
export interface SetupPlan {
  /** Command that updates apt's package lists, if they lack a package. */
  readonly update: readonly string[] | null;
  /** Command that installs packages into the system. */
  readonly install: readonly string[] | null;
  /** Packages to fetch and unpack into the cache without installing them. */
  readonly fetch: readonly string[];
  /** Whether `fetch` includes a kernel, whose name apt knows only with package lists. */
  readonly fetchesKernel: boolean;
  /** A kernel on this machine to copy into the cache. */
  readonly kernel: KernelSource | null;
}

const QEMU_PACKAGE = "qemu-system-x86";
const BUSYBOX_PACKAGE = "busybox-static";
const XZ_PACKAGE = "xz-utils";

/** Packages that depend on the newest kernel of Debian and Ubuntu. Cloud kernels lack 9p. */
const KERNEL_PACKAGES: readonly string[] = ["linux-image-amd64", "linux-image-generic"];
/** Names of the dependencies that contain a kernel's files. */
const KERNEL_FILES = /^linux-(image|modules|modules-extra)-\d/;

/** Commands that install QEMU and a static busybox with other package managers. */
const MANUAL_INSTALLS: readonly (readonly [string, string])[] = [
  ["dnf", "dnf install qemu-system-x86-core busybox"],
  ["pacman", "pacman -S qemu-system-x86 busybox"],
  ["zypper", "zypper install qemu-x86 busybox-static"],
  ["apk", "apk add qemu-system-x86_64 busybox-static"],
];

const NO_NETWORK = "there is no way to the package server; check the network and http_proxy";

/** Patterns in the output of apt, dpkg and sudo, and what to do about them. */
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
    "sudo was not allowed; let an administrator run it by hand, then repeat this",
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

/**
 * Plans what a machine lacks.
 *
 * @param named Kernel to use instead of any other.
 * @throws {EngineError} `isolation_unavailable` when the machine cannot be set up, with what to do;
 * `INVALID_ARGUMENTS` when the named kernel does not exist.
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

/** The commands of a plan as a user would type them, for a dry run. */
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

/** Command that fetches packages into its working directory. */
export function downloadCommand(names: readonly string[]): string[] {
  return ["apt-get", "download", ...names];
}

/** Command that unpacks a package into its working directory. */
export function unpackCommand(file: string): string[] {
  return ["dpkg", "-x", file, "."];
}

/** Whether apt has a candidate for each package. */
export async function areAvailable(
  machine: SetupMachine,
  names: readonly string[],
): Promise<boolean> {
  for (const name of names) {
    const policy = await machine.ask(["apt-cache", "policy", name]);
    if (!/^\s*Candidate: (?!\(none\))\S/m.test(policy)) return false;
  }
  return true;
}

/** Names of the packages with the newest kernel and its modules; empty when apt lists none. */
export async function kernelPackages(machine: SetupMachine): Promise<string[]> {
  for (const name of KERNEL_PACKAGES) {
    const found = new Set<string>();
    const visit = async (parent: string): Promise<void> => {
      const text = await machine.ask(["apt-cache", "depends", parent]);
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

/** Advice for a command that failed with this output. */
export function adviceFor(output: string): string {
  const known = FAILURES.find(([pattern]) => pattern.test(output));
  if (known) return known[1];
  const lastLine = output.split("\n").map((line) => line.trim()).findLast((line) => line !== "");
  return lastLine === undefined ? "it said nothing; run it by hand" : `it said: ${lastLine}`;
}

async function planPackages(
  machine: SetupMachine,
  parts: VmParts,
  kernel: KernelSource | null,
  fetchesKernel: boolean,
): Promise<SetupPlan> {
  if (await machine.find("apt-get") === undefined) {
    const lines = await manualSteps(machine);
    const what = parts.missing.join(", ");
    throw impossible(
      [`This machine lacks ${what}, and has no apt-get; ${lines[0]}`, ...lines.slice(1)]
        .join("\n"),
    );
  }
  const install: string[] = [];
  if (parts.qemu === undefined) install.push(QEMU_PACKAGE);
  // Without xz guests boot the vmlinuz, which takes twice as long.
  const lacksXz = fetchesKernel && await machine.find("xz") === undefined;
  const root = await rootPrefix(machine);
  if (lacksXz && root) install.push(XZ_PACKAGE);
  const fetch = [
    ...parts.busybox === undefined ? [BUSYBOX_PACKAGE] : [],
    ...fetchesKernel ? await kernelPackages(machine) : [],
  ];
  const knowsKernel = !fetchesKernel || fetch.some((name) => name.startsWith("linux-image-"));
  const known = knowsKernel && await areAvailable(machine, [...install, ...fetch]);
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

/** The kernel to copy: the named one, or an installed one if the cache has none. */
async function chosenKernel(
  machine: SetupMachine,
  parts: VmParts,
  named: NamedKernel | undefined,
): Promise<KernelSource | null> {
  if (named) {
    await Promise.all([
      requirePath(named.kernel, "isFile"),
      requirePath(named.modules, "isDirectory"),
    ]);
    return { ...named, origin: named.kernel };
  }
  if (parts.kernel !== undefined) return null;
  return await findInstalledKernel(machine.root, createDecompress(await machine.find("xz"))) ??
    null;
}

async function requirePath(path: string, kind: "isFile" | "isDirectory"): Promise<void> {
  const info = await Deno.stat(path).catch(() => undefined);
  if (info?.[kind]) return;
  const what = kind === "isFile" ? "file" : "folder";
  throw new EngineError("INVALID_ARGUMENTS", `There is no ${what} ${path} that can be read`);
}

/** Prefix of commands that need root; `undefined` when this user cannot run them. */
async function rootPrefix(machine: SetupMachine): Promise<readonly string[] | undefined> {
  if (machine.uid === 0) return [];
  return await machine.find("sudo") === undefined ? undefined : ["sudo"];
}

function impossible(message: string): EngineError {
  return new EngineError("isolation_unavailable", message);
}

/** Instructions for a machine without apt, as lines. */
export async function manualSteps(machine: SetupMachine): Promise<string[]> {
  const found = await Promise.all(MANUAL_INSTALLS.map(([program]) => machine.find(program)));
  const install = MANUAL_INSTALLS.find((_, i) => found[i] !== undefined)?.[1];
  return [
    install === undefined
      ? "install qemu-system-x86_64 and a static busybox"
      : `install QEMU and a static busybox, such as: ${install}`,
    "then name a kernel that has 9p and virtio as modules, such as this machine's own:",
    '  engine vm setup --kernel "/boot/vmlinuz-$(uname -r)" --modules "/lib/modules/$(uname -r)"',
  ];
}
