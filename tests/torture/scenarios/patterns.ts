/**
 * Schemas as a weapon: a worker registers functions whose `request_format` takes long to check, and
 * a caller's payload makes it so. Valid payloads of another caller have to get their results.
 *
 * @module
 */
import { type Heavy, joined, type Setting } from "../heavy.ts";
import { frameOf, Peer } from "../peer.ts";

const encoder = new TextEncoder();
const FUNCTIONS = 30;
const STUCK_MS = 12_000;
/** Backtracks for minutes on a text that almost fits. */
const PATTERNS = ["^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "^(\\w+\\s?)*$", "^(.*a){20}$"];
const EXPLODING = `${"a".repeat(40)}!`;

/** One function per schema, each of which answers with `1`. */
async function offer({ attacker }: Setting, schemas: readonly string[]): Promise<void> {
  attacker.onText = (text) => {
    const [, id, called] = /"invocation_id":"([^"]*)","function_id":"([^"]*)"/.exec(text) ?? [];
    if (id === undefined || !text.startsWith('{"type":"invokefunction"')) return;
    const ids = `"invocation_id":"${id}","function_id":"${called}"`;
    void attacker.send(`{"type":"invocationresult",${ids},"result":1}`);
  };
  for (const [i, schema] of schemas.entries()) {
    const id = `"id":"schema::f${i}"`;
    void attacker.send(`{"type":"registerfunction",${id},"request_format":${schema}}`);
  }
  await attacker.settled(STUCK_MS);
}

/** Calls each function with a bad payload, then with a good one by another caller. */
async function callAll(
  { engine }: Setting,
  count: number,
  bad: (i: number) => string,
  good: string,
): Promise<{ done: string; broken: string[] }> {
  using hostile = await Peer.connect(engine.port);
  using caller = await Peer.connect(engine.port);
  const outcomes = new Map<string, number>();
  const note = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  const call = async (peer: Peer, i: number, payload: string): Promise<string> => {
    const id = crypto.randomUUID();
    const answer = peer.expect(id, STUCK_MS);
    const ids = `"invocation_id":"${id}","function_id":"schema::f${i}"`;
    await peer.send(`{"type":"invokefunction",${ids},"timeout_ms":60000,"data":${payload}}`);
    const message = await answer;
    if (message === undefined) return "no answer";
    return (message.error as { code: string } | undefined)?.code ?? "a result";
  };
  const indexes = Array.from({ length: count }, (_, i) => i);
  await Promise.all(indexes.map(async (i) => note(`bad: ${await call(hostile, i, bad(i))}`)));
  const refused: string[] = [];
  for (const i of indexes) {
    const outcome = await call(caller, i, good);
    if (outcome !== "a result") refused.push(`schema::f${i}: ${outcome}`);
  }
  const broken = refused.length === 0
    ? []
    : [`${refused.length} valid payloads of another caller were refused, such as ${refused[0]}`];
  const text = [...outcomes].map(([outcome, times]) => `${times} × ${outcome}`).join(", ");
  return { done: `${count} functions; ${text}`, broken };
}

/** Attacks by `request_format`. */
export const PATTERN_ATTACKS: readonly Heavy[] = [
  {
    name: "30 functions with exploding patterns",
    async act(setting) {
      const count = setting.campaign.choose(5, FUNCTIONS);
      const schemas = Array.from({ length: count }, (_, i) => {
        const pattern = JSON.stringify(PATTERNS[i % PATTERNS.length]);
        return `{"type":"object","properties":{"t":{"type":"string","pattern":${pattern}}}}`;
      });
      await offer(setting, schemas);
      return await callAll(
        setting,
        count,
        () => `{"t":"${EXPLODING}"}`,
        '{"t":"aaaaaaaaaaaaaaaaaaaa"}',
      );
    },
  },
  {
    name: "a schema that branches at every level",
    async act(setting) {
      const depth = setting.campaign.choose(14, 24);
      const branch = '{"type":"object","required":["x"],"properties":{"n":{"$ref":"#/$defs/a"}}}';
      const other = '{"type":"object","required":["y"],"properties":{"n":{"$ref":"#/$defs/a"}}}';
      const schema = `{"$defs":{"a":{"anyOf":[${branch},${other}]}},"$ref":"#/$defs/a"}`;
      await offer(setting, [schema]);
      const value = `${'{"x":1,"y":1,"n":'.repeat(depth)}{}${"}".repeat(depth)}`;
      return await callAll(setting, 1, () => value, '{"x":1}');
    },
  },
  {
    name: "schemas that search long lists",
    async act(setting) {
      const schemas = [
        '{"uniqueItems":true}',
        '{"contains":{"contains":{"type":"string"}}}',
        '{"items":{"not":{"oneOf":[{"const":-1},{"type":"string"}]}}}',
      ];
      await offer(setting, schemas);
      const items = Array.from({ length: setting.campaign.choose(30_000, 200_000) }, (_, i) => i);
      return await callAll(setting, schemas.length, () => JSON.stringify(items), '[["x"]]');
    },
  },
  {
    name: "schemas of 60 KiB to be compiled",
    async act(setting) {
      const count = setting.campaign.choose(2, 10);
      const title = "t".repeat(300); // 481 subschemas are as many as a schema of any size may have.
      const parts = Array.from(
        { length: 160 },
        (_, i) =>
          `"p${i}":{"anyOf":[{"type":"string","minLength":${i}},{"type":"number"}],` +
          `"title":"${title}"}`,
      );
      await offer(
        setting,
        Array.from(
          { length: count },
          (_, i) => `{"$id":"s${i}","type":"object","properties":{${parts.join(",")}}}`,
        ),
      );
      return await callAll(setting, count, () => '{"p5":null}', '{"p5":5}');
    },
  },
  {
    name: "schemas of 60 KiB and their first calls in one write",
    async act({ attacker, campaign }) {
      const count = campaign.choose(2, 10);
      const members = Array.from(
        { length: 480 },
        (_, i) =>
          `"p${i}":{"type":["string","array"],"minLength":${i},"title":"${"t".repeat(60)}"}`,
      );
      const schema = `{"type":"object","properties":{${members.join(",")}}}`;
      const ids = Array.from({ length: count }, (_, i) => `cold-${i}`);
      const answers = ids.map((id) => attacker.expect(id, STUCK_MS));
      await attacker.write(joined(...ids.flatMap((id) => [
        frameOf(encoder.encode(
          `{"type":"registerfunction","id":"schema::${id}","request_format":${schema}}`,
        )),
        frameOf(encoder.encode(
          `{"type":"invokefunction","invocation_id":"${id}","function_id":"schema::${id}",` +
            '"data":{"p0":1}}',
        )),
      ])));
      const codes = (await Promise.all(answers)).map((message) => {
        return (message?.error as { code: string } | undefined)?.code ?? "no error";
      });
      return { done: `${count} functions: ${[...new Set(codes)].join(", ")}` };
    },
  },
];
