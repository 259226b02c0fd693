/**
 * Runs a command beside a worker for somebody who watches: what it prints is sent as it comes.
 *
 * Each piece of output is one progress message, `{ stream, data }` with `data` in base64, so that
 * bytes stay what they are. Time and output are bounded by whoever runs the command.
 *
 * @module
 */
import type { Ended, OutputChunk } from "../../engine/ports/launcher.ts";
import type { ExecRequest, Supervision } from "../../engine/ports/supervision.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";

/** Bytes of output in one message: large enough to be quick, small enough to be on its way soon. */
const PIECE_BYTES = 48 * 1024;

/**
 * How the command ended; the caller's cancel ends it.
 *
 * @throws {EngineError} It could not be started.
 */
export async function runBeside(
  supervision: Pick<Supervision, "exec">,
  request: ExecRequest,
  context: Pick<CallContext, "progress" | "signal">,
): Promise<Ended> {
  const send = ({ stream, bytes }: OutputChunk): void => {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      context.progress({ stream, data: bytes.subarray(at, at + PIECE_BYTES).toBase64() });
    }
  };
  return await supervision.exec(request, send, context.signal);
}
