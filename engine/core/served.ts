/**
 * The connections that execute functions whose implementation is a URL, one per worker that
 * registered such functions.
 *
 * To the table of functions the worker is the owner, so names, access rules, listings and clean-up
 * are those of any function. Its calls go to a second peer, its server: a connection of
 * `ports/served.ts` that lives as long as the worker's and has bounds of its own. A server is no
 * worker: it is in no listing, and shares the id of its owner.
 *
 * @module
 */
import {
  DEFAULT_NAMESPACE,
  type JsonObject,
  type RegisterFunction,
} from "../../sdk/typescript/wire/protocol.ts";
import { NO_SERVED_FUNCTIONS, type ServedFunctions } from "../ports/served.ts";
import { nameKey, namesOf } from "./access/access.ts";
import type { FunctionTable } from "./function_table.ts";
import { Peer } from "./peer.ts";
import type { Session } from "./session.ts";

/** Opens and closes servers. */
export class Servers {
  readonly #functions: FunctionTable;
  readonly #served: ServedFunctions;
  readonly #session: (server: Peer) => Session;

  /** `session` makes the session of a server. */
  constructor(
    functions: FunctionTable,
    served: ServedFunctions = NO_SERVED_FUNCTIONS,
    session: (server: Peer) => Session,
  ) {
    this.#functions = functions;
    this.#served = served;
    this.#session = session;
  }

  /** Why a worker may not register a function with a URL; `undefined`: it may. */
  problem(owner: Peer, registration: RegisterFunction): string | undefined {
    return this.#served.problem(registration, { isLimited: owner.access !== undefined });
  }

  /** The peer that executes a function of a worker: itself, or its server. */
  calleeOf(owner: Peer, { invocation }: RegisterFunction): Peer {
    if (invocation === undefined) return owner;
    return owner.server ??= this.#open(owner);
  }

  /** Closes the server of a worker that left, after its calls have ended. */
  close({ server }: Peer, reason: string): void {
    if (!server?.isLive) return;
    server.isLive = false;
    server.connection.close(1000, reason);
  }

  #open(owner: Peer): Peer {
    let server: Peer | undefined;
    this.#served.open((id, namespace) => this.#invocationOf(owner, id, namespace), (connection) => {
      const { id, reattach_token, connected_at_ms, info: { launch_id } } = owner;
      const info = { address: null, launch_id, builtin: null };
      server = new Peer(connection, { id, reattach_token, connected_at_ms, info });
      server.endpoint = owner.endpoint;
      server.wantsCancel = true;
      return this.#session(server);
    });
    // A part that opens nothing has a problem with every function.
    return server ?? owner;
  }

  /** Calls have the name that the worker gave the function. */
  #invocationOf(
    owner: Peer,
    function_id: string,
    namespace: string = DEFAULT_NAMESPACE,
  ): JsonObject | undefined {
    const key = owner.access?.functions.registered(nameKey(namespace, function_id));
    const { id, namespace: space } = key ? namesOf(key) : { id: function_id, namespace };
    return this.#functions.registrationOf(owner, id, space)?.invocation;
  }
}
