/**
 * One worker's session on a connection: reads what arrives and passes it on, until the connection
 * is closed.
 *
 * A session knows how messages are encoded and rejects malformed ones; the router knows what
 * messages mean. No input makes it throw.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, JsonObject, Reattach } from "../../sdk/typescript/wire/protocol.ts";
import type { Clock } from "../ports/clock.ts";
import type { ConnectionEvents, Outline } from "../ports/connection.ts";
import type { TelemetryFrame, TelemetryListener } from "../ports/telemetry.ts";
import type { Calls } from "./calls.ts";
import { type ErrorReplies, failure } from "./error_replies.ts";
import {
  RateWindow,
  readTelemetry,
  TELEMETRY_BYTES_PER_SECOND,
  TelemetryBudget,
} from "./guards.ts";
import type { Peer } from "./peer.ts";
import { bytesOf, textOf } from "./wire/bytes.ts";
import { Envelope } from "./wire/envelope.ts";
import { TOO_DEEP } from "./wire/members.ts";
import { type ParsedFrame, parseFrame, type UnreadableFrame } from "./wire/parsed_frame.ts";

/** Malformed frames within {@linkcode MALFORMED_WINDOW_MS} that close the connection. */
export const MALFORMED_FRAMES_MAX = 100;
/** See {@linkcode MALFORMED_FRAMES_MAX}. */
export const MALFORMED_WINDOW_MS = 10_000;

/** The router, as a session uses it. */
export interface SessionOwner {
  /** Handles a parsed message; `envelope` is the one of the frame, if it has one. */
  handle(peer: Peer, frame: ParsedFrame, envelope?: Envelope): void;
  /** Whether a built-in worker offers a function. */
  isBuiltin(function_id: string, namespace: string | undefined): boolean;
  /** Handles `reattach`, which is valid as the first message only. */
  reattach(peer: Peer, message: Reattach): void;
  /** The peer has left a ping unanswered, or something arrived from it again. */
  suspected(peer: Peer, isSuspect: boolean): void;
  /** Removes some registrations of a peer that has gone; `true`: many are left. */
  retire(peer: Peer): boolean;
  /** The connection is closed; called once. */
  disconnected(peer: Peer, reason: string): void;
  /** Called after all consequences of a frame were sent. */
  flushEvents(): void;
}

/** Dependencies of a session. */
export interface SessionOptions {
  readonly clock: Clock;
  readonly calls: Calls;
  readonly errorReplies: ErrorReplies;
  readonly owner: SessionOwner;
  readonly telemetry: TelemetryListener | undefined;
}

const encoder = new TextEncoder();
/** Shared by all sessions: an envelope is not used after the next frame is read. */
const envelope = new Envelope();
/** Texts up to this size are encoded into a shared buffer. */
const SCRATCH_BYTES = 64 * 1024;
const scratch = new Uint8Array(SCRATCH_BYTES);
/** UTF-8 needs at most three bytes per UTF-16 code unit. */
const BYTES_PER_CHAR_MAX = 3;

/** One worker's session on a connection. */
export class Session implements ConnectionEvents {
  readonly peer: Peer;
  readonly #clock: Clock;
  readonly #calls: Calls;
  readonly #errorReplies: ErrorReplies;
  readonly #owner: SessionOwner;
  readonly #telemetry: TelemetryListener | undefined;
  // Created on first use: most of many thousand connections may be idle.
  #malformed: RateWindow | undefined;
  #telemetryBudget: TelemetryBudget | undefined;
  #isFirst = true;

  constructor(peer: Peer, { clock, calls, errorReplies, owner, telemetry }: SessionOptions) {
    this.peer = peer;
    this.#clock = clock;
    this.#calls = calls;
    this.#errorReplies = errorReplies;
    this.#owner = owner;
    this.#telemetry = telemetry;
  }

  text(text: string): void {
    const isPlain = !text.includes("\\");
    if (text.length * BYTES_PER_CHAR_MAX > SCRATCH_BYTES) {
      const memory = bytesOf(text);
      this.textBytes(memory, 0, memory.length, isPlain);
    } else {
      this.textBytes(scratch, 0, encoder.encodeInto(text, scratch).written, isPlain);
    }
  }

  textBytes(
    memory: Uint8Array,
    start: number,
    end: number,
    isPlain: boolean,
    outline?: Outline,
  ): void {
    if (!this.peer.isLive || start === end) return;
    try {
      const isRead = envelope.read(memory, start, end, isPlain, outline);
      if (!isRead || !this.#calls.forward(this.peer, envelope)) {
        const frame = parseFrame(memory, start, end, outline);
        this.#handle(frame, isRead ? envelope : undefined);
      }
      this.#isFirst = false;
      this.#owner.flushEvents();
    } catch (thrown) {
      // A bug of ours must not end the engine and with it all connections.
      this.#errorReplies.warn(this.peer, "a message could not be handled", String(thrown));
    }
  }

  binary(bytes: Uint8Array): void {
    const frame = readTelemetry(bytes);
    if (!frame) return this.text(textOf(bytes, 0, bytes.length));
    if (this.peer.isLive) this.#receiveTelemetry(frame, bytes.length);
  }

  drained(): void {
    this.#calls.drained(this.peer);
  }

  suspected(isSuspect: boolean): void {
    if (!this.peer.isLive || this.peer.isSuspect === isSuspect) return;
    this.#owner.suspected(this.peer, isSuspect);
    this.#owner.flushEvents();
  }

  retire(): boolean {
    if (!this.peer.isLive) return false;
    const hasMany = this.#owner.retire(this.peer);
    this.#owner.flushEvents();
    return hasMany;
  }

  closed(code: number, reason: string): void {
    const asked = code === 1000 || code === 1001 || code === 1005;
    this.#disconnect(
      reason !== "" ? reason : asked ? "the worker closed" : "the connection was lost",
    );
  }

  /** Closes the connection, after its clean-up was sent to the others. */
  end(code: number, reason: string): void {
    this.#disconnect(reason);
    this.peer.connection.close(code, reason);
  }

  /** Passes telemetry on, within the connection's budget. */
  #receiveTelemetry(frame: Pick<TelemetryFrame, "kind" | "bytes">, bytes: number): void {
    const { peer } = this;
    this.#telemetryBudget ??= new TelemetryBudget();
    const verdict = this.#telemetryBudget.admit(bytes, this.#clock.now());
    if (verdict === "pass") {
      this.#telemetry?.({ ...frame, worker_id: peer.id, address: peer.info.address });
    }
    if (verdict !== "warn") return;
    const detail = `a connection may send ${TELEMETRY_BYTES_PER_SECOND} bytes a second`;
    this.#errorReplies.warn(peer, "telemetry is dropped", detail);
    this.#owner.flushEvents();
  }

  #disconnect(reason: string): void {
    if (!this.peer.isLive) return;
    this.peer.isLive = false;
    this.#owner.disconnected(this.peer, reason);
    this.#owner.flushEvents();
  }

  /** The slow path: dispatches a frame that was parsed. */
  #handle(frame: ParsedFrame | UnreadableFrame, envelope: Envelope | undefined): void {
    if ("error" in frame) return this.#reject(frame);
    const { message } = frame;
    try {
      if (message.type !== "reattach") this.#owner.handle(this.peer, frame, envelope);
      else if (this.#isFirst) this.#owner.reattach(this.peer, message);
    } catch (thrown) {
      this.#fail(thrown, message as unknown as JsonObject);
    }
  }

  /** Rejects a malformed frame: PROTOCOL 1.9. */
  #reject(unreadable: UnreadableFrame): void {
    const { fields: parsed, why } = unreadable;
    if (parsed.type === "reattach") return;
    const thrown = why === "depth" ? this.#depthError(unreadable) : unreadable.error;
    const isBad = thrown.code === "bad_message" && why !== "size";
    if (isBad && !this.#mayBeMalformed()) {
      return this.end(1008, `more than ${MALFORMED_FRAMES_MAX} malformed frames`);
    }
    const { type, invocation_id } = parsed;
    const isOfCallee = type === "invocationresult" || type === "invocationprogress";
    const error = thrown.toJSON();
    this.#replyError(error, isOfCallee ? {} : parsed);
    if (isOfCallee && typeof invocation_id === "string") {
      this.#calls.settleMalformed(this.peer, invocation_id, thrown.message);
    }
  }

  /** The payload of a built-in function is at fault, not the frame. */
  #depthError({ error, fields: { type, function_id, namespace } }: UnreadableFrame): EngineError {
    const isCall = type === "invokefunction" && typeof function_id === "string";
    const space = typeof namespace === "string" ? namespace : undefined;
    if (!isCall || !this.#owner.isBuiltin(function_id, space)) return error;
    return new EngineError("invalid_payload", `Payload of ${function_id} ${TOO_DEEP}`);
  }

  #mayBeMalformed(): boolean {
    this.#malformed ??= new RateWindow(MALFORMED_FRAMES_MAX, MALFORMED_WINDOW_MS);
    return this.#malformed.allow(this.#clock.now());
  }

  /** A valid frame whose handling failed: a value nested too deeply, or a bug of ours. */
  #fail(thrown: unknown, parsed: JsonObject): void {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    this.#errorReplies.warn(
      this.peer,
      "a message could not be handled",
      `${parsed.type}: ${reason}`,
    );
    const error = thrown instanceof EngineError
      ? thrown.toJSON()
      : failure("invocation_error", `The engine could not handle this message: ${reason}`);
    this.#replyError(error, parsed.type === "invokefunction" ? parsed : {});
  }

  /** Sends an error for the call that the message names, else for the connection. */
  #replyError(error: ErrorBody, { invocation_id, function_id }: JsonObject): void {
    // An id that is still open belongs to another call, which gets its own result.
    if (typeof invocation_id !== "string" || this.#calls.isWaiting(this.peer, invocation_id)) {
      return this.peer.send({ type: "error", error });
    }
    const id = typeof function_id === "string" ? function_id : "";
    this.#errorReplies.replyUnread(this.peer, invocation_id, id, error);
  }
}
