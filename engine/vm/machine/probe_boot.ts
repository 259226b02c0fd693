/**
 * Boots an image once, without shared folders and ports, to see whether it runs.
 *
 * The machine is killed afterwards, since it may spin in the kernel and ignore every other signal.
 * A watchdog process kills it if this process dies first.
 *
 * @module
 */
import { type Accelerator, GUEST_MEMORY_MB_MIN } from "../../ports/launcher.ts";
import { measureGuestClock } from "./guest_clock.ts";
import type { VmHost } from "./host_tools.ts";
import { PROBE_LOADED, PROBE_PATH, PROBE_RUNS } from "../image/image.ts";
import { qemuCommand } from "./qemu.ts";

/** The boot to try. */
export interface ProbeRequest {
  readonly host: VmHost;
  readonly accelerator: Accelerator;
  /** Success is `runs`: its init started, or `loaded`: it has also loaded its modules. */
  readonly until: "runs" | "loaded";
  readonly limitMs: number;
}

/** Outcome of a boot. */
export interface ProbeResult {
  /** `reached`: success; `ended`: QEMU exited before; `timeout`: neither within `limitMs`. */
  readonly outcome: "reached" | "ended" | "timeout";
  /** Whole milliseconds until the outcome. */
  readonly afterMs: number;
  /** Last lines that the guest and QEMU printed. */
  readonly tail: readonly string[];
}

/** Tries a boot. Never rejects. */
export type ProbeBoot = (request: ProbeRequest) => Promise<ProbeResult>;

/** The watchdog waits this much longer than this process. */
const WATCHDOG_MS = 5_000;
/** Longest wait for a killed machine to be gone. */
const GONE_MS = 2_000;
/** Output may arrive this long after QEMU has exited. */
const LATE_OUTPUT_MS = 500;
const TAIL_LINES = 8;

/** Tries a boot with QEMU. */
export const bootProbe: ProbeBoot = async (request) => {
  const { host, until, limitMs } = request;
  const start = performance.now();
  const result = (outcome: ProbeResult["outcome"], text: string): ProbeResult => ({
    outcome,
    afterMs: Math.round(performance.now() - start),
    tail: remainderOf(text),
  });
  let child: Deno.ChildProcess;
  try {
    const command = await probeCommand(request);
    const seconds = Math.ceil((limitMs + WATCHDOG_MS) / 1000);
    child = new Deno.Command(host.busybox, {
      // busybox forks the watchdog and becomes QEMU itself.
      args: ["timeout", "-s", "KILL", `${seconds}`, ...command],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (thrown) {
    return result("ended", (thrown as Error).message);
  }
  const gone = child.status;
  const marker = until === "runs" ? PROBE_RUNS : PROBE_LOADED;
  const printed = collect([child.stdout, child.stderr], marker);
  const ended = gone.then(() => "ended" as const);
  const first = await within(limitMs, Promise.race([printed.found, ended]), "timeout" as const);
  const outcome = first === "ended"
    // Its last output may not have arrived yet.
    ? await within(LATE_OUTPUT_MS, printed.found, first)
    : first;
  const answer = result(outcome, printed.text());
  try {
    child.kill("SIGKILL");
  } catch {
    // Already gone.
  }
  await within(GONE_MS, gone, null);
  child.unref();
  await printed.stop();
  return answer;
};

/** The machine that workers get, without shared folders and with the probe as init. */
async function probeCommand({ host, accelerator }: ProbeRequest): Promise<string[]> {
  const { image, qemu, busybox } = host;
  const command = qemuCommand({
    name: "probe",
    image,
    qemu,
    busybox,
    accelerator,
    resources: { cpus: 1, memory_mb: GUEST_MEMORY_MB_MIN },
    network: "full",
    engine: { hostname: "127.0.0.1", port: 1 }, // The probe does not connect.
    shares: [],
    ports: [],
    clockKhz: accelerator === "tcg" ? await clockOf(qemu) : undefined,
  });
  return command.map((word, i) =>
    command[i - 1] === "-append" ? `${word} rdinit=${PROBE_PATH}` : word
  );
}

async function clockOf(qemu: string): Promise<number | undefined> {
  const directory = await Deno.makeTempDir({ prefix: "engine-vm-" });
  try {
    return await measureGuestClock({ qemu, directory });
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

/** Reads streams; `found` resolves when one of them contains the text. */
function collect(streams: readonly ReadableStream<Uint8Array>[], marker: string) {
  const { promise: found, resolve } = Promise.withResolvers<"reached">();
  let text = "";
  const readers = streams.map((stream) => stream.pipeThrough(new TextDecoderStream()).getReader());
  const reads = readers.map(async (reader) => {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      // Enough for the text and the last lines.
      text = (text + value).slice(-16_384);
      if (text.includes(marker)) resolve("reached");
    }
  });
  return {
    found,
    text: () => text,
    stop: async () => {
      await Promise.all(readers.map((reader) => reader.cancel()));
      await Promise.all(reads);
    },
  };
}

function remainderOf(text: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "");
  return lines.slice(-TAIL_LINES);
}

/** Result of the promise, or `late` if it takes longer than `ms`. */
async function within<T, L>(ms: number, promise: Promise<T>, late: L): Promise<T | L> {
  const { promise: over, resolve } = Promise.withResolvers<L>();
  const timer = setTimeout(() => resolve(late), ms);
  return await Promise.race([promise, over]).finally(() => clearTimeout(timer));
}
