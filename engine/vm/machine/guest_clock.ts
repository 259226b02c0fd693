/**
 * Finds out how fast the clock runs that a guest in software emulation sees.
 *
 * A microVM has nothing that its kernel could compare its processor's time stamp counter with but
 * a timer chip whose emulation stutters, and a kernel that cannot tell the rate hangs for ever.
 * So the rate is measured from outside: 60 bytes of machine code in the place of a firmware answer
 * each byte on a serial line with the counter. The rate stays the same until the host is booted
 * anew, so it is kept in a file. Guests on KVM are told by KVM.
 *
 * @module
 */

/** What is measured with. */
export interface ClockProbe {
  /** Path of `qemu-system-x86_64`. */
  readonly qemu: string;
  /** An existing folder for a file of 64 KiB that is removed at once. */
  readonly directory: string;
}

/** Time between the two readings that are compared. */
const SPAN_MS = 400;
/** A span is long enough when readings were off by this share of it at most. */
const ERROR_MAX = 0.000_5;
const SPAN_MS_MAX = 3_000;
/** Of so many readings in a row the quickest counts. */
const READINGS = 8;
/** Without an answer by then nothing is known. */
const LIMIT_MS = 15_000;

const FIRMWARE_BYTES = 0x1_0000;
const RESET_VECTOR = 0xfff0;
const CODE_START = 0xff00;
/** 16-bit x86; the serial line is at 0x3f8. */
const CODE = [
  ...[0xba, 0xfd, 0x03], //             start: mov dx, 0x3fd
  ...[0xec, 0xa8, 0x01, 0x74, 0xfb], // wait:  in al, dx; test al, 1; jz wait
  ...[0xba, 0xf8, 0x03, 0xec], //              mov dx, 0x3f8; in al, dx
  ...[0x0f, 0x31, 0x66, 0x89, 0xd3], //        rdtsc; mov ebx, edx
  ...[0xba, 0xf8, 0x03, 0xb9, 0x04, 0x00], //  mov dx, 0x3f8; mov cx, 4
  ...[0xee, 0x66, 0xc1, 0xe8, 0x08, 0xe2, 0xf9], // low: out dx, al; shr eax, 8; loop low
  ...[0x66, 0x89, 0xd8, 0xb9, 0x04, 0x00], //  mov eax, ebx; mov cx, 4
  ...[0xee, 0x66, 0xc1, 0xe8, 0x08, 0xe2, 0xf9], // high: out dx, al; shr eax, 8; loop high
  ...[0xeb, 0xd3], //                          jmp start
];

/**
 * Kilohertz of the time stamp counter in software emulation, measured once for each boot of the
 * host; `undefined` when it cannot be told.
 *
 * @param folder Where the answer is kept; it exists.
 */
export async function guestClock(qemu: string, folder: string): Promise<number | undefined> {
  const boot = (await Deno.readTextFile("/proc/sys/kernel/random/boot_id")).trim();
  const path = `${folder}/clock-${boot}`;
  const kept = Number(await Deno.readTextFile(path).catch(() => ""));
  if (kept > 0) return kept;
  const measured = await measureGuestClock({ qemu, directory: folder });
  if (measured === undefined) return undefined;
  // Others may write at the same moment; any of the answers is good, half of one is not.
  const temporary = await Deno.makeTempFile({ dir: folder, prefix: "clock-" });
  await Deno.writeTextFile(temporary, `${measured}`);
  await Deno.rename(temporary, path);
  return measured;
}

/** The same, measured now. Takes about a second. */
export async function measureGuestClock(probe: ClockProbe): Promise<number | undefined> {
  const path = await Deno.makeTempFile({ dir: probe.directory, prefix: "clock-" });
  try {
    await Deno.writeFile(path, firmware());
    await using counter = startCounter(probe.qemu, path);
    const limit = setTimeout(() => counter.end(), LIMIT_MS);
    try {
      return await compare(() => counter.read());
    } finally {
      clearTimeout(limit);
    }
  } catch {
    return undefined; // The kernel then has to find out itself, which often works.
  } finally {
    await Deno.remove(path).catch(() => {});
  }
}

/** One reading: the counter, and when it was read, in milliseconds, give or take `offMs`. */
export interface ClockReading {
  readonly ticks: bigint;
  readonly atMs: number;
  readonly offMs: number;
}

/** Kilohertz, from readings that are far enough apart for their own inexactness. */
export async function compare(
  read: () => Promise<ClockReading>,
  pause: (ms: number) => Promise<void> = (ms) => new Promise((wake) => setTimeout(wake, ms)),
): Promise<number> {
  const first = await best(read);
  for (let waited = 0;;) {
    await pause(SPAN_MS);
    waited += SPAN_MS;
    const last = await best(read);
    const spanMs = last.atMs - first.atMs;
    const error = (first.offMs + last.offMs) / spanMs;
    if (error > ERROR_MAX && waited < SPAN_MS_MAX) continue;
    return Math.round(Number(last.ticks - first.ticks) / spanMs);
  }
}

async function best(read: () => Promise<ClockReading>): Promise<ClockReading> {
  let found = await read();
  for (let i = 1; i < READINGS; i++) {
    const next = await read();
    if (next.offMs < found.offMs) found = next;
  }
  return found;
}

function firmware(): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(FIRMWARE_BYTES);
  bytes.set(CODE, CODE_START);
  const distance = CODE_START - (RESET_VECTOR + 3);
  bytes.set([0xe9, distance & 0xff, (distance >> 8) & 0xff], RESET_VECTOR); // jmp start
  return bytes;
}

/** A machine that answers with its counter. */
interface Counter extends AsyncDisposable {
  read(): Promise<ClockReading>;
  end(): void;
}

function startCounter(qemu: string, bios: string): Counter {
  const child = new Deno.Command(qemu, {
    args: [
      ...["-M", "microvm", "-accel", "tcg", "-cpu", "max", "-m", "16", "-bios", bios],
      ...["-nodefaults", "-no-user-config", "-nographic", "-serial", "stdio"],
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const writer = child.stdin.getWriter();
  const reader = child.stdout.getReader({ mode: "byob" });
  const read = async (): Promise<ClockReading> => {
    const startMs = performance.now();
    await writer.write(new Uint8Array(1));
    const { value } = await reader.read(new Uint8Array(8), { min: 8 });
    const endMs = performance.now();
    if (value?.length !== 8) throw new Error("The machine that measures the clock ended");
    const offMs = (endMs - startMs) / 2;
    return {
      ticks: new DataView(value.buffer).getBigUint64(0, true),
      atMs: startMs + offMs,
      offMs,
    };
  };
  const end = (): void => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It is gone already.
    }
  };
  return {
    read,
    end,
    [Symbol.asyncDispose]: async () => {
      end();
      await child.status;
      await Promise.allSettled([writer.abort(), reader.cancel()]);
    },
  };
}
