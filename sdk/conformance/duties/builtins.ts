/**
 * Duties of PROTOCOL 10.2 for what built-in workers offer: streams that a worker keeps, and
 * configurations that stay current.
 *
 * @module
 */
import type { Json, JsonObject } from "../../typescript/wire/protocol.ts";
import { demand, demandEqual, type Duty, ready, type StagePlan } from "../duty.ts";
import type { EngineConnection } from "../scripted_engine.ts";

const STREAM = "probe-items";
const GET = { type: "invokefunction", function_id: "configuration::get" };

const streams: readonly Duty[] = [
  {
    section: "10.2",
    name: "streams: createStream registers its five functions, and no update without one",
    async check({ engine: { connection } }) {
      const ops = ["get", "set", "delete", "list", "list_groups"];
      for (const op of ops) {
        await connection.expect({ type: "registerfunction", id: `stream::${op}(${STREAM})` });
      }
      const all = connection.received({ type: "registerfunction" })
        .filter(({ id }) => String(id).endsWith(`(${STREAM})`));
      demandEqual(all.length, ops.length, "its functions");
    },
  },
  {
    section: "10.2",
    name: "streams: a stream that is kept answers as the engine's own (5.2)",
    async check({ engine: { connection } }) {
      const group = { stream_name: STREAM, group_id: "g" };
      const place = { ...group, item_id: "a" };
      const ask = async (op: string, payload: Json): Promise<Json | undefined> => {
        const { error, result } = await connection.invoke(`stream::${op}(${STREAM})`, payload);
        demand(error === undefined, `stream::${op} failed: ${JSON.stringify(error)}`);
        return result;
      };
      const set = await ask("set", { ...place, data: { n: 1 } }) as JsonObject;
      demandEqual([set.old_value ?? null, set.new_value], [null, { n: 1 }], "the answer of set");
      demandEqual(await ask("get", place), { n: 1 }, "the answer of get");
      demandEqual(await ask("list", group), [{ n: 1 }], "the answer of list");
      demandEqual(await ask("list_groups", { stream_name: STREAM }), ["g"], "list_groups");
      demandEqual(await ask("delete", place), { old_value: { n: 1 } }, "the answer of delete");
      const missing = await ask("get", place) ?? null;
      demandEqual(missing, null, "the answer of get for a missing item");
    },
  },
];

const configurations: readonly Duty[] = [
  {
    section: "10.2",
    name: "configuration: registers its trigger, then reads the value",
    async check({ engine: { connection } }) {
      connection.invokeOnly("probe::configuration", { id: "mail" });
      const trigger = await connection.expect(triggerOf("mail"));
      const call = await connection.expect(GET);
      const at = (fields: JsonObject): number =>
        connection.received({}).indexOf(connection.received(fields)[0]!);
      demandEqual(call.data, { id: "mail" }, "data of configuration::get");
      demand(at(triggerOf("mail")) < at(GET), "the value is read before its trigger is registered");
      demandEqual(trigger.config, { configuration_id: "mail" }, "config of the trigger");
      answer(connection, call, { port: 1 });
      await expectValue(connection, { port: 1 }, 0);
    },
  },
  {
    section: "10.2",
    name: "configuration: reads the value after an event, one call at a time",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      await fire(connection);
      const call = await connection.expect(GET, from);
      await fire(connection); // During the read; two that come together may be one read.
      const calls = await connection.receivedAfterQuiet(GET, from);
      demandEqual(calls.length, 1, "calls at the same time");
      const later = connection.frames.mark;
      answer(connection, call, { port: 2 });
      await expectValue(connection, { port: 2 }, from);
      answer(connection, await connection.expect(GET, later), { port: 3 });
      await expectValue(connection, { port: 3 }, from);
    },
  },
  {
    section: "10.2",
    name: "configuration: keeps the value when a read fails, and reads again by itself",
    async check({ engine: { connection } }) {
      const from = connection.frames.mark;
      await fire(connection);
      const error = { code: "EXPAND_FAILED", message: "no variable X" };
      const failed = await connection.expect(GET, from);
      const later = connection.frames.mark;
      connection.answer(failed, { error });
      const again = await connection.expect(GET, later);
      const reported = connection.received({ function_id: "conformance::configured" }, from);
      demandEqual(reported.length, 0, "values in between");
      answer(connection, again, { port: 4 });
      await expectValue(connection, { port: 4 }, from);
    },
  },
  {
    section: "10.2",
    name: "configuration: reads the value after a reconnect",
    async check({ engine }) {
      const from = engine.connections.mark;
      engine.connection.close(1001, "restart");
      const connection = await engine.next(from);
      await ready(connection);
      await connection.expect(triggerOf("mail"));
      answer(connection, await connection.expect(GET), { port: 5 });
      await expectValue(connection, { port: 5 }, 0);
    },
  },
];

/** The stage. */
export function builtinStages(): readonly StagePlan[] {
  return [{ name: "builtins", script: {}, duties: [...streams, ...configurations] }];
}

function triggerOf(id: string): JsonObject {
  const config = { configuration_id: id };
  return { type: "registertrigger", trigger_type: "configuration", config };
}

/** Fires the trigger, as an event of the configuration does. */
async function fire(connection: EngineConnection): Promise<void> {
  const { function_id } = await connection.expect(triggerOf("mail"));
  const data = { type: "configuration", event_type: "configuration:updated", id: "mail" };
  connection.send({ type: "invokefunction", function_id: function_id!, data });
}

function answer(connection: EngineConnection, call: JsonObject, value: JsonObject): void {
  connection.answer(call, { result: { id: "mail", value, version: Number(value.port) } });
}

/** Waits until the probe reports a value. */
async function expectValue(
  connection: EngineConnection,
  value: JsonObject,
  from: number,
): Promise<void> {
  await connection.expect({ function_id: "conformance::configured", data: { value } }, from);
}
