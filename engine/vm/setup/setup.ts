/**
 * `engine vm setup`: installs what microVMs need, and boots one as a check.
 *
 * It prints every command before it runs it. It can be repeated at any time, since it fetches only
 * what is missing. Kernel and busybox go into the user's cache, only QEMU into the system.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Accelerator } from "../../ports/launcher.ts";
import { removeStale, withTemporary } from "../image/cache_files.ts";
import { assembleVmHost, findVmParts, type VmHost } from "../machine/host_tools.ts";
import { type KernelSource, storeKernel } from "../image/kernel_store.ts";
import { Accelerators, type KvmOptions } from "../machine/accelerators.ts";
import {
  adviceFor,
  downloadCommand,
  type NamedKernel,
  planLines,
  planSetup,
  unpackCommand,
} from "./plan.ts";
import { BOOT_TIMEOUT_MS } from "../machine/machine.ts";
import { bootProbe, type ProbeBoot } from "../machine/probe_boot.ts";
import { type SetupMachine, thisMachine } from "./setup_machine.ts";
import { createDecompress } from "../image/kernel_file.ts";

/** Options of the setup. */
export interface VmSetupOptions {
  /** Receives lines of progress, including commands and their output. */
  readonly print: (line: string) => void;
  /** Kernel to boot instead of one that is found or fetched. */
  readonly kernel?: NamedKernel | undefined;
}

/** Dependencies that tests replace. */
export interface SetupParts {
  /** Default: the machine on which the engine runs. */
  readonly machine?: SetupMachine;
  /** Boots the check. Default: with QEMU. */
  readonly boot?: ProbeBoot;
  readonly kvm?: KvmOptions;
}

/** Result of the setup. */
export interface VmSetupReport {
  /** Whether a worker with accelerator `auto` can start now. */
  readonly ready: boolean;
  /** The accelerator of the check. */
  readonly accelerator: Accelerator;
  /** Why that is not KVM, with what to do; else `null`. */
  readonly why: string | null;
  /** Whole milliseconds from the start of QEMU until the guest had loaded its modules. */
  readonly boot_ms: number;
  /** The guest kernel's version. */
  readonly kernel: string;
  /** Absolute path of the cache folder. */
  readonly cache: string;
}

/**
 * Installs what microVMs need on this machine, and boots one as a check.
 *
 * @throws {EngineError} `isolation_unavailable`, `install_failed` or `launch_failed`, with what to
 * do. Completed steps are not repeated next time.
 */
export async function setUpVm(
  options: VmSetupOptions,
  parts: SetupParts = {},
): Promise<VmSetupReport> {
  const { print } = options;
  const machine = parts.machine ?? thisMachine();
  await installParts(machine, options.kernel, print);
  const host = await readyHost(machine);
  const cache = machine.places.cache!; // Else planSetup() has thrown.
  await removeUnused(cache, host);
  return { ...await checkBoot(host, print, parts), kernel: host.image.version, cache };
}

/**
 * The commands that {@linkcode setUpVm} would run on this machine; empty when nothing is missing.
 *
 * @throws {EngineError} `isolation_unavailable` when the machine cannot be set up, with what to do.
 */
export async function vmSetupCommands(kernel?: NamedKernel): Promise<string[]> {
  const machine = thisMachine();
  return planLines(await planSetup(machine, kernel), machine.places.cache!);
}

async function installParts(
  machine: SetupMachine,
  named: NamedKernel | undefined,
  print: (line: string) => void,
): Promise<void> {
  let plan = await planSetup(machine, named);
  if (machine.uid === 0 && machine.sudoUser) {
    print(
      `This fills the cache of root, not that of ${machine.sudoUser}; leave out sudo for yours`,
    );
  }
  if (plan.update?.[0] === "sudo" || plan.install?.[0] === "sudo") {
    print("The system's package manager needs root: sudo runs it and may ask for a password");
  }
  if (plan.update) {
    await run(machine, plan.update, "/", print);
    plan = await planSetup(machine, named);
    if (plan.update) {
      const message =
        "apt does not know all that is needed; check the sources in /etc/apt, or name" +
        " a kernel with --kernel FILE --modules DIR";
      throw new EngineError("install_failed", message);
    }
  }
  if (plan.install) await run(machine, plan.install, "/", print);
  const cache = machine.places.cache!; // Else planSetup() has thrown.
  if (plan.fetch.length > 0) await fetchParts(machine, cache, plan.fetch, print);
  if (plan.kernel) await copyKernel(machine, cache, plan.kernel, print);
  if (!plan.install && plan.fetch.length === 0 && !plan.kernel) print("Nothing is missing");
}

/** Fetches packages, copies what is needed into the cache and removes the rest. */
async function fetchParts(
  machine: SetupMachine,
  cache: string,
  names: readonly string[],
  print: (line: string) => void,
): Promise<void> {
  await withTemporary(cache, async (folder) => {
    await run(machine, downloadCommand(names), folder, print);
    for await (const { name } of Deno.readDir(folder)) {
      if (name.endsWith(".deb")) await run(machine, unpackCommand(name), folder, print);
    }
    for (const path of ["usr/bin/busybox", "bin/busybox"]) {
      await Deno.rename(`${folder}/${path}`, `${cache}/busybox`)
        .catch(() => {}); // The packages have one of the two paths, or none.
    }
    const image = names.find((name) => name.startsWith("linux-image-"));
    if (image === undefined) return;
    const version = image.replace(/^linux-image-(unsigned-)?/, "");
    const modules = await firstFolder([
      `${folder}/lib/modules/${version}`,
      `${folder}/usr/lib/modules/${version}`,
    ]);
    const kernel = `${folder}/boot/vmlinuz-${version}`;
    await copyKernel(machine, cache, { kernel, modules, origin: image }, print);
  }).catch((thrown) => {
    if (thrown instanceof EngineError) throw thrown;
    throw failed(`The cache ${cache} cannot be written`, thrown);
  });
}

async function copyKernel(
  machine: SetupMachine,
  cache: string,
  source: KernelSource,
  print: (line: string) => void,
): Promise<void> {
  print(`Taking kernel and modules of ${source.origin} into ${cache}`);
  try {
    await storeKernel(cache, source, createDecompress(await machine.find("xz")), print);
  } catch (thrown) {
    throw failed(`The kernel of ${source.origin} cannot be used`, thrown);
  }
}

/** Prints a command, then runs it. */
async function run(
  machine: SetupMachine,
  command: readonly string[],
  directory: string,
  print: (line: string) => void,
): Promise<void> {
  const line = command.join(" ");
  print(`$ ${line}`);
  const { success, output } = await machine.run(command, directory, (text) => print(`  ${text}`));
  if (!success) {
    throw new EngineError("install_failed", `${line} failed: ${adviceFor(output)}`);
  }
}

/** The installed parts with the image. */
async function readyHost({ places }: SetupMachine): Promise<VmHost> {
  const parts = await findVmParts(places);
  const host = await assembleVmHost(parts, places).catch((thrown) => {
    throw failed(`The image cannot be made in ${places.cache}`, thrown);
  });
  if (host) return host;
  const missing = parts.missing.join(", ");
  const message = `Every command has run, and this machine still lacks ${missing}`;
  throw new EngineError("install_failed", message);
}

/** Removes old kernels and images, except those that another engine may be writing. */
async function removeUnused(cache: string, { image }: VmHost): Promise<void> {
  const now = Date.now();
  const folderOf = (path: string) => path.split("/").at(-2)!;
  const kernel = folderOf(image.kernel);
  await removeStale(cache, () => true, now);
  await removeStale(`${cache}/kernels`, (name) => name === kernel || name === "current", now);
  await removeStale(`${cache}/images`, (name) => name === folderOf(image.initrd), now);
}

async function checkBoot(
  host: VmHost,
  print: (line: string) => void,
  { boot = bootProbe, kvm = {} }: SetupParts,
): Promise<Pick<VmSetupReport, "ready" | "accelerator" | "why" | "boot_ms">> {
  const accelerators = new Accelerators({ boot, ...kvm, fresh: true });
  const obstacle = await accelerators.obstacle(host);
  const accelerator = obstacle === null ? "kvm" : "tcg";
  print(`Booting a guest with ${accelerator} as a check`);
  const request = { host, accelerator, until: "loaded", limitMs: BOOT_TIMEOUT_MS } as const;
  const { outcome, afterMs, tail } = await boot(request);
  const failures = tail.filter((line) => /^engine-probe: module \S+ failed/.test(line));
  if (outcome === "reached" && failures.length === 0) {
    const ready = obstacle === null || !obstacle.blocks;
    return { ready, accelerator, why: obstacle?.reason ?? null, boot_ms: afterMs };
  }
  for (const line of tail) print(`  ${line}`);
  const what = outcome === "timeout"
    ? `did not come up within ${BOOT_TIMEOUT_MS / 1000} s`
    : "ended before it had loaded its modules";
  throw new EngineError(
    "launch_failed",
    `A guest with kernel ${host.image.version} ${what}; try another one with --kernel FILE` +
      " --modules DIR",
  );
}

function failed(what: string, thrown: unknown): EngineError {
  const { message } = thrown as Error;
  const reason = /No space left/.test(message) ? adviceFor(message) : message;
  return new EngineError("install_failed", `${what}: ${reason}`, { cause: thrown });
}

async function firstFolder(paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    if ((await Deno.stat(path).catch(() => undefined))?.isDirectory) return path;
  }
  return paths[0]!;
}
