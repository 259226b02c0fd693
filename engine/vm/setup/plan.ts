/**
 * What has to be run on a machine before microVMs can run there; nothing is changed by planning.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { findVmParts, type VmParts } from "../machine/host_tools.ts";
import { findInstalledKernel } from "../image/installed_kernel.ts";
import type { KernelSource } from "../image/kernel_store.ts";
import { byHand, isKnown, KERNEL_PACKAGES, kernelPackages } from "./packages.ts";
import type { SetupMachine } from "./setup_machine.ts";
import { createUnpack } from "../image/unpack.ts";

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
  return await findInstalledKernel(machine.root, createUnpack(await machine.find("xz"))) ?? null;
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
