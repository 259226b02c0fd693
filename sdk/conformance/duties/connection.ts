/**
 * Duties of PROTOCOL 10.1: dialling, first frames, robustness, reconnecting, shutting down.
 *
 * @module
 */
import type { JsonObject } from "../../typescript/wire/protocol.ts";
import {
  demand,
  demandEqual,
  type Duty,
  outcomeOf,
  ready,
  type Stage,
  type StagePlan,
  startCall,
} from "../duty.ts";
import { quiet } from "../log.ts";
import { TOKEN, WORKER_NAME } from "../probe_process.ts";
import type { Attempt, EngineConnection } from "../scripted_engine.ts";

/** The first delay before a reconnect, with its jitter. */
const DELAY_MS = { min: 700, max: 1_300 };
/** The longest delay, its jitter included. */
const DELAY_MAX_MS = 1_800;
/** Time that a dial of this machine takes, when it is busy. */
const LATE_DIAL_MS = 500;
/** Timers and process scheduling: early by rounding, late by load. */
const EARLY_MS = 60;
const LATE_MS = 20_000;
const LARGE_MESSAGE_CHARS = 63 * 1024 * 1024;
const SHUTDOWN_TEXT = "engine client is shutting down";
const PING_MS = 20_000;
const SILENCE_MS = 60_000;

const dialling: readonly Duty[] = [
  {
    section: "10.1",
    name: "dials ENGINE_URL and keeps its query string",
    async check({ engine }) {
      const { url } = await engine.attempts.first("an upgrade of /", isWorkerRoute);
      demandEqual(url.search, "?tenant=conformance", "the query string");
    },
  },
  {
    section: "10.1",
    name: "sends the token as Authorization: Bearer on / and /otel",
    async check({ engine }) {
      const worker = await engine.attempts.first("an upgrade of /", isWorkerRoute);
      const otel = await engine.attempts.first(
        "an upgrade of /otel",
        ({ url }) => url.pathname === "/otel",
      );
      demandEqual(worker.headers.authorization, `Bearer ${TOKEN}`, "Authorization on /");
      demandEqual(otel.headers.authorization, `Bearer ${TOKEN}`, "Authorization on /otel");
    },
  },
  {
    section: "10.1",
    name: "inserts /otel before the query string of the address",
    async check({ engine }) {
      const { url } = await engine.attempts.first(
        "an upgrade of /otel",
        ({ url }) => url.pathname === "/otel",
      );
      demandEqual(url.search, "?tenant=conformance", "the query string of /otel");
    },
  },
  {
    section: "10.1",
    name: "sends without waiting for workerregistered",
    async check({ engine }) {
      await (await engine.next(0)).frames.first("a frame before workerregistered", () => true);
    },
  },
  {
    section: "10.1",
    name: "announces itself in its first frame (1.3 step 2, 1.4)",
    async check({ engine }) {
      const { message } = await (await engine.next(0)).frames.first("a frame", () => true);
      demandEqual(message.function_id, "engine::workers::register", "function_id of the frame");
      demandEqual(message.action, { type: "void" }, "action");
      demand(!message.invocation_id, "the announcement has an invocation_id");
      const { runtime, version, name, os, pid } = (message.data ?? {}) as JsonObject;
      demandEqual(name, WORKER_NAME, "name (ENGINE_WORKER_NAME)");
      for (const [field, value] of Object.entries({ runtime, version, os })) {
        demand(typeof value === "string" && value !== "", `${field} is not a string`);
      }
      demand(Number.isInteger(pid), "pid is not an integer");
    },
  },
  {
    section: "10.4",
    name: "announces cancel, timeout and progress",
    async check({ engine }) {
      const { message } = await (await engine.next(0)).frames.first("a frame", () => true);
      const { capabilities } = (message.data ?? {}) as JsonObject;
      const names = Array.isArray(capabilities) ? capabilities : [];
      for (const name of ["cancel", "timeout", "progress"]) {
        demand(names.includes(name), `capabilities lack ${name}`);
      }
    },
  },
  {
    section: "10.1",
    name: "writes keys in canonical order (1.8)",
    level: "should",
    async check({ engine }) {
      const connection = await engine.next(0);
      await ready(connection);
      const result = await connection.invoke("probe::echo", { n: 1 });
      demandEqual(
        Object.keys(result).slice(0, 3),
        ["type", "invocation_id", "function_id"],
        "order",
      );
      demandEqual(Object.keys(result).at(-1), "result", "the last key");
    },
  },
];

const robustness: readonly Duty[] = [
  {
    section: "10.1",
    name: "survives what it cannot use",
    async check({ engine: { connection } }) {
      connection.send("this is not JSON");
      connection.send("");
      connection.send({ type: "fromthefuture", n: 1 });
      connection.send({ type: "error", error: { code: "bad_message", message: "a test" } });
      connection.send({ type: "pong" });
      const ids = { invocation_id: crypto.randomUUID(), function_id: "a::b" };
      connection.send({ type: "invocationresult", ...ids, result: 1 });
      connection.send({ type: "invocationprogress", ...ids, data: 1 });
      connection.send({ type: "cancelinvocation", ...ids });
      const { result } = await connection.invoke("probe::echo", { still: "here" });
      demandEqual(result, { still: "here" }, "the result of a later call");
    },
  },
  {
    section: "10.1",
    name: "receives messages of 63 MiB",
    async check({ engine: { connection } }) {
      const { result } = await connection.invoke("probe::size", "x".repeat(LARGE_MESSAGE_CHARS));
      demandEqual(result, LARGE_MESSAGE_CHARS, "the size that arrived");
    },
  },
  {
    section: "10.1",
    name: "keeps nested nulls of outgoing frames",
    async check({ engine: { connection } }) {
      const payload = { a: null, b: [null, { c: null }] };
      const { result } = await connection.invoke("probe::echo", payload);
      demandEqual(result, payload, "the echoed value");
    },
  },
];

/** Function and tag of the call that is sent before the connection closes. */
const SENT = "conformance::sent";
/** Function and tag of the call that is made while there is no connection. */
const QUEUED = "conformance::queued";

const reconnecting: readonly Duty[] = [
  {
    section: "10.1",
    name: "dials again 1 000 ms (± 30 %) after a close, whatever its code",
    async check(stage) {
      const { engine } = stage;
      await startCall(engine.connection, { function_id: SENT, timeout_ms: 4_000 }, {}, SENT);
      await engine.connection.expect({ type: "invokefunction", function_id: SENT });
      await startCall(engine.connection, { function_id: QUEUED }, { delay_ms: 500 }, QUEUED);
      engine.refusals.push(503, 429, 502, 503);
      const delay = await delayAfter(stage, () => engine.connection.close(1001));
      demandFirstDelay(delay);
    },
  },
  {
    section: "10.1",
    name: "dials again after non-101 answers, with delays that stay below 2 s",
    async check({ engine }) {
      await engine.next(1);
      const attempts = engine.attempts.matching(isWorkerRoute);
      const statuses = attempts.map(({ status }) => status);
      demandEqual(statuses, [101, 503, 429, 502, 503, 101], "the answers");
      const delays = attempts.slice(2).map(({ at }, i) => at - attempts[i + 1]!.at);
      demand(Math.min(...delays) >= DELAY_MS.min - EARLY_MS, `the delays were ${delays} ms`);
      // A busy machine may delay an attempt; without a cap the last two take 2.8 s at least.
      const least = Math.min(...delays.slice(-2));
      demand(least <= DELAY_MAX_MS + LATE_DIAL_MS, `the delays were ${delays} ms`);
    },
  },
  {
    section: "10.1",
    name: "sends reattach with the previous id and token as the first frame (1.3, 1.6)",
    async check(stage) {
      const [old, now] = reconnected(stage);
      const { message } = await now.frames.first("a frame", () => true);
      const { type, previous_worker_id, reattach_token } = message;
      const wanted = { previous_worker_id: old.worker_id, reattach_token: old.reattach_token };
      demandEqual({ type, previous_worker_id, reattach_token } as JsonObject, {
        type: "reattach",
        ...wanted,
      }, "the first frame");
    },
  },
  {
    section: "10.1",
    name: "sends everything again once: announcement, types, functions, triggers (1.3)",
    check: (stage) => checkOrder(reconnected(stage)[1]),
  },
  {
    section: "10.1",
    name: "sends calls made while disconnected after the registrations, with the time left",
    async check(stage) {
      const [, now] = reconnected(stage);
      const call = await now.expect({ type: "invokefunction", function_id: QUEUED });
      const at = now.frames.entries.findIndex(({ message }) => message === call);
      const last = now.frames.entries.findLastIndex(({ message }) =>
        String(message.type).startsWith("register")
      );
      demand(at > last, "the call came before the last registration");
      demand(Number(call.timeout_ms) < 30_000 - 500, `timeout_ms is ${call.timeout_ms}`);
      now.answer(call, { result: "late" });
      const { result } = await outcomeOf(now, QUEUED);
      demandEqual(result, "late", "the result of the queued call");
    },
  },
  {
    section: "10.1",
    name: "ends calls sent on the lost connection, and does not send them again",
    async check(stage) {
      const [old, now] = reconnected(stage);
      const { error } = await outcomeOf(now, SENT);
      const codes = ["invocation_stopped", "TIMEOUT"];
      demand(codes.includes(error?.code ?? ""), `the call ended with ${error?.code}`);
      const [{ invocation_id } = {}] = old.received({ function_id: SENT });
      const again = now.received({ invocation_id: invocation_id ?? "none" });
      demandEqual(again.length, 0, "frames of that call");
    },
  },
  {
    section: "10.1",
    name: "starts with the first delay again after a successful open",
    async check(stage) {
      let delay = Infinity;
      // A busy machine may delay an attempt; a delay that was not reset exceeds 2 600 ms always.
      for (let round = 0; round < 5 && delay > 2 * DELAY_MS.max; round++) {
        const connections = stage.engine.connections.mark;
        delay = await delayAfter(stage, () => stage.engine.connection.close(1008));
        await stage.engine.next(connections);
      }
      demand(delay <= 2 * DELAY_MS.max, `the delay was ${Math.round(delay)} ms`);
    },
  },
];

const rejected: readonly Duty[] = [
  {
    section: "10.1",
    name: "dials again when its first upgrade is refused with 401",
    async check({ engine }) {
      await ready(await engine.next(0));
      demandEqual(engine.attempts.matching(isWorkerRoute).length, 2, "attempts");
    },
  },
  {
    section: "10.1",
    name: "goes on after a registrationrejected that is not fatal",
    async check({ engine: { connection } }) {
      connection.send(rejection("FUNCTION_NAMESPACE_CONFLICT", { function_id: "probe::echo" }));
      const { result } = await connection.invoke("probe::echo", 1);
      demandEqual(result, 1, "the result of a later call");
    },
  },
  {
    section: "10.1",
    name: "stops dialling after a fatal registrationrejected",
    async check({ engine }) {
      const attempts = engine.attempts.matching(isWorkerRoute).length;
      engine.connection.send(rejection("WORKER_NAMESPACE_CONFLICT", { worker_name: WORKER_NAME }));
      await quiet();
      engine.connection.close(1000);
      await quiet(2 * DELAY_MS.max);
      demandEqual(engine.attempts.matching(isWorkerRoute).length, attempts, "attempts");
    },
  },
];

const shuttingDown: readonly Duty[] = [
  {
    section: "10.1",
    name: "closes / and /otel on shutdown, without unregister frames",
    async check({ engine }) {
      const { connection } = engine;
      await engine.telemetry.first("a connection of /otel", () => true);
      await connection.invoke("probe::shutdown", { tag: "last" });
      await connection.closes.first("the close of /", () => true);
      for (const otel of engine.telemetry.entries) {
        await otel.closes.first("the close of /otel", () => true);
      }
      const unregister = connection.frames.matching(({ message }) =>
        String(message.type).startsWith("unregister")
      );
      demandEqual(unregister.length, 0, "unregister frames");
    },
  },
  {
    section: "10.1",
    name: "fails pending calls with SHUTDOWN",
    async check({ probe }) {
      const line = await probe.output.first(
        "the outcome on standard output",
        (each) => each.includes('"last"'),
      );
      const { outcome } = JSON.parse(line.slice(line.indexOf("{")));
      demandEqual(outcome.error?.code, "SHUTDOWN", "the code");
      demand(outcome.error.message.endsWith(SHUTDOWN_TEXT), `the text is ${outcome.error.message}`);
    },
  },
  {
    section: "10.1",
    name: "lets the process exit after shutdown, and does not dial again",
    async check({ engine, probe }) {
      const attempts = engine.attempts.matching(isWorkerRoute).length;
      const code = await probe.exits.first("the exit of the probe", () => true);
      demandEqual(code, 0, "the exit code");
      demandEqual(engine.attempts.matching(isWorkerRoute).length, attempts, "attempts");
    },
  },
];

const silence: readonly Duty[] = [
  {
    section: "10.1",
    name: "sends a ping every 20 s",
    isSlow: true,
    async check({ engine }) {
      const connection = await engine.next(0);
      const opened = performance.now();
      const at = await connection.pings.first("a ping", () => true, { withinMs: 1.2 * PING_MS });
      demand(at - opened > 0.5 * PING_MS, `a ping after ${Math.round(at - opened)} ms`);
    },
  },
  {
    section: "10.1",
    name: "ends a connection from which nothing arrived for 60 s, and dials again",
    isSlow: true,
    async check({ engine }) {
      await engine.next(1, 1.5 * SILENCE_MS);
    },
  },
];

/** The stages of PROTOCOL 10.1. */
export function connectionStages(): readonly StagePlan[] {
  return [
    {
      name: "dial",
      script: { speaksLast: true },

      duties: [...dialling, ...robustness],
    },
    { name: "reconnect", script: {}, duties: reconnecting },
    { name: "reject", script: { refusals: [401] }, duties: rejected },
    { name: "shutdown", script: {}, duties: shuttingDown },
    { name: "silence", script: { isSilent: true }, duties: silence },
  ];
}

function isWorkerRoute({ url }: Attempt): boolean {
  return url.pathname === "/";
}

/** Time from an action to the next upgrade of `/`. */
async function delayAfter({ engine }: Stage, action: () => void): Promise<number> {
  const from = engine.attempts.mark;
  const began = performance.now();
  action();
  const { at } = await engine.attempts.first("an upgrade of /", isWorkerRoute, { from });
  return at - began;
}

/** The first delay, or twice that. */
function demandFirstDelay(delay: number): void {
  const [min, max] = [DELAY_MS.min - EARLY_MS, DELAY_MS.max * 2 + LATE_MS];
  demand(delay >= min && delay <= max, `the delay was ${Math.round(delay)} ms`);
}

/** The connections before and after the loss. */
function reconnected({ engine }: Stage): [old: EngineConnection, now: EngineConnection] {
  const [old, now] = engine.connections.entries;
  demand(old !== undefined && now !== undefined, "the worker did not connect again");
  return [old, now];
}

async function checkOrder(now: EngineConnection): Promise<void> {
  await ready(now);
  await now.expect({ type: "registertrigger" });
  await quiet();
  const kinds = ["registertriggertype", "registerfunction", "registertrigger"];
  const announcement = now.frames.entries[1]!.message.function_id;
  demandEqual(announcement, "engine::workers::register", "function_id of the second frame");
  const sent = now.frames.entries.map(({ message }) => message)
    .filter(({ type }) => kinds.includes(String(type)));
  const ranks = sent.map(({ type }) => kinds.indexOf(String(type)));
  demand(
    ranks.every((rank, i) => i === 0 || rank >= ranks[i - 1]!),
    "types, functions and triggers are mixed",
  );
  const ids = sent.map(({ type, id }) => `${type} ${id}`);
  demandEqual(ids.length, new Set(ids).size, "frames of registrations");
  for (const id of ["probe-watch", "probe::echo", "probe::ready"]) {
    demand(sent.some((each) => each.id === id), `${id} is missing`);
  }
}

function rejection(code: string, fields: JsonObject): JsonObject {
  return {
    type: "registrationrejected",
    code,
    namespace: "default",
    owner_worker_id: "engine",
    ...fields,
  };
}
