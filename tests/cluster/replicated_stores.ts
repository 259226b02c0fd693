/**
 * Stores of one engine on a log, each with a view of its own in a temporary directory.
 *
 * @module
 */
import { openReplicatedStore } from "../../engine/store/replicated_kv.ts";
import { StateView } from "../../engine/store/state_view.ts";
import type { StateLog } from "../../engine/ports/state_log.ts";
import type { Store } from "../../engine/ports/store.ts";
import { keptLog } from "./kept_log.ts";

/** An engine that keeps the state, as a test sees it. */
export interface StoreUnderTest extends Store {
  readonly view: StateView;
  /** What it logged. */
  readonly lines: readonly string[];
  /** Why it had to stop keeping the state. */
  readonly failure: Promise<Error>;
  /** Takes from it what it keeps, as the end of its lease does. */
  abort(): void;
}

/** Takes over the state in a log, which is closed with the store. */
export async function keepState(
  log: StateLog,
  options: { readonly logBytesMax?: number; readonly path?: string } = {},
): Promise<StoreUnderTest> {
  const directory = await Deno.makeTempDir();
  const report = keptLog();
  const view = await StateView.open(options.path ?? `${directory}/view.sqlite`, report);
  const ending = new AbortController();
  const failure = Promise.withResolvers<Error>();
  const { logBytesMax } = options;
  const close = async (): Promise<void> => {
    view[Symbol.dispose]();
    await log[Symbol.asyncDispose]();
    await Deno.remove(directory, { recursive: true });
  };
  let store: Store;
  try {
    store = await openReplicatedStore({
      ...{ log, view, report, signal: ending.signal, failed: failure.resolve },
      ...logBytesMax !== undefined && { logBytesMax },
    });
  } catch (thrown) {
    await close();
    throw thrown;
  }
  let closing: Promise<void> | undefined;
  return {
    view,
    lines: report.lines,
    failure: failure.promise,
    abort: () => ending.abort(),
    stats: store.stats,
    get status() {
      return store.status;
    },
    file: store.file!,
    get: (key) => store.get(key),
    list: (...query) => store.list(...query),
    write: (changes, others) => store.write(changes, others),
    [Symbol.asyncDispose]: () =>
      closing ??= Promise.resolve(store[Symbol.asyncDispose]()).then(close),
  };
}
