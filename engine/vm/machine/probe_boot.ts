/**
 * Boots an image once, with nothing but a serial line, to see whether it runs.
 *
 * The machine is gone afterwards, whatever it did: it may spin in the kernel and hear no signal but
 * the last, so it is killed, and a watchdog kills it should this process die first.
 *
 * @module
 */
import { GUEST_MEMORY_MB_MIN } from "../../../sdk/typescript/wire/limits.ts";
import type { Accelerator } from "../../ports/launcher.ts";
import { measureGuestClock } from "./guest_clock.ts";
import type { VmHost } from "./host_tools.ts";
import { PROBE_LOADED, PROBE_PATH, PROBE_RUNS } from "../image/image.ts";
import { qemuCommand } from "./qemu.ts";

/** What to boot and how long to wait. */
export interface ProbeRequest {
  readonly host: VmHost;
  readonly accelerator: Accelerator;
  /** `runs`: its first program ran; `loaded`: it has loaded its modules as well. */
  readonly until: "runs" | "loaded";
  /** In milliseconds. */
  readonly limitMs: number;
}

/** What came of it. */
export interface ProbeResult {
  /** `reached`: as far as was asked; `ended`: QEMU gave up before; `slow`: the time was over. */
  readonly outcome: "reached" | "ended" | "slow";
  /** Whole milliseconds until then, or until it was given up. */
  readonly afterMs: number;
  /** Last lines that it and QEMU printed. */
  readonly tail: readonly string[];
}

/** Boots a probe. Never rejects. */
export type ProbeBoot = (request: ProbeRequest) => Promise<ProbeResult>;

/** The watchdog waits so much longer than this process, in milliseconds. */
const WATCHDOG_MS = 5_000;
/** A killed machine that is not gone by then is left to the system, in milliseconds. */
const GONE_MS = 2_000;
/** Output may come so long after the end of the program, in milliseconds. */
const LATE_OUTPUT_MS = 500;
const TAIL_LINES = 8;

/** See {@linkcode ProbeBoot}. */
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
      // The watchdog is another process; this one becomes QEMU.
      args: ["timeout", "-s", "KILL", `${seconds}`, ...command],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (thrown) {
    return result("ended", (thrown as Error).message);
  }
  const gone = child.status;
  const wanted = until === "runs" ? PROBE_RUNS : PROBE_LOADED;
  const printed = collect([child.stdout, child.stderr], wanted);
  const ended = gone.then(() => "ended" as const);
  const first = await within(limitMs, Promise.race([printed.found, ended]), "slow" as const);
  const outcome = first === "ended"
    // What it printed last may still be on its way.
    ? await within(LATE_OUTPUT_MS, printed.found, first)
    : first;
  const answer = result(outcome, printed.text());
  try {
    child.kill("SIGKILL");
  } catch {
    // It is gone already.
  }
  await within(GONE_MS, gone, null);
  child.unref();
  await printed.stop();
  return answer;
};

/** The machine that workers get, with no shares and another first program. */
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
    engine: { hostname: "127.0.0.1", port: 1 }, // Nothing in it connects to anything.
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

/** Reads streams until a text is in one of them. */
function collect(streams: readonly ReadableStream<Uint8Array>[], wanted: string) {
  const { promise: found, resolve } = Promise.withResolvers<"reached">();
  let text = "";
  const readers = streams.map((stream) => stream.pipeThrough(new TextDecoderStream()).getReader());
  const reads = readers.map(async (reader) => {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      // Enough for the text and a few lines before it.
      text = (text + value).slice(-16_384);
      if (text.includes(wanted)) resolve("reached");
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

/** What the promise resolves with; `late` if it needs longer than `ms` milliseconds. */
async function within<T, L>(ms: number, promise: Promise<T>, late: L): Promise<T | L> {
  const { promise: over, resolve } = Promise.withResolvers<L>();
  const timer = setTimeout(() => resolve(late), ms);
  return await Promise.race([promise, over]).finally(() => clearTimeout(timer));
}
