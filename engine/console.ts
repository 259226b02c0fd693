/**
 * The console in a process of its own, connected to an engine on any machine.
 *
 * It is the same console as the one in the engine. It keeps running while the engine restarts, and
 * reconnects by itself.
 *
 * @module
 */
import { addressKey, randomSecret, type Token } from "../workers/console/access.ts";
import { withoutSecrets } from "../sdk/typescript/arguments.ts";
import { EngineError } from "../sdk/typescript/wire/errors.ts";
import { CONSOLE_PORT } from "../workers/console/mod.ts";
import { registerWorker } from "../sdk/typescript/register_worker.ts";
import type { Worker } from "../sdk/typescript/worker.ts";
import { readControlKey } from "./auth/control_key.ts";
import { dialAsUser } from "./auth/user_dial.ts";
import { socketBounds } from "./platform/descriptors.ts";
import { createLog } from "./platform/log_writer.ts";
import { createMemoryBudget, defaultMemoryMb } from "./platform/memory_budget.ts";
import { systemClock } from "./platform/system_clock.ts";
import { VERSION } from "./version.ts";

const BYTES_PER_MB = 1024 * 1024;
/** How long a console in its own process waits for its first connection. */
const CONSOLE_CONNECT_MS = 10_000;
/** Its first wait before it reconnects. */
const CONSOLE_RECONNECT_MS = 250;

/** How to start a console. */
export interface ConsoleOptions {
  /** Address of the engine, such as `ws://127.0.0.1:49134`. */
  readonly url: string;
  /** Token of the engine. */
  readonly token?: string | undefined;
  /** Address to listen on. Default: 127.0.0.1. Others than this machine's need `typed`. */
  readonly host?: string | undefined;
  /** Default: 3113; 0 is any free one. */
  readonly port?: number | undefined;
  /**
   * The token that a person has to enter before the page shows anything. `isOwn: false`: workers
   * know it too, as they know the engine's, so it does not allow to manage workers. Default: none.
   */
  readonly typed?: { readonly text: string; readonly isOwn: boolean } | undefined;
}

/** A console that runs; disposing of it closes its port. */
export interface EngineConsole extends AsyncDisposable {
  /** Such as `http://127.0.0.1:3113`. */
  readonly url: string;
  /** The address of a page that may manage workers; it holds a secret. */
  readonly operatorUrl: string;
}

/**
 * Starts a console and returns when it listens.
 *
 * @throws {EngineError} `engine_unreachable` when no connection is established within 10 s;
 * `address_in_use`, `address_not_available`; `INVALID_ARGUMENTS` for an address that other machines
 * reach without `typed`.
 */
export async function startConsole(options: ConsoleOptions): Promise<EngineConsole> {
  const { url, token, host = "127.0.0.1", port = CONSOLE_PORT, typed } = options;
  // Imported here, since `operatorUrl` needs neither.
  const { runConsole } = await import("../workers/console/run_console.ts");
  await using stack = new AsyncDisposableStack();
  const worker = registerWorker(url, {
    workerName: "engine-console",
    description: "A web page that shows the system and acts on it",
    dial: dialAsUser({ url, clock: systemClock }),
    reconnect: { firstMs: CONSOLE_RECONNECT_MS, maxMs: 4 * CONSOLE_RECONNECT_MS },
    onError: () => {}, // The page shows whether the engine is connected, and why a call failed.
    ...token !== undefined && { token },
  });
  stack.defer(() => worker.shutdown());
  await connected(worker, url);
  const key = randomSecret(16);
  const log = createLog({ level: () => "warn", format: "text" });
  const memory = createMemoryBudget(defaultMemoryMb() * BYTES_PER_MB);
  const running = stack.use(
    await runConsole(worker, { clock: systemClock, log, memory }, {
      host,
      port,
      socketsMax: socketBounds().console,
      version: VERSION,
      secret: randomSecret(),
      engineUrl: () => withoutSecrets(url),
      operatorKey: () => Promise.resolve(key),
      ...typed && { accessToken: tokenFor(typed) },
    }),
  );
  const whole = stack.move();
  return {
    url: running.url,
    operatorUrl: `${running.url}/?key=${key}`,
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}

/**
 * The address of a page that may manage workers, of a console that the engine at `engineUrl` serves
 * itself; without a key of the engine's on this machine the address as it is.
 */
export async function operatorUrl(consoleUrl: string, engineUrl: string): Promise<string> {
  const key = await readControlKey(engineUrl);
  return key === undefined ? consoleUrl : `${consoleUrl}/?key=${await addressKey(key)}`;
}

function tokenFor({ text, isOwn }: { text: string; isOwn: boolean }): Token {
  return { text, rights: isOwn ? "operator" : "guest" };
}

/** @throws {EngineError} `engine_unreachable`. */
async function connected(worker: Worker, url: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stopListening = worker.onConnectionState((state) => {
    if (state === "connected") resolve();
  });
  if (worker.connectionState === "connected") resolve();
  const cancel = systemClock.after(CONSOLE_CONNECT_MS, () => {
    const message = `The engine at ${withoutSecrets(url)} has not answered for ` +
      `${CONSOLE_CONNECT_MS / 1000} s`;
    reject(new EngineError("engine_unreachable", message));
  });
  try {
    await promise;
  } finally {
    cancel();
    stopListening();
  }
}
