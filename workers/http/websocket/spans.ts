/**
 * The events of WebSockets as spans: one for each call of a function of the route.
 *
 * A connect belongs to the trace of its request; each message and each close starts one.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { EndedSpan, Spans } from "../../../engine/ports/telemetry.ts";
import { looksSampled } from "../../../sdk/typescript/trace_context.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";

/** What a function of a route is called for. */
export type SocketEvent = "connect" | "message" | "close";

/** What a span says of an event. */
export interface EventSubject {
  readonly event: SocketEvent;
  readonly connection_id: string;
  /** The `api_path` of the trigger. */
  readonly path: string;
  readonly function_id: string;
}

/** Records the events of all connections. */
export class EventSpans {
  readonly #spans: Pick<Spans, "open" | "record">;
  readonly #clock: Clock;

  constructor(spans: Pick<Spans, "open" | "record">, clock: Clock) {
    this.#spans = spans;
    this.#clock = clock;
  }

  /** Runs a task as a span; `parent` is the trace that it belongs to, if there is one. */
  async run<T>(
    subject: EventSubject,
    parent: string | null,
    task: (traceparent: string | undefined) => Promise<T>,
  ): Promise<T> {
    const name = `websocket ${subject.path} ${subject.event}`;
    const traceparent = this.#spans.open(parent, name);
    const startMs = this.#clock.wall();
    const end = (code: string | null): void => {
      if (traceparent === null || traceparent === parent || !looksSampled(traceparent)) return;
      this.#spans.record(endedEvent(subject, {
        traceparent,
        parent,
        name,
        start_ms: startMs,
        end_ms: this.#clock.wall(),
        error: code,
      }));
    };
    try {
      const value = await task(traceparent ?? undefined);
      end(null);
      return value;
    } catch (error) {
      end(error instanceof EngineError ? error.code : "invocation_error");
      throw error;
    }
  }
}

function endedEvent(
  { event, connection_id, path, function_id }: EventSubject,
  span: Omit<EndedSpan, "service" | "attributes">,
): EndedSpan {
  const attributes: Record<string, string> = {
    "engine.kind": "websocket",
    "websocket.event": event,
    "websocket.connection_id": connection_id,
    "http.route": path,
    "http.function_id": function_id,
  };
  if (span.error !== null) attributes["engine.error_code"] = span.error;
  return { ...span, service: "engine-http", attributes };
}
