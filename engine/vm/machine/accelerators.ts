/**
 * Chooses the accelerator of a worker's microVM: KVM if guests run under it, else software
 * emulation (`tcg`) or an error.
 *
 * There are three cases. If `/dev/kvm` cannot be opened, the worker fails and the message tells the
 * user what to do. If it opens and guests run, KVM is used. If it opens but guests never run (a
 * nested host without hardware virtualisation, on which QEMU spins for ever), a probe boot with a
 * time limit finds out; its result is cached until the host boots again or the kernel changes.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Accelerator } from "../../ports/launcher.ts";
import { publishText } from "../image/cache_files.ts";
import { type VmHost, vmPlaces } from "./host_tools.ts";
import { bootProbe, type ProbeBoot, type ProbeResult } from "./probe_boot.ts";

/** Time that a guest has to start under KVM; beyond it, KVM counts as unusable. */
const KVM_PROBE_MS = 5_000;
const WITHOUT_KVM = "choose --accel tcg (software emulation, slow) or --isolation process (no VM)";

/** Result of opening the device. */
export type KvmAccess =
  | { readonly state: "granted" }
  | { readonly state: "absent" | "denied"; readonly reason: string };

/** Whether guests run under KVM; `reason` tells what the probe boot showed. */
export type KvmAnswer = { readonly runs: true } | { readonly runs: false; readonly reason: string };

/** Why guests do not run under KVM. */
export interface KvmObstacle {
  /** Whether workers fail because of it, unless they request software emulation. */
  readonly blocks: boolean;
  /** Text for users, with what to do if something can be done. */
  readonly reason: string;
}

/** Dependencies that tests replace. */
export interface KvmOptions {
  /** Opens the device. Default: `/dev/kvm` of this machine. */
  readonly access?: () => Promise<KvmAccess>;
  /** Boots the probe. Default: with QEMU. */
  readonly boot?: ProbeBoot;
  /** Folder that caches the result; `undefined` for none. Default: the cache folder. */
  readonly cache?: string | undefined;
  /** Identifies one boot of this machine. */
  readonly bootId?: () => Promise<string>;
  /** Probes again even if a result is cached. Default: `false`. */
  readonly fresh?: boolean;
}

/** The accelerator for a worker's microVM. */
export interface AcceleratorChoice {
  readonly accelerator: Accelerator;
  /** Why it is software emulation although the worker did not request that; else `null`. */
  readonly warning: string | null;
}

/** Chooses accelerators and remembers probe results. */
export class Accelerators {
  readonly #access: () => Promise<KvmAccess>;
  readonly #boot: ProbeBoot;
  readonly #cache: string | undefined;
  readonly #bootId: () => Promise<string>;
  readonly #fresh: boolean;
  readonly #answers = new Map<string, Promise<KvmAnswer>>();

  constructor(options: KvmOptions = {}) {
    this.#access = options.access ?? (() => openKvm());
    this.#boot = options.boot ?? bootProbe;
    this.#cache = "cache" in options ? options.cache : vmPlaces().cache;
    this.#bootId = options.bootId ?? readBootId;
    this.#fresh = options.fresh ?? false;
  }

  /**
   * Chooses the accelerator of a worker; concurrent calls share one probe boot.
   *
   * @param name Name of the worker, for messages.
   * @throws {EngineError} `isolation_unavailable` when KVM is needed and cannot be used: for `auto`
   * if the device cannot be opened, for `kvm` also if no guest runs under it. The message begins
   * with `KVM not accessible`.
   */
  async choose(
    name: string,
    requested: Accelerator | "auto",
    host: VmHost,
  ): Promise<AcceleratorChoice> {
    if (requested === "tcg") return { accelerator: "tcg", warning: null };
    const obstacle = await this.obstacle(host);
    if (obstacle === null) return { accelerator: "kvm", warning: null };
    const { blocks, reason } = obstacle;
    if (blocks) throw notAccessible(name, reason);
    if (requested === "kvm") throw notAccessible(name, `${reason}; ${WITHOUT_KVM}`);
    return { accelerator: "tcg", warning: reason };
  }

  /** Why `auto` does not choose KVM on this machine; `null` when it does. */
  async obstacle(host: VmHost): Promise<KvmObstacle | null> {
    const access = await this.#access();
    if (access.state !== "granted") {
      return { blocks: true, reason: `${access.reason}; ${ways(access)}` };
    }
    const answer = await this.#answer(host);
    return answer.runs ? null : { blocks: false, reason: answer.reason };
  }

  /** Whether guests run under KVM, from memory, the cache or a probe boot. */
  #answer(host: VmHost): Promise<KvmAnswer> {
    const { kernel } = host.image;
    const found = this.#answers.get(kernel) ?? this.#find(host);
    this.#answers.set(kernel, found);
    return found;
  }

  async #find(host: VmHost): Promise<KvmAnswer> {
    const key = `${await this.#bootId()} ${host.qemu} ${host.image.kernel}`;
    const kept = this.#fresh ? undefined : await this.#read(key);
    if (kept) return kept;
    const probe = await this.#boot({
      host,
      accelerator: "kvm",
      until: "runs",
      limitMs: KVM_PROBE_MS,
    });
    const answer: KvmAnswer = probe.outcome === "reached"
      ? { runs: true }
      : { runs: false, reason: `/dev/kvm opens, but ${whatProbeSaw(probe)}` };
    await this.#write(key, answer);
    return answer;
  }

  async #read(key: string): Promise<KvmAnswer | undefined> {
    if (this.#cache === undefined) return undefined;
    try {
      const text = await Deno.readTextFile(answerFile(this.#cache));
      const record = JSON.parse(text) as { key?: unknown; runs?: unknown; reason?: unknown };
      if (record.key !== key) return undefined;
      if (record.runs === true) return { runs: true };
      if (record.runs !== false || typeof record.reason !== "string") return undefined;
      return { runs: false, reason: record.reason };
    } catch {
      return undefined; // Missing or damaged.
    }
  }

  async #write(key: string, answer: KvmAnswer): Promise<void> {
    if (this.#cache === undefined) return;
    const text = JSON.stringify({ key, ...answer });
    await publishText(answerFile(this.#cache), text)
      .catch(() => {}); // The next engine probes again.
  }
}

function whatProbeSaw({ outcome, afterMs, tail }: ProbeResult): string {
  const lastLine = tail.length > 0 ? ` (${tail.at(-1)})` : "";
  return outcome === "timeout"
    ? `no guest ran under it within ${Math.round(afterMs / 1000)} s${lastLine}`
    : `QEMU cannot run a guest under it${lastLine}`;
}

/** Tries to open the device as QEMU would. */
export async function openKvm(
  device = "/dev/kvm",
  open: (path: string) => Promise<Disposable> = openDevice,
): Promise<KvmAccess> {
  try {
    (await open(device))[Symbol.dispose]();
    return { state: "granted" };
  } catch (thrown) {
    if (thrown instanceof Deno.errors.PermissionDenied) {
      return { state: "denied", reason: `this user may not open ${device}` };
    }
    if (thrown instanceof Deno.errors.NotFound) {
      return { state: "absent", reason: `this machine has no ${device}` };
    }
    return { state: "absent", reason: `${device} cannot be opened: ${(thrown as Error).message}` };
  }
}

function openDevice(path: string): Promise<Disposable> {
  return Deno.open(path, { read: true, write: true });
}

function notAccessible(name: string, what: string): EngineError {
  const message = `KVM not accessible: worker ${name} cannot have a microVM, because ${what}`;
  return new EngineError("isolation_unavailable", message, { details: { worker: name } });
}

/** Advice for users: how to get access, or do without KVM. */
function ways(access: KvmAccess): string {
  if (access.state !== "denied") return WITHOUT_KVM;
  return `run sudo usermod -aG kvm $USER and log in again, or ${WITHOUT_KVM}`;
}

function answerFile(cache: string): string {
  return `${cache}/kvm-probe.json`;
}

async function readBootId(): Promise<string> {
  const path = "/proc/sys/kernel/random/boot_id";
  return (await Deno.readTextFile(path).catch(() => "unknown")).trim();
}
