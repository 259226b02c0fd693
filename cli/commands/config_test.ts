import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

const SHOP = {
  id: "shop",
  name: "Shop",
  value: { port: 80, key: "[redacted]" },
  has_value: true,
  version: 3,
  problem: null,
};

function setup(answers: Record<string, (payload: JsonObject) => Json>): FakeTerminal {
  const functions = Object.fromEntries(
    Object.entries(answers).map(([name, answer]) => [`configuration::${name}`, answer]),
  );
  return new FakeTerminal({ functions: functions as never });
}

Deno.test("config list shows values and problems", async () => {
  const other = { ...SHOP, id: "mail", has_value: false, problem: "no variable X" };
  const terminal = setup({ list: () => ({ configurations: [SHOP, other] }) as unknown as Json });

  assert.equal(await terminal.run("config", "list"), 0);

  assert.deepEqual(terminal.outLines, [
    "ID    VERSION  VALUE                           PROBLEM",
    'shop  3        {"port":80,"key":"[redacted]"}',
    "mail  3        -                               no variable X",
  ]);
});

Deno.test("config set changes members of the raw value, or all of it", async () => {
  const raw = { port: "${PORT}", key: "[redacted]" };
  const terminal = setup({
    get: () => ({ id: "shop", value: raw }),
    set: ({ value }) => ({ old_value: raw, new_value: value! }),
  });

  assert.equal(await terminal.run("config", "set", "shop", "db.host=a"), 0);
  assert.equal(await terminal.run("config", "set", "shop", "--value", '{"port":1}', "--json"), 0);

  assert.deepEqual(terminal.calls.map(({ payload }) => payload), [
    { id: "shop", raw: true },
    { id: "shop", value: { ...raw, db: { host: "a" } } },
    { id: "shop", value: { port: 1 } },
  ]);
  assert.equal(terminal.outLines.at(-1), '{"port":1}');
});

Deno.test("config set needs a value, and members need an object", async () => {
  const terminal = setup({ get: () => ({ id: "shop", value: 7 }) });

  assert.equal(await terminal.run("config", "set", "shop"), 2);
  assert.match(terminal.errText, /Missing value/);
  assert.equal(await terminal.run("config", "set", "shop", "a=1"), 2);
  assert.match(terminal.errText, /is not an object; give all of it with --value/);
});

Deno.test("config get masks secrets unless they are asked for, and config history has the changes", async () => {
  const change = { version: 2, at_ms: Date.UTC(2026, 10, 24), by: "ops", new_value: { port: 81 } };
  const terminal = setup({
    get: ({ raw, masked }) => ({ id: "shop", value: { raw: raw!, masked: masked! } }),
    history: () => ({ id: "shop", changes: [change, { ...change, by: null }] }),
  });

  assert.equal(await terminal.run("config", "get", "shop", "--json"), 0);
  assert.equal(await terminal.run("config", "get", "shop", "--raw", "--json"), 0);
  assert.equal(await terminal.run("config", "get", "shop", "--secrets", "--json"), 0);
  assert.equal(await terminal.run("config", "get", "shop", "--secrets", "--raw"), 2);
  assert.equal(await terminal.run("config", "history", "shop"), 0);

  assert.deepEqual(terminal.outLines, [
    '{"raw":false,"masked":true}',
    '{"raw":true,"masked":true}',
    '{"raw":false,"masked":false}',
    "VERSION  TIME                      BY   VALUE",
    '2        2026-11-24T00:00:00.000Z  ops  {"port":81}',
    '2        2026-11-24T00:00:00.000Z  -    {"port":81}',
  ]);
});
