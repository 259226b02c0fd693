/**
 * Fuzz: random bytes, mutated frames and random HTTP on every port. The engine stays up, serves
 * others, and keeps none of it.
 *
 * @module
 */
import { OP } from "../../fakes/raw_ws_client.ts";
import type { Random } from "../../fakes/random.ts";
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { frameOf, Peer } from "../peer.ts";
import { pause, within } from "../waiting.ts";

const PEERS = 4;
const PEAK_MIB_MAX = 700;
const MAX_MS = 250;
/** Frames of one connection, which a bad one may end. */
const FRAMES = 200;
const IO_MS_MAX = 2_000;

/** Messages that are changed at random. */
const MESSAGES = [
  '{"type":"invokefunction","invocation_id":"a","function_id":"canary::none","data":{"a":[1,2]}}',
  '{"type":"invokefunction","function_id":"state::set","invocation_id":"b",' +
  '"data":{"scope":"fuzz","key":"k","value":{"a":1}}}',
  '{"type":"invokefunction","function_id":"state::update","invocation_id":"c",' +
  '"data":{"scope":"fuzz","key":"k","ops":[{"type":"merge","path":["a","b"],"value":{"c":1}}]}}',
  '{"type":"invokefunction","function_id":"engine::traces::list","invocation_id":"d",' +
  '"data":{"limit":10,"attributes":[["a","b"]]}}',
  '{"type":"registerfunction","id":"fuzz::f","metadata":{"a":1},"request_format":{"type":"object"}}',
  '{"type":"unregisterfunction","id":"fuzz::f"}',
  '{"type":"registertrigger","id":"fuzz","trigger_type":"http","function_id":"fuzz::f",' +
  '"config":{"api_path":"/fuzz/:id"}}',
  '{"type":"unregistertrigger","id":"fuzz"}',
  '{"type":"registertriggertype","id":"fuzz::t","description":"d"}',
  '{"type":"triggerregistrationresult","id":"x","trigger_type":"t","function_id":"f"}',
  '{"type":"invocationresult","invocation_id":"a","function_id":"fuzz::f","result":{"a":1}}',
  '{"type":"invocationprogress","invocation_id":"a","data":{}}',
  '{"type":"cancelinvocation","invocation_id":"a","reason":"r"}',
  '{"type":"reattach","previous_worker_id":"x","reattach_token":"y"}',
  '{"type":"ping"}',
  'OTLP{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a","spanId":"b"}]}]}]}',
  'LOGS{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}',
];
const REQUEST = "POST /fuzz/1?a=b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 7\r\n" +
  'Content-Type: application/json\r\nOrigin: http://a.b\r\n\r\n{"a":1}';

/** See the top of this file. */
export const fuzz: Scenario = {
  name: "fuzz",
  summary: "random and mutated frames, random HTTP",
  async run(campaign) {
    if (!campaign.wants("fuzz")) return;
    await using subject = await campaign.subject();
    const bounds = { maxMs: MAX_MS, peakMib: PEAK_MIB_MAX };
    await campaign.attack("fuzz", subject, bounds, () => attack(campaign, subject));
  },
};

async function attack(campaign: Campaign, { engine }: Subject) {
  const end = performance.now() + campaign.choose(3_000, 60_000);
  const isOver = (): boolean => performance.now() > end || !engine.isAlive;
  let [frames, connections, requests] = [0, 0, 0];
  await Promise.all([
    ...Array.from({ length: PEERS }, async () => {
      for (; !isOver(); connections++) frames += await throwFrames(campaign.random, engine.port);
    }),
    ...[engine.port, engine.httpPort, engine.consolePort].map(async (port) => {
      for (; !isOver(); requests++) await throwBytes(campaign.random, port);
    }),
  ]);
  using other = await Peer.connect(engine.port);
  const answer = await other.call("engine::workers::list", {});
  const broken = answer?.result === undefined ? ["engine::workers::list fails"] : [];
  const done = `${frames} frames on ${connections} connections, ${requests} random requests`;
  return { done, broken };
}

async function throwFrames(random: Random, port: number): Promise<number> {
  const path = random.once(4) ? "/otel" : "/";
  using peer = await Peer.connect(port, { path, isCounting: true });
  let sent = 0;
  for (; sent < FRAMES && !peer.isOver; sent++) {
    const text = new TextEncoder().encode(random.pick(MESSAGES));
    const isWhole = !random.once(50);
    const opcode = random.once(30) ? random.below(16) : random.once(5) ? OP.binary : OP.text;
    const bytes = frameOf(mutated(text, random, 3), opcode, isWhole);
    // Now and then the frame itself is wrong, which ends the connection.
    await within(peer.write(random.once(100) ? mutated(bytes, random, 1) : bytes), IO_MS_MAX);
    if (random.once(20)) await pause(0);
  }
  return sent;
}

async function throwBytes(random: Random, port: number): Promise<void> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const bytes = random.once(4)
    ? Uint8Array.from({ length: random.below(2_000) }, () => random.below(256))
    : mutated(new TextEncoder().encode(REQUEST), random, 4);
  try {
    await within(connection.write(bytes), IO_MS_MAX);
    await within(connection.read(new Uint8Array(4_096)), random.below(50));
  } catch {
    // The engine has closed it.
  }
}

/** The bytes with up to so many changes: bits, pieces twice, pieces left out, brackets. */
function mutated(bytes: Uint8Array, random: Random, changes: number): Uint8Array {
  let result = bytes;
  for (let i = random.below(changes + 1); i > 0 && result.length > 1; i--) {
    const at = random.below(result.length);
    const end = Math.min(result.length, at + 1 + random.below(20));
    const copy = result.slice();
    const kind = random.below(4);
    if (kind === 0) copy[at]! ^= 1 << random.below(8);
    else if (kind === 1) copy[at] = random.pick([...'[]{}",:\\0\n']).charCodeAt(0);
    result = kind < 2
      ? copy
      : kind === 2
      ? Uint8Array.from([...result.subarray(0, end), ...result.subarray(at)])
      : Uint8Array.from([...result.subarray(0, at), ...result.subarray(end)]);
  }
  return result;
}
