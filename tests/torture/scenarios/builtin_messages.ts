/**
 * Heavy messages for the functions of queues, topics, streams, configurations, cron and WebSockets.
 *
 * @module
 */
import { OP } from "../../fakes/raw_ws_client.ts";
import {
  callWith,
  type Heavy,
  honestJson,
  joined,
  list,
  mib,
  nested,
  repeated,
  type Setting,
  STUCK_MS,
} from "../heavy.ts";
import { frameOf, Peer } from "../peer.ts";

/** Lines of `workers` in config.yaml. */
export const BUILTIN_WORKERS: readonly string[] = [
  "  - name: engine-queue",
  "  - name: engine-pubsub",
  "  - name: engine-stream",
  "    config: { port: 0 }",
  "  - name: engine-configuration",
  "  - name: engine-cron",
];

const encoder = new TextEncoder();
const HONEST_BYTES = 60 * 1024 * 1024;
const HONEST_WAIT_MS_MAX = 1_000;

/** Each function with where a caller may put any value: what stands before and behind it. */
const PLACES: readonly (readonly [functionId: string, head: string, tail: string])[] = [
  ["engine::queue::enqueue", '{"queue":"default","function_id":"heavy::f","data":', "}"],
  ["engine::durable::publish", '{"topic":"heavy","data":', "}"],
  ["publish", '{"topic":"heavy","data":', "}"],
  ["stream::set", '{"stream_name":"heavy","group_id":"g","item_id":"i","data":', "}"],
  ["stream::send", '{"stream_name":"heavy","group_id":"g","type":"t","data":', "}"],
  ["stream::update", '{"stream_name":"heavy","group_id":"g","item_id":"i","ops":', "}"],
  ["configuration::register", '{"id":"heavy","schema":', "}"],
  ["configuration::set", '{"id":"heavy","value":', "}"],
  ["engine::cron::next", '{"expression":', "}"],
  ["engine::channels::create", '{"buffer_size":', "}"],
  ["websocket::send", '{"api_path":"/heavy-socket","data":', "}"],
  ["websocket::close", '{"api_path":"/heavy-socket","reason":', "}"],
  ["websocket::join", '{"group":"heavy","connection_id":', "}"],
  ["websocket::leave", '{"connection_id":"heavy","group":', "}"],
  ["websocket::connections", '{"api_path":', "}"],
  ["websocket::routes", '{"other":', "}"],
  ["engine::queue::redrive", '{"queue":"default","message_ids":', "}"],
];

/** The same value to all of them, one after the other. */
async function toAll(setting: Setting, value: Uint8Array): Promise<string> {
  const outcomes = new Map<string, number>();
  for (const [functionId, head, tail] of PLACES) {
    const done = await callWith(setting, functionId, joined(head, value, tail));
    const outcome = done.slice(done.lastIndexOf(": ") + 2);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if (setting.attacker.isOver) return `cut at ${functionId}`;
  }
  const texts = [...outcomes].map(([outcome, count]) => `${count} × ${outcome}`).join(", ");
  return `${mib(value.length)} to each of ${PLACES.length} functions: ${texts}`;
}

/** An object of many members. */
function wide(members: number): Uint8Array {
  return encoder.encode(`{${Array.from({ length: members }, (_, i) => `"k${i}":1`).join(",")}}`);
}

/** Registers many triggers of a type. */
async function bindMany(
  { attacker }: Setting,
  type: string,
  count: number,
  config: (i: number) => string,
): Promise<void> {
  await attacker.send({ type: "registerfunction", id: "heavy::many" });
  for (let i = 0; i < count; i++) {
    void attacker.send(
      `{"type":"registertrigger","id":"many-${i}","trigger_type":"${type}",` +
        `"function_id":"heavy::many","config":${config(i)},"metadata":{"n":${i}}}`,
    );
  }
  await attacker.settled(STUCK_MS);
}

/** See the top of this file. */
export const BUILTIN_ATTACKS: readonly Heavy[] = [
  {
    name: "deep values for built-in workers",
    async act(setting) {
      const depth = setting.campaign.choose(500_000, 5_000_000);
      return { done: await toAll(setting, nested(depth)) };
    },
  },
  {
    name: "wide values for built-in workers",
    async act(setting) {
      return { done: await toAll(setting, wide(setting.campaign.choose(50_000, 900_000))) };
    },
  },
  {
    name: "long texts for built-in workers",
    async act(setting) {
      const text = repeated('"', "aB*.", setting.campaign.choose(250_000, 2_500_000), '"');
      return { done: await toAll(setting, text) };
    },
  },
  {
    name: "60 MiB of JSON for built-in workers",
    maxMs: HONEST_WAIT_MS_MAX,
    async act(setting) {
      const bytes = setting.campaign.choose(HONEST_BYTES / 8, HONEST_BYTES);
      return { done: await toAll(setting, honestJson(bytes)) };
    },
  },
  {
    name: "a schema of 64 KiB, 100 configurations, a list",
    async act(setting) {
      const properties = Array.from({ length: 480 }, (_, i) => {
        return `"property-${i}":{"type":"string","minLength":${i % 3},"title":"${"t".repeat(60)}"}`;
      });
      const schema = `{"type":"object","properties":{${properties.join(",")}}}`;
      const count = setting.campaign.choose(10, 100);
      for (let i = 0; i < count; i++) {
        const data = `{"id":"large-${i}","schema":${schema},"initial_value":{"property-1":"x"}}`;
        await callWith(setting, "configuration::register", data);
      }
      return { done: await callWith(setting, "configuration::list", "{}") };
    },
  },
  {
    name: "100 configurations with small schemas at once",
    async act(setting) {
      const { attacker, campaign } = setting;
      const count = campaign.choose(10, 100);
      const answers = Array.from({ length: count }, (_, i) => attacker.expect(`s${i}`, STUCK_MS));
      await attacker.write(joined(...Array.from({ length: count }, (_, i) => {
        const schema = `{"type":"object","properties":{"a":{"type":"string","minLength":${i}}}}`;
        const data = `{"id":"small-${i}","schema":${schema},"initial_value":{"a":"${
          "x".repeat(i)
        }"}}`;
        return frameOf(encoder.encode(
          `{"type":"invokefunction","invocation_id":"s${i}",` +
            `"function_id":"configuration::register","data":${data}}`,
        ));
      })));
      const failed = (await Promise.all(answers)).filter((message) => !message || message.error);
      const list = await callWith(setting, "configuration::list", "{}");
      return { done: `${count - failed.length} registered; ${list}` };
    },
  },
  {
    name: "rare times of 5,000 cron triggers, a list",
    async act(setting) {
      const count = setting.campaign.choose(200, 5_000);
      await bindMany(setting, "cron", count, (i) => {
        return `{"expression":"${i % 60} ${Math.floor(i / 60)} 7 29 2 +MON#5"}`;
      });
      return { done: await callWith(setting, "engine::cron::list", "{}") };
    },
  },
  {
    name: "a message to 5,000 subscriptions with wildcards",
    async act(setting) {
      const count = setting.campaign.choose(200, 5_000);
      const parts = (i: number) =>
        Array.from({ length: 14 }, (_, bit) => (i >> bit) % 2 === 1 ? "*" : "a").join(".");
      await bindMany(setting, "subscribe", count, (i) => `{"topic":"${parts(i)}"}`);
      const data = `{"topic":"${parts(0)}","data":1}`;
      for (let i = 0; i < 10; i++) await callWith(setting, "publish", data);
      return { done: `10 × ${await callWith(setting, "publish", data)}` };
    },
  },
  {
    name: "an event to 5,000 triggers of a stream",
    async act(setting) {
      const count = setting.campaign.choose(200, 5_000);
      await bindMany(setting, "stream", count, () => '{"stream_name":"many"}');
      const data = '{"stream_name":"many","group_id":"g","type":"t","data":1}';
      for (let i = 0; i < 10; i++) await callWith(setting, "stream::send", data);
      return { done: `10 × ${await callWith(setting, "stream::send", data)}` };
    },
  },
  {
    name: "50,000 groups of a stream, a list of all",
    async act(setting) {
      const { attacker, campaign } = setting;
      const count = campaign.choose(1_000, 50_000);
      for (let i = 0; i < count; i += 1_000) {
        for (let j = i; j < i + 1_000; j++) {
          const data = `{"stream_name":"wide","group_id":"group-${j}","item_id":"i","data":1}`;
          void attacker.send(
            `{"type":"invokefunction","invocation_id":"g${j}","function_id":"stream::set",` +
              `"data":${data}}`,
          );
        }
        await attacker.expect(`g${i + 999}`, STUCK_MS);
      }
      const groups = await callWith(setting, "stream::list_groups", '{"stream_name":"wide"}');
      return { done: `${groups}; ${await callWith(setting, "stream::list_all", "{}")}` };
    },
  },
  {
    name: "20,000 jobs, a list, a purge",
    async act(setting) {
      const { attacker, campaign } = setting;
      const count = campaign.choose(1_000, 20_000);
      for (let i = 0; i < count; i += 500) {
        for (let j = i; j < i + 500; j++) {
          void attacker.send(
            `{"type":"invokefunction","invocation_id":"j${j}","function_id":"heavy::none",` +
              `"action":{"type":"enqueue","queue":"default"},"data":{"n":${j}}}`,
          );
        }
        await attacker.expect(`j${i + 499}`, STUCK_MS);
      }
      const peek = await callWith(setting, "engine::queue::peek", '{"queue":"default"}');
      const purge = await callWith(setting, "engine::queue::purge", '{"queue":"default"}');
      return { done: `${peek}; ${purge}` };
    },
  },
  {
    name: "100,000 ids of a redrive",
    async act(setting) {
      const count = setting.campaign.choose(10_000, 100_000);
      const ids = list(count, (i) => `"${i.toString(16).padStart(32, "0")}"`);
      const data = `{"queue":"default","message_ids":${ids}}`;
      return { done: await callWith(setting, "engine::queue::redrive", data) };
    },
  },
  {
    name: "deep and large messages of a WebSocket client",
    async act({ attacker, engine, campaign }) {
      const config = { api_path: "/heavy-socket", format: "json", max_message_bytes: 1_048_576 };
      await attacker.send({ type: "registerfunction", id: "heavy::socket" });
      await attacker.send({
        type: "registertrigger",
        id: "heavy-socket",
        trigger_type: "websocket",
        function_id: "heavy::socket",
        config,
      });
      await attacker.settled(STUCK_MS);
      const ends: string[] = [];
      const bytes = campaign.choose(100_000, 1_000_000);
      const text = repeated('"', "x", bytes, '"');
      for (const message of [nested(bytes / 2), honestJson(bytes), text, wide(bytes / 20)]) {
        using client = await Peer.connect(engine.httpPort, { path: "/heavy-socket" });
        await client.write(frameOf(message));
        await client.write(frameOf(encoder.encode("x"), OP.ping));
        await attacker.settled(STUCK_MS);
        ends.push(client.isOver ? `closed ${(await client.ended).code}` : "open");
      }
      return { done: `4 messages of ${mib(bytes)}: ${ends.join(", ")}` };
    },
  },
];
