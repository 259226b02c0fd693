/**
 * `engine vm status`: whether this machine can run microVMs, with what, and what is missing.
 *
 * It needs no running engine. It fetches nothing, but builds the image if the cache does not have
 * it, as the start of a worker would.
 *
 * @module
 */
import type { Accelerator } from "../../ports/launcher.ts";
import {
  assembleVmHost,
  findVmParts,
  type VmHost,
  type VmPlaces,
  vmPlaces,
} from "../machine/host_tools.ts";
import { Accelerators, type KvmObstacle, type KvmOptions } from "../machine/accelerators.ts";

/** Parts of this machine; the field names are those of `engine vm status --json`. */
export interface VmStatus {
  /** Whether a worker with accelerator `auto` can start. */
  readonly ready: boolean;
  /** The missing parts as texts for users, each with what to do. */
  readonly missing: readonly string[];
  /** The accelerator of such a worker; `null` when it cannot start. */
  readonly accelerator: Accelerator | null;
  /** Why `accelerator` is not `kvm`; else `null`. */
  readonly accelerator_reason: string | null;
  /** Absolute path and version of QEMU; `null` when it is not installed. */
  readonly qemu: { readonly path: string; readonly version: string } | null;
  /** Kernel of the guests, and the package or file it was copied from. */
  readonly kernel:
    | { readonly version: string; readonly path: string; readonly origin: string }
    | null;
  /** The initramfs of the guests; `null` when microVMs cannot be started. */
  readonly initramfs: { readonly path: string; readonly bytes: number } | null;
  /** A statically linked busybox. */
  readonly busybox: { readonly path: string } | null;
  /** Folder with kernels and images; `null` without a home directory. */
  readonly cache: { readonly path: string; readonly bytes: number } | null;
}

/**
 * Status of this machine; takes up to 5 s if KVM was not probed before.
 *
 * @param places Where to search; tests pass folders of their own, and a fake KVM.
 */
export async function vmStatus(
  places: VmPlaces = vmPlaces(),
  kvm: KvmOptions = {},
): Promise<VmStatus> {
  const parts = await findVmParts(places);
  const { unsupported, qemu, busybox, kernel } = parts;
  const { cache } = places;
  const missing = unsupported !== null
    ? [`${unsupported}; run workers with --isolation process`]
    : parts.missing.map((part) => `${part}; run engine vm setup`);
  const host = await assembleVmHost(parts, places).catch((thrown) => {
    missing.push(`an image, which cannot be made in ${cache}: ${(thrown as Error).message}`);
    return undefined;
  });
  const obstacle = host ? await new Accelerators(kvm).obstacle(host) : null;
  if (obstacle?.blocks) missing.push(`KVM: ${obstacle.reason}`);
  return {
    ready: missing.length === 0,
    missing,
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
    return "unknown"; // Not executable.
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
