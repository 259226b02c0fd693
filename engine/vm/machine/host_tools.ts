/**
 * Finds what microVMs need on this machine: QEMU, a static busybox, and a kernel in the cache.
 *
 * It fetches nothing; `engine vm setup` does that.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { findProgram } from "../../process/programs.ts";
import { type Image, prepareImage } from "../image/image.ts";
import { isStaticProgram } from "../image/kernel_file.ts";
import { openKernel, type StoredKernel } from "../image/kernel_store.ts";

const QEMU = "qemu-system-x86_64";

/** Names of busybox in the packages of distributions. */
const BUSYBOXES: readonly string[] = ["busybox", "busybox.static", "busybox-static"];
/** Programs that are searched on a PATH. */
export const HOST_PROGRAMS: readonly string[] = [QEMU, ...BUSYBOXES];

/** The parts with which a machine runs microVMs. */
export interface VmHost {
  readonly image: Image;
  /** Absolute path of `qemu-system-x86_64`. */
  readonly qemu: string;
  /** Absolute path of a statically linked busybox. */
  readonly busybox: string;
}

/** Where to search; tests pass folders of their own. */
export interface VmPlaces {
  /** Such as `linux`. */
  readonly os: string;
  /** Such as `x86_64`. */
  readonly arch: string;
  /** Folders with programs, separated by colons. */
  readonly path: string;
  /** Absolute path of the folder for kernels and images; `undefined` without a home directory. */
  readonly cache: string | undefined;
}

/** The parts that were found, without the image. */
export interface VmParts {
  /** Why this machine cannot run microVMs, whatever is installed; `null` when it can. */
  readonly unsupported: string | null;
  readonly qemu: string | undefined;
  readonly busybox: string | undefined;
  readonly kernel: StoredKernel | undefined;
  /** The missing parts, each as a short text for users. */
  readonly missing: readonly string[];
}

/** Where this user's microVMs find their parts. */
export function vmPlaces(env: (name: string) => string | undefined = readEnv): VmPlaces {
  const { os, arch } = Deno.build;
  // The system's folders count even if the user's PATH lacks them.
  const path = [env("PATH") ?? "", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"].join(":");
  return { os, arch, path, cache: cacheFolder(env) };
}

/** Searches all parts. */
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
 * Returns the parts for a worker's microVM; builds the image if the cache does not have it.
 *
 * @param name Name of the worker, for messages.
 * @throws {EngineError} `isolation_unavailable` when a part is missing, with what to do.
 */
export async function findVmHost(name: string, places: VmPlaces = vmPlaces()): Promise<VmHost> {
  const parts = await findVmParts(places);
  if (parts.unsupported !== null) {
    throw unavailable(name, parts.unsupported, "use --isolation process");
  }
  const advice = "run engine vm setup, or choose --isolation process";
  const host = await assembleVmHost(parts, places).catch((thrown) => {
    const reason = `its image cannot be made in ${places.cache}: ${(thrown as Error).message}`;
    throw unavailable(name, reason, advice);
  });
  if (host) return host;
  throw unavailable(name, `this machine lacks ${parts.missing.join(", ")}`, advice);
}

/**
 * Adds the image to the parts, built if the cache does not have it; `undefined` when a part is
 * missing.
 *
 * @throws {Error} When the image cannot be built.
 */
export async function assembleVmHost(
  { qemu, busybox, kernel }: VmParts,
  { cache }: VmPlaces,
): Promise<VmHost | undefined> {
  if (!qemu || !busybox || !kernel || !cache) return undefined;
  return { image: await prepareImage(cache, kernel, busybox), qemu, busybox };
}

function unavailable(name: string, reason: string, advice: string): EngineError {
  const message = `Worker ${name} cannot run in a microVM: ${reason}; ${advice}`;
  return new EngineError("isolation_unavailable", message, { details: { worker: name } });
}

/** A statically linked busybox of the system, else the one that the setup put into the cache. */
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

/** Cache folder by the XDG rules, which ignore relative paths. */
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
