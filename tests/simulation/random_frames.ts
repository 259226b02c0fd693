/**
 * Calls and results as any SDK may write them: in any order of keys, with white space and escapes
 * wherever JSON allows them, with repeated names or names behind the payload, and with values that do
 * not fit.
 *
 * Every frame is JSON with `type` once. About half of them are in canonical order.
 *
 * @module
 */
import type { Random } from "../fakes/random.ts";

/** Ids that frames may contain. */
export interface FrameNames {
  /** Ids of calls, as texts. */
  readonly ids: readonly string[];
  /** Ids of functions, as texts. */
  readonly functions: readonly string[];
}

/** A key as it is written between quotes, and the JSON text of its value. */
type Field = [key: string, value: string];

const SPACES = ["", "", " ", "  ", "\n", "\r\n", "\t", " \n\t "];
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const TEXTS = ["", "x", "größe", "東京", "😀", 'say "hi"', "a\\b", "line\nbreak", "\u2028", "/"];
/** Names that mean something in a frame, and nothing within a payload. */
const LOUD = ["action", "timeout_ms", "error", "invocation_id", "caller", "traceparent", "data"];
const NUMBERS = ["0", "-0", "1.50", "1e400", "12345678901234567890", "-1E-7", "9007199254740993"];

const TIMEOUTS = [
  ...["1", "250", "30000", "604800000", "604800001", "0", "-1", "5.5", "5e3", "1.0", "null"],
  ...['"5"', "99999999999999999999"],
];
const TRACES = [
  ...[`"00-${TRACE}-00f067aa0ba902b7-01"`, `"00-${TRACE}-b7ad6b7169203331-00"`],
  ...[`"00-${TRACE}-00f067aa0ba902b7-01"`, `"00-${TRACE}-00f067aa0ba902b7-00"`],
  ...[`"cc-${TRACE}-00f067aa0ba902b7-01-more"`, '"00-1"', '""', '"\\u0030"', '"ü"', "null"],
  ...[`"${"t".repeat(128)}"`, `"${"t".repeat(129)}"`],
];
const BAGGAGES = ['"a=b"', '"ä=%22"', '"a=\\"b\\""', '""', "5", `"${"b".repeat(9_000)}"`];
const NAMESPACES = ['"eu"', '"default"', '"nowhere"', '""', "null", "5", '"d\\u0065fault"'];
const ACTIONS = [
  '{"type":"void"}',
  '{"type":"enqueue","queue":"q"}',
  "null",
  '{"type":"odd"}',
  "1",
];
const METADATA = ['{"m": 1}', "{}", "null", '{"action":{"type":"void"}}', '"text"', '{"é":1e400}'];
const ERRORS = [
  ...['{"code":"c","message":"m"}', '{"code":"c","message":"größe","details":{"n": 1}}'],
  ...['"boom"', "null", "5", '{"code":5}', '{"code":"c","message":"m","retryable":true, "x":[ ]}'],
];
/** Values of repeated and unknown fields. */
const REPEATED: readonly Field[] = [
  ["action", '{"type":"void"}'],
  ["type", '"registrationrejected"'],
  ["type", '"invocationresult"'],
  ["namespace", '"eu"'],
  ["timeout_ms", "250"],
  ["caller", '"forged"'],
  ["invocation_id", '"another"'],
  ["function_id", '"b"'],
  ["traceparent", '"00-1"'],
  ["baggage", '"a=b"'],
  ["metadata", '{"m":1}'],
  ["data", '{"second":1}'],
  ["result", "null"],
  ["result", "2"],
  ["error", '{"code":"c","message":"m"}'],
  ["colour", '"red"'],
  ["typ", "1"],
  ["", "{}"],
];

/** One frame. */
export function randomFrame(random: Random, names: FrameNames): string {
  const fields = random.once(3) ? resultFields(random, names) : callFields(random, names);
  const isCanonical = !random.once(4);
  if (!isCanonical) shuffle(random, fields);
  if (random.once(8)) fields.splice(random.below(fields.length + 1), 0, random.pick(REPEATED));
  if (random.once(10)) fields.push(...fields.splice(1 + random.below(fields.length - 1), 1));
  const escaped = random.once(12) ? random.below(fields.length) : -1;
  const space = random.once(isCanonical ? 10 : 2) ? () => random.pick(SPACES) : () => "";
  const written = fields.map(([key, value], i) => {
    const name = i === escaped ? withEscape(random, key) : key;
    return `${space()}"${name}"${space()}:${space()}${value}${space()}`;
  });
  return `${space()}{${written.join(",")}}${space()}`;
}

/** The text of a JSON value of at most so many levels. */
export function randomValue(random: Random, depth: number): string {
  const kind = random.below(depth > 0 ? 8 : 5);
  if (kind === 0) return random.pick(["null", "true", "false", "1", "[]", "{ }"]);
  if (kind === 1) return random.pick(NUMBERS);
  if (kind <= 4) return quoted(random, random.once(15) ? random.pick(LOUD) : random.pick(TEXTS));
  const space = random.once(3) ? () => random.pick(SPACES) : () => "";
  const parts = Array.from({ length: random.below(4) }, () => {
    const value = space() + randomValue(random, depth - 1) + space();
    if (kind >= 7) return value;
    const key = random.once(20) ? random.pick(LOUD) : random.pick(TEXTS);
    return `${space()}${quoted(random, key)}${space()}:${value}`;
  });
  return kind >= 7 ? `[${parts.join(",")}]` : `{${parts.join(",")}}`;
}

function callFields(random: Random, { ids, functions }: FrameNames): Field[] {
  const fields: Field[] = [["type", '"invokefunction"']];
  if (!random.once(12)) fields.push(["invocation_id", idText(random, ids)]);
  fields.push(["function_id", idText(random, functions)]);
  if (random.once(12)) fields.push(["namespace", random.pick(NAMESPACES)]);
  if (random.once(15)) fields.push(["action", random.pick(ACTIONS)]);
  if (random.once(3)) fields.push(["timeout_ms", timeoutText(random)]);
  if (random.once(12)) fields.push(["metadata", random.pick(METADATA)]);
  addTrace(random, fields);
  if (!random.once(8)) fields.push(["data", payload(random)]);
  return fields;
}

function resultFields(random: Random, { ids, functions }: FrameNames): Field[] {
  const fields: Field[] = [
    ["type", '"invocationresult"'],
    ["invocation_id", idText(random, ids)],
    ["function_id", idText(random, functions)],
  ];
  addTrace(random, fields);
  if (!random.once(8)) fields.push(["result", payload(random)]);
  if (random.once(5)) fields.push(["error", random.pick(ERRORS)]);
  return fields;
}

function addTrace(random: Random, fields: Field[]): void {
  if (random.once(3)) fields.push(["traceparent", random.pick(TRACES)]);
  if (random.once(5)) fields.push(["baggage", random.pick(BAGGAGES)]);
}

/** Mostly small; now and then so deep or so long that another search is used. */
function payload(random: Random): string {
  if (random.once(30)) return "[".repeat(300) + randomValue(random, 1) + "]".repeat(300);
  if (!random.once(10)) return randomValue(random, 3);
  const filler = random.pick(["x", "é", "😀", '","', "\\n"]);
  const text = filler === '","' ? `["${filler.repeat(700)}"]` : `"${filler.repeat(700)}"`;
  return random.once(2) ? text : `[${text},${randomValue(random, 2)},${text}]`;
}

function timeoutText(random: Random): string {
  return random.once(3) ? random.pick(TIMEOUTS) : `${1 + random.below(100_000)}`;
}

/** Rarely not a string. */
function idText(random: Random, ids: readonly string[]): string {
  return random.once(40)
    ? random.pick(["5", "null", '""', "[]"])
    : quoted(random, random.pick(ids));
}

/** A text in quotes; now and then with an escape that it does not need. */
function quoted(random: Random, text: string): string {
  const written = JSON.stringify(text).slice(1, -1);
  return `"${random.once(15) ? withEscape(random, written) : written}"`;
}

/** One of the characters of a JSON text as `\u…`, in digits of either case. */
function withEscape(random: Random, written: string): string {
  const places = Array.from(written, (_, at) => at).filter((at) => isEasy(written, at));
  if (places.length === 0) return written;
  const at = random.pick(places);
  const digits = written.charCodeAt(at).toString(16).padStart(4, "0");
  const escape = `\\u${random.once(2) ? digits : digits.toUpperCase()}`;
  return written.slice(0, at) + escape + written.slice(at + 1);
}

/** Whether no backslash is near, and no half of a character. */
function isEasy(written: string, at: number): boolean {
  const isEscaped = written.slice(Math.max(0, at - 5), at + 1).includes("\\");
  const code = written.charCodeAt(at);
  return !isEscaped && (code < 0xd800 || code > 0xdfff);
}

function shuffle(random: Random, fields: Field[]): void {
  for (let last = fields.length - 1; last > 0; last--) {
    const at = random.below(last + 1);
    [fields[last], fields[at]] = [fields[at]!, fields[last]!];
  }
}
