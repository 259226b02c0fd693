/**
 * Single heavy messages: whatever one frame within the size limit holds, no other worker waits
 * longer than 100 ms for the engine; for 64 MiB of JSON that a program could mean, 1 s.
 *
 * @module
 */
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { frameOf, Peer } from "../peer.ts";
import {
  callWith,
  type Heavy,
  honestJson,
  joined,
  list,
  mib,
  nested,
  repeated,
  sendWhole,
  type Setting,
  STUCK_MS,
} from "../heavy.ts";
import { OP } from "../../fakes/raw_ws_client.ts";
import { pause, within } from "../waiting.ts";
import { BUILTIN_ATTACKS, BUILTIN_WORKERS } from "./builtin_messages.ts";
import { BODY_ATTACKS, serveRoute } from "./bodies.ts";
import { PATTERN_ATTACKS } from "./patterns.ts";
import { SERVED_ATTACKS, SERVED_ENGINE } from "./served_messages.ts";

const WAIT_MS_MAX = 100;
const HONEST_WAIT_MS_MAX = 1_000;
/** The canary goes on for so long behind a message. */
const AFTER_MS = 150;
const DEEP_BYTES = 40_000_000;
const PAGE_BYTES = 15_000_000;
const HONEST_BYTES = 60 * 1024 * 1024;

/** See the top of this file. */
export const messages: Scenario = {
  name: "messages",
  summary: "single heavy messages: nesting, counts, patterns, size",
  async run(campaign) {
    const wanted = ATTACKS.filter(({ name }) => campaign.wants(name));
    let subject: Subject | undefined;
    try {
      for (const attack of wanted) {
        subject ??= await campaign.subject({ engine: SERVED_ENGINE, workers: BUILTIN_WORKERS });
        const isStuck = !await attackWith(attack, campaign, subject);
        if (isStuck || campaign.rows.at(-1)!.canary?.end) {
          await subject[Symbol.asyncDispose]();
          subject = undefined;
        }
      }
    } finally {
      await subject?.[Symbol.asyncDispose]();
    }
  },
};

/** Whether the engine can go on. */
async function attackWith(attack: Heavy, campaign: Campaign, subject: Subject): Promise<boolean> {
  let isThere = true;
  const bounds = { maxMs: attack.maxMs ?? WAIT_MS_MAX };
  await campaign.attack(`messages: ${attack.name}`, subject, bounds, async () => {
    using attacker = await Peer.connect(subject.engine.port);
    const setting = { campaign, engine: subject.engine, attacker };
    const start = performance.now();
    const { done, broken = [] } = await attack.act(setting);
    // A peer that the engine has cut cannot ask; another one can.
    const limitMs = performance.now() - start > STUCK_MS ? 2_000 : STUCK_MS;
    using other = await Peer.connect(subject.engine.port, { limitMs }).catch(() => attacker);
    isThere = await other.settled(limitMs) !== undefined;
    if (!isThere) broken.push(`the engine was stuck for ${STUCK_MS / 1_000} s`);
    else await pause(AFTER_MS);
    return { done, broken };
  });
  return isThere && subject.engine.isAlive;
}

/** A value `depth` deep, large in the campaign. */
function deep(campaign: Campaign, isOpen = false): Uint8Array {
  const bytes = campaign.choose(DEEP_BYTES / 10, DEEP_BYTES);
  return nested(isOpen ? bytes : bytes / 2, isOpen);
}

/** A route whose function answers with these bytes; resolves with the status of one request. */
async function answerHttp(setting: Setting, result: Uint8Array | string): Promise<string> {
  const { attacker, engine } = setting;
  attacker.onText = (text) => {
    const id = /"invocation_id":"([^"]*)"/.exec(text)?.[1];
    if (id === undefined || !text.startsWith('{"type":"invokefunction"')) return;
    const head = `{"type":"invocationresult","invocation_id":"${id}","function_id":"heavy::http",`;
    void attacker.write(frameOf(joined(head, '"result":', result, "}")));
  };
  await serveRoute(attacker);
  const signal = AbortSignal.timeout(STUCK_MS);
  return await fetch(`http://127.0.0.1:${engine.httpPort}/heavy`, { method: "POST", signal })
    .then(async (response) => {
      await response.body?.cancel();
      return `HTTP ${response.status}`;
    }, (error) => `no response: ${error.name}`);
}

const NESTED: readonly Heavy[] = [
  {
    name: "deep value of state::set",
    async act(setting) {
      const value = deep(setting.campaign);
      const data = joined('{"scope":"heavy","key":"deep","value":', value, "}");
      return { done: await callWith(setting, "state::set", data) };
    },
  },
  {
    name: "deep value that does not end",
    async act(setting) {
      const value = deep(setting.campaign, true);
      const data = joined('{"scope":"heavy","key":"deep","value":', value, "}");
      return { done: await callWith(setting, "state::set", data) };
    },
  },
  {
    name: "deep result for HTTP",
    async act(setting) {
      const result = joined('{"status_code":200,"body":', deep(setting.campaign), "}");
      return { done: `${await answerHttp(setting, result)}, ${mib(result.length)}` };
    },
  },
  {
    name: "deep result, keys out of order",
    async act(setting) {
      const { attacker, engine, campaign } = setting;
      using caller = await Peer.connect(engine.port);
      const result = deep(campaign);
      attacker.onText = (text) => {
        const id = /"invocation_id":"([^"]*)"/.exec(text)?.[1];
        if (id === undefined || !text.startsWith('{"type":"invokefunction"')) return;
        const tail = `,"type":"invocationresult","function_id":"heavy::f","invocation_id":"${id}"}`;
        void attacker.write(frameOf(joined('{"result":', result, tail)));
      };
      await attacker.send({ type: "registerfunction", id: "heavy::f" });
      await attacker.settled(STUCK_MS);
      const answer = await caller.call("heavy::f", {}, STUCK_MS);
      const error = answer?.error as { code: string } | undefined;
      const outcome = answer === undefined ? "no answer" : error?.code ?? "a result";
      return { done: `a result of ${mib(result.length)}: ${outcome}` };
    },
  },
  {
    name: "deep trigger config",
    async act(setting) {
      const head = '{"type":"registertrigger","id":"heavy","trigger_type":"http",' +
        '"function_id":"heavy::f","config":';
      const text = joined(head, deep(setting.campaign), "}");
      return { done: await sendWhole(setting, "a trigger", text) };
    },
  },
  {
    name: "deep metadata of a registration",
    async act(setting) {
      const head = '{"type":"registerfunction","id":"heavy::f","metadata":';
      const text = joined(head, deep(setting.campaign), "}");
      return { done: await sendWhole(setting, "a registration", text) };
    },
  },
  {
    name: "deep schema of a registration",
    async act(setting) {
      const depth = setting.campaign.choose(100_000, 1_000_000);
      const text = joined(
        '{"type":"registerfunction","id":"heavy::f","request_format":',
        repeated("", '{"items":', depth, ""),
        "{}",
        repeated("", "}", depth, "}"),
      );
      return { done: await sendWhole(setting, "a registration", text) };
    },
  },
  {
    name: "deep announcement",
    async act(setting) {
      return { done: await callWith(setting, "engine::workers::register", deep(setting.campaign)) };
    },
  },
  {
    name: "deep call from a console page",
    async act({ engine, campaign, attacker: _ }) {
      const page = await fetch(`http://127.0.0.1:${engine.consolePort}/`);
      const token = /engine-console-token" content="([^"]*)"/.exec(await page.text())?.[1] ?? "";
      const origin = `http://127.0.0.1:${engine.consolePort}`;
      const headers = { "Host": `127.0.0.1:${engine.consolePort}`, "Origin": origin };
      using guest = await Peer.connect(engine.consolePort, { path: "/live", headers });
      await guest.send({ type: "hello", token });
      // The console takes messages of 16 MiB.
      const value = nested(campaign.choose(1_000_000, PAGE_BYTES / 2));
      const head = '{"type":"call","id":1,"function_id":"state::set","payload":';
      const payload = joined('{"scope":"heavy","key":"page","value":', value, "}");
      await guest.write(frameOf(joined(head, payload, "}")));
      await guest.send({ type: "call", id: 2, function_id: "engine::health::check" });
      const heard: string[] = [];
      const answered = new Promise<void>((resolve) => {
        guest.onText = (text) => {
          heard.push(text.slice(0, 100));
          if (/"id":2\b/.test(text.slice(0, 200))) resolve();
        };
        void guest.ended.then(() => resolve());
      });
      await within(answered, STUCK_MS);
      const end = guest.isOver ? `closed ${(await guest.ended).code}` : `${heard.length} messages`;
      return { done: `a page's call of ${mib(value.length)}: ${end}` };
    },
  },
  {
    name: "deep telemetry",
    async act(setting) {
      const { engine, campaign } = setting;
      using telemetry = await Peer.connect(engine.port, { path: "/otel" });
      const frames = ["OTLP", "LOGS", "MTRC"].map((kind) => joined(kind, deep(campaign)));
      for (const frame of frames) await telemetry.write(frameOf(frame, OP.binary));
      return { done: `spans, logs and metrics of ${mib(frames[0]!.length)} each` };
    },
  },
];

const COUNTED: readonly Heavy[] = [
  {
    name: "60,000 headers of a response",
    async act(setting) {
      const count = setting.campaign.choose(6_000, 60_000);
      const headers = Array.from({ length: count }, (_, i) => `"x-${i}":"1"`).join(",");
      const outcome = await answerHttp(setting, `{"status_code":200,"headers":{${headers}}}`);
      return { done: `${outcome}, ${count} headers` };
    },
  },
  {
    name: "40,000 merges in one update",
    async act(setting) {
      const count = setting.campaign.choose(4_000, 40_000);
      const ops = list(count, (i) => `{"type":"merge","value":{"k${i}":1}}`);
      const data = `{"scope":"heavy","key":"merge","ops":${ops}}`;
      return { done: await callWith(setting, "state::update", data) };
    },
  },
  {
    name: "500,000 failing operations",
    async act(setting) {
      const count = setting.campaign.choose(50_000, 500_000);
      await setting.attacker.call("state::set", { scope: "heavy", key: "fail", value: { x: "t" } });
      const op = '{"type":"increment","path":"x","by":1}';
      const ops = repeated("[", `${op},`, count - 1, `${op}]`);
      const data = joined('{"scope":"heavy","key":"fail","ops":', ops, "}");
      return { done: await callWith(setting, "state::update", data) };
    },
  },
  {
    name: "list with a search of 20 MB",
    async act(setting) {
      const { attacker, campaign } = setting;
      for (let i = 0; i < 500; i++) {
        void attacker.send({ type: "registerfunction", id: `heavy::f${i}`, description: "listed" });
      }
      await attacker.settled(STUCK_MS);
      const search = repeated('{"search":"', "aB", campaign.choose(1e6, 1e7), '"}');
      return { done: await callWith(setting, "engine::functions::list", search) };
    },
  },
  {
    name: "9,000 engine triggers, 300 registrations",
    async act({ attacker, campaign }) {
      const count = campaign.choose(900, 9_000);
      const types = ["log", "engine::functions-available", "engine::workers-available"];
      await attacker.send({ type: "registerfunction", id: "heavy::watch" });
      for (let i = 0; i < count; i++) {
        void attacker.send({
          type: "registertrigger",
          id: `heavy-${i}`,
          trigger_type: types[i % types.length]!,
          function_id: "heavy::watch",
          config: {},
        });
      }
      await attacker.settled(STUCK_MS);
      for (let i = 0; i < 300; i++) {
        void attacker.send({ type: "registerfunction", id: `heavy::new${i}` });
      }
      await attacker.settled(STUCK_MS);
      await pause(campaign.choose(500, 6_000));
      return { done: `${count} triggers, 300 registrations; ${attacker.received} firings` };
    },
  },
  {
    name: "100,000 attributes of a filter",
    async act(setting) {
      const count = setting.campaign.choose(10_000, 100_000);
      const attributes = list(count, (i) => `["a${i}","v"]`);
      const data = `{"attributes":${attributes},"include_internal":true}`;
      return { done: await callWith(setting, "engine::traces::list", data) };
    },
  },
  {
    name: "a message of many unknown keys",
    async act(setting) {
      const count = setting.campaign.choose(100_000, 2_000_000);
      const keys = Array.from({ length: count }, (_, i) => `"k${i}":1`).join(",");
      const text = new TextEncoder().encode(`{"type":"registerfunction","id":"heavy::k",${keys}}`);
      return { done: await sendWhole(setting, "a registration", text) };
    },
  },
];

const HONEST: readonly Heavy[] = [
  {
    name: "64 MiB of text to state::set",
    maxMs: HONEST_WAIT_MS_MAX,
    async act(setting) {
      const bytes = setting.campaign.choose(HONEST_BYTES / 8, HONEST_BYTES);
      const data = repeated('{"scope":"heavy","key":"text","value":"', "text ", bytes / 5, '"}');
      return { done: await callWith(setting, "state::set", data) };
    },
  },
  {
    name: "64 MiB of JSON to state::set",
    maxMs: HONEST_WAIT_MS_MAX,
    async act(setting) {
      const bytes = setting.campaign.choose(HONEST_BYTES / 8, HONEST_BYTES);
      const data = joined('{"scope":"heavy","key":"honest","value":', honestJson(bytes), "}");
      return { done: await callWith(setting, "state::set", data) };
    },
  },
  {
    name: "64 MiB of JSON through a worker",
    maxMs: HONEST_WAIT_MS_MAX,
    async act(setting) {
      const { attacker, campaign, engine } = setting;
      using callee = await Peer.connect(engine.port, { isCounting: true });
      await callee.send({ type: "registerfunction", id: "heavy::sink" });
      await callee.settled(1_000);
      const data = honestJson(campaign.choose(HONEST_BYTES / 8, HONEST_BYTES));
      const head = '{"type":"invokefunction","invocation_id":"honest",' +
        '"function_id":"heavy::sink","data":';
      return { done: await sendWhole({ ...setting, attacker }, "a call", joined(head, data, "}")) };
    },
  },
  {
    name: "64 MiB of JSON as metadata",
    maxMs: HONEST_WAIT_MS_MAX,
    async act(setting) {
      const data = honestJson(setting.campaign.choose(HONEST_BYTES / 8, HONEST_BYTES));
      const head = '{"type":"registerfunction","id":"heavy::f","metadata":';
      return { done: await sendWhole(setting, "a registration", joined(head, data, "}")) };
    },
  },
  {
    name: "64 MiB that is no JSON",
    maxMs: HONEST_WAIT_MS_MAX,
    async act(setting) {
      const bytes = setting.campaign.choose(HONEST_BYTES / 8, HONEST_BYTES);
      return { done: await sendWhole(setting, "a message", repeated("", "x", bytes, "")) };
    },
  },
];

const ATTACKS: readonly Heavy[] = [
  ...NESTED,
  ...COUNTED,
  ...PATTERN_ATTACKS,
  ...BODY_ATTACKS,
  ...BUILTIN_ATTACKS,
  ...SERVED_ATTACKS,
  ...HONEST,
];
