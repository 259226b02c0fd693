/**
 * The worker listeners of an engine besides the default one: opens and closes them, and provides
 * what their access rules ask functions with.
 *
 * The functions that decide about access are called as a built-in worker calls functions, on a
 * connection that exists only where some listener has such functions.
 *
 * @module
 */
import { ENGINE_URL_DEFAULT } from "../sdk/typescript/wire/limits.ts";
import type { Json } from "../sdk/typescript/wire/protocol.ts";
import type { Dial } from "../sdk/typescript/wire/transport.ts";
import { registerWorker } from "../sdk/typescript/register_worker.ts";
import type { Worker } from "../sdk/typescript/worker.ts";
import { errorBody } from "../sdk/typescript/wire/errors.ts";
import { decidingFunctions, hasRules, ListenerAccess } from "./auth/listener_access.ts";
import type { ListenerSettings } from "./ports/config.ts";
import type { Listener } from "./ports/connection.ts";
import type { Endpoint, ListenerInfo } from "./ports/supervision.ts";
import { addressOf, openListener, type WorkerPortOptions } from "./worker_port.ts";

/** Name of the built-in worker that asks functions about access. */
export const ACCESS_WORKER = "engine-access";
/** Part of the sockets that the default listener keeps where there are others. */
const DEFAULT_SHARE = 1 / 2;

/** What {@linkcode Listeners} works with. */
export interface ListenersOptions {
  readonly settings: readonly ListenerSettings[];
  /** Of the default listener. */
  readonly port: WorkerPortOptions;
  /** Opens a local connection for a built-in worker. */
  dial(name: string): Dial;
}

interface OpenListener {
  readonly settings: ListenerSettings;
  readonly listener: Listener;
}

/** How many sockets each listener may have open. */
export function shareSockets(sockets: number, others: number): { first: number; each: number } {
  if (others === 0) return { first: sockets, each: 0 };
  const first = Math.ceil(sockets * DEFAULT_SHARE);
  return { first, each: Math.max(1, Math.floor((sockets - first) / others)) };
}

/** The open listeners besides the default one. */
export class Listeners {
  readonly #options: ListenersOptions;
  readonly #open: OpenListener[] = [];
  #worker: Worker | undefined;

  constructor(options: ListenersOptions) {
    this.#options = options;
  }

  /** The addresses, as `workers:<name>`. */
  get endpoints(): Endpoint[] {
    return this.#open.map((open) => ({ name: `workers:${open.settings.name}`, url: urlOf(open) }));
  }

  /** What each of them asks for. */
  get infos(): ListenerInfo[] {
    return this.#open.map((open) => infoOf(open));
  }

  /**
   * Opens all of them, in the order of the file.
   *
   * @throws {EngineError} `address_in_use`, `address_not_available`, `config_invalid`; those before
   * stay open until close().
   */
  open(): void {
    const { settings, port } = this.#options;
    const reserved = decidingFunctions(settings);
    for (const one of settings) {
      const access = hasRules(one) ? this.#accessOf(one, reserved) : undefined;
      this.#open.push({ settings: one, listener: openListener(port, one, access) });
    }
  }

  /** Closes all of them. */
  async close(): Promise<void> {
    await Promise.all(this.#open.splice(0).map(({ listener }) => listener.close()));
    await this.#worker?.shutdown();
    this.#worker = undefined;
  }

  #accessOf(listener: ListenerSettings, reserved: ReadonlySet<string>): ListenerAccess {
    const { clock, log, memory, router, tokens } = this.#options.port;
    return new ListenerAccess({
      listener,
      clock,
      log,
      memory,
      reserved,
      call: (function_id, payload, { timeout_ms, signal }) =>
        this.#connect().trigger<Json, Json>({
          function_id,
          payload,
          timeout_ms,
          ...signal && { signal },
        }),
      open: (connection, info) => {
        const session = router.open(connection, info);
        // Its token may have ended while it was being authorised.
        const { token } = info;
        const end = token === undefined ? undefined : tokens?.endOf(token);
        if (end !== undefined) {
          router.endWhere((each) => each === info, errorBody("AUTH_ERROR", end));
        }
        return session;
      },
    });
  }

  #connect(): Worker {
    const dial = this.#options.dial(ACCESS_WORKER);
    const description = "Asks functions about access to listeners";
    const options = { workerName: ACCESS_WORKER, description, dial };
    return this.#worker ??= registerWorker(ENGINE_URL_DEFAULT, options);
  }
}

function urlOf({ settings, listener }: OpenListener): string {
  return addressOf(listener, settings.tls ? "wss" : "ws");
}

function infoOf(open: OpenListener): ListenerInfo {
  const { name, auth_token, tokens, rbac, middleware_function_id } = open.settings;
  return {
    name,
    url: urlOf(open),
    asks_for_token: auth_token !== undefined || tokens,
    has_rules: rbac !== undefined,
    functions: [...decidingFunctions([open.settings])],
    auth_function_id: rbac?.auth_function_id ?? null,
    middleware_function_id: middleware_function_id ?? null,
  };
}
