import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { createToken, type NewToken, revokeToken } from "./token_file.ts";
import { Tokens, TOKENS_POLL_MS } from "./tokens.ts";

async function setup() {
  const directory = await Deno.makeTempDir({ prefix: "tokens-" });
  const path = `${directory}/tokens.json`;
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const tokens = new Tokens({ path, clock, log: recordingLog(lines) });
  const ended: [string, string][] = [];
  tokens.watch((id, message) => ended.push([id, message]));
  const create = async (wanted: NewToken) => {
    return (await createToken(path, wanted, clock.wall())).token;
  };
  const revoke = (name: string) => revokeToken(path, name, clock.wall());
  return {
    path,
    clock,
    lines,
    tokens,
    ended,
    create,
    revoke,
    [Symbol.asyncDispose]: async () => {
      tokens[Symbol.dispose]();
      await Deno.remove(directory, { recursive: true });
    },
  };
}

Deno.test("a token is found as soon as it is created, and refused once it is revoked", async () => {
  await using it = await setup();
  const token = await it.create({ name: "ci", allow: ["orders::*"] });

  const found = it.tokens.find(token);
  assert.ok(found.state === "valid");
  assert.deepEqual([found.token.name, found.token.allow], ["ci", ["orders::*"]]);
  await it.revoke("ci");
  assert.deepEqual(it.tokens.find(token), { state: "refused", message: "Token ci was revoked" });
});

Deno.test("connections of a revoked token end at the next look, those of others stay", async () => {
  await using it = await setup();
  const [one, two] = [await it.create({ name: "one" }), await it.create({ name: "two" })];
  const held = new FakeConnection("c");
  const other = new FakeConnection("d");
  const [first, second] = [it.tokens.find(one), it.tokens.find(two)];
  assert.ok(first.state === "valid" && second.state === "valid");
  it.tokens.hold(first.token.id, held);
  it.tokens.hold(second.token.id, other);

  it.clock.tick(TOKENS_POLL_MS);
  assert.deepEqual(it.ended, []);
  await it.revoke("one");
  it.clock.tick(TOKENS_POLL_MS);
  it.clock.tick(TOKENS_POLL_MS);

  assert.deepEqual(it.ended, [[first.token.id, "Token one was revoked"]]);
  assert.deepEqual(held.closing, { code: 1008, reason: "Token one was revoked" });
  assert.equal(other.closing, undefined);
});

Deno.test("a connection that closed before is not closed again", async () => {
  await using it = await setup();
  const found = it.tokens.find(await it.create({ name: "ci" }));
  assert.ok(found.state === "valid");
  const held = new FakeConnection("c");
  const release = it.tokens.hold(found.token.id, held);

  release();
  await it.revoke("ci");
  it.clock.tick(TOKENS_POLL_MS);

  assert.equal(held.closing, undefined);
});

Deno.test("a token expires without any change of the file", async () => {
  await using it = await setup();
  const token = await it.create({ name: "ci", expires_ms: 5_000 });
  assert.equal(it.tokens.find(token).state, "valid");

  it.clock.tick(4_000);
  assert.equal(it.ended.length, 0);
  it.clock.tick(1_000);

  assert.deepEqual(it.ended.map(([, message]) => message), ["Token ci has expired"]);
  assert.deepEqual(it.tokens.find(token), { state: "refused", message: "Token ci has expired" });
});

Deno.test("tokens of a removed file have ended, of a damaged one they are refused", async () => {
  await using it = await setup();
  const token = await it.create({ name: "ci" });
  assert.equal(it.tokens.find(token).state, "valid");

  await Deno.writeTextFile(it.path, "{");
  it.clock.tick(TOKENS_POLL_MS);
  assert.equal(it.tokens.find(token).state, "refused");
  it.clock.tick(TOKENS_POLL_MS);
  assert.deepEqual([it.ended, it.lines.length], [[], 1]);
  assert.equal(it.lines[0]!.text, "created tokens cannot be checked and are refused");
  await Deno.remove(it.path);
  it.clock.tick(TOKENS_POLL_MS);

  assert.equal(it.ended.length, 1);
});

Deno.test("a wrong secret with a known id is wrong, and other texts are no created tokens", async () => {
  await using it = await setup();
  const token = await it.create({ name: "ci" });
  const flipped = token.slice(0, -1) + (token.endsWith("A") ? "B" : "A");

  assert.deepEqual(it.tokens.find(flipped), { state: "refused", message: "The token is wrong" });
  assert.equal(it.tokens.find(`ewt_000000000000_${"a".repeat(43)}`).state, "refused");
  for (const text of ["", "ewt_", `${token} `, `x${token}`, token.toUpperCase(), "secret"]) {
    assert.equal(it.tokens.find(text).state, "unknown", text);
  }
});

Deno.test("a change within the time of the one before is noticed, though the file looks the same", async () => {
  await using it = await setup();
  const token = await it.create({ name: "ci", allow: ["x"] });
  const allowed = () => {
    const found = it.tokens.find(token);
    return found.state === "valid" ? found.token.allow : found.state;
  };
  assert.deepEqual(allowed(), ["x"]);
  const { atime, mtime } = await Deno.stat(it.path);

  const text = await Deno.readTextFile(it.path);
  await Deno.writeTextFile(it.path, text.replace('["x"]', '["y"]'));
  await Deno.utime(it.path, atime!, mtime!);

  assert.deepEqual(allowed(), ["y"]);
});
