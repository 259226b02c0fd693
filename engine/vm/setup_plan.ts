/**
 * What has to be run on a machine before microVMs can run there; nothing is changed by planning.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import { findVmParts, type VmParts } from "./host_tools.ts";
import { findInstalledKernel } from "./installed_kernel.ts";
import type { KernelSource } from "./kernel_store.ts";
import { byHand, isKnown, kernelPackages } from "./packages.ts";
import type { SetupMachine } from "./setup_machine.ts";
import { createUnpack } from "./unpack.ts";

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
  /** Whether one of them is for busybox. */
  readonly busybox: boolean;
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
    return { update: null, install: null, fetch: [], busybox: false, kernel };
  }
  return await planPackages(machine, parts, kernel, fetchesKernel);
}

/** The commands of a plan as a person would type them, for a dry run. */
export function planLines(plan: SetupPlan, cache: string): string[] {
  const lines = [plan.update, plan.install].filter((command) => command !== null)
    .map((command) => command.join(" "));
  if (plan.fetch.length > 0) {
    lines.push(`cd ${cache}`, downloadCommand(plan.fetch).join(" "));
    lines.push(...plan.fetch.map((name) => unpackCommand(`${name}_*.deb`).join(" ")));
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
  const busybox = parts.busybox === undefined;
  const install: string[] = [];
  if (parts.qemu === undefined) install.push(QEMU_PACKAGE);
  // Without it guests boot the vmlinuz as it is, which takes twice as long.
  if (fetchesKernel && await machine.find("xz") === undefined) install.push(XZ_PACKAGE);
  const fetch = busybox ? [BUSYBOX_PACKAGE] : [];
  const fromKernel = fetchesKernel ? await kernelPackages(machine) : [];
  const known = await isKnown(machine, [...install, ...fetch, ...fromKernel]) &&
    (!fetchesKernel || fromKernel.length > 0);
  return {
    update: known ? null : await asRoot(machine, ["apt-get", "update"]),
    install: install.length === 0
      ? null
      : await asRoot(machine, ["apt-get", "install", "-y", "--no-install-recommends", ...install]),
    fetch: [...fetch, ...fromKernel],
    busybox,
    kernel,
  };
}

/** The kernel to copy: the one that was named, or an installed one when the cache has none. */
async function chosenKernel(
  machine: SetupMachine,
  parts: VmParts,
  named: NamedKernel | undefined,
): Promise<KernelSource | null> {
  if (named) return { ...named, origin: named.kernel };
  if (parts.kernel !== undefined) return null;
  return await findInstalledKernel(machine.root, createUnpack(await machine.find("xz"))) ?? null;
}

async function asRoot(machine: SetupMachine, command: readonly string[]): Promise<string[]> {
  if (machine.uid === 0) return [...command];
  if (await machine.find("sudo") !== undefined) return ["sudo", ...command];
  throw impossible(
    `This needs root, and there is no sudo; let root run: ${command.join(" ")}; then repeat this`,
  );
}

function impossible(message: string): EngineError {
  return new EngineError("isolation_unavailable", message);
}
