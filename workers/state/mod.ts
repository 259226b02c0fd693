/**
 * `engine-state`: persistent JSON values by scope and key, shared by all functions.
 *
 * This file implements `state::*`. `payloads.ts` has the payloads, `entries.ts` the layout in the
 * store, `answers.ts` the memory of answers, `triggers.ts` the trigger type, `expiry.ts` the
 * removal of expired entries, `update_ops.ts` the operations of `state::update` and
 * `transaction.ts` those of `state::transaction`.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Handler } from "../../sdk/typescript/options.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { BuiltinWorker } from "../kit/define.ts";
import { fit, fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import {
  AnswerMemory,
  changeAnswer,
  checkAnswer,
  LARGE_BYTES,
  listAnswer,
  updateEntry,
} from "./answers.ts";
import { listEntries, listScopes, StateEntries, type StateEvent } from "./entries.ts";
import type { Place, StateEntry } from "./record.ts";
import { Expiry } from "./expiry.ts";
import {
  EntriesRequest,
  FORMATS,
  GroupsRequest,
  readPlace,
  readSet,
  ScopeRequest,
  UpdateRequest,
} from "./payloads.ts";
import {
  checkVersion,
  runTransaction,
  TRANSACTION_FORMAT,
  TransactionRequest,
} from "./transaction.ts";
import { ChangeTriggers, STATE_TRIGGERS } from "./triggers.ts";

/** Milliseconds until a write is on disk, with `durability: interval`. */
const FLUSH_MS = 100;
const FLUSH_MS_MAX = 60_000;

const Config = v.pipe(
  v.strictObject({
    durability: v.nullish(v.picklist(["always", "interval"]), "always"),
    flush_ms: v.opt(v.int(1, FLUSH_MS_MAX)),
  }),
  v.forward(
    v.check(
      ({ durability, flush_ms }) => durability === "interval" || flush_ms === undefined,
      "expected with `durability: interval` only",
    ),
    ["flush_ms"],
  ),
  v.transform(({ durability, flush_ms = FLUSH_MS }) => {
    return { flushMs: durability === "interval" ? flush_ms : undefined };
  }),
);

/** Stores JSON values by scope and key in the engine's store. */
export const state: BuiltinWorker<v.InferOutput<typeof Config>> = {
  name: "engine-state",
  runsByDefault: true,
  summary: "Shared values by scope and key",
  summaryOf: ({ flushMs }) =>
    flushMs === undefined ? state.summary : `${state.summary}; ${lateness(flushMs)}`,
  kept: "state::get",
  offers: { functions: ["state::*"], triggerTypes: ["state"] },
  parse: (raw) => fitConfig(Config, raw),
  configSchema: () => v.jsonSchema(Config),
  start(worker, { flushMs }, { store, clock, log, memory }) {
    const started = new AsyncDisposableStack();
    const triggers = started.adopt(
      new ChangeTriggers({ kind: STATE_TRIGGERS, worker, log, clock, memory }),
      (it) => it.close(),
    );
    const entries = new StateEntries({
      store,
      clock,
      writes: flushMs === undefined ? {} : { flushMs },
      changed: (event, bytes) => {
        if (!triggers.isEmpty) triggers.fire(event(), bytes);
      },
      expires: (atMs) => expiry.schedule(atMs),
    });
    const expiry = started.use(new Expiry({ clock, log, entries }));
    const isBehind = (): boolean => triggers.isBehind;
    const answers = new AnswerMemory(memory, clock);
    const functions = new StateFunctions({ entries, expiry, clock, answers, isBehind });
    registerFunctions(worker, functions, flushMs);
    registerTriggerType(worker, triggers);
    void expiry.sweep();
    return Promise.resolve(started);
  },
};

/** Dependencies of {@linkcode StateFunctions}. */
interface FunctionsSetup {
  readonly entries: StateEntries;
  readonly expiry: Expiry;
  readonly clock: Pick<Clock, "wall">;
  readonly answers: AnswerMemory;
  /** Too many changes wait for the triggers. */
  isBehind(): boolean;
}

/** The implementation of each function. */
class StateFunctions {
  readonly #setup: FunctionsSetup;
  readonly #entries: StateEntries;

  constructor(setup: FunctionsSetup) {
    this.#setup = setup;
    this.#entries = setup.entries;
  }

  async set(payload: Json): Promise<JsonText> {
    const { value, ttl_ms, expected_version, ...place } = readSet(payload);
    this.#refuseIfBehind();
    const expires_at_ms = typeof ttl_ms === "number"
      ? this.#setup.clock.wall() + ttl_ms
      : undefined;
    const changed = await this.#entries.write(place, (old) => {
      checkVersion(place, old, expected_version);
      checkAnswer(old, value);
      return { value, expires_at_ms };
    }, expires_at_ms);
    return changeAnswer(changed.old, changed.new!.json);
  }

  async get(payload: Json): Promise<JsonText | undefined> {
    const found = await this.#read(readPlace("state::get", payload));
    return found && new JsonText(found.json);
  }

  async entry(payload: Json): Promise<JsonText | undefined> {
    const found = await this.#read(readPlace("state::entry", payload));
    if (!found) return undefined;
    const { json, version, updated_at_ms, expires_at_ms } = found;
    const rest = JSON.stringify({ version, updated_at_ms, expires_at_ms }).slice(1);
    return new JsonText(`{"value":${json},${rest}`);
  }

  /** An entry for an answer. */
  async #read(place: Place): Promise<StateEntry | undefined> {
    const found = await this.#entries.get(place);
    if (found && found.bytes >= LARGE_BYTES) {
      await this.#setup.answers.hold((add) => add(found.bytes));
    }
    return found;
  }

  async delete(payload: Json): Promise<JsonText | undefined> {
    const place = readPlace("state::delete", payload);
    this.#refuseIfBehind();
    const changed = await withCode(
      "DELETE_ERROR",
      () => this.#entries.write(place, () => undefined),
    );
    return changed.old && new JsonText(changed.old.json);
  }

  async update(payload: Json): Promise<JsonText> {
    const { ops, ...place } = fit("state::update", UpdateRequest, payload);
    this.#refuseIfBehind();
    return await withCode("UPDATE_ERROR", () => updateEntry(this.#entries, place, ops));
  }

  async transaction(payload: Json): Promise<JsonObject> {
    const request = fit("state::transaction", TransactionRequest, payload);
    this.#refuseIfBehind();
    const now = this.#setup.clock.wall();
    return await withCode(
      "TRANSACTION_ERROR",
      () => runTransaction(this.#entries, request, now),
    );
  }

  #refuseIfBehind(): void {
    if (!this.#setup.isBehind()) return;
    const message = "Too many changes wait for their state triggers; write again in a moment";
    throw new EngineError("overloaded", message);
  }

  async list(payload: Json): Promise<JsonText> {
    const { scope } = fit("state::list", ScopeRequest, payload);
    return await listAnswer(this.#entries, this.#setup.answers, scope);
  }

  listEntries(payload: Json): Promise<JsonObject> {
    const query = fit("state::list_entries", EntriesRequest, payload);
    return this.#setup.answers.hold((add) => listEntries(this.#entries, query, add));
  }

  async listGroups(payload: Json): Promise<JsonObject> {
    const query = fit("state::list_groups", GroupsRequest, payload ?? {});
    // Scopes are counted including entries that have just expired.
    await this.#setup.expiry.sweep();
    const { names, cursor } = await listScopes(this.#entries, query);
    return { groups: [...names], ...cursor !== undefined && { cursor } };
  }
}

/** Functions whose answers say that a value is on disk, or that it will be. */
const WRITES: readonly string[] = ["set", "delete", "update", "transaction"];

/** What listings say of writes that are answered before they are on disk. */
function lateness(flushMs: number): string {
  return `on disk up to ${flushMs} ms after the answer`;
}

function registerFunctions(
  worker: Pick<Worker, "registerFunction">,
  state: StateFunctions,
  flushMs: number | undefined,
): void {
  const formats = { ...FORMATS, transaction: TRANSACTION_FORMAT };
  const functions: Record<keyof typeof formats, Handler> = {
    set: (payload) => state.set(payload),
    get: (payload) => state.get(payload),
    entry: (payload) => state.entry(payload),
    delete: (payload) => state.delete(payload),
    update: (payload) => state.update(payload),
    transaction: (payload) => state.transaction(payload),
    list: (payload) => state.list(payload),
    list_entries: (payload) => state.listEntries(payload),
    list_groups: (payload) => state.listGroups(payload),
  };
  for (const [name, format] of Object.entries(formats)) {
    const isLate = flushMs !== undefined && WRITES.includes(name);
    const description = isLate ? `${format.description}; ${lateness(flushMs)}` : format.description;
    const handler = functions[name as keyof typeof formats];
    worker.registerFunction(`state::${name}`, handler, { ...format, description });
  }
}

function registerTriggerType(
  worker: Pick<Worker, "registerTriggerType">,
  triggers: ChangeTriggers<StateEvent>,
): void {
  const optional = { type: ["string", "null"] };
  worker.registerTriggerType({
    id: "state",
    description: "Runs a function when a value in the state changes",
    trigger_request_format: {
      type: "object",
      properties: { scope: optional, key: optional, condition_function_id: optional },
    },
    call_request_format: {
      type: "object",
      properties: {
        type: { const: "state" },
        event_type: { enum: ["state:created", "state:updated", "state:deleted"] },
        scope: { type: "string" },
        key: { type: "string" },
        old_value: {},
        new_value: {},
      },
    },
  }, {
    registerTrigger: (trigger) => triggers.add(trigger),
    unregisterTrigger: ({ id }) => triggers.remove(id),
  });
}

/** Replaces `SET_ERROR`, the store's code of a failed write, by the function's own code. */
async function withCode<T>(code: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (thrown) {
    if (!(thrown instanceof EngineError) || thrown.code !== "SET_ERROR") throw thrown;
    const { message, details } = thrown;
    throw new EngineError(code, message, { cause: thrown, ...details && { details } });
  }
}
