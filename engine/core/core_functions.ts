/**
 * The functions that the core executes itself.
 *
 * They concern the connection that calls them, and the next frame of that connection must see their
 * effect. All other `engine::*` functions belong to built-in workers.
 *
 * @module
 */
import { readWorkerMessage } from "../../sdk/typescript/wire/codec.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { ID_CHARS_MAX } from "../../sdk/typescript/wire/limits.ts";
import {
  ANNOUNCE_FUNCTION_ID,
  type Announcement,
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type InvokeFunction,
  type Json,
  type JsonObject,
  type RegisterTrigger,
} from "../../sdk/typescript/wire/protocol.ts";
import type { CallObserver } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { EventListener } from "../ports/events.ts";
import type { Calls } from "./calls.ts";
import { type ErrorReplies, failure, unopenedCallOf } from "./error_replies.ts";
import type { NameGuard } from "./name_guard.ts";
import type { Peer } from "./peer.ts";
import type { Registrations } from "./registrations.ts";
import { TRIGGERS_PER_WORKER_MAX, type TriggerTable } from "./trigger_table.ts";
import { FUNCTION_KEY, jsonText, RESULT_KEY, RESULT_PREFIX } from "./wire/frame_parts.ts";
import { PARSED_BYTES_MAX, type ParsedFrame } from "./wire/parsed_frame.ts";

/** How long `engine::register_trigger` waits for the provider. */
export const PROVIDER_ANSWER_MS = 10_000;

const REGISTER_TRIGGER = "engine::register_trigger";
const UNREGISTER_TRIGGER = "engine::unregister_trigger";

/** Ids and descriptions. */
export const CORE_FUNCTIONS: ReadonlyMap<string, string> = new Map([
  [ANNOUNCE_FUNCTION_ID, "Announces the worker on this connection"],
  [REGISTER_TRIGGER, "Registers a trigger for this connection and waits for its provider"],
  [UNREGISTER_TRIGGER, "Ends a trigger of this connection"],
]);

const NAME_EXPECTED = `name: expected a string of 1 to ${ID_CHARS_MAX} characters`;

/** Dependencies of the core functions. */
export interface CoreFunctionsOptions {
  readonly clock: Clock;
  readonly calls: Calls;
  readonly triggers: TriggerTable;
  readonly registrations: Registrations;
  readonly errorReplies: ErrorReplies;
  readonly names: NameGuard;
  readonly report: EventListener;
  readonly observer: CallObserver;
  newId(): string;
}

/** Executes the core functions. */
export class CoreFunctions {
  readonly #options: CoreFunctionsOptions;

  constructor(options: CoreFunctionsOptions) {
    this.#options = options;
  }

  /** Whether a call is for one of them. */
  has({ function_id, namespace = DEFAULT_NAMESPACE, action }: InvokeFunction): boolean {
    return CORE_FUNCTIONS.has(function_id) && namespace === DEFAULT_NAMESPACE &&
      action?.type !== "enqueue";
  }

  /** Executes a call and replies at once, or for a trigger after its provider replied. */
  run(caller: Peer, call: InvokeFunction, frame: ParsedFrame): void {
    if (this.#options.calls.rejectsDuplicateId(caller, call)) return;
    if (frame.payload) return this.#refuseLarge(caller, call, frame);
    const { data = null } = call;
    if (!isObject(data)) {
      this.#refuse(caller, call, frame, "expected an object");
    } else if (call.function_id === ANNOUNCE_FUNCTION_ID) {
      this.#announce(caller, call, frame, data);
    } else if (call.function_id === REGISTER_TRIGGER) {
      this.#registerTrigger(caller, call, frame, data);
    } else if (typeof data.id !== "string") {
      this.#refuse(caller, call, frame, "id: expected a string");
    } else {
      const removed = this.#options.triggers.remove(caller, data.id);
      if (removed) this.#options.report({ type: "triggers_changed", worker_id: caller.id });
      this.#answer(caller, call, frame, { removed });
    }
  }

  #announce(caller: Peer, call: InvokeFunction, frame: ParsedFrame, data: JsonObject): void {
    const announcement = readAnnouncement(data);
    if (!announcement) return this.#refuse(caller, call, frame, NAME_EXPECTED);
    const { registrations } = this.#options;
    const before = caller.announcementHolding;
    const holding = registrations.take(caller, "The announcement", frame.range, before);
    if ("code" in holding) {
      return this.#options.errorReplies.refuse(caller, call, holding, frame);
    }
    if (before) registrations.release(caller, before);
    caller.announcementHolding = holding;
    caller.announce(announcement);
    const isBuiltin = caller.info.builtin !== null;
    caller.endpoint = this.#options.observer.endpointOf(caller.id, caller.nameFor(""), isBuiltin);
    const { name, pid } = announcement;
    const { launch_id } = caller.info;
    const type = "worker_announced";
    this.#options.report({ type, worker_id: caller.id, name, pid, launch_id });
    this.#options.names.announced(caller);
    this.#answer(caller, call, frame, { success: true });
  }

  #registerTrigger(
    caller: Peer,
    call: InvokeFunction,
    frame: ParsedFrame,
    data: JsonObject,
  ): void {
    const { calls, triggers, registrations, clock, newId, report, errorReplies } = this.#options;
    const id = newId();
    let trigger: RegisterTrigger;
    try {
      trigger = readWorkerMessage({ ...data, type: "registertrigger", id }) as RegisterTrigger;
    } catch (thrown) {
      return this.#refuse(caller, call, frame, thrown instanceof EngineError ? thrown.message : "");
    }
    if (triggers.countOf(caller) >= TRIGGERS_PER_WORKER_MAX) {
      const message = `This worker has ${TRIGGERS_PER_WORKER_MAX} triggers, the maximum`;
      return errorReplies.refuse(caller, call, failure("overloaded", message), frame);
    }
    const holding = registrations.take(caller, `Trigger ${id}`, frame.range);
    if ("code" in holding) return errorReplies.refuse(caller, call, holding, frame);
    if (!expectsReply(call)) {
      triggers.add(caller, trigger, undefined, holding);
      this.#answer(caller, call, frame, { id });
    } else {
      const open = calls.begin(caller, call, call.invocation_id, frame);
      let forget = (): void => {};
      const settled = (error: ErrorBody | undefined): void => {
        forget();
        // No other worker knows the id, so a trigger whose caller is gone must end.
        const isWanted = calls.complete(open, error ? { error } : { result: { id } });
        if (error || !isWanted) triggers.remove(caller, id);
      };
      // A provider may never reply; a trigger that it did not refuse counts as live.
      forget = clock.after(PROVIDER_ANSWER_MS, () => triggers.settle(id));
      try {
        triggers.add(caller, trigger, settled, holding);
      } catch (thrown) {
        registrations.release(caller, holding);
        if (!(thrown instanceof EngineError)) throw thrown;
        return settled(thrown.toJSON());
      }
    }
    report({ type: "triggers_changed", worker_id: caller.id });
  }

  #answer(caller: Peer, call: InvokeFunction, frame: ParsedFrame, result: Json): void {
    const value = JSON.stringify(result);
    this.#options.observer.answered(unopenedCallOf(caller, call, frame), () => value);
    if (!expectsReply(call)) return;
    const prefix = RESULT_PREFIX + jsonText(call.invocation_id) + FUNCTION_KEY;
    caller.replyText(`${prefix}${jsonText(call.function_id)}"${RESULT_KEY}${value}}`);
  }

  #refuseLarge(caller: Peer, call: InvokeFunction, frame: ParsedFrame): void {
    const bytes = frame.range.end - frame.range.start;
    const message = `The message for ${call.function_id} has ${bytes} bytes, at most ` +
      `${PARSED_BYTES_MAX} are accepted; shorten descriptions, metadata or config`;
    const error = failure("invalid_payload", message, { bytes, limit_bytes: PARSED_BYTES_MAX });
    this.#options.errorReplies.refuse(caller, call, error, frame);
  }

  #refuse(caller: Peer, call: InvokeFunction, frame: ParsedFrame, reason: string): void {
    const message = `Failed to deserialize input for ${call.function_id}: ${reason}`;
    this.#options.errorReplies.refuse(
      caller,
      call,
      failure("deserialization_error", message),
      frame,
    );
  }
}

function expectsReply(call: InvokeFunction): call is InvokeFunction & { invocation_id: string } {
  return call.invocation_id !== undefined && call.action === undefined;
}

/** Metadata of a worker; only the name is required. Texts of lists are cut. */
function readAnnouncement(data: JsonObject): Announcement | undefined {
  const { name, description, pid, isolation, namespace, capabilities, telemetry } = data;
  if (typeof name !== "string" || name === "" || name.length > ID_CHARS_MAX) return undefined;
  const announcement: Announcement = {
    name,
    runtime: textOf(data.runtime),
    version: textOf(data.version),
    os: textOf(data.os),
    pid: typeof pid === "number" && Number.isInteger(pid) ? pid : 0,
    isolation: typeof isolation === "string" ? textOf(isolation) : null,
  };
  if (typeof description === "string") announcement.description = description;
  if (typeof namespace === "string") announcement.namespace = textOf(namespace);
  if (Array.isArray(capabilities)) announcement.capabilities = capabilities.filter(isText);
  if (telemetry !== undefined && isObject(telemetry)) announcement.telemetry = telemetry;
  return announcement;
}

function isText(value: Json): value is string {
  return typeof value === "string";
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value.slice(0, ID_CHARS_MAX) : "";
}

function isObject(value: Json): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
