/**
 * `engine vm setup`: gets what microVMs need, and boots one as a check.
 *
 * Every command is said before it runs. What is there already is not fetched again, so that it can
 * be repeated at any time; kernel and busybox go into the user's cache, only QEMU into the system.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Accelerator } from "../../ports/launcher.ts";
import { removeStale, withTemporary } from "../image/cache_files.ts";
import { findVmParts, type VmHost } from "../machine/host_tools.ts";
import { prepareImage } from "../image/image.ts";
import { type KernelSource, storeKernel } from "../image/kernel_store.ts";
import { Accelerators, type KvmOptions } from "../machine/accelerators.ts";
import {
  adviceOn,
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

/** How to set up. */
export interface VmSetupOptions {
  /** Gets lines of progress, commands and what they print among them. */
  readonly say: (line: string) => void;
  /** Boot this kernel instead of one that is found or fetched. */
  readonly kernel?: NamedKernel | undefined;
}

/** What tests lend. */
export interface SetupParts {
  /** Default: the machine that this runs on. */
  readonly machine?: SetupMachine;
  /** Boots the check. Default: QEMU. */
  readonly boot?: ProbeBoot;
  readonly kvm?: KvmOptions;
}

/** What the setup came to. */
export interface VmSetupReport {
  /** Whether a worker that says nothing about its accelerator can be started now. */
  readonly ready: boolean;
  /** What the check ran with. */
  readonly accelerator: Accelerator;
  /** Why it is not KVM, with what to do; `null` when it is. */
  readonly why: string | null;
  /** Whole milliseconds from the start of QEMU until the guest had loaded its modules. */
  readonly boot_ms: number;
  /** The guest kernel's version. */
  readonly kernel: string;
  /** Absolute path of the cache folder. */
  readonly cache: string;
}

/**
 * Gets what microVMs need on this machine, and boots one as a check.
 *
 * @throws {EngineError} `isolation_unavailable`, `install_failed` or `launch_failed`, with what to
 * do; what was done until then stays and is not done again next time.
 */
export async function setUpVm(options: VmSetupOptions): Promise<VmSetupReport> {
  return await setUpMachine(options);
}

/**
 * The commands that {@linkcode setUpVm} would run on this machine; empty when nothing is missing.
 *
 * @throws {EngineError} `isolation_unavailable` when it cannot be set up, with what to do.
 */
export async function vmSetupCommands(kernel?: NamedKernel): Promise<string[]> {
  const machine = thisMachine();
  return planLines(await planSetup(machine, kernel), machine.places.cache!);
}

/** The same as {@linkcode setUpVm} for any machine. */
export async function setUpMachine(
  options: VmSetupOptions,
  parts: SetupParts = {},
): Promise<VmSetupReport> {
  const { say } = options;
  const machine = parts.machine ?? thisMachine();
  await getParts(machine, options.kernel, say);
  const host = await readyHost(machine);
  const cache = machine.places.cache!; // Without one planning has failed.
  await tidy(cache, host);
  return { ...await checkBoot(host, say, parts), kernel: host.image.version, cache };
}

/** All parts together, with the image made. */
async function readyHost(machine: SetupMachine): Promise<VmHost> {
  const { qemu, busybox, kernel, missing } = await findVmParts(machine.places);
  const { cache } = machine.places;
  if (!qemu || !busybox || !kernel || !cache) {
    const message = `Every command has run, and this machine still lacks ${missing.join(", ")}`;
    throw new EngineError("install_failed", message);
  }
  try {
    return { image: await prepareImage(cache, kernel, busybox), qemu, busybox };
  } catch (thrown) {
    throw failed(`The image cannot be made in ${cache}`, thrown);
  }
}

/** Removes older kernels and images, unless somebody may just be making them. */
async function tidy(cache: string, { image }: VmHost): Promise<void> {
  const now = Date.now();
  const folderOf = (path: string) => path.split("/").at(-2)!;
  const kernel = folderOf(image.kernel);
  await removeStale(cache, () => true, now);
  await removeStale(`${cache}/kernels`, (name) => name === kernel || name === "current", now);
  await removeStale(`${cache}/images`, (name) => name === folderOf(image.initrd), now);
}

async function getParts(
  machine: SetupMachine,
  named: NamedKernel | undefined,
  say: (line: string) => void,
): Promise<void> {
  let plan = await planSetup(machine, named);
  if (machine.uid === 0 && machine.sudoUser) {
    say(`This fills the cache of root, not that of ${machine.sudoUser}; leave out sudo for yours`);
  }
  if (plan.update?.[0] === "sudo" || plan.install?.[0] === "sudo") {
    say("The system's package manager needs root: sudo runs it and may ask for a password");
  }
  if (plan.update) {
    await run(machine, plan.update, "/", say);
    plan = await planSetup(machine, named);
    if (plan.update) {
      const message =
        "apt does not know all that is needed; check the sources in /etc/apt, or name" +
        " a kernel with --kernel FILE --modules DIR";
      throw new EngineError("install_failed", message);
    }
  }
  if (plan.install) await run(machine, plan.install, "/", say);
  const cache = machine.places.cache!; // Without one planning has failed.
  if (plan.fetch.length > 0) await fetchParts(machine, cache, plan.fetch, say);
  if (plan.kernel) await takeKernel(machine, cache, plan.kernel, say);
  if (!plan.install && plan.fetch.length === 0 && !plan.kernel) say("Nothing is missing");
}

/** Fetches packages, takes what is needed out of them and leaves nothing else behind. */
async function fetchParts(
  machine: SetupMachine,
  cache: string,
  names: readonly string[],
  say: (line: string) => void,
): Promise<void> {
  await withTemporary(cache, async (folder) => {
    await run(machine, downloadCommand(names), folder, say);
    for await (const { name } of Deno.readDir(folder)) {
      if (name.endsWith(".deb")) await run(machine, unpackCommand(name), folder, say);
    }
    for (const path of ["usr/bin/busybox", "bin/busybox"]) {
      await Deno.rename(`${folder}/${path}`, `${cache}/busybox`)
        .catch(() => {}); // Not in this package.
    }
    const image = names.find((name) => name.startsWith("linux-image-"));
    if (image === undefined) return;
    const version = image.replace(/^linux-image-(unsigned-)?/, "");
    const modules = await firstFolder([
      `${folder}/lib/modules/${version}`,
      `${folder}/usr/lib/modules/${version}`,
    ]);
    const kernel = `${folder}/boot/vmlinuz-${version}`;
    await takeKernel(machine, cache, { kernel, modules, origin: image }, say);
  }).catch((thrown) => {
    if (thrown instanceof EngineError) throw thrown;
    throw failed(`The cache ${cache} cannot be written`, thrown);
  });
}

async function takeKernel(
  machine: SetupMachine,
  cache: string,
  source: KernelSource,
  say: (line: string) => void,
): Promise<void> {
  say(`Taking kernel and modules of ${source.origin} into ${cache}`);
  try {
    await storeKernel(cache, source, createDecompress(await machine.find("xz")), say);
  } catch (thrown) {
    throw failed(`The kernel of ${source.origin} cannot be used`, thrown);
  }
}

async function checkBoot(
  host: VmHost,
  say: (line: string) => void,
  { boot = bootProbe, kvm = {} }: SetupParts,
): Promise<Pick<VmSetupReport, "ready" | "accelerator" | "why" | "boot_ms">> {
  const accelerators = new Accelerators({ boot, ...kvm, fresh: true });
  const obstacle = await accelerators.obstacle(host);
  const accelerator = obstacle === null ? "kvm" : "tcg";
  say(`Booting a guest with ${accelerator} as a check`);
  const request = { host, accelerator, until: "loaded", limitMs: BOOT_TIMEOUT_MS } as const;
  const { outcome, afterMs, tail } = await boot(request);
  const faults = tail.filter((line) => /^engine-probe: module \S+ failed/.test(line));
  if (outcome === "reached" && faults.length === 0) {
    const ready = obstacle === null || !obstacle.blocks;
    return { ready, accelerator, why: obstacle?.reason ?? null, boot_ms: afterMs };
  }
  for (const line of tail) say(`  ${line}`);
  const what = outcome === "timeout"
    ? `did not come up within ${BOOT_TIMEOUT_MS / 1000} s`
    : "ended before it had loaded its modules";
  throw new EngineError(
    "launch_failed",
    `A guest with kernel ${host.image.version} ${what}; try another one with --kernel FILE` +
      " --modules DIR",
  );
}

/** Says a command, then runs it. */
async function run(
  machine: SetupMachine,
  command: readonly string[],
  directory: string,
  say: (line: string) => void,
): Promise<void> {
  const line = command.join(" ");
  say(`$ ${line}`);
  const { success, output } = await machine.run(command, directory, (text) => say(`  ${text}`));
  if (!success) {
    throw new EngineError("install_failed", `${line} failed: ${adviceOn(output)}`);
  }
}

function failed(what: string, thrown: unknown): EngineError {
  const { message } = thrown as Error;
  const reason = /No space left/.test(message) ? adviceOn(message) : message;
  return new EngineError("install_failed", `${what}: ${reason}`, { cause: thrown });
}

async function firstFolder(paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    if ((await Deno.stat(path).catch(() => undefined))?.isDirectory) return path;
  }
  return paths[0]!;
}
