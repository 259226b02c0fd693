/**
 * The two ways through the core: a frame that is passed on unparsed has the same consequences as
 * one that is parsed.
 *
 * A space before a frame makes the core parse it. So each frame is sent
 * several times, to equal engines: as bytes, at any place in memory and whatever is
 * known of them, as a text, and after a space. The messages to all connections are compared, and what is
 * recorded, reported and counted against the bound of bytes. Excluded: text that is not JSON but
 * starts like a call, which only its receiver detects.
 *
 * Seeds count up from `PATHS_SEED` (default 1) for `PATHS_SECONDS` (default 5) in each test; a
 * failure names its seed, and `PATHS_SEED=<seed> PATHS_SECONDS=0` repeats it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { bytesOf, textOf } from "../../engine/core/wire/bytes.ts";
import { Envelope } from "../../engine/core/wire/envelope.ts";
import { callRemainder } from "../../engine/core/wire/frame_parts.ts";
import { fieldText } from "../../engine/core/wire/json_scan.ts";
import { PARSED_BYTES_MAX, parseFrame } from "../../engine/core/wire/parsed_frame.ts";
import type { CallSpan } from "../../engine/ports/telemetry.ts";
import { CallRecorder } from "../../engine/telemetry/call_recorder.ts";
import { isTooDeep } from "../../sdk/typescript/wire/json_depth.ts";
import { decodeEngineMessage, decodeWorkerMessage } from "../../sdk/typescript/wire/codec.ts";
import { INFLIGHT_BYTES_MAX } from "../../engine/config/config.ts";
import {
  announce,
  call,
  type FakeRouter,
  fakeRouter,
  type FakeWorker,
  handed,
} from "../fakes/fake_router.ts";
import type { FakeClock } from "../fakes/fake_clock.ts";
import { Random } from "../fakes/random.ts";
import { randomFrame } from "./random_frames.ts";
import { readVectors } from "../fakes/source_tree.ts";

const SEED_FIRST = Number(Deno.env.get("PATHS_SEED") ?? 1);
const SECONDS = Number(Deno.env.get("PATHS_SECONDS") ?? 5);
/** The id in all vectors; replaced by the id of a running call. */
const ID = "0f6f2d0a-7d0e-4b1e-9f0a-2f1b6f4f9c01";
const OFFERED = ["math::add", "sveg::größe", 'math::"add"', "b", "f"];
const ELSEWHERE = ["math::add", "b"];
const NAMES = {
  ids: [
    ...[ID, ID, ID, ID, ID, ID, "running", "i", "größe-😀"],
    ...["7d0e4b1e-9f0a-4f1b-8f4f-0123456789ab", "0f6f2d0a-7d0e-4b1e-9f0a-2f1b6f4f9c02"],
    ...["i".repeat(128), "i".repeat(129), "é".repeat(64), "é".repeat(65), 'say "hi"'],
  ],
  functions: [...OFFERED, "state::get", "checked", "unknown::x", "東".repeat(42), "x".repeat(128)],
};

/** The sender of a frame. */
const ROLES = [
  "worker",
  "caller",
  "caller of what is being restarted",
  "caller of an engine that stops",
] as const;
type Role = typeof ROLES[number];

/** The forms of a frame; the last one is parsed. */
type Way =
  | "text"
  | "bytes that are plain"
  | "bytes that may be anything"
  | "behind a space"
  | "with a long field";

/** An unknown field that makes any frame too large to be parsed as a whole. */
const LONG_FIELD = `"padding":"${"x".repeat(PARSED_BYTES_MAX)}"`;

/** The state of an engine, the frame and its sender. */
interface Trial {
  readonly frame: string;
  readonly role: Role;
  readonly isTracing: boolean;
  readonly maxBytes: number;
  readonly seed: number;
}

/** The call that runs when a frame is sent. */
const RUNNING = { function_id: "b", data: 1 };
const RUNNING_BYTES = bytesOf('","function_id":"b","data":1}').length;

/** A recorder of all calls, whose ids count up, or of none. */
function recorderOf(clock: FakeClock, isTracing: boolean): CallRecorder {
  let count = 0;
  const recorder = new CallRecorder({ clock, random: (bytes) => bytes.fill(++count) });
  const settings = { enabled: isTracing, ratio: 1, rules: [], payload_chars: 1_000 };
  recorder.configure({ ...settings, memory_bytes: isTracing ? 64 * 1024 : 0 });
  return recorder;
}

/** All messages to connections, and what is recorded, after one frame. */
function consequences({ frame, role, isTracing, maxBytes, seed }: Trial, way: Way) {
  let recorder!: CallRecorder;
  const settings = { max_inflight_bytes_per_worker: maxBytes };
  const engine = fakeRouter(settings, (clock) => recorder = recorderOf(clock, isTracing));
  const worker = offering(engine);
  const builtin = engine.openBuiltin("engine-state");
  builtin.say({ type: "registerfunction", id: "state::get" });
  const caller = engine.open();
  announce(caller);
  call(caller, "running", RUNNING);
  const [running] = handed(worker);

  if (role === "caller of what is being restarted") {
    engine.router.traffic.drain([worker.worker_id], { isComingBack: true });
    worker.cut();
  }
  if (role === "caller of an engine that stops") engine.router.drain();
  const said = frame.replaceAll(ID, role === "worker" ? running!.invocation_id : ID);
  say(role === "worker" ? worker : caller, said, way, seed);
  const peers = [worker, builtin, caller];
  if (role === "caller of what is being restarted") {
    engine.clock.tick(100);
    peers.push(offering(engine));
  }
  const sent = peers.map(({ connection }) => connection.takeTexts());
  engine.clock.tick(1_000_000);
  const later = peers.map(({ connection }) => connection.takeTexts());
  const { spans } = recorder.ended(0, 100);
  return { sent, later, running: engine.router.runningCalls, spans, events: engine.events };
}

/** Sends a frame; the memory beside it neither matters nor changes. */
function say({ events }: FakeWorker, frame: string, way: Way, seed: number): void {
  if (way === "text") return events.text(frame);
  if (way === "behind a space") return events.text(` ${frame}`);
  if (way === "with a long field") return events.text(withLongField(frame));
  const random = new Random(seed);
  const around = ['"', "\\", "}", '{"action":', "\n"].map((text) => random.pick([text, "", "é"]));
  const [before, behind] = [around.slice(random.below(6)).join(""), around.join("")];
  const memory = bytesOf(before + frame + behind);
  const [start, end] = [bytesOf(before).length, memory.length - bytesOf(behind).length];
  const isPlain = way === "bytes that are plain" && !frame.includes("\\");

  events.textBytes(memory, start, end, isPlain);

  const rest = [textOf(memory, 0, start), textOf(memory, end, memory.length)];
  assert.deepEqual(rest, [before, behind], "only the bytes of a frame may be overwritten");
}

/** Whether a frame is a message that may be too large to be parsed as a whole. */
function mayBeLarge(frame: string): boolean {
  try {
    const { type } = decodeWorkerMessage(frame);
    return type === "invokefunction" || type === "invocationresult" ||
      type === "invocationprogress";
  } catch {
    return false; // The errors differ.
  }
}

function withLongField(frame: string): string {
  const rest = frame.slice(frame.indexOf("{") + 1);
  return rest.trim() === "}" ? `{${LONG_FIELD}}` : `{${LONG_FIELD},${rest}`;
}

type Consequences = ReturnType<typeof consequences>;

/** Normalizes messages: values are compared, not how they are written. */
function normalized({ sent, later, running, spans, events }: Consequences, frame: string): unknown {
  const isWhole = isJson(frame);
  const read = (texts: string[]) => texts.map((text) => messageIn(text, isWhole));
  return {
    sent: sent.map(read),
    later: later.map(read),
    running,
    spans: spans.map((span) => comparable(span, frame, isWhole)),
    // Messages of JSON errors contain the position.
    events: isWhole ? events : events.map(({ type }) => type),
  };
}

/** A parsed message, and the text of its payload. */
function messageIn(text: string, isWhole: boolean): unknown {
  const message = decodeEngineMessage(text);
  const payload = message.type === "invocationresult" ? "result" : "data";
  const carried = payload in message ? fieldText(text, payload) : undefined;
  if (isWhole || !("error" in message)) return [message, carried];
  return [{ ...message, error: message.error?.code }, carried];
}

function comparable(span: CallSpan, frame: string, isWhole: boolean): unknown {
  const without: Partial<Record<keyof CallSpan, null>> = isWhole ? {} : { error_message: null };
  // Of a repeated payload, either may be recorded.
  if (/"data".*"data"/s.test(frame)) without.request = without.request_chars = null;
  if (/"result".*"result"/s.test(frame)) without.response = without.response_chars = null;
  // A payload too long to be recorded is counted up to the brace that ends the frame.
  if (span.request === null && !endsWithValue(frame)) without.request_chars = null;
  if (span.response === null && !endsWithValue(frame)) without.response_chars = null;
  return { ...span, ...without };
}

/** Whether a frame's payload is last, with no white space around it. */
function endsWithValue(frame: string): boolean {
  if (!isJson(frame) || !frame.trim().startsWith("{")) return false;
  const value = fieldText(frame, "data") ?? fieldText(frame, "result");
  return value !== undefined && new RegExp(`"(data|result)":\\S`).test(frame) &&
    frame.endsWith(`${value}}`);
}

/** A worker that offers all functions. */
function offering(engine: FakeRouter): FakeWorker {
  const worker = engine.open();
  announce(worker);
  for (const id of OFFERED) worker.say({ type: "registerfunction", id });
  for (const id of ELSEWHERE) worker.say({ type: "registerfunction", id, namespace: "eu" });
  const request_format = { type: "object", required: ["x"] };
  worker.say({ type: "registerfunction", id: "checked", request_format });
  return worker;
}

/** Whether a frame is passed on unparsed. */
function isShort(frame: string): boolean {
  const memory = bytesOf(frame);
  return new Envelope().read(memory, 0, memory.length, false);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Sends a frame in all forms; `false` when the outcomes cannot be compared. */
function compare(trial: Trial): boolean {
  const { frame, role, seed } = trial;
  const isPassedOn = isShort(frame);
  if (isPassedOn && !isJson(frame)) return false;
  const text = consequences(trial, "text");
  const of = `seed ${seed}, ${role}: ${frame}`;
  const ways: Way[] = ["bytes that are plain", "bytes that may be anything"];
  // A frame that is always parsed is sent as bytes once.
  for (const way of isPassedOn ? ways : ways.slice(seed % 2).slice(0, 1)) {
    assert.deepEqual(consequences(trial, way), text, `${way}, ${of}`);
  }
  // Payloads that are parsed have a bound of depth, those that are only forwarded do not.
  if (isPassedOn && isTooDeep(frame)) return false;
  const parsed = consequences(trial, "behind a space");
  if (seed % 50 === 0 && mayBeLarge(frame)) {
    // Too large to be parsed as a whole. Sizes differ, so what counts them is not compared.
    const large = consequences({ ...trial, maxBytes: INFLIGHT_BYTES_MAX }, "with a long field");
    const small = consequences({ ...trial, maxBytes: INFLIGHT_BYTES_MAX }, "behind a space");
    assert.deepEqual(normalized(large, frame), normalized(small, frame), `large, ${of}`);
  }
  assert.deepEqual(normalized(parsed, frame), normalized(text, frame), of);
  return true;
}

/** A bound that the frame's call just fits, or just exceeds; in other trials, the default. */
function maxBytesFor(frame: string, random: Random): number {
  const bytes = random.once(2) ? bytesOfCall(frame) : undefined;
  return bytes === undefined ? INFLIGHT_BYTES_MAX : RUNNING_BYTES + bytes + random.below(3) - 1;
}

/** Bytes that count of a call; `undefined`: it is none, or they depend on how it is read. */
function bytesOfCall(frame: string): number | undefined {
  const memory = bytesOf(frame);
  const parsed = parseFrame(memory, 0, memory.length);
  // Not a call; it is compared all the same.
  if ("error" in parsed || parsed.message.type !== "invokefunction") return undefined;
  const remainder = callRemainder(parsed.message, parsed);
  const envelope = new Envelope();
  const bytes = remainder.end - remainder.idEnd;
  const isRead = envelope.read(memory, 0, memory.length, false);
  return isRead && envelope.end - envelope.idEnd !== bytes ? undefined : bytes;
}

const vectors = (await readVectors()).filter(({ direction }) => direction === "worker");
const MAX = { maxBytes: INFLIGHT_BYTES_MAX };

for (const { name, frame } of vectors) {
  for (const isTracing of [false, true]) {
    Deno.test(`both paths${isTracing ? ", recorded" : ""}: ${name}`, () => {
      for (const [seed, role] of ROLES.entries()) compare({ frame, role, isTracing, ...MAX, seed });
    });
  }
}

/** A frame's keys and the texts of their values. */
function fieldsOf(frame: string): [key: string, value: string][] {
  return Object.keys(JSON.parse(frame)).map((key) => [key, fieldText(frame, key)!]);
}

const VALUES = ["null", "1", '"x"', "{}", "[1, null]", '{"action":1}', '{"\\u0061ction":2}', '""'];
const FIELDS: readonly [key: string, value: string][] = [
  ["action", '{"type":"void"}'],
  ["action", '{"type":"enqueue","queue":"q"}'],
  ["\\u0061ction", '{"type":"void"}'],
  ["type", '"workerregistered"'],
  ["type", '"invokefunction"'],
  ["t\\u0079pe", '"ping"'],
  ["namespace", '"eu"'],
  ["timeout_ms", "250"],
  ["timeout_ms", "0"],
  ["caller", '"forged"'],
  ["invocation_id", '"another"'],
  ["function_id", '"b"'],
  ["traceparent", '"00-1"'],
  ["baggage", '"a=b"'],
  ["metadata", '{"m":1}'],
  ["data", '{"second":1}'],
  ["result", "null"],
  ["error", '{"code":"c","message":"m"}'],
  ["error", "null"],
  ["error", '"boom"'],
  ["colour", '"red"'],
];

/** The frame with something changed about its fields. */
function changedFields(random: Random, frame: string): string {
  const fields = fieldsOf(frame);
  const at = random.below(fields.length + 1);
  switch (random.below(5)) {
    case 0:
      fields.splice(at, 0, random.pick(FIELDS) as [string, string]);
      break;
    case 1:
      fields.push([...random.pick(FIELDS)] as [string, string]);
      break;
    case 2:
      fields.splice(at, 1);
      break;
    case 3:
      fields.splice(at, 0, ...fields.splice(random.below(fields.length), 1));
      break;
    default:
      if (fields[at]) fields[at][1] = random.pick(VALUES);
  }
  return `{${fields.map(([key, value]) => `"${key}":${value}`).join(",")}}`;
}

/** The frame with a character dropped, doubled or changed. */
function changedText(random: Random, frame: string): string {
  const at = random.below(frame.length);
  const rest = frame.slice(at + 1);
  const other = random.pick(['"', "\\", "{", "}", ",", ":", " ", "\n", "0", "n", "é", "\\u0022"]);
  return frame.slice(0, at) + random.pick(["", frame[at]! + frame[at], other]) + rest;
}

/** Runs trials of random frames; returns how many were compared and how many were not parsed. */
function forSeeds(frameOf: (random: Random) => string): { compared: number; short: number } {
  const end = performance.now() + SECONDS * 1_000;
  let [compared, short] = [0, 0];
  let seed = SEED_FIRST;
  do {
    const random = new Random(seed);
    const frame = frameOf(random);
    const [isTracing, role] = [random.once(2), random.pick(ROLES)];
    if (compare({ frame, role, isTracing, maxBytes: maxBytesFor(frame, random), seed })) compared++;
    if (isShort(frame)) short++;
    seed++;
  } while (performance.now() < end);
  return { compared, short };
}

/** Enough of the compared frames must have been passed on unparsed, unless one is repeated alone. */
function assertEnough(
  { compared, short }: { compared: number; short: number },
  part: number,
): void {
  console.log(`${compared} frames from seed ${SEED_FIRST}, ${short} on the short way`);
  if (SECONDS > 0) assert.ok(short > compared * part, `only ${short} took the short way`);
}

Deno.test("both paths: the vectors, changed by chance", () => {
  const valid = vectors.filter(({ message }) =>
    message?.type === "invokefunction" || message?.type === "invocationresult"
  );

  const counts = forSeeds((random) => {
    let changed = random.pick(valid).frame.trim();
    for (let change = random.below(3); change >= 0; change--) {
      const isWhole = isJson(changed) && !random.once(3);
      changed = isWhole ? changedFields(random, changed) : changedText(random, changed);
    }
    return changed;
  });

  assertEnough(counts, 1 / 25);
});

Deno.test("both paths: keys in every order, white space, escapes, repeated and trailing names", () => {
  const counts = forSeeds((random) => {
    const frame = randomFrame(random, NAMES);
    assert.ok(isJson(frame), frame);
    return frame;
  });

  assertEnough(counts, 1 / 12);
});
