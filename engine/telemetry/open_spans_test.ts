/**
 * The spans of running calls.
 *
 * @module
 */
import assert from "node:assert/strict";
import { bytesOf } from "../core/wire/bytes.ts";
import type { ObservedCall } from "../ports/call_observer.ts";
import { CountingMeter, MeteredFunction } from "./function_meters.ts";
import { OPEN_NUMBER, OPEN_WORD, OpenSpans } from "./open_spans.ts";
import { SpanEndpoint } from "./span_detail.ts";
import { uuidText } from "./trace_ids.ts";

const UUID = "7d0e4b1e-9f0a-4f1b-8f4f-0123456789ab";
const SHOP = new SpanEndpoint("caller-1", "shop");
const WORKER = new SpanEndpoint("callee-1", "worker");
const SUBJECT = new MeteredFunction("default", "f", new CountingMeter("default", "f"));

function callOf(slot: number, uses = 1, id = ""): ObservedCall {
  const callerId = bytesOf(id);
  const callerIdBytes = callerId.length;
  const ids = { callerId, callerIdAt: 0, callerIdBytes };
  return { slot, uses, ...ids, timeout_ms: 5, since: 1, subject: SUBJECT };
}

Deno.test("OpenSpans.find() finds a call by its slot and its uses, until it has ended", () => {
  const open = new OpenSpans();
  const uses = 2 ** 40 + 7;
  assert.equal(open.find(callOf(3, uses)), -1);
  const place = open.open(callOf(3, uses), SHOP);

  assert.equal(open.find(callOf(3, uses)), place);
  assert.equal(open.find(callOf(3, uses + 1)), -1);
  assert.equal(open.find(callOf(4, uses)), -1);
  assert.equal(open.find(callOf(1_000_000)), -1);
  open.close(place);
  assert.equal(open.find(callOf(3, uses)), -1);
});

Deno.test("OpenSpans keeps its content when it grows", () => {
  const open = new OpenSpans();
  const first = open.open(callOf(5_000), SHOP);
  open.sample(first, 42);
  open.send(first, WORKER, 7);
  const second = open.open(callOf(70_000), WORKER);
  open.sample(second, 43);

  assert.deepEqual([...open.sampled()], [first, second]);
  assert.deepEqual([open.callerAt(first), open.callerAt(second)], [SHOP, WORKER]);
  assert.equal(open.calleeAt(first), WORKER);
  assert.equal(open.numbers[first * OPEN_NUMBER.row + OPEN_NUMBER.seq], 42);
  assert.equal(open.words.byteLength, open.numbers.byteLength);
  assert.equal(open.find(callOf(5_000)), first);
});

Deno.test("a new call in the same row has no data of the one before", () => {
  const open = new OpenSpans();
  const place = open.open(callOf(0), SHOP);
  open.sample(place, 1);
  open.detail(place);
  open.send(place, WORKER, 5);
  open.more(place).setRequest("1");
  open.words[place * OPEN_WORD.row + OPEN_WORD.requestChars] = 1;
  open.close(place);
  assert.deepEqual([...open.sampled()], []);

  assert.equal(open.open(callOf(0, 2), WORKER), place);
  assert.deepEqual(
    [open.isSampled(place), open.isDetailed(place), open.calleeAt(place), open.detailAt(place)],
    [false, false, undefined, undefined],
  );
  open.sample(place, 2);
  const sent = open.numbers[place * OPEN_NUMBER.row + OPEN_NUMBER.sent];
  assert.deepEqual([sent, open.callerAt(place)], [NaN, WORKER]);
  assert.equal(open.words[place * OPEN_WORD.row + OPEN_WORD.requestChars], 0xffffffff);
});

Deno.test("OpenSpans.more() creates the details once", () => {
  const open = new OpenSpans();
  const place = open.open(callOf(0), SHOP);
  assert.equal(open.detailAt(place), undefined);
  open.more(place).setRequest("1");

  assert.equal(open.more(place).request, "1");
  assert.equal(open.detailAt(place)?.request, "1");
});

Deno.test("OpenSpans.prepare() stores the caller's id as a UUID or as text", () => {
  const open = new OpenSpans();
  for (const [id, uuid, text] of [[UUID, UUID, undefined], ["i1", null, "i1"], ["", null]]) {
    const place = open.open(callOf(0, 1, id!), SHOP);
    open.prepare(place, 9);

    assert.equal(open.ended, 9);
    assert.equal(uuidText(open.callerId, 0), uuid);
    assert.equal(open.detailAt(place)?.callerId, text);
    open.close(place);
  }
});
