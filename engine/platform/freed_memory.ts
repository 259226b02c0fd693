/**
 * Gives memory that was freed back to the system.
 *
 * Two keep it. V8 looks for buffers without a user only when others are allocated, so an engine
 * that becomes idle after a burst keeps what the burst used; buffers that are allocated and never
 * touched, which take no memory, make it look. And the C library of most Linux systems (glibc)
 * keeps what lies between two blocks that are in use: one call (`malloc_trim`) returns it, in
 * milliseconds. Other systems return memory by themselves. Where the process may not call libraries
 * (`--allow-ffi`), that part is not returned.
 *
 * Buffers are not detached (`ArrayBuffer.transfer`), which would free them at once: after the first
 * one, compiled code asks before each access to any buffer whether it was, a sixth of a small call.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** Memory is returned so long after it was freed, since more is usually freed meanwhile. */
export const RETURN_MS = 2_000;
const MIB = 1024 * 1024;
/** Buffers from this size on are address space only until they are written to. */
const UNTOUCHED_BYTES = 48 * MIB;
/** Buffers that are allocated so that V8 collects; it marks in steps between them. */
const UNTOUCHED_MAX = 8;
const BETWEEN_MS = 100;
/** With no more than this left in buffers, nothing is looked for. */
const LEFT_BYTES = 32 * MIB;

/** What {@linkcode FreedMemory} needs of the platform. */
export interface FreedMemorySetup {
  readonly clock: Pick<Clock, "after">;
  /** Returns free memory to the system; never rejects. Default: those of V8 and the C library. */
  readonly giveBack?: (isOver: () => boolean) => Promise<void>;
}

/** Returns memory some time after the parts of the process have freed much of it. */
export class FreedMemory implements AsyncDisposable {
  readonly #clock: Pick<Clock, "after">;
  readonly #giveBack: (isOver: () => boolean) => Promise<void>;
  #cancel: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #isOver = false;

  constructor({ clock, giveBack = giveBackAll }: FreedMemorySetup) {
    this.#clock = clock;
    this.#giveBack = giveBack;
  }

  /** Much was freed. Once per {@linkcode RETURN_MS} it is returned. */
  freed(): void {
    if (this.#isOver) return;
    this.#cancel ??= this.#clock.after(RETURN_MS, () => {
      this.#cancel = undefined;
      const before = this.#running ?? Promise.resolve();
      this.#running = before.then(() => this.#giveBack(() => this.#isOver));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#cancel?.();
    await this.#running;
  }
}

async function giveBackAll(isOver: () => boolean): Promise<void> {
  await collectBuffers(isOver);
  if (!isOver()) await trimHeap();
}

/** Makes V8 look for buffers that nothing uses, in steps of its own rather than in one pause. */
async function collectBuffers(isOver: () => boolean): Promise<void> {
  // That some were found does not end it: V8 looks among the young ones first.
  for (let count = 0; count < UNTOUCHED_MAX && !isOver(); count++) {
    if (Deno.memoryUsage().external <= LEFT_BYTES) return;
    new ArrayBuffer(UNTOUCHED_BYTES);
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS));
  }
}

/** In a thread of its own, since it visits all free memory. */
async function trimHeap(): Promise<void> {
  const library = openLibrary();
  if (!library) return;
  await library.symbols.malloc_trim(0n);
  library.close();
}

function openLibrary() {
  if (Deno.build.os !== "linux") return undefined;
  // Without the question that opening a library would ask at a terminal.
  if (Deno.permissions.querySync({ name: "ffi" }).state !== "granted") return undefined;
  try {
    return Deno.dlopen("libc.so.6", {
      malloc_trim: { parameters: ["usize"], result: "i32", nonblocking: true },
    });
  } catch {
    return undefined; // Another C library, such as musl.
  }
}
