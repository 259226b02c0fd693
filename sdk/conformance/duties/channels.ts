/**
 * Duties of PROTOCOL 7 and 10.2 on channels: references in payloads and results, reading, writing,
 * and how both ends learn that the other one has left.
 *
 * @module
 */
import type { Json, JsonObject } from "../../typescript/wire/protocol.ts";
import type { ChannelEnd, ChannelPart } from "../channel_end.ts";
import { demand, demandEqual, type Duty, type StagePlan } from "../duty.ts";
import { quiet } from "../log.ts";
import type { ScriptedEngine } from "../scripted_engine.ts";

const SECTION = "10.2";
/** Bytes of a frame that a client sends at most. */
const FRAME_BYTES = 64 * 1024;
/** Longer than the time between two pings. */
const PING_MS_MAX = 30_000;

/** A reference to an end of a channel. */
interface Ref extends JsonObject {
  channel_id: string;
  access_key: string;
  direction: "read" | "write";
}

function makeRef(direction: Ref["direction"]): Ref {
  return { channel_id: crypto.randomUUID(), access_key: crypto.randomUUID(), direction };
}

/** The socket with which the SDK uses a reference. */
function endOf({ channels }: ScriptedEngine, ref: JsonObject): Promise<ChannelEnd> {
  return channels.first("the socket of a channel", ({ channelId }) => channelId === ref.channel_id);
}

/** Gives the probe a function's payload without waiting, and returns where its result will be. */
function begin({ connection }: ScriptedEngine, function_id: string, payload: JsonObject) {
  const from = connection.frames.mark;
  const invocation_id = connection.invokeOnly(function_id, payload);
  return async (): Promise<JsonObject> => {
    const fields = { type: "invocationresult", invocation_id };
    const { error, result } = await connection.expect(fields, from);
    demand(error === undefined, `${function_id} failed: ${JSON.stringify(error)}`);
    return (result ?? {}) as JsonObject;
  };
}

/** Lets the probe read a channel; the engine's end, and what the probe says in the end. */
async function beginRead(engine: ScriptedEngine, more: JsonObject = {}) {
  const ref = makeRef("read");
  const payload = { list: [{ reader: ref }], ...more };
  const result = begin(engine, "probe::channel_read", payload);
  return { ref, result, end: await endOf(engine, ref) };
}

/** The same for one that it writes. */
async function beginWrite(engine: ScriptedEngine, parts: Json[], more: JsonObject = {}) {
  const ref = makeRef("write");
  const result = begin(engine, "probe::channel_write", { writer: ref, parts, ...more });
  return { ref, result, end: await endOf(engine, ref) };
}

/** Texts as they are, bytes as their number. */
function shown(parts: readonly ChannelPart[]): Json {
  return parts.map((part) => typeof part === "string" ? part : part.length);
}

/** Ends a call of the probe by closing the end that it waits for. */
function finish(end: ChannelEnd): void {
  end.close(1000, "stream_complete");
}

const references: readonly Duty[] = [
  {
    section: SECTION,
    name: "channels: a reader in a payload opens its socket when it is used, not before",
    async check({ engine }) {
      const ref = makeRef("read");
      await begin(engine, "probe::channel_hold", { reader: ref })();
      await quiet();
      const opened = engine.channels.matching(({ channelId }) => channelId === ref.channel_id);
      demandEqual(opened.length, 0, "the number of sockets of a reader that is not used");
      const { end, result } = await beginRead(engine);
      finish(end);
      await result();
    },
  },
  {
    section: SECTION,
    name: "channels: the upgrade has the id, the key, dir and the query of the address",
    async check({ engine }) {
      for (const begun of [await beginRead(engine), await beginWrite(engine, [])]) {
        const { ref, end, result } = begun;
        const { searchParams, pathname } = end.url;
        demandEqual(pathname, `/ws/channels/${ref.channel_id}`, "the path");
        demandEqual(searchParams.get("key"), ref.access_key, "key");
        demandEqual(searchParams.get("dir"), ref.direction, "dir");
        demandEqual(searchParams.get("tenant"), "conformance", "the query of the address");
        demand(end.headers["authorization"] === undefined, "the upgrade has a token (1.1)");
        if (ref.direction === "read") finish(end);
        await result();
      }
    },
  },
  {
    section: SECTION,
    name: "channels: creates one by engine::channels::create, and passes its reader in a call",
    async check({ engine }) {
      const { connection } = engine;
      const from = connection.frames.mark;
      const result = begin(engine, "probe::channel_pass", { parts: ["one", 2] });
      const asked = { type: "invokefunction", function_id: "engine::channels::create" };
      const [writer, reader] = [makeRef("write"), makeRef("read")];
      writer.channel_id = reader.channel_id;
      connection.answer(await connection.expect(asked, from), { result: { writer, reader } });
      const taken = { type: "invokefunction", function_id: "conformance::take" };
      const call = await connection.expect(taken, from);
      demandEqual(call.data, { reader }, "the payload with the reader");
      const end = await endOf(engine, writer);
      demandEqual(end.url.searchParams.get("dir"), "write", "dir");
      demandEqual(shown(await end.received(2)), ["one", 2], "what was written");
      connection.answer(call, { result: 3 });
      demandEqual(await result(), { ok: true, result: 3 }, "what the probe's call came to");
    },
  },
  {
    section: SECTION,
    name: "channels: a reader in the result of a call is one, too",
    async check({ engine }) {
      const { connection } = engine;
      const from = connection.frames.mark;
      const result = begin(engine, "probe::channel_take", {});
      const given = { type: "invokefunction", function_id: "conformance::give" };
      const reader = makeRef("read");
      connection.answer(await connection.expect(given, from), { result: { reader } });
      const end = await endOf(engine, reader);
      end.send("from a result");
      finish(end);
      demandEqual(await result(), { parts: ["from a result"] }, "what was read");
    },
  },
];

const reading: readonly Duty[] = [
  {
    section: SECTION,
    name: "channels: reads texts and bytes in their order, until a close of 1000 or without a code",
    async check({ engine }) {
      for (const code of [1000, undefined]) {
        const { end, result } = await beginRead(engine);
        end.send("{not JSON");
        end.send(new Uint8Array(3));
        end.send("");
        end.send(new Uint8Array(1024 * 1024));
        if (code === undefined) end.close();
        else finish(end);
        demandEqual(await result(), { parts: ["{not JSON", 3, "", 1024 * 1024] }, "what was read");
      }
    },
  },
  {
    section: SECTION,
    name: "channels: a stream that is not whole ends with channel_closed, never as the end",
    async check({ engine }) {
      const ends: ((end: ChannelEnd) => void)[] = [
        (end) => end.close(4001, "the disk is full"),
        (end) => end.close(1001, "the engine stops"),
        (end) => end.destroy(),
      ];
      for (const leave of ends) {
        const { end, result } = await beginRead(engine);
        end.send("half");
        leave(end);
        demandEqual(await result(), { parts: ["half"], error: "channel_closed" }, "what was read");
      }
    },
  },
  {
    section: SECTION,
    name: "channels: a reader that is cancelled ends its socket, with or without a close frame",
    async check({ engine }) {
      const { end, result } = await beginRead(engine, { parts_max: 1 });
      end.send("first");
      await end.closed();
      demandEqual(await result(), { parts: ["first"] }, "what was read");
    },
  },
  {
    section: SECTION,
    name: "channels: pings while it waits for a slow end",
    isSlow: true,
    async check({ engine }) {
      const { end, result } = await beginRead(engine);
      await end.pings.first("a ping", () => true, { withinMs: PING_MS_MAX });
      finish(end);
      await result();
    },
  },
];

const writing: readonly Duty[] = [
  {
    section: SECTION,
    name: "channels: writes texts and bytes in their order, then closes with 1000 stream_complete",
    async check({ engine }) {
      const { end, result } = await beginWrite(engine, ["a", 5, "", "é"]);
      const { code, reason } = await end.closed();
      demandEqual(shown(end.parts.entries), ["a", 5, "", "é"], "what was written");
      demandEqual([code, reason], [1000, "stream_complete"], "the close");
      demandEqual(await result(), {}, "what the probe says");
    },
  },
  {
    section: SECTION,
    name: "channels: cuts bytes into frames of 64 KiB",
    async check({ engine }) {
      const { end, result } = await beginWrite(engine, [150_000]);
      await end.closed();
      const frames = [FRAME_BYTES, FRAME_BYTES, 150_000 - 2 * FRAME_BYTES];
      demandEqual(shown(end.parts.entries), frames, "the sizes of the frames");
      await result();
    },
  },
  {
    section: SECTION,
    name: "channels: a writer that gives up closes with 4001 and its reason",
    async check({ engine }) {
      const { end, result } = await beginWrite(engine, ["half"], { abort: "the disk is full" });
      const { code, reason } = await end.closed();
      demandEqual([code, reason], [4001, "the disk is full"], "the close");
      await result();
    },
  },
  {
    section: SECTION,
    name: "channels: a writer whose reader has left fails with channel_closed",
    async check({ engine }) {
      const { end, result } = await beginWrite(engine, ["again"], { repeats: true });
      await end.received(1);
      end.close(1000, "reader_closed");
      demandEqual(await result(), { error: "channel_closed" }, "what the probe says");
    },
  },
];

const refusals: readonly Duty[] = [
  {
    section: SECTION,
    name: "channels: an unknown channel or a wrong key (404) is channel_not_found",
    async check({ engine }) {
      const [reader, writer] = [makeRef("read"), makeRef("write")];
      for (const { channel_id } of [reader, writer]) engine.unknownChannels.add(channel_id);
      const read = await begin(engine, "probe::channel_read", { list: [{ reader }] })();
      const write = await begin(engine, "probe::channel_write", { writer, parts: ["x"] })();
      demandEqual(read, { parts: [], error: "channel_not_found" }, "what the reader says");
      demandEqual(write, { error: "channel_not_found" }, "what the writer says");
    },
  },
  {
    section: SECTION,
    name: "channels: an end that was claimed before (1008) is channel_not_found",
    async check({ engine }) {
      const { end, result } = await beginRead(engine);
      end.close(1008, "the end is claimed");
      demandEqual(
        await result(),
        { parts: [], error: "channel_not_found" },
        "what the reader says",
      );
    },
  },
];

const responses: readonly Duty[] = [
  {
    section: SECTION,
    level: "should",
    name: "http trigger: a stream that a handler returns is written to the channel response (6.4)",
    async check({ engine }) {
      const response = makeRef("write");
      const payload = { trigger: { type: "http" }, response, parts: ["one", "two"] };
      const frame = await engine.connection.invoke("probe::stream", payload);
      demand(!("error" in frame) && !("result" in frame), JSON.stringify(frame).slice(0, 200));
      const end = await endOf(engine, response);
      const { code, reason } = await end.closed();
      demandEqual([code, reason], [1000, "stream_complete"], "the close");
      const controls = end.parts.entries.filter((part) => typeof part === "string");
      const bytes = end.parts.entries.flatMap((part) => typeof part === "string" ? [] : [...part]);
      demandEqual(
        controls.map((text) => JSON.parse(text)),
        [
          { type: "set_status", status_code: 201 },
          { type: "set_headers", headers: { "content-type": "text/plain" } },
        ],
        "the control messages",
      );
      demandEqual(new TextDecoder().decode(Uint8Array.from(bytes)), "onetwo", "the body");
    },
  },
];

/** The stage of channels. */
export function channelStages(): readonly StagePlan[] {
  return [{
    name: "channels",
    script: {},
    duties: [...references, ...reading, ...writing, ...refusals, ...responses],
  }];
}
