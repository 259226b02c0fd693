/**
 * Functions of workers that keep the items of a stream themselves: `stream::get(chat)` is called
 * instead of the store for the stream `chat`, with the same payload.
 *
 * @module
 */
import type { Directory } from "../../engine/ports/directory.ts";
import { EngineError, thrownText } from "../../sdk/typescript/wire/errors.ts";
import { DEFAULT_NAMESPACE, type Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { changeOf, type StreamHappening } from "./items.ts";

/** What may be overridden, by the name after `stream::`. */
export type OverriddenOp = "set" | "get" | "delete" | "update" | "list" | "list_groups";

/** Dependencies of {@linkcode Overrides}. */
export interface OverridesSetup {
  readonly worker: Pick<Worker, "trigger">;
  readonly directory: Pick<Directory, "function">;
}

/** Answer of an override; absent: there is none, and the store answers. */
export interface Overridden {
  readonly answer: Json | undefined;
}

/** Calls overrides. */
export class Overrides {
  readonly #setup: OverridesSetup;

  constructor(setup: OverridesSetup) {
    this.#setup = setup;
  }

  /** Whether a worker keeps the items of a stream for this operation. */
  has(op: OverriddenOp, stream_name: string): boolean {
    return this.#setup.directory.function(DEFAULT_NAMESPACE, idOf(op, stream_name)) !== undefined;
  }

  /**
   * Calls the override of an operation, if there is one.
   *
   * @throws {EngineError} `STREAM_<OP>_ERROR`, with the error of the function in `details`.
   */
  async call(
    op: OverriddenOp,
    stream_name: string,
    payload: Json,
  ): Promise<Overridden | undefined> {
    if (!this.has(op, stream_name)) return undefined;
    const function_id = idOf(op, stream_name);
    try {
      const answer = await this.#setup.worker.trigger<Json, Json | undefined>({
        function_id,
        payload,
        namespace: DEFAULT_NAMESPACE,
      });
      return { answer };
    } catch (thrown) {
      if (thrown instanceof EngineError && thrown.code === "overloaded") throw thrown;
      const known = thrown instanceof EngineError;
      throw new EngineError(codeOf(op), `${function_id} failed: ${thrownText(thrown)}`, {
        cause: thrown,
        details: { function_id, ...known && { code: thrown.code } },
      });
    }
  }
}

/**
 * What an override changed, by its answer `{old_value?, new_value}`.
 *
 * @throws {EngineError} `STREAM_<OP>_ERROR` for an answer of another shape.
 */
export function happeningIn(
  op: "set" | "update" | "delete",
  stream_name: string,
  answer: Json | undefined,
): StreamHappening | undefined {
  const isObject = typeof answer === "object" && answer !== null && !Array.isArray(answer);
  const old = isObject ? answer.old_value ?? undefined : undefined;
  if (op === "delete") return changeOf(old, undefined);
  if (isObject && answer.new_value !== undefined) return changeOf(old, answer.new_value);
  const message = `${idOf(op, stream_name)} must answer {"old_value", "new_value"}`;
  throw new EngineError(codeOf(op), message);
}

/** `STREAM_<OP>_ERROR` */
export function codeOf(op: string): string {
  return `STREAM_${op.toUpperCase()}_ERROR`;
}

function idOf(op: OverriddenOp, stream_name: string): string {
  return `stream::${op}(${stream_name})`;
}
