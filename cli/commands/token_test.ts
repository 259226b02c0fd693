import assert from "node:assert/strict";
import { Command } from "@commander-js/extra-typings";
import type { NewToken, TokenInfo } from "../../engine/mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import { UsageError } from "../failure.ts";
import { addToken, readExpires } from "./token.ts";

const NOW = 1_700_000_001_000; // Of the fake terminal.

function setup(list: readonly TokenInfo[] = []) {
  const terminal = new FakeTerminal();
  const seen: unknown[] = [];
  const infoOf = ({ name, allow, expires_ms }: NewToken): TokenInfo => ({
    name,
    allow: allow ?? null,
    created_at_ms: NOW,
    expires_at_ms: expires_ms === undefined ? null : NOW + expires_ms,
    revoked_at_ms: null,
  });
  const program = new Command("engine").exitOverride()
    .configureOutput({ writeErr: (text) => terminal.err(text) });
  addToken(program, terminal, () =>
    Promise.resolve({
      create: (directory, wanted) => {
        seen.push([directory, wanted]);
        return Promise.resolve({ token: "ewt_secret", info: infoOf(wanted) });
      },
      list: () => Promise.resolve(list),
      revoke: (directory, name) => {
        seen.push([directory, name]);
        return Promise.resolve(infoOf({ name }));
      },
    }));
  return {
    terminal,
    seen,
    run: (...args: string[]) => terminal.runWith(program, "token", ...args),
  };
}

Deno.test("token create prints the token alone to standard output", async () => {
  const it = setup();

  const code = await it.run(
    ...["create", "--name", "ci", "--allow", "orders::*", "--allow", "a::b", "--expires", "30d"],
  );

  assert.equal(code, 0);
  assert.equal(it.terminal.outText, "ewt_secret");
  assert.match(it.terminal.errText, /^Token ci allows orders::\*, a::b for 30 d 0 h; it is not/);
  const wanted = { name: "ci", allow: ["orders::*", "a::b"], expires_ms: 2_592_000_000 };
  assert.deepEqual(it.seen, [["/project", wanted]]);
});

Deno.test("token create --json prints what is known of the token", async () => {
  const it = setup();

  await it.run("create", "--name", "ci", "--json");

  assert.deepEqual(JSON.parse(it.terminal.outText), {
    token: "ewt_secret",
    name: "ci",
    allow: null,
    created_at_ms: NOW,
    expires_at_ms: null,
    revoked_at_ms: null,
  });
  assert.equal(it.terminal.errText, "");
});

Deno.test("token create needs a name, and a time that it understands", async () => {
  assert.equal(await setup().run("create"), 2);
  const it = setup();
  assert.equal(await it.run("create", "--name", "ci", "--expires", "soon"), 2);
  assert.match(it.terminal.errText, /--expires: expected a time such as 12h or 30d/);
  assert.deepEqual(it.seen, []);
});

Deno.test("token list shows what each token allows and whether it is valid", async () => {
  const token = { created_at_ms: NOW, expires_at_ms: null, revoked_at_ms: null };
  const it = setup([
    { ...token, name: "all", allow: null },
    { ...token, name: "ci", allow: ["orders::*"], expires_at_ms: NOW + 7_200_000 },
    { ...token, name: "old", allow: ["a"], expires_at_ms: NOW },
    { ...token, name: "gone", allow: ["a"], revoked_at_ms: NOW },
  ]);

  assert.equal(await it.run("list"), 0);

  assert.deepEqual(it.terminal.outLines.map((line) => line.split(/ {2,}/)), [
    ["NAME", "STATE", "ALLOWS", "CREATED"],
    ["all", "valid", "all functions", "2023-11-14"],
    ["ci", "valid for 2 h 0 min", "orders::*", "2023-11-14"],
    ["old", "expired", "a", "2023-11-14"],
    ["gone", "revoked", "a", "2023-11-14"],
  ]);
});

Deno.test("token revoke revokes by name", async () => {
  const it = setup();

  assert.equal(await it.run("revoke", "ci"), 0);

  assert.deepEqual([it.seen, it.terminal.errText], [[["/project", "ci"]], "Revoked ci"]);
});

Deno.test("readExpires() takes a whole number with a unit", () => {
  assert.deepEqual(["1s", "90m", "12h", "30d", "2w", "3650d"].map(readExpires), [
    1_000,
    5_400_000,
    43_200_000,
    2_592_000_000,
    1_209_600_000,
    315_360_000_000,
  ]);
  for (const text of ["", "30", "0d", "-1d", "1.5d", "3651d", "1y", "d", " 1d", "1e3d"]) {
    assert.throws(() => readExpires(text), UsageError, text);
  }
});
