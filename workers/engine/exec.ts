/**
 * Commands beside workers: their output as progress of one call, their input by calls of another.
 *
 * A caller that passes on standard input chooses an id for it. Each call of
 * `engine::supervisor::exec_input` answers when the command has taken its bytes, so a command that
 * reads nothing holds its caller back.
 *
 * @module
 */
import type { Ended, ExecOptions, OutputChunk } from "../../engine/ports/launcher.ts";
import type { ExecRequest, Supervision } from "../../engine/ports/supervision.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Bytes of output in one message: a compromise between throughput and latency. */
const CHUNK_BYTES = 48 * 1024;
/** Characters of base64 in one message of input: 64 KiB. */
export const INPUT_CHARS_MAX = 87_384;
/** Inputs that are open at the same time. */
const INPUTS_MAX = 64;
/** Messages that one input may have waiting. */
const WAITING_MAX = 16;

/**
 * Runs a command beside a worker; streams its output and returns how it ended.
 *
 * Output is sent as progress messages `{ stream, data }`, with `data` in base64. A cancel by the
 * caller ends the command; the supervisor bounds its time and output.
 *
 * @throws {EngineError} The command could not be started.
 */
export async function runExec(
  supervision: Pick<Supervision, "exec">,
  request: ExecRequest,
  context: Pick<CallContext, "progress" | "signal">,
  options: ExecOptions = {},
): Promise<Ended> {
  const send = ({ stream, bytes }: OutputChunk): void => {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      context.progress({ stream, data: bytes.subarray(at, at + CHUNK_BYTES).toBase64() });
    }
  };
  return await supervision.exec(request, send, context.signal, options);
}

/** Bytes of an input, and whether they are the last. */
interface Piece {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly isLast: boolean;
  /** Called when the command has taken it, or will not: then `isOpen` is `false`. */
  settle(isOpen: boolean): void;
}

/** What a command reads: pieces, each of which is settled when it is taken. */
class Input {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #pieces: Piece[] = [];
  #isClosed = false;
  #wake: () => void = () => {};

  constructor() {
    this.stream = new ReadableStream({
      pull: async (controller) => {
        while (this.#pieces.length === 0 && !this.#isClosed) {
          await new Promise<void>((resolve) => this.#wake = resolve);
        }
        const piece = this.#pieces.shift();
        if (piece && piece.bytes.length > 0) controller.enqueue(piece.bytes);
        if (!piece || piece.isLast) controller.close();
        piece?.settle(!piece.isLast);
        if (piece?.isLast) this.close();
      },
      cancel: () => this.close(),
    }, { highWaterMark: 0 });
  }

  get waiting(): number {
    return this.#pieces.length;
  }

  /** Adds a piece; `false` when the command has ended or reads no more. */
  async add(bytes: Uint8Array<ArrayBuffer>, isLast: boolean): Promise<boolean> {
    if (this.#isClosed) return false;
    if (bytes.length === 0 && !isLast) return true;
    return await new Promise((settle) => {
      this.#pieces.push({ bytes, isLast, settle });
      this.#wake();
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const piece of this.#pieces.splice(0)) piece.settle(false);
    this.#wake();
  }
}

/** A piece of input. */
export interface InputPiece {
  readonly input: string;
  /** Base64. */
  readonly data?: string | null | undefined;
  /** Whether it is the last. */
  readonly end?: boolean | null | undefined;
}

/** The inputs of commands that run, by caller and id. */
export class ExecInputs {
  readonly #open = new Map<string, Input>();

  /**
   * Opens an input; `close()` it when the command has ended.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` when the id is in use, `overloaded` when there are
   * too many.
   */
  open(
    caller: string | undefined,
    id: string,
  ): { stream: ReadableStream<Uint8Array<ArrayBuffer>>; close(): void } {
    const key = `${caller} ${id}`;
    if (this.#open.has(key)) {
      const message = `input ${
        JSON.stringify(id)
      } belongs to another command of yours; use a new id`;
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    if (this.#open.size >= INPUTS_MAX) {
      const message = `${INPUTS_MAX} commands with input run already; end one of them first`;
      throw new EngineError("overloaded", message);
    }
    const input = new Input();
    this.#open.set(key, input);
    const close = (): void => {
      this.#open.delete(key);
      input.close();
    };
    return { stream: input.stream, close };
  }

  /**
   * Passes on a piece and answers once the command has taken it; `is_open` is `false` when it has
   * ended or reads no more.
   *
   * @throws {EngineError} `deserialization_error` when `data` is not base64, `overloaded` when too
   * many pieces wait.
   */
  async write(
    caller: string | undefined,
    { input: id, data, end }: InputPiece,
  ): Promise<{ is_open: boolean }> {
    const bytes = decode(data ?? "");
    const input = this.#open.get(`${caller} ${id}`);
    if (!input) return { is_open: false };
    if (input.waiting >= WAITING_MAX) {
      const message = `${WAITING_MAX} pieces of input wait already; send one after the other`;
      throw new EngineError("overloaded", message);
    }
    return { is_open: await input.add(bytes, end ?? false) };
  }
}

function decode(data: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.fromBase64(data);
  } catch {
    const message = "engine::supervisor::exec_input: data is not base64";
    throw new EngineError("deserialization_error", message);
  }
}
