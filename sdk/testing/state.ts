/**
 * The state of a test engine: `state::*` in memory, with versions, expiry and triggers (PROTOCOL
 * 4.8 and 5.1). Not there: transactions, bounds, and the errors of a store.
 *
 * @module
 */
import { EngineError } from "../typescript/wire/errors.ts";
import type { Json, JsonObject } from "../typescript/wire/protocol.ts";
import { jsonCopy, type Routing } from "./routing.ts";
import { passes } from "./triggers.ts";

interface Entry {
  readonly value: Json;
  readonly version: number;
  readonly updated_at_ms: number;
  readonly expires_at_ms: number | undefined;
}

/** Adds the functions and the trigger type. */
export function addState(routing: Routing): void {
  const state = new State(routing);
  routing.types.set("state", {});
  const functions: Record<string, (payload: JsonObject) => unknown> = {
    get: (payload) => state.entry(payload)?.value,
    entry: (payload) => state.entry(payload),
    set: (payload) => state.set(payload, jsonCopy(payload.value ?? payload.data ?? null)),
    delete: (payload) => state.delete(payload),
    update: (payload) => state.update(payload),
    list: (payload) => state.entries(payload).map(({ value }) => value),
    list_entries: (payload) => ({ entries: state.entries(payload).sort(byKey) }),
    list_groups: () => ({ groups: state.groups() }),
  };
  for (const [name, run] of Object.entries(functions)) {
    routing.builtins.set(`state::${name}`, (payload) => {
      if (typeof payload === "object" && payload !== null && !Array.isArray(payload)) {
        return run(payload);
      }
      throw new EngineError("deserialization_error", `state::${name} takes an object`);
    });
  }
}

const byKey = (a: { key: string }, b: { key: string }): number => a.key < b.key ? -1 : 1;

class State {
  readonly #routing: Routing;
  readonly #scopes = new Map<string, Map<string, Entry>>();
  #version = 0;

  constructor(routing: Routing) {
    this.#routing = routing;
  }

  entry({ scope, key }: JsonObject): Entry | undefined {
    const entry = this.#scopes.get(textOf("scope", scope))?.get(textOf("key", key));
    const isOver = entry?.expires_at_ms !== undefined &&
      entry.expires_at_ms <= this.#routing.clock.wall();
    return isOver ? undefined : entry;
  }

  entries({ scope, prefix = "" }: JsonObject): { key: string; value: Json; version: number }[] {
    const keys = [...this.#scopes.get(textOf("scope", scope))?.keys() ?? []];
    return keys.filter((key) => key.startsWith(String(prefix))).flatMap((key) => {
      const entry = this.entry({ scope: scope!, key });
      return entry ? [{ key, value: entry.value, version: entry.version }] : [];
    });
  }

  groups(): string[] {
    return [...this.#scopes.keys()].filter((scope) => this.entries({ scope }).length > 0).sort();
  }

  set(payload: JsonObject, value: Json, keepsExpiry = false): JsonObject {
    const before = this.#checkVersion(payload);
    const { scope, key, ttl_ms } = payload as { scope: string; key: string; ttl_ms?: number };
    const wall = this.#routing.clock.wall();
    const expires_at_ms = keepsExpiry
      ? before?.expires_at_ms
      : ttl_ms === undefined
      ? undefined
      : wall + ttl_ms;
    const entry = { value, version: ++this.#version, updated_at_ms: wall, expires_at_ms };
    if (!this.#scopes.has(scope)) this.#scopes.set(scope, new Map());
    this.#scopes.get(scope)!.set(key, entry);
    if (!keepsExpiry && ttl_ms !== undefined) this.#expireLater(scope, key, entry, ttl_ms);
    this.#fire(before ? "updated" : "created", scope, key, before?.value ?? null, value);
    return { old_value: before?.value ?? null, new_value: value };
  }

  delete(payload: JsonObject): Json | undefined {
    const before = this.#checkVersion(payload);
    if (before) this.#remove(payload.scope as string, payload.key as string, before);
    return before?.value;
  }

  update(payload: JsonObject): JsonObject {
    const before = this.entry(payload)?.value ?? null;
    let value = jsonCopy(before ?? {});
    const errors: JsonObject[] = [];
    (payload.ops as JsonObject[] ?? []).forEach((op, op_index) => {
      try {
        value = applyOp(value, op);
      } catch (thrown) {
        const { code, message } = thrown as EngineError;
        errors.push({ op_index, code, message });
      }
    });
    const changed = this.set(payload, value, true);
    return { ...changed, old_value: before, ...errors.length > 0 && { errors } };
  }

  #checkVersion(payload: JsonObject): Entry | undefined {
    const entry = this.entry(payload);
    const { expected_version } = payload;
    const current_version = entry?.version ?? 0;
    if (expected_version === undefined || expected_version === current_version) return entry;
    const message = `The version of ${payload.key} is ${current_version}, not ${expected_version}`;
    throw new EngineError("version_mismatch", message, { details: { current_version } });
  }

  #expireLater(scope: string, key: string, entry: Entry, ttlMs: number): void {
    this.#routing.clock.after(ttlMs, () => {
      if (this.#scopes.get(scope)?.get(key) === entry) this.#remove(scope, key, entry);
    });
  }

  #remove(scope: string, key: string, { value }: Entry): void {
    this.#scopes.get(scope)!.delete(key);
    this.#fire("deleted", scope, key, value, null);
  }

  #fire(what: string, scope: string, key: string, old_value: Json, new_value: Json): void {
    const event_type = `state:${what}`;
    const payload = { type: "state", event_type, scope, key, old_value, new_value };
    for (const trigger of this.#routing.triggers("state")) {
      const config = (trigger.config ?? {}) as JsonObject;
      if ((config.scope ?? scope) !== scope || (config.key ?? key) !== key) continue;
      void passes(this.#routing, trigger, payload).then((isPassed) => {
        if (isPassed) this.#routing.fire({ ...trigger, payload });
      });
    }
  }
}

function textOf(name: string, value: Json | undefined): string {
  if (typeof value === "string" && value !== "") return value;
  throw new EngineError("deserialization_error", `state::*: ${name} must be a string`);
}

/** One operation of an update; the codes are those of PROTOCOL 5.1. */
function applyOp(root: Json, { type, path = "", value = null, by = 0 }: JsonObject): Json {
  const parts = Array.isArray(path) ? path.map(String) : path === "" ? [] : [String(path)];
  if (parts.length === 0) {
    if (type === "set") return value;
    if (type === "remove") return null;
    return combined(String(type), root, value, Number(by), false);
  }
  if (typeof root !== "object" || root === null || Array.isArray(root)) {
    const name = type === "decrement" ? "increment" : type;
    throw new EngineError(`${name}.target_not_object`, "the target is not an object");
  }
  const [first, ...rest] = parts as [string, ...string[]];
  const { [first]: member, ...others } = root;
  if (type === "remove") return others;
  const changed = rest.length > 0
    ? applyOp(member ?? {}, { type: type!, path: rest, value, by })
    : type === "set"
    ? value
    : combined(String(type), member, value, Number(by), Array.isArray(path));
  return { ...root, [first]: changed };
}

function combined(
  type: string,
  now: Json | undefined,
  value: Json,
  by: number,
  isNested: boolean,
): Json {
  const isMissing = now === undefined || now === null;
  switch (type) {
    case "increment":
    case "decrement": {
      const change = type === "increment" ? by : -by;
      if (isMissing) return change;
      if (typeof now === "number") return now + change;
      throw new EngineError(`${type}.not_number`, "the value is not a number");
    }
    case "append":
      if (isMissing) return typeof value === "string" && !isNested ? value : [value];
      if (Array.isArray(now)) return [...now, value];
      if (typeof now === "string" && typeof value === "string") return now + value;
      throw new EngineError("append.type_mismatch", "the value is not a list");
    case "merge":
      if (typeof value === "object" && value !== null && !Array.isArray(value)) {
        return { ...(isMissing ? {} : now as JsonObject), ...value };
      }
      throw new EngineError("merge.value.not_an_object", "the value is not an object");
    default:
      throw new EngineError("deserialization_error", `there is no operation ${type}`);
  }
}
