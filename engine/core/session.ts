/**
 * One worker's life on a line: what arrives is read and handed on, until the line is over.
 *
 * Knows how messages are written and what to do with those that are not; what they mean is the
 * router's. Nothing that arrives makes it throw.
 *
 * @module
 */
import { parseMessage, readWorkerMessage } from "../../sdk/typescript/wire/codec.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  MALFORMED_FRAMES_MAX,
  MALFORMED_WINDOW_MS,
  TELEMETRY_BYTES_PER_SECOND,
} from "../../sdk/typescript/wire/limits.ts";
import type {
  ErrorBody,
  JsonObject,
  Reattach,
  WorkerMessage,
} from "../../sdk/typescript/wire/protocol.ts";
import type { Clock } from "../ports/clock.ts";
import type { ConnectionEvents } from "../ports/connection.ts";
import type { TelemetryFrame, TelemetryListener } from "../ports/telemetry.ts";
import type { Calls } from "./calls.ts";
import { type ErrorReplies, failure } from "./error_replies.ts";
import { ByteBudget, RateWindow } from "./guards.ts";
import type { Peer } from "./peer.ts";
import { bytesOf, textOf } from "./wire/bytes.ts";
import { Envelope } from "./wire/envelope.ts";

/** Who knows what messages mean. */
export interface SessionOwner {
  /** A message that has to be looked at; `envelope` is that of `text`, if it has one. */
  handle(peer: Peer, message: WorkerMessage, text: string, envelope?: Envelope): void;
  /** The first message of a line that came back. */
  reattach(peer: Peer, message: Reattach): void;
  /** The line is over; called once. */
  disconnected(peer: Peer, reason: string): void;
  /** All consequences of what arrived were sent. */
  flushEvents(): void;
}

/** What a session stands on. */
export interface SessionOptions {
  readonly clock: Clock;
  readonly calls: Calls;
  readonly errorReplies: ErrorReplies;
  readonly owner: SessionOwner;
  readonly telemetry: TelemetryListener | undefined;
}

const encoder = new TextEncoder();
/** One for all lines: what it found is not needed any more when another frame is read. */
const envelope = new Envelope();
/** Texts become bytes here, unless they are longer than most. */
const SCRATCH_BYTES = 64 * 1024;
const scratch = new Uint8Array(SCRATCH_BYTES);
/** No character needs more. */
const BYTES_PER_CHAR_MAX = 3;
const TELEMETRY: readonly string[] = ["OTLP", "MTRC", "LOGS"];
const MARK_BYTES = 4;
/** The id of a call or of what belongs to one, in a text that is no JSON as a whole. */
const BROKEN = /^\s*\{"type":"(\w+)","invocation_id":"([^"\\]{1,128})"/;

/** One worker's life on a line. */
export class Session implements ConnectionEvents {
  readonly peer: Peer;
  readonly #clock: Clock;
  readonly #calls: Calls;
  readonly #errorReplies: ErrorReplies;
  readonly #owner: SessionOwner;
  readonly #telemetry: TelemetryListener | undefined;
  // Made for those who need them: most of many thousand lines may be idle.
  #malformed: RateWindow | undefined;
  #telemetryBudget: ByteBudget | undefined;
  /** Whether it was said that telemetry is dropped. */
  #hasWarned = false;
  #isFirst = true;

  /** Makes the session of a peer whose line is open. */
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

  textBytes(memory: Uint8Array, start: number, end: number, isPlain: boolean): void {
    if (!this.peer.isLive || start === end) return;
    try {
      const isRead = envelope.read(memory, start, end, isPlain);
      if (!isRead || !this.#calls.forward(this.peer, envelope)) {
        this.#parse(textOf(memory, start, end), isRead ? envelope : undefined);
      }
      this.#isFirst = false;
      this.#owner.flushEvents();
    } catch (thrown) {
      // A mistake of ours must not end the engine, and with it everybody's lines.
      this.#errorReplies.warn(this.peer, "a message could not be handled", String(thrown));
    }
  }

  binary(bytes: Uint8Array): void {
    const mark = String.fromCharCode(...bytes.subarray(0, MARK_BYTES));
    if (!TELEMETRY.includes(mark)) return this.text(textOf(bytes, 0, bytes.length));
    if (this.peer.isLive) this.#hearTelemetry(mark as TelemetryFrame["kind"], bytes);
  }

  drained(): void {
    this.#calls.drained(this.peer);
  }

  closed(code: number, reason: string): void {
    const asked = code === 1000 || code === 1001 || code === 1005;
    this.#disconnect(reason !== "" ? reason : asked ? "the worker closed" : "the line was lost");
  }

  /** Ends the line, after everything that its end means to others. */
  end(code: number, reason: string): void {
    this.#disconnect(reason);
    this.peer.connection.close(code, reason);
  }

  /** Hands telemetry on, as much as one line may send: reading it takes the engine's thread. */
  #hearTelemetry(kind: TelemetryFrame["kind"], bytes: Uint8Array): void {
    const { peer } = this;
    this.#telemetryBudget ??= new ByteBudget(TELEMETRY_BYTES_PER_SECOND);
    if (this.#telemetryBudget.allow(bytes.length, this.#clock.now())) {
      const address = peer.info.address;
      this.#telemetry?.({ kind, bytes: bytes.subarray(MARK_BYTES), worker_id: peer.id, address });
      return;
    }
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const detail = `a line may send ${TELEMETRY_BYTES_PER_SECOND} bytes a second`;
    this.#errorReplies.warn(peer, "telemetry is dropped", detail);
    this.#owner.flushEvents();
  }

  #disconnect(reason: string): void {
    if (!this.peer.isLive) return;
    this.peer.isLive = false;
    this.#owner.disconnected(this.peer, reason);
    this.#owner.flushEvents();
  }

  /** The long way: parse, check, and hand on. */
  #parse(text: string, envelope: Envelope | undefined): void {
    let parsed: JsonObject | undefined;
    let message: WorkerMessage;
    try {
      parsed = parseMessage(text);
      message = readWorkerMessage(parsed);
    } catch (thrown) {
      return this.#reject(thrown as EngineError, parsed ?? readBroken(text));
    }
    try {
      if (message.type !== "reattach") this.#owner.handle(this.peer, message, text, envelope);
      else if (this.#isFirst) this.#owner.reattach(this.peer, message);
    } catch (thrown) {
      this.#fail(thrown, parsed);
    }
  }

  /** A frame that does not fit: PROTOCOL 1.9. */
  #reject(thrown: EngineError, parsed: JsonObject): void {
    if (parsed.type === "reattach") return;
    const isBad = thrown.code === "bad_message";
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

  #mayBeMalformed(): boolean {
    this.#malformed ??= new RateWindow(MALFORMED_FRAMES_MAX, MALFORMED_WINDOW_MS);
    return this.#malformed.allow(this.#clock.now());
  }

  /** A frame that fits and could not be handled: too deep a value, or a mistake of ours. */
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

  /** An error for the call that a message names, else for the line as a whole. */
  #replyError(error: ErrorBody, { invocation_id, function_id }: JsonObject): void {
    // An id that is still open belongs to another call, which will have its own answer.
    if (typeof invocation_id !== "string" || this.#calls.isWaiting(this.peer, invocation_id)) {
      return this.peer.send({ type: "error", error });
    }
    const id = typeof function_id === "string" ? function_id : "";
    this.#errorReplies.replyUnread(this.peer, invocation_id, id, error);
  }
}

function readBroken(text: string): JsonObject {
  const [, type, invocation_id] = BROKEN.exec(text) ?? [];
  return type === undefined || invocation_id === undefined ? {} : { type, invocation_id };
}
