/**
 * Applies the access rules of a listener to each connection: asks its auth function once, and its
 * hooks for each registration.
 *
 * Frames of a connection are held until the auth function has decided. Where it is absent, throws,
 * returns what is no grant or takes too long, the connection is refused; the log says why, and the
 * peer gets `AUTH_ERROR` (PROTOCOL 8).
 *
 * @module
 */
import { describeThrown, errorBody } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import {
  Access,
  type AccessGrant,
  type AccessPorts,
  DEFAULT_GRANT,
  type ListenerRules,
  type TokenRules,
} from "../core/access/access.ts";
import { HeldFrames, type HeldReceiver } from "../core/access/held_frames.ts";
import { readExposeRule } from "../core/access/patterns.ts";
import { RateWindow } from "../core/guards.ts";
import type { PeerInfo } from "../core/peer.ts";
import type { Clock } from "../ports/clock.ts";
import type { ListenerSettings } from "../ports/config.ts";
import type { Accept, Connection, ConnectionEvents, Upgrade } from "../ports/connection.ts";
import { WARNINGS_MAX, WARNINGS_WINDOW_MS } from "../ports/events.ts";
import type { Log } from "../ports/log.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { readGrant } from "./grant.ts";

/** How a function is asked. */
export interface AskOptions {
  readonly timeout_ms: number;
  /** Ends the call. */
  readonly signal?: AbortSignal;
}

/** What {@linkcode ListenerAccess} works with. */
export interface ListenerAccessOptions {
  readonly listener: ListenerSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** For frames that are held. */
  readonly memory: MemoryBudget;
  /** Functions that decide about access, of any listener; no guest may register them. */
  readonly reserved: ReadonlySet<string>;
  /** Calls a function, as a built-in worker does. */
  call(function_id: string, payload: Json, options: AskOptions): Promise<Json>;
  /** Accepts a connection. */
  open(connection: Connection, info: PeerInfo): HeldReceiver;
}

/** What an auth function is asked about. */
interface Asked {
  readonly address: string;
  readonly request: JsonObject;
}

/** The access rules of one listener. */
export class ListenerAccess {
  readonly #options: ListenerAccessOptions;
  readonly #rules: ListenerRules;
  readonly #warnings = new RateWindow(WARNINGS_MAX, WARNINGS_WINDOW_MS);

  constructor(options: ListenerAccessOptions) {
    this.#options = options;
    this.#rules = rulesOf(options.listener);
  }

  /** Accepts a connection, which may do what the rules, and those of its token, allow. */
  admit(upgrade: Upgrade, info: PeerInfo, token: TokenRules | undefined): Accept {
    // Not later: the headers of a request may be gone once it is answered.
    const asked: Asked = { address: upgrade.address, request: requestOf(upgrade) };
    return (connection) => this.#accept(connection, asked, info, token);
  }

  #accept(
    connection: Connection,
    asked: Asked,
    info: PeerInfo,
    token: TokenRules | undefined,
  ): ConnectionEvents {
    const { memory, listener, reserved } = this.#options;
    const ended = new AbortController();
    const held = new HeldFrames(connection, memory, () => ended.abort());
    const ports = this.#portsOf(held);
    const begin = (grant: AccessGrant): void => {
      if (held.isClosed) return;
      const rules = { listener: this.#rules, grant };
      const access = new Access({ rules, token, ports, reserved });
      held.release(this.#options.open(connection, { ...info, access }));
    };
    const id = listener.rbac?.auth_function_id;
    if (id === undefined) begin(DEFAULT_GRANT);
    else {
      this.#authenticate(id, asked, ended.signal).then(begin).catch((thrown: unknown) => {
        if (!held.isClosed) this.#refuse(connection, asked, id, thrown);
      });
    }
    return held;
  }

  /** @throws {EngineError} When the function does not grant access. */
  async #authenticate(id: string, asked: Asked, signal: AbortSignal): Promise<AccessGrant> {
    const timeout_ms = this.#options.listener.rbac!.auth_timeout_ms;
    const granted = await this.#options.call(id, asked.request, { timeout_ms, signal });
    return readGrant(granted, id);
  }

  #refuse(connection: Connection, { address }: Asked, id: string, thrown: unknown): void {
    const { clock, log, listener } = this.#options;
    const { code, message } = describeThrown(thrown);
    if (this.#warnings.allow(clock.now())) {
      log.warn("a connection was refused by access rules", {
        listener: listener.name,
        address,
        function_id: id,
        code,
        reason: message.slice(0, 500),
      });
    }
    const error = errorBody("AUTH_ERROR", peerText(code, message));
    connection.send(JSON.stringify({ type: "error", error }));
    connection.close(1008, "not authorised");
  }

  #portsOf(held: HeldFrames): AccessPorts {
    const timeout_ms = this.#options.listener.rbac?.auth_timeout_ms ?? 0;
    return {
      ask: (function_id, payload, then) => {
        held.hold();
        this.#options.call(function_id, payload, { timeout_ms })
          .then((value) => then({ value }), (thrown: unknown) => {
            const { code, message } = describeThrown(thrown);
            then({ error: errorBody(code, message) });
          })
          .finally(() => held.release());
      },
    };
  }
}

/** Why a peer is refused, without what concerns the engine's operator only. */
function peerText(code: string, message: string): string {
  switch (code) {
    case "function_not_found":
    case "overloaded":
    case "invocation_stopped":
      return "Connections cannot be authorised now; try again later";
    case "timeout":
    case "TIMEOUT":
      return "The connection was not authorised in time; try again later";
    case "invalid_grant":
      return "The connection could not be authorised";
    default:
      return `The connection is not authorised: ${message.slice(0, 500)}`;
  }
}

/** The payload of an auth function. */
function requestOf({ headers, query, address }: Upgrade): JsonObject {
  const query_params: Record<string, string[]> = Object.create(null);
  for (const [key, value] of query) (query_params[key] ??= []).push(value);
  return { headers: Object.fromEntries(headers), query_params, ip_address: address };
}

/** The rules of a listener, which config.yaml has checked. */
function rulesOf({ middleware_function_id, rbac }: ListenerSettings): ListenerRules {
  const expose = rbac?.expose_functions.map(readExposeRule)
    .filter((rule) => typeof rule !== "string");
  return {
    expose,
    middleware: middleware_function_id,
    hooks: {
      function: rbac?.on_function_registration_function_id,
      trigger: rbac?.on_trigger_registration_function_id,
      triggerType: rbac?.on_trigger_type_registration_function_id,
    },
  };
}

/** The functions that decide about access on some listeners. */
export function decidingFunctions(listeners: readonly ListenerSettings[]): Set<string> {
  return new Set(
    listeners.flatMap(({ middleware_function_id, rbac = undefined }) => [
      middleware_function_id,
      rbac?.auth_function_id,
      rbac?.on_function_registration_function_id,
      rbac?.on_trigger_registration_function_id,
      rbac?.on_trigger_type_registration_function_id,
    ]).filter((id) => id !== undefined),
  );
}

/** Whether connections of a listener need an {@linkcode ListenerAccess}. */
export function hasRules({ middleware_function_id, rbac }: ListenerSettings): boolean {
  return middleware_function_id !== undefined || rbac !== undefined;
}
