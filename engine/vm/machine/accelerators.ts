/**
 * Chooses what runs a worker's microVM: KVM where guests run under it, else what was asked for.
 *
 * Three cases are met in practice. `/dev/kvm` cannot be opened: the worker fails and its user is
 * told the ways on. It opens and guests run: nothing to say. It opens and guests never run (a
 * nested host without hardware virtualisation, on which QEMU spins for ever): found by booting a
 * probe with a limit; the answer is kept until the machine or the kernel is another one.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { KVM_PROBE_MS } from "../../../sdk/typescript/wire/limits.ts";
import type { Accelerator } from "../../ports/launcher.ts";
import { publishText } from "../image/cache_files.ts";
import { type VmHost, vmPlaces } from "./host_tools.ts";
import { bootProbe, type ProbeBoot, type ProbeResult } from "./probe_boot.ts";

const WITHOUT_KVM = "choose --accel tcg (software emulation, slow) or --isolation process (no VM)";

/** What came of opening the device. */
export type KvmAccess =
  | { readonly state: "granted" }
  | { readonly state: "absent" | "denied"; readonly reason: string };

/** Whether guests run under KVM; `reason` says what the probe saw. */
export type KvmAnswer = { readonly runs: true } | { readonly runs: false; readonly reason: string };

/** Why guests do not run under KVM. */
export interface KvmObstacle {
  /** Whether workers fail because of it, unless they ask for software emulation. */
  readonly blocks: boolean;
  /** For people, with what to do if there is something. */
  readonly reason: string;
}

/** What tests lend. */
export interface KvmOptions {
  /** Opens the device. Default: `/dev/kvm` of this machine. */
  readonly access?: () => Promise<KvmAccess>;
  /** Default: QEMU. */
  readonly boot?: ProbeBoot;
  /** Where the probe's answer is kept; `undefined`: nowhere. Default: the cache folder. */
  readonly cache?: string | undefined;
  /** Differs after every start of this machine. */
  readonly bootId?: () => Promise<string>;
  /** Ask the machine anew, whatever is kept; the new answer is kept. Default: `false`. */
  readonly fresh?: boolean;
}

/** What runs a worker's microVM. */
export interface AcceleratorChoice {
  readonly accelerator: Accelerator;
  /** Why it is software emulation although nobody asked for that; else `null`. */
  readonly warning: string | null;
}

/** See the top of this file. */
export class Accelerators {
  readonly #access: () => Promise<KvmAccess>;
  readonly #boot: ProbeBoot;
  readonly #cache: string | undefined;
  readonly #bootId: () => Promise<string>;
  readonly #fresh: boolean;
  readonly #answers = new Map<string, Promise<KvmAnswer>>();

  /** Nothing is opened or booted yet. */
  constructor(options: KvmOptions = {}) {
    this.#access = options.access ?? (() => openKvm());
    this.#boot = options.boot ?? bootProbe;
    this.#cache = "cache" in options ? options.cache : vmPlaces().cache;
    this.#bootId = options.bootId ?? readBootId;
    this.#fresh = options.fresh ?? false;
  }

  /**
   * Chooses for a worker; many at once share one probe.
   *
   * @param name The worker, for messages.
   * @throws {EngineError} `isolation_unavailable` when KVM was not ruled out and cannot be opened,
   * or was demanded and runs no guest; the message begins with `KVM not accessible`.
   */
  async choose(
    name: string,
    wanted: Accelerator | "auto",
    host: VmHost,
  ): Promise<AcceleratorChoice> {
    if (wanted === "tcg") return { accelerator: "tcg", warning: null };
    const obstacle = await this.obstacle(host);
    if (obstacle === null) return { accelerator: "kvm", warning: null };
    const { blocks, reason } = obstacle;
    if (blocks) throw notAccessible(name, reason);
    if (wanted === "kvm") throw notAccessible(name, `${reason}; ${WITHOUT_KVM}`);
    return { accelerator: "tcg", warning: reason };
  }

  /** What keeps `auto` from meaning KVM here; `null` when guests run under it. */
  async obstacle(host: VmHost): Promise<KvmObstacle | null> {
    const access = await this.#access();
    if (access.state !== "granted") {
      return { blocks: true, reason: `${access.reason}; ${ways(access)}` };
    }
    const answer = await this.#answer(host);
    return answer.runs ? null : { blocks: false, reason: answer.reason };
  }

  /** Whether guests run under KVM, which can be opened; from the cache or by a probe. */
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
      return undefined; // None is kept, or only half of one.
    }
  }

  async #write(key: string, answer: KvmAnswer): Promise<void> {
    if (this.#cache === undefined) return;
    const text = JSON.stringify({ key, ...answer });
    await publishText(answerFile(this.#cache), text)
      .catch(() => {}); // The next engine asks the machine again.
  }
}

function whatProbeSaw({ outcome, afterMs, tail }: ProbeResult): string {
  const said = tail.length > 0 ? ` (${tail.at(-1)})` : "";
  return outcome === "slow"
    ? `no guest ran under it within ${Math.round(afterMs / 1000)} s${said}`
    : `QEMU cannot run a guest under it${said}`;
}

/** Opens the device as QEMU would, and closes it again. */
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

/** What can be done about it, and how to do without it. */
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
