/**
 * Registers `engine::state::check` and `engine::state::backup`, for operators: a backup writes a
 * file anywhere on this machine, and both read all of the disk's state.
 *
 * @module
 */
import type { StateCheck, StoreFile } from "../../engine/ports/store.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { EngineHost } from "../kit/define.ts";
import * as v from "../kit/schema.ts";
import type { CheckedFunctions } from "./functions.ts";
import { checkOperator } from "./supervision.ts";

/** Longest path of a backup, in characters. */
const PATH_CHARS_MAX = 4_096;

const Backup = v.object({
  path: v.described(
    "Absolute path of the file to write, on the engine's machine",
    v.text(1, PATH_CHARS_MAX),
  ),
});

/** Parts of the engine that the functions use. */
export type StateFileHost = Pick<EngineHost, "directory" | "store" | "supervision">;

/** Registers the functions. One runs at a time; a second one is refused. */
export function registerStateFile(registry: CheckedFunctions, host: StateFileHost): void {
  let isRunning = false;
  const run = async (
    context: CallContext,
    task: (file: StoreFile) => Promise<StateCheck>,
  ): Promise<Json> => {
    checkOperator(host, context);
    const { file } = host.store;
    if (!file) throw new EngineError("store_unavailable", "This engine keeps its state in memory");
    if (isRunning) {
      throw new EngineError("overloaded", "A check or backup of the state runs; wait for its end");
    }
    isRunning = true;
    try {
      return await task(file) as unknown as Json;
    } finally {
      isRunning = false;
    }
  };
  registry.add(
    "engine::state::check",
    "Verifies every record of the state and its file",
    v.object({}),
    (_payload, context) => run(context, (file) => file.check()),
  );
  registry.add(
    "engine::state::backup",
    "Copies the state to a file of the engine's machine while writes go on",
    Backup,
    ({ path }, context) => {
      if (!/^(\/|[A-Za-z]:[\\/])/.test(path)) {
        throw new EngineError("INVALID_ARGUMENTS", "path: expected an absolute path");
      }
      return run(context, (file) => file.backup(path));
    },
  );
}
