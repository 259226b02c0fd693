/**
 * Frames that are parsed: as a whole, or without their payload.
 *
 * @module
 */
import assert from "node:assert/strict";
import { JSON_DEPTH_MAX } from "../../../sdk/typescript/wire/json_depth.ts";
import { bytesOf, textOf } from "./bytes.ts";
import { membersOf } from "./members.ts";
import {
  FIELDS_BYTES_MAX,
  PARSED_BYTES_MAX,
  ParsedFrame,
  parseFrame,
  parsePayload,
  type UnreadableFrame,
} from "./parsed_frame.ts";

/** Parses a text at an offset of some memory. */
function parse(text: string): ParsedFrame | UnreadableFrame {
  const memory = bytesOf(`12345${text}6`);
  return parseFrame(memory, 5, memory.length - 1);
}

function parsed(text: string): ParsedFrame {
  const frame = parse(text);
  assert.ok(frame instanceof ParsedFrame, "error" in frame ? frame.error.message : "");
  return frame;
}

function unreadable(text: string): UnreadableFrame {
  const frame = parse(text);
  assert.ok(!(frame instanceof ParsedFrame));
  return frame;
}

const LONG = "x".repeat(PARSED_BYTES_MAX);
const CALL = '"type":"invokefunction","invocation_id":"i","function_id":"f"';

Deno.test("parseFrame() parses a short frame as a whole", () => {
  const frame = parsed(`{${CALL}, "data": [ 1 ]}`);

  assert.deepEqual(frame.message, {
    type: "invokefunction",
    invocation_id: "i",
    function_id: "f",
    data: [1],
  });
  assert.equal(frame.field("data"), "[ 1 ]");
  assert.equal(frame.payload, undefined);
  assert.equal(textOf(frame.copy(), 0, 9), '{"type":"');
});

Deno.test("parseFrame() leaves the payload of a large call where it is", () => {
  const frame = parsed(`{"data" : "${LONG}" ,"metadata":{"m":[ ]}, ${CALL}, "colour":"${LONG}"}`);

  assert.deepEqual(frame.message, {
    type: "invokefunction",
    invocation_id: "i",
    function_id: "f",
    metadata: { m: [] },
  });
  assert.equal(frame.field("data"), `"${LONG}"`);
  assert.equal(frame.field("metadata"), '{"m":[ ]}');
  assert.equal(frame.field("result"), undefined);
  assert.equal(parsePayload(frame.payload!, "Payload"), LONG);
});

Deno.test("parseFrame() takes the last of several payloads, and a null as absent", () => {
  const last = parsed(`{${CALL},"data":"${LONG}","d\\u0061ta":[2]}`);
  assert.equal(last.field("data"), "[2]");
  const absent = parsed(`{${CALL},"data":"${LONG}","data": null }`);
  assert.equal(absent.payload, undefined);
  assert.deepEqual(absent.message, {
    type: "invokefunction",
    invocation_id: "i",
    function_id: "f",
  });
});

Deno.test("parseFrame() reads large results and progress", () => {
  const of = '"invocation_id":"i"';
  const progress = parsed(`{"type":"invocationprogress",${of},"data":"${LONG}"}`);
  assert.equal(progress.field("data"), `"${LONG}"`);
  const error = '{"code":"c","message":"m"}';
  const failed = parsed(
    `{"type":"invocationresult",${of},"function_id":"f","pad":"${LONG}",` +
      `"error":${error}}`,
  );
  assert.equal(failed.field("error"), error);
});

Deno.test("parseFrame() names what is wrong with a large frame, and what it is for", () => {
  const ids = { type: "invokefunction", invocation_id: "i", function_id: "f" };
  for (
    const [text, why, message, fields] of [
      [`{${CALL},"data":"${LONG}`, "malformed", /^message: expected a JSON object$/, {
        type: "invokefunction",
        invocation_id: "i",
      }],
      [`[${LONG}]`, "malformed", /^message: expected a JSON object$/, {}],
      [`{${CALL},"timeout_ms":0,"data":"${LONG}"}`, "malformed", /timeout_ms: expected an/, {
        ...ids,
        timeout_ms: 0,
      }],
      [`{${CALL},"metadata":"${"m".repeat(FIELDS_BYTES_MAX)}"}`, "size", /beside the payload/, ids],
      [`{"type":"pong","pad":"${LONG}"}`, "size", /^pong: the message has/, { type: "pong" }],
      [`{"id":"a","pad":"${LONG}"}`, "size", /^message of a: the message has/, { id: "a" }],
    ] as const
  ) {
    const frame = unreadable(text);

    assert.deepEqual([frame.why, frame.error.code], [why, "bad_message"]);
    assert.match(frame.error.message, message);
    assert.deepEqual(frame.fields, fields);
  }
});

Deno.test("parseFrame() finds the ids of a large frame whose end is missing", () => {
  const frame = unreadable(
    `{"type":"invocationresult","invocation_id":"i","result":"${LONG}`,
  );

  assert.deepEqual(frame.fields, { type: "invocationresult", invocation_id: "i" });
});

Deno.test("parseFrame() refuses frames of any size that are nested too deeply", () => {
  const deep = "[".repeat(JSON_DEPTH_MAX) + "]".repeat(JSON_DEPTH_MAX);
  for (const pad of ["", LONG]) {
    const frame = unreadable(`{"data":${deep},${CALL},"pad":"${pad}"}`);

    assert.equal(frame.why, "depth");
    assert.equal(frame.error.message, "message: is nested more deeply than 128 levels");
    assert.equal(frame.fields.invocation_id, "i");
  }
});

Deno.test("parsePayload() reports text that is not JSON as the caller's mistake", () => {
  const memory = bytesOf("[1,]");

  assert.throws(() => parsePayload({ memory, start: 0, end: 4, parts: 1 }, "Payload of f"), {
    code: "invalid_payload",
    message: /^Payload of f: expected JSON: /,
  });
});

Deno.test("parseFrame() takes what is known of a large frame instead of reading it again", () => {
  const memory = bytesOf(`{"data":"${LONG}",${CALL}}`);
  const members = membersOf(memory, 0, memory.length)!;
  // As if the payload were deep: nothing but the outline says so.
  const deep = members.map((one) => ({ ...one, depth: JSON_DEPTH_MAX }));

  assert.ok(parseFrame(memory, 0, memory.length, { members }) instanceof ParsedFrame);
  const refused = parseFrame(memory, 0, memory.length, { members: deep }) as UnreadableFrame;
  assert.equal(refused.why, "depth");
  assert.equal(refused.fields.invocation_id, "i");
  const none = parseFrame(memory, 0, memory.length, { members: undefined }) as UnreadableFrame;
  assert.equal(none.error.message, "message: expected a JSON object");
});
