/**
 * Measures the rate of the time stamp counter (TSC) that a guest in software emulation sees.
 *
 * The guest's kernel can calibrate its TSC only against an emulated timer chip that stutters, and
 * hangs for ever if calibration fails. So the engine measures the rate from outside and passes it
 * to the kernel: 60 bytes of machine code in place of the firmware answer each byte on the serial
 * line with the TSC's value. The rate is constant until the host boots again, so it is cached in a
 * file. Guests on KVM get the rate from KVM.
 *
 * @module
 */

/** Where and with what to measure. */
export interface ClockProbe {
  /** Path of `qemu-system-x86_64`. */
  readonly qemu: string;
  /** An existing folder for a temporary file of 64 KiB. */
  readonly directory: string;
}

/** Time between two readings. */
const SPAN_MS = 400;
/** Largest error of the readings, as a share of the time between them. */
const ERROR_MAX = 0.000_5;
const SPAN_MS_MAX = 3_000;
/** Number of consecutive readings of which the fastest counts. */
const READINGS = 8;
/** A measurement that takes longer is aborted. */
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
 * Rate of the TSC in software emulation in kHz, measured once for each boot of the host;
 * `undefined` when it cannot be measured.
 *
 * @param folder Existing folder that caches the result.
 */
export async function guestClock(qemu: string, folder: string): Promise<number | undefined> {
  const boot = (await Deno.readTextFile("/proc/sys/kernel/random/boot_id")).trim();
  const path = `${folder}/clock-${boot}`;
  const cached = Number(await Deno.readTextFile(path).catch(() => ""));
  if (cached > 0) return cached;
  const measured = await measureGuestClock({ qemu, directory: folder });
  if (measured === undefined) return undefined;
  // rename() is atomic: several engines may write at once, and every result is valid.
  const temporary = await Deno.makeTempFile({ dir: folder, prefix: "clock-" });
  await Deno.writeTextFile(temporary, `${measured}`);
  await Deno.rename(temporary, path);
  return measured;
}

/** Measures the rate in kHz, which takes about a second. */
export async function measureGuestClock(probe: ClockProbe): Promise<number | undefined> {
  const path = await Deno.makeTempFile({ dir: probe.directory, prefix: "clock-" });
  try {
    await Deno.writeFile(path, firmware());
    await using counter = startCounter(probe.qemu, path);
    const limit = setTimeout(() => counter.end(), LIMIT_MS);
    try {
      return await measureRate(() => counter.read());
    } finally {
      clearTimeout(limit);
    }
  } catch {
    return undefined; // The kernel then calibrates the TSC itself, which often works.
  } finally {
    await Deno.remove(path).catch(() => {});
  }
}

/** Value of the TSC, and the time at which it was read, with an error of at most `offMs`. */
export interface ClockReading {
  readonly ticks: bigint;
  readonly atMs: number;
  readonly offMs: number;
}

/** Rate in kHz, from readings far enough apart to make up for their errors. */
export async function measureRate(
  read: () => Promise<ClockReading>,
  pause: (ms: number) => Promise<void> = (ms) => new Promise((wake) => setTimeout(wake, ms)),
): Promise<number> {
  const first = await fastest(read);
  for (let waited = 0;;) {
    await pause(SPAN_MS);
    waited += SPAN_MS;
    const last = await fastest(read);
    const spanMs = last.atMs - first.atMs;
    const error = (first.offMs + last.offMs) / spanMs;
    if (error > ERROR_MAX && waited < SPAN_MS_MAX) continue;
    return Math.round(Number(last.ticks - first.ticks) / spanMs);
  }
}

async function fastest(read: () => Promise<ClockReading>): Promise<ClockReading> {
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

/** A machine that answers with its TSC. */
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
      // Already gone.
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
