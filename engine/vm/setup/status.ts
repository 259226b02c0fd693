/**
 * Whether this machine can run microVMs, with what, and what is missing.
 *
 * It asks the machine itself and needs no engine. Nothing is fetched; an image that this version of
 * the engine has not used before is made, as it would be for a worker.
 *
 * @module
 */
import type { Accelerator } from "../../ports/launcher.ts";
import { findVmParts, type VmHost, type VmPlaces, vmPlaces } from "../machine/host_tools.ts";
import { prepareImage } from "../image/image.ts";
import { Accelerators, type KvmObstacle, type KvmOptions } from "../machine/accelerators.ts";

/** What there is; the names are those of `engine vm status --json`. */
export interface VmStatus {
  /** Whether a worker that says nothing about its accelerator can be started. */
  readonly ready: boolean;
  /** What is missing, for people, each with what to do; empty when it is ready. */
  readonly missing: readonly string[];
  /** What such a worker would run with; `null` when it could not. */
  readonly accelerator: Accelerator | null;
  /** Why it is not `kvm`; `null` when it is. */
  readonly accelerator_reason: string | null;
  /** Absolute path, and the version it says of itself; `null` when it is not there. */
  readonly qemu: { readonly path: string; readonly version: string } | null;
  /** The guest's kernel, and which package or file it was taken from. */
  readonly kernel:
    | { readonly version: string; readonly path: string; readonly origin: string }
    | null;
  /** The first files of a guest. */
  readonly initramfs: { readonly path: string; readonly bytes: number } | null;
  /** A busybox that needs no libraries. */
  readonly busybox: { readonly path: string } | null;
  /** The folder with kernels and images; `null` when there is no place for one. */
  readonly cache: { readonly path: string; readonly bytes: number } | null;
}

/** Looks. Takes up to 5 s when KVM was not probed before. */
export async function vmStatus(): Promise<VmStatus> {
  return await statusOf(vmPlaces());
}

/** The same as {@linkcode vmStatus} for any machine. */
export async function statusOf(places: VmPlaces, kvm: KvmOptions = {}): Promise<VmStatus> {
  const { unsupported, qemu, busybox, kernel, missing } = await findVmParts(places);
  const { cache } = places;
  const lacks = unsupported !== null
    ? [`${unsupported}; run workers with --isolation process`]
    : missing.map((part) => `${part}; run engine vm setup`);
  let host: VmHost | undefined;
  if (qemu && busybox && kernel && cache) {
    try {
      host = { image: await prepareImage(cache, kernel, busybox), qemu, busybox };
    } catch (thrown) {
      lacks.push(`an image, which cannot be made in ${cache}: ${(thrown as Error).message}`);
    }
  }
  const obstacle = host ? await new Accelerators(kvm).obstacle(host) : null;
  if (obstacle?.blocks) lacks.push(`KVM: ${obstacle.reason}`);
  return {
    ready: lacks.length === 0,
    missing: lacks,
    accelerator: acceleratorOf(host, obstacle),
    accelerator_reason: obstacle?.reason ?? null,
    qemu: qemu === undefined ? null : { path: qemu, version: await qemuVersion(qemu) },
    kernel: kernel ? { version: kernel.version, path: kernel.kernel, origin: kernel.origin } : null,
    initramfs: host ? { path: host.image.initrd, bytes: await bytesIn(host.image.initrd) } : null,
    busybox: busybox === undefined ? null : { path: busybox },
    cache: cache === undefined ? null : { path: cache, bytes: await bytesIn(cache) },
  };
}

function acceleratorOf(
  host: VmHost | undefined,
  obstacle: KvmObstacle | null,
): Accelerator | null {
  if (!host || obstacle?.blocks) return null;
  return obstacle === null ? "kvm" : "tcg";
}

async function qemuVersion(qemu: string): Promise<string> {
  try {
    const command = new Deno.Command(qemu, { args: ["--version"], stderr: "null" });
    const printed = new TextDecoder().decode((await command.output()).stdout);
    return /version (\S+)/.exec(printed)?.[1] ?? "unknown";
  } catch {
    return "unknown"; // It cannot be run.
  }
}

/** Bytes of a file, or of all files below a folder. */
async function bytesIn(path: string): Promise<number> {
  const info = await Deno.lstat(path).catch(() => undefined);
  if (!info?.isDirectory) return info?.size ?? 0;
  let sum = 0;
  const entries = await Array.fromAsync(Deno.readDir(path)).catch(() => []);
  for (const { name } of entries) sum += await bytesIn(`${path}/${name}`);
  return sum;
}
