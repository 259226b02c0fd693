/**
 * Log records in OTLP/JSON, as SDKs and other clients send them, and lines that processes print.
 *
 * What comes is a stranger's: a record that is broken is counted and left out, one that is too
 * large is cut.
 *
 * @module
 */
import * as shape from "../../kit/mod.ts";
import type { PrintedLine } from "../../../engine/ports/telemetry.ts";
import { TELEMETRY_NAME_CHARS_MAX, TELEMETRY_TEXT_CHARS_MAX } from "../../limits.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { type ReadItems, readItems } from "../frame_items.ts";
import { type NewLog, type Severity, severityOf } from "./record.ts";
import type { Redactor } from "../redact.ts";
import { cut, readAttributes, readNanos, readValue } from "../traces/spans_otlp.ts";

const List = shape.array(shape.unknown()).nullish().transform((items) => items ?? []);
const Nanos = shape.union([shape.string(), shape.number()]).nullish();

const LISTS = ["resourceLogs", "scopeLogs", "logRecords"] as const;

const Line = shape.object({
  timeUnixNano: Nanos,
  observedTimeUnixNano: Nanos,
  severityNumber: shape.number().nullish(),
  severityText: shape.string().nullish(),
  body: shape.unknown().optional(),
  attributes: List,
  traceId: shape.string().nullish(),
  spanId: shape.string().nullish(),
});

/** Attributes under which a record says which function was running. */
const FUNCTION_NAMES = ["engine.function.id", "engine.function_id"];

/**
 * Reads a frame of logs.
 *
 * @throws {Error} When the whole is none.
 */
export function readLogs(
  frame: unknown,
  redactor: Redactor,
  observed_ms: number,
): ReadItems<NewLog> {
  let origin = { service_name: "unknown", worker: "unknown", scope_name: null as string | null };
  return readItems(frame, LISTS, ({ resource, scope_name }) => {
    const service = readAttributes(resource, redactor).get("service.name");
    const name = typeof service === "string" && service !== "" ? service : "unknown";
    const service_name = cut(name, TELEMETRY_NAME_CHARS_MAX);
    const scope = scope_name === null ? null : cut(scope_name, TELEMETRY_NAME_CHARS_MAX);
    origin = { service_name, worker: service_name, scope_name: scope };
  }, (raw) => {
    const read = Line.safeParse(raw);
    return read.success ? { ...logOf(read.data, redactor, observed_ms), ...origin } : undefined;
  });
}

function logOf(
  raw: shape.Output<typeof Line>,
  redactor: Redactor,
  observed_ms: number,
): Omit<NewLog, "service_name" | "worker" | "scope_name"> {
  const body = readValue(raw.body, 0);
  const said = readAttributes(raw.attributes, redactor);
  const function_id = FUNCTION_NAMES.map((name) => said.get(name))
    .find((value) => typeof value === "string");
  const own = [...said].filter(([name]) => !name.startsWith("engine."));
  return {
    at_ms: readNanos(raw.timeUnixNano) ?? readNanos(raw.observedTimeUnixNano) ?? observed_ms,
    observed_ms,
    severity: severityOf(raw.severityText, raw.severityNumber ?? 0),
    body: cut(
      typeof body === "string" ? body : textOf(redactor.value(body)),
      TELEMETRY_TEXT_CHARS_MAX,
    ),
    attributes: Object.fromEntries(own),
    trace_id: idOf(raw.traceId, 32),
    span_id: idOf(raw.spanId, 16),
    replica: null,
    source: "logger",
    function_id: typeof function_id === "string" ? function_id : null,
  };
}

const WORDS = "TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL";
/** Words at the beginning of a printed line that say how important it is. */
const SEVERITY_WORD = new RegExp(
  `^[\\s[(<]*(${WORDS})\\b|\\b(${WORDS})\\b[\\])>: ]`,
);
/** Characters of a line in which such a word is looked for. */
const WORD_WITHIN = 60;
// deno-lint-ignore no-control-regex
const SEQUENCE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;

/** What a worker printed, without colours; `severity` is guessed. */
export function logOfPrint(line: PrintedLine, observed_ms: number): NewLog {
  const body = line.text.includes("\u001b") ? line.text.replace(SEQUENCE, "") : line.text;
  return {
    at_ms: line.at_ms,
    observed_ms,
    severity: guess(body, line.stream),
    body: cut(body, TELEMETRY_TEXT_CHARS_MAX),
    attributes: { stream: line.stream },
    trace_id: line.trace?.trace_id ?? null,
    span_id: line.trace?.span_id ?? null,
    service_name: line.worker,
    worker: line.worker,
    replica: line.replica,
    source: "output",
    function_id: null,
    scope_name: null,
  };
}

function guess(text: string, stream: "stdout" | "stderr"): Severity {
  const found = SEVERITY_WORD.exec(text.slice(0, WORD_WITHIN));
  const word = found?.[1] ?? found?.[2];
  if (word !== undefined) return severityOf(word);
  return stream === "stdout" ? "info" : "warn";
}

function idOf(text: string | null | undefined, digits: number): string | null {
  const id = text?.toLowerCase() ?? "";
  return id.length === digits && /^[0-9a-f]+$/.test(id) && !/^0+$/.test(id) ? id : null;
}

function textOf(value: Json): string {
  return value === null ? "" : JSON.stringify(value);
}
