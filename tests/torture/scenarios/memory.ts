/**
 * Memory: what peers make the engine store and buffer stays within `engine.memory_mb`, others go
 * on meanwhile, and it is given back when the peers have gone.
 *
 * @module
 */
import { type Filling, MB, sendOften, type Setting, STUCK_MS } from "../filling.ts";
import { BUILTIN_FILLINGS } from "./builtin_memory.ts";
import { defaultMemoryMb } from "../../../engine/platform/memory_budget.ts";
import { OP } from "../../fakes/raw_ws_client.ts";
import type { Campaign, Scenario, Subject } from "../campaign.ts";
import { honestJson, joined, repeated } from "../heavy.ts";
import { Batch, frameOf, FRESH, Peer } from "../peer.ts";
import { pause, within } from "../waiting.ts";

const BUDGET_MIB = 512;
/**
 * What the process may have beyond the budget: its program, V8's garbage of a few large messages
 * that are being handled, and the sockets.
 */
const OVERHEAD_MIB = 512;
/** Memory that may be left when all is over, beyond that of the start. */
const LEFT_MIB_MAX = 256;
const GIVEN_BACK_MS = 30_000;
/** The canary may wait longer here than for one message: this is about memory. */
const MAX_MS = 1_000;

/** See the top of this file. */
export const memory: Scenario = {
  name: "memory",
  summary: `registrations, messages, bodies and state against a budget of ${BUDGET_MIB} MiB`,
  async run(campaign) {
    for (const filling of [...FILLINGS, ...BUILTIN_FILLINGS]) {
      if (campaign.wants(filling.name)) await run(campaign, filling);
    }
  },
};

async function run(campaign: Campaign, filling: Filling): Promise<void> {
  // An engine of an earlier version has no budget, and refuses the key.
  const hasBudget = await Deno.stat(`${campaign.options.tree}engine/ports/memory.ts`)
    .then(() => true, () => false);
  const isDefault = filling.hasDefaultBudget === true;
  const engine = hasBudget && !isDefault ? [`memory_mb: ${BUDGET_MIB}`] : [];
  await using subject = await campaign.subject({ engine, workers: filling.workers ?? [] });
  const before = (await subject.canary.report()).rss_mib;
  const budgetMib = isDefault ? defaultMemoryMb() : BUDGET_MIB;
  const bounds = { maxMs: MAX_MS, peakMib: budgetMib + OVERHEAD_MIB };
  await campaign.attack(`memory: ${filling.name}`, subject, bounds, async () => {
    const broken: string[] = [];
    let done: string;
    {
      using held = new DisposableStack();
      const open = async (isFrozen = false): Promise<Peer> =>
        held.use(await Peer.connect(subject.engine.port, { isCounting: true, isFrozen }));
      done = await filling.act({ campaign, subject, open, held });
      if (subject.engine.isAlive) broken.push(...await listingProblems(subject));
    }
    const left = await givenBack(subject, before + LEFT_MIB_MAX);
    if (left > before + LEFT_MIB_MAX) {
      broken.push(`${left.toFixed(0)} MiB are left; ${before.toFixed(0)} MiB were there before`);
    }
    return { done: `${done}; ${left.toFixed(0)} MiB left`, broken };
  });
}

/** Listings are there for everyone, whatever the peers registered. */
async function listingProblems({ engine }: Subject): Promise<string[]> {
  const problems: string[] = [];
  for (const what of ["workers", "functions", "registered-triggers", "triggers"]) {
    using reader = await Peer.connect(engine.port);
    const answer = await reader.call(`engine::${what}::list`, {}, STUCK_MS);
    const error = answer?.error as { code: string; message: string } | undefined;
    if (answer === undefined) problems.push(`engine::${what}::list: no answer`);
    else if (error) problems.push(`engine::${what}::list: ${error.code} ${error.message}`);
  }
  return problems;
}

/** Resident memory when it is below a limit, or when the time is over. */
async function givenBack({ canary }: Subject, limitMib: number): Promise<number> {
  const end = performance.now() + GIVEN_BACK_MS;
  for (;;) {
    const { rss_mib } = await canary.report();
    if (rss_mib <= limitMib || performance.now() > end) return rss_mib;
    await pause(500);
  }
}

const FILLINGS: readonly Filling[] = [
  {
    name: "registrations with large metadata",
    async act({ campaign, open }) {
      const body = honestJson(campaign.choose(2 * MB, 15 * MB));
      const head = (i: number) => `{"type":"registerfunction","id":"memory::f${i}","metadata":`;
      const sent = await sendOften(await open(), campaign.choose(20, 276), head, body);
      return `${sent} registrations of ${body.length / MB} MB`;
    },
  },
  {
    name: "registrations of 200 KB by 16 workers",
    async act({ campaign, open }) {
      const body = honestJson(200_000);
      const count = campaign.choose(10, 200);
      const sent = await Promise.all(Array.from({ length: 16 }, async (_, worker) => {
        const head = (i: number) =>
          `{"type":"registerfunction","id":"memory::f${worker}-${i}","metadata":`;
        return await sendOften(await open(), count, head, body);
      }));
      return `${sent.reduce((sum, each) => sum + each, 0)} registrations of 200 KB`;
    },
  },
  {
    name: "trigger configs",
    async act({ campaign, open }) {
      const body = honestJson(campaign.choose(2 * MB, 15 * MB));
      const head = (i: number) =>
        `{"type":"registertrigger","id":"memory-${i}","trigger_type":"memory::none",` +
        `"function_id":"memory::f","config":`;
      const sent = await sendOften(await open(), campaign.choose(20, 276), head, body);
      return `${sent} triggers of ${body.length / MB} MB`;
    },
  },
  {
    name: "schemas of trigger types",
    async act({ campaign, open }) {
      const body = honestJson(campaign.choose(2 * MB, 15 * MB));
      const head = (i: number) =>
        `{"type":"registertriggertype","id":"memory::t${i}","description":"d",` +
        `"trigger_request_format":`;
      const sent = await sendOften(await open(), campaign.choose(20, 276), head, body);
      return `${sent} trigger types of ${body.length / MB} MB`;
    },
  },
  {
    name: "unfinished messages",
    async act({ campaign, open }) {
      const size = campaign.choose(8 * MB, 60 * MB);
      const frame = frameOf(repeated("", "x", size, ""), OP.text, false);
      const count = campaign.choose(16, 40);
      const peers = await Promise.all(Array.from({ length: count }, () => open()));
      const all = Promise.all(peers.map((peer) => peer.write(frame)));
      await within(all, STUCK_MS);
      await pause(500);
      const cut = peers.filter((peer) => peer.isOver).length;
      return `${count} messages of ${size / MB} MB; ${cut} connections cut`;
    },
  },
  { name: "HTTP bodies", act: (setting) => sendBodies(setting, false) },
  {
    name: "HTTP bodies, default budget",
    hasDefaultBudget: true,
    act: (setting) => sendBodies(setting, false),
  },
  { name: "HTTP bodies with answers", act: (setting) => sendBodies(setting, true) },
  {
    name: "state writes of 60 KB",
    async act({ campaign, open }) {
      const peer = await open();
      const value = "v".repeat(60_000);
      const messages = Array.from(
        { length: 20 },
        (_, i) =>
          `{"type":"invokefunction","invocation_id":"w${FRESH}","function_id":"state::set",` +
          `"data":{"scope":"memory","key":"k${i}","value":"${value}"}}`,
      );
      const batch = new Batch(messages);
      const end = performance.now() + campaign.choose(1_500, 15_000);
      let sent = 0;
      for (; performance.now() < end && !peer.isOver; sent += batch.frames) {
        await peer.write(batch.renew());
      }
      await peer.settled(STUCK_MS);
      return `${sent} writes, ${peer.received} answers`;
    },
  },
  {
    name: "lists of a large group",
    async act({ campaign, open, subject }) {
      using writer = await Peer.connect(subject.engine.port);
      const keys = campaign.choose(4, 44);
      for (let i = 0; i < keys; i++) {
        const value = "v".repeat(MB);
        await writer.call("state::set", { scope: "lists", key: `${i}`, value }, STUCK_MS);
      }
      const readers = campaign.choose(4, 10);
      const outcomes = await within(
        Promise.all(Array.from({ length: readers * 10 }, async (_, i) => {
          const ids = { invocation_id: `list-${i}`, function_id: "state::list" };
          const data = { scope: "lists" };
          if (i % 10 === 0) {
            await (await open(true)).send({ type: "invokefunction", ...ids, data });
            return "not read";
          }
          return await outcomeOf(await open(), data, keys * MB);
        })),
        STUCK_MS * 2,
      );
      const count = (code: string) => outcomes?.filter((each) => each === code).length;
      const text = outcomes
        ? `${count("answered")} answered, ${count("overloaded")} × overloaded`
        : "not all were answered in time";
      return `${readers * 10} lists of ${keys} MB; ${text}`;
    },
  },
  {
    name: "announcements with large descriptions",
    async act({ campaign, open }) {
      const size = campaign.choose(8 * MB, 60 * MB);
      const count = campaign.choose(5, 20);
      const head = '{"type":"invokefunction","function_id":"engine::workers::register",' +
        '"action":{"type":"void"},"data":{"runtime":"other","version":"1","os":"linux","pid":1,' +
        '"name":"memory","description":"';
      const frame = frameOf(joined(repeated(head, "d", size, '"}'), "}"));
      for (let i = 0; i < count; i++) {
        const peer = await open();
        await peer.write(frame);
        await peer.settled(STUCK_MS);
      }
      return `${count} announcements of ${size / MB} MB`;
    },
  },
  { name: "calls to workers that do not read", act: callFrozen },
  {
    name: "calls to workers that do not read, default budget",
    hasDefaultBudget: true,
    act: callFrozen,
  },
  {
    name: "results to callers that do not read",
    async act({ campaign, open, subject }) {
      const owner = await Peer.connect(subject.engine.port);
      const result = honestJson(MB);
      owner.onText = (text) => {
        const id = /"invocation_id":"([^"]*)"/.exec(text.slice(0, 300))?.[1];
        if (id === undefined || !text.startsWith('{"type":"invokefunction"')) return;
        const ids = `"invocation_id":"${id}","function_id":"memory::large"`;
        const head = `{"type":"invocationresult",${ids},"result":`;
        void owner.write(frameOf(joined(head, result, "}")));
      };
      await owner.send({ type: "registerfunction", id: "memory::large" });
      await owner.settled(STUCK_MS);
      const callers = campaign.choose(4, 12);
      const calls = campaign.choose(20, 100);
      for (let i = 0; i < callers; i++) {
        const frozen = await open(true);
        for (let j = 0; j < calls; j++) {
          const ids = { invocation_id: `${i}-${j}`, function_id: "memory::large" };
          await frozen.send({ type: "invokefunction", ...ids, data: null });
        }
      }
      await pause(campaign.choose(1_500, 8_000));
      owner.destroy();
      return `${callers * calls} results of 1 MB to ${callers} callers`;
    },
  },
];

/** Bodies at once, of which some are refused; without answers the others wait for theirs. */
async function sendBodies(
  { campaign, subject: { engine }, held }: Setting,
  hasAnswers: boolean,
): Promise<string> {
  const owner = held.use(await Peer.connect(engine.port, { isCounting: !hasAnswers }));
  owner.onText = (text) => {
    const id = /"invocation_id":"([^"]*)"/.exec(text.slice(0, 300))?.[1];
    if (id === undefined || !text.startsWith('{"type":"invokefunction"')) return;
    const ids = { invocation_id: id, function_id: "memory::http" };
    void owner.send({ type: "invocationresult", ...ids, result: { status_code: 200 } });
  };
  await owner.send({ type: "registerfunction", id: "memory::http" });
  const config = { api_path: "/memory", http_method: "POST" };
  const ids = { id: "memory-route", trigger_type: "http", function_id: "memory::http" };
  await owner.send({ type: "registertrigger", ...ids, config });
  await owner.settled(STUCK_MS);
  const size = campaign.choose(2 * MB, 15 * MB);
  const count = campaign.choose(30, 150);
  const head = new TextEncoder().encode(
    `POST /memory HTTP/1.1\r\nHost: 127.0.0.1:${engine.httpPort}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`,
  );
  const body = new Uint8Array(size).fill(0x20);
  body.set(honestJson(size - MB));
  const statuses = new Map<string, number>();
  const answered: Promise<unknown>[] = [];
  await within(
    Promise.all(Array.from({ length: count }, async () => {
      const conn = held.use(await Deno.connect({ port: engine.httpPort }));
      const status = readStatus(conn);
      answered.push(status.then((text) => statuses.set(text, (statuses.get(text) ?? 0) + 1)));
      await writeAll(conn, head);
      await writeAll(conn, body);
    })),
    STUCK_MS,
  );
  await within(Promise.all(answered), hasAnswers ? STUCK_MS * 2 : 500);
  const texts = [...statuses].map(([status, times]) => `${times} × ${status}`).join(", ");
  return `${count} bodies of ${size / MB} MB; ${texts || "no response yet"}`;
}

async function callFrozen({ campaign, open }: Setting): Promise<string> {
  const count = campaign.choose(4, 12);
  const data = honestJson(MB);
  for (let i = 0; i < count; i++) {
    const frozen = await open(true);
    await frozen.send({ type: "registerfunction", id: `memory::frozen${i}` });
  }
  const sent = await Promise.all(Array.from({ length: count }, async (_, i) => {
    const caller = await open();
    await caller.settled(STUCK_MS);
    const head = (call: number) =>
      `{"type":"invokefunction","invocation_id":"${i}-${call}",` +
      `"function_id":"memory::frozen${i}","timeout_ms":60000,"data":`;
    return await within(sendOften(caller, campaign.choose(30, 250), head, data), STUCK_MS) ?? 0;
  }));
  return `${sent.reduce((sum, each) => sum + each, 0)} calls of 1 MB to ${count} workers`;
}

/** Lists a scope; of a large answer only the bytes are seen, since the peer counts. */
async function outcomeOf(reader: Peer, data: { scope: string }, bytes: number): Promise<string> {
  let code: string | undefined;
  void reader.call("state::list", data, STUCK_MS * 2).then((answer) => {
    code = (answer?.error as { code: string } | undefined)?.code ?? "no answer";
  });
  while (code === undefined && reader.receivedBytes < bytes) await pause(20);
  return code ?? "answered";
}

/** First line of a response; `closed` without one. */
async function readStatus(conn: Deno.Conn): Promise<string> {
  const bytes = new Uint8Array(1_024);
  try {
    const count = await conn.read(bytes) ?? 0;
    return new TextDecoder().decode(bytes.subarray(0, count)).split("\r\n")[0] || "closed";
  } catch {
    return "closed";
  }
}

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  try {
    for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
  } catch {
    // The engine has refused it; the response says so.
  }
}
