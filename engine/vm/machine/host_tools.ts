/**
 * Finds what microVMs need on this machine: QEMU, a static busybox, and a kernel in the cache.
 *
 * It looks and never gets anything; `engine vm setup` does that.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { findProgram } from "../../process/programs.ts";
import { type Image, prepareImage } from "../image/image.ts";
import { isStaticProgram } from "../image/kernel_file.ts";
import { openKernel, type StoredKernel } from "../image/kernel_store.ts";

/** The program that runs microVMs. */
export const QEMU = "qemu-system-x86_64";

/** What distributions call it. */
const BUSYBOXES: readonly string[] = ["busybox", "busybox.static", "busybox-static"];
/** All that is looked for on a PATH. */
export const HOST_PROGRAMS: readonly string[] = [QEMU, ...BUSYBOXES];

/** A machine on which microVMs can run. */
export interface VmHost {
  readonly image: Image;
  /** Absolute path of `qemu-system-x86_64`. */
  readonly qemu: string;
  /** Absolute path of a busybox that needs no libraries. */
  readonly busybox: string;
}

/** Where to look; tests lend places of their own. */
export interface VmPlaces {
  /** Such as `linux`. */
  readonly os: string;
  /** Such as `x86_64`. */
  readonly arch: string;
  /** Folders with programs, parted by colons. */
  readonly path: string;
  /** Absolute path of the folder for kernels and images; `undefined`: there is no place for it. */
  readonly cache: string | undefined;
}

/** What was found of a machine's parts. */
export interface VmParts {
  /** Why this machine cannot have microVMs whatever is installed; `null` when it can. */
  readonly unsupported: string | null;
  readonly qemu: string | undefined;
  readonly busybox: string | undefined;
  readonly kernel: StoredKernel | undefined;
  /** What is missing, for people: one short text for each part; empty when nothing is. */
  readonly missing: readonly string[];
}

/** The places of this machine and user. */
export function vmPlaces(env: (name: string) => string | undefined = readEnv): VmPlaces {
  const { os, arch } = Deno.build;
  // Programs of the system's are found even when a user's PATH is a narrow one.
  const path = [env("PATH") ?? "", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"].join(":");
  return { os, arch, path, cache: cacheFolder(env) };
}

/** Looks for all parts. */
export async function findVmParts(places: VmPlaces): Promise<VmParts> {
  const { os, arch, cache } = places;
  if (os !== "linux" || arch !== "x86_64") {
    const unsupported = `microVMs run only on Linux on x86-64, this is ${os} on ${arch}`;
    return {
      unsupported,
      qemu: undefined,
      busybox: undefined,
      kernel: undefined,
      missing: [unsupported],
    };
  }
  const missing: string[] = [];
  const qemu = await findProgram(QEMU, places.path);
  if (qemu === undefined) missing.push(QEMU);
  const busybox = await findBusybox(places);
  if (busybox === undefined) missing.push("a static busybox");
  const kernel = cache === undefined
    ? { problem: "a place for the cache (set HOME or XDG_CACHE_HOME)" }
    : await openKernel(cache);
  if ("problem" in kernel) missing.push(kernel.problem);
  return {
    unsupported: null,
    qemu,
    busybox,
    kernel: "problem" in kernel ? undefined : kernel,
    missing,
  };
}

/**
 * What a worker's microVM is made with. The image is built when this engine has not used it before.
 *
 * @param name The worker, for messages.
 * @throws {EngineError} `isolation_unavailable` when a part is missing, with what to do.
 */
export async function findVmHost(name: string, places: VmPlaces = vmPlaces()): Promise<VmHost> {
  const { unsupported, qemu, busybox, kernel, missing } = await findVmParts(places);
  if (unsupported !== null) throw unavailable(name, unsupported, "use --isolation process");
  if (!qemu || !busybox || !kernel || !places.cache) {
    const wanted = `this machine lacks ${missing.join(", ")}`;
    throw unavailable(name, wanted, "run engine vm setup, or choose --isolation process");
  }
  try {
    return { image: await prepareImage(places.cache, kernel, busybox), qemu, busybox };
  } catch (thrown) {
    const reason = `its image cannot be made in ${places.cache}: ${(thrown as Error).message}`;
    throw unavailable(name, reason, "run engine vm setup, or choose --isolation process");
  }
}

function unavailable(name: string, reason: string, advice: string): EngineError {
  const message = `Worker ${name} cannot run in a microVM: ${reason}; ${advice}`;
  return new EngineError("isolation_unavailable", message, { details: { worker: name } });
}

/** The system's, if it needs no libraries, else the one that the setup put into the cache. */
async function findBusybox(places: VmPlaces): Promise<string | undefined> {
  const candidates = places.path.split(":").filter((folder) => folder !== "")
    .flatMap((folder) => BUSYBOXES.map((name) => `${folder}/${name}`));
  if (places.cache !== undefined) candidates.push(`${places.cache}/busybox`);
  for (const path of new Set(candidates)) {
    const bytes = await Deno.readFile(path).catch(() => undefined);
    if (bytes && isStaticProgram(bytes)) return path;
  }
  return undefined;
}

/** Its place by the XDG rules; a relative one counts as none. */
function cacheFolder(env: (name: string) => string | undefined): string | undefined {
  const xdg = env("XDG_CACHE_HOME");
  if (xdg?.startsWith("/")) return `${withoutSlash(xdg)}/engine/vm`;
  const home = env("HOME");
  return home?.startsWith("/") ? `${withoutSlash(home)}/.cache/engine/vm` : undefined;
}

function withoutSlash(path: string): string {
  return path.replace(/\/+$/, "");
}

function readEnv(name: string): string | undefined {
  return Deno.env.get(name);
}
