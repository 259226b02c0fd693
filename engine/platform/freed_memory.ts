/**
 * Gives memory that was freed back to the system.
 *
 * The C library of most Linux systems (glibc) keeps what lies between two blocks that are in use:
 * hundreds of megabytes after a burst of large bodies, for as long as the engine idles. One call
 * (`malloc_trim`) returns it, in milliseconds. Other systems return memory by themselves. Where the
 * process may not call libraries (`--allow-ffi`), nothing is returned.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** Memory is returned so long after it was freed, since more is usually freed meanwhile. */
export const RETURN_MS = 2_000;

/** What {@linkcode FreedMemory} needs of the platform. */
export interface FreedMemorySetup {
  readonly clock: Pick<Clock, "after">;
  /** Returns free memory to the system; never rejects. Default: that of the C library. */
  readonly giveBack?: () => Promise<void>;
}

/** Returns memory some time after the parts of the process have freed much of it. */
export class FreedMemory implements AsyncDisposable {
  readonly #clock: Pick<Clock, "after">;
  readonly #giveBack: () => Promise<void>;
  #cancel: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #isOver = false;

  constructor({ clock, giveBack = trimHeap }: FreedMemorySetup) {
    this.#clock = clock;
    this.#giveBack = giveBack;
  }

  /** Much was freed. Once per {@linkcode RETURN_MS} it is returned. */
  freed(): void {
    if (this.#isOver) return;
    this.#cancel ??= this.#clock.after(RETURN_MS, () => {
      this.#cancel = undefined;
      const before = this.#running ?? Promise.resolve();
      this.#running = before.then(this.#giveBack);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#cancel?.();
    await this.#running;
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
