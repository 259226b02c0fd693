/**
 * Runs a command beside a worker for somebody who watches: what it prints is sent as it comes.
 *
 * Each piece of output is one progress message, `{ stream, data }` with `data` in base64, so that
 * bytes stay what they are. Time and output are bounded here; the caller's cancel ends the command.
 *
 * @module
 */
import type { Ended, OutputChunk } from "../../engine/ports/launcher.ts";
import type { ExecRequest } from "../../engine/ports/supervision.ts";
import { EXEC_OUTPUT_BYTES_MAX, EXEC_TIMEOUT_MS } from "../../sdk/typescript/limits.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";
import type { EngineHost } from "../define.ts";

/** Bytes of output in one message: large enough to be quick, small enough to be on its way soon. */
const PIECE_BYTES = 48 * 1024;

/** What of the engine a command needs. */
export type ExecHost = Pick<EngineHost, "clock" | "supervision">;

/**
 * How the command ended. One that took `EXEC_TIMEOUT_MS` or printed `EXEC_OUTPUT_BYTES_MAX` was
 * ended here, which `reason` says.
 *
 * @throws {EngineError} It could not be started.
 */
export async function runBeside(
  { clock, supervision }: ExecHost,
  request: ExecRequest,
  context: Pick<CallContext, "progress" | "signal">,
): Promise<Ended> {
  const ending = new AbortController();
  let reason: string | undefined;
  const end = (why: string): void => {
    reason ??= why;
    ending.abort();
  };
  let bytesLeft = EXEC_OUTPUT_BYTES_MAX;
  const send = ({ stream, bytes }: OutputChunk): void => {
    const taken = bytes.subarray(0, bytesLeft);
    bytesLeft -= taken.length;
    for (let at = 0; at < taken.length; at += PIECE_BYTES) {
      context.progress({ stream, data: taken.subarray(at, at + PIECE_BYTES).toBase64() });
    }
    if (taken.length < bytes.length) {
      end(`it printed more than ${EXEC_OUTPUT_BYTES_MAX / 1024 / 1024} MiB and was ended`);
    }
  };
  const cancelTimer = clock.after(EXEC_TIMEOUT_MS, () => {
    end(`it took longer than ${EXEC_TIMEOUT_MS / 1_000} s and was ended`);
  });
  try {
    const signal = AbortSignal.any([context.signal, ending.signal]);
    const ended = await supervision.exec(request, send, signal);
    return reason === undefined ? ended : { ...ended, reason };
  } finally {
    cancelTimer();
  }
}
