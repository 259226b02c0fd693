/**
 * The two ways through the core: a frame that is passed on unparsed has the same consequences as
 * one that is parsed.
 *
 * A space before a frame makes it take the long way, whatever it says. So each frame is said
 * twice, to two engines that are alike, and what all lines are sent is compared. Left out: text
 * that is no JSON but starts like a call, which only its receiver can find out, and frames that
 * say `type` twice (see `envelope.ts`).
 *
 * @module
 */
import assert from "node:assert/strict";
import { Envelope } from "../engine/core/envelope.ts";
import { fieldText } from "../engine/core/field_text.ts";
import { bytesOf } from "../engine/core/text_bytes.ts";
import { decodeEngineMessage } from "../sdk/typescript/codec.ts";
import type { CallSpan } from "../engine/ports/telemetry.ts";
import { CallRecorder } from "../engine/telemetry/call_recorder.ts";
import { announce, call, handed } from "./fakes/calling.ts";
import type { FakeClock } from "./fakes/fake_clock.ts";
import { type FakeRouter, fakeRouter, type FakeWorker } from "./fakes/fake_router.ts";
import { Random } from "./fakes/random.ts";
import { readVectors } from "./fakes/vectors.ts";

const MUTATIONS = 20_000;
/** The id in all vectors; stands for the id of a call that runs. */
const ID = "0f6f2d0a-7d0e-4b1e-9f0a-2f1b6f4f9c01";
const OFFERED = ["math::add", "sveg::größe", 'math::"add"', "b", "f"];

/** Who says a frame: the last one calls what is being restarted. */
const ROLES = ["worker", "caller", "early caller"] as const;

/** A recorder of all calls, whose ids count up, or of none. */
function recorderOf(clock: FakeClock, isTracing: boolean): CallRecorder {
  let count = 0;
  const recorder = new CallRecorder({ clock, random: (bytes) => bytes.fill(++count) });
  const settings = { enabled: isTracing, ratio: 1, rules: [], payload_chars: 1_000 };
  recorder.configure({ ...settings, memory_bytes: isTracing ? 64 * 1024 : 0 });
  return recorder;
}

/** What all lines are sent, and what is recorded, when a worker or a caller says something. */
function consequences(frame: string, role: typeof ROLES[number], isTracing: boolean): unknown {
  let recorder!: CallRecorder;
  const engine = fakeRouter({}, (clock) => recorder = recorderOf(clock, isTracing));
  const worker = offering(engine);
  const builtin = engine.openBuiltin("engine-state");
  builtin.say({ type: "registerfunction", id: "state::get" });
  const caller = engine.open();
  announce(caller);
  call(caller, "running", { function_id: "b", data: 1 });
  const [running] = handed(worker);

  if (role === "early caller") {
    engine.router.traffic.drain([worker.worker_id], { isComingBack: true });
    worker.cut();
  }
  const say = role === "worker" ? worker : caller;
  say.say(frame.replaceAll(ID, role === "worker" ? running!.invocation_id : ID));
  const lines = [worker, builtin, caller];
  if (role === "early caller") {
    engine.clock.tick(100);
    lines.push(offering(engine));
  }
  const sent = lines.map(received);
  engine.clock.tick(1_000_000);
  const spans = recorder.ended(0, 100).spans.map((span) => comparable(span, frame));
  return { sent, later: lines.map(received), running: engine.router.runningCalls, spans };
}

/** Of errors the codes are compared: where JSON breaks is told by position. */
function comparable(span: CallSpan, frame: string): unknown {
  const without: Record<string, null> = { error_message: null };
  // Of a payload that is said twice, either may be kept.
  if (/"data".*"data"/s.test(frame)) without.request = without.request_chars = null;
  if (/"result".*"result"/s.test(frame)) without.response = without.response_chars = null;
  return { ...span, ...without };
}

/** A worker that offers all there is. */
function offering(engine: FakeRouter): FakeWorker {
  const worker = engine.open();
  announce(worker);
  for (const id of OFFERED) worker.say({ type: "registerfunction", id });
  for (const id of OFFERED) worker.say({ type: "registerfunction", id, namespace: "eu" });
  return worker;
}

/** Each message as it is read, and the text of what it carries. */
function received({ connection }: FakeWorker): unknown[] {
  return connection.takeTexts().map((text) => {
    const message = decodeEngineMessage(text);
    const error = "error" in message ? message.error?.code : undefined;
    const payload = message.type === "invocationresult" ? "result" : "data";
    const carried = payload in message ? fieldText(text, payload) : undefined;
    return [error ? { ...message, error } : message, carried];
  });
}

/** Whether a frame takes the short way. */
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

function compare(
  frame: string,
  isTracing: boolean,
  roles: readonly typeof ROLES[number][] = ROLES,
): void {
  if (isShort(frame) && !isJson(frame)) return;
  for (const role of roles) {
    const [short, long] = [frame, ` ${frame}`].map((text) => consequences(text, role, isTracing));
    assert.deepEqual(short, long, frame);
  }
}

const vectors = (await readVectors()).filter(({ direction }) => direction === "worker");

for (const { name, frame } of vectors) {
  Deno.test(`both paths: ${name}`, () => compare(frame, false));

  Deno.test(`both paths, recorded: ${name}`, () => compare(frame, true));
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
  if (new Set(fields.map(([key]) => key)).size < fields.length && hasTwoTypes(fields)) return frame;
  return `{${fields.map(([key, value]) => `"${key}":${value}`).join(",")}}`;
}

function hasTwoTypes(fields: readonly [string, string][]): boolean {
  return fields.filter(([key]) => key === "type").length > 1;
}

/** The frame with a character dropped, doubled or changed. */
function changedText(random: Random, frame: string): string {
  const at = random.below(frame.length);
  const rest = frame.slice(at + 1);
  const other = random.pick(['"', "\\", "{", "}", ",", ":", " ", "\n", "0", "n", "é", "\\u0022"]);
  return frame.slice(0, at) + random.pick(["", frame[at]! + frame[at], other]) + rest;
}

Deno.test(`both paths: ${MUTATIONS} changed frames`, () => {
  const random = new Random(7);
  const valid = vectors.filter(({ message }) =>
    message?.type === "invokefunction" || message?.type === "invocationresult"
  );
  let fast = 0;
  for (let i = 0; i < MUTATIONS; i++) {
    const { frame } = random.pick(valid);
    let changed = frame.trim();
    for (let change = random.below(3); change >= 0; change--) {
      const isWhole = isJson(changed) && !random.once(3);
      changed = isWhole ? changedFields(random, changed) : changedText(random, changed);
    }
    if (isShort(changed)) fast++;
    compare(changed, i % 2 === 0, i % 4 < 2 ? ["worker", "caller"] : ROLES);
  }

  assert.ok(fast > MUTATIONS / 20, `only ${fast} of the frames took the short way`);
});
