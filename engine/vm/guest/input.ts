/**
 * Standard input of programs in a guest, framed on one port per channel.
 *
 * A port stays open from program to program, so the end of one input is a frame: `open <script>`,
 * then `data <bytes>` with the bytes behind it, then `end`. `guest_init.sh` writes them to the
 * program, and drops what a program that has ended did not read.
 *
 * @module
 */

/** What a program reads. */
export type GuestInput = ReadableStream<Uint8Array<ArrayBuffer>>;

/** Bytes in one frame: the guest holds one in memory. */
const FRAME_BYTES_MAX = 64 * 1024;

/** Feeds the programs of one channel, one after the other. */
export class InputFeeder {
  readonly #port: Pick<Deno.Conn, "write">;
  #feeding: Promise<void> = Promise.resolve();
  #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;

  constructor(port: Pick<Deno.Conn, "write">) {
    this.#port = port;
  }

  /** Sends the input of a program until its end or {@linkcode end}. */
  feed(script: number, input: GuestInput): void {
    const reader = input.getReader();
    this.#reader = reader;
    this.#feeding = this.#feeding.then(() => this.#send(script, reader)).catch(() => {
      // The machine is gone, which Guest.ended reports.
      return reader.cancel().catch(() => {});
    });
  }

  /** The program has ended; the rest of its input is cancelled. */
  end(): void {
    void this.#reader?.cancel().catch(() => {});
    this.#reader = undefined;
  }

  async #send(
    script: number,
    reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
  ): Promise<void> {
    await this.#write(`open ${script}\n`);
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done || value === undefined) break;
      for (let at = 0; at < value.length; at += FRAME_BYTES_MAX) {
        const piece = value.subarray(at, at + FRAME_BYTES_MAX);
        await this.#write(`data ${piece.length}\n`);
        await this.#write(piece);
      }
    }
    await this.#write("end\n");
  }

  async #write(data: string | Uint8Array): Promise<void> {
    let rest = typeof data === "string" ? new TextEncoder().encode(data) : data;
    while (rest.length > 0) rest = rest.subarray(await this.#port.write(rest));
  }
}
