import assert from "node:assert/strict";
import {
  createToken,
  listTokens,
  readTokens,
  revokeToken,
  tokenHash,
  tokenIdOf,
  TOKENS_MAX,
  tokenState,
} from "./token_file.ts";

const NOW = 1_700_000_000_000;

async function setup() {
  const directory = await Deno.makeTempDir({ prefix: "tokens-" });
  const path = `${directory}/tokens.json`;
  return { path, [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }) };
}

Deno.test("a created token is in the file as a hash only, which the user alone can read", async () => {
  await using it = await setup();

  const wanted = { name: "ci", allow: ["orders::*"], expires_ms: 1_000 };
  const { token, info } = await createToken(it.path, wanted, NOW);

  const text = await Deno.readTextFile(it.path);
  const secret = token.slice("ewt_".length + tokenIdOf(token)!.length + 1);
  assert.ok(!text.includes(secret));
  const [record] = readTokens(it.path);
  assert.deepEqual([record!.id, record!.hash], [tokenIdOf(token), tokenHash(token)]);
  assert.deepEqual(listTokens(it.path), [info]);
  assert.deepEqual(info, {
    name: "ci",
    allow: ["orders::*"],
    created_at_ms: NOW,
    expires_at_ms: NOW + 1_000,
    revoked_at_ms: null,
  });
  if (Deno.build.os !== "windows") {
    assert.equal(((await Deno.stat(it.path)).mode ?? 0) & 0o777, 0o600);
  }
});

Deno.test("a name is taken while its token is valid, and free once it has ended", async () => {
  await using it = await setup();
  await createToken(it.path, { name: "ci", expires_ms: 10 }, NOW);

  await assert.rejects(createToken(it.path, { name: "ci" }, NOW + 9), {
    code: "INVALID_ARGUMENTS",
    message: "Token ci exists already; revoke it first: engine token revoke ci",
  });
  await createToken(it.path, { name: "ci" }, NOW + 10);
  await revokeToken(it.path, "ci", NOW + 11);
  const again = await createToken(it.path, { name: "ci" }, NOW + 12);

  assert.deepEqual(listTokens(it.path), [again.info]);
});

Deno.test("a revoked token stays revoked at its time; an unknown one changes nothing", async () => {
  await using it = await setup();
  await createToken(it.path, { name: "ci" }, NOW);

  const first = await revokeToken(it.path, "ci", NOW + 1);
  const second = await revokeToken(it.path, "ci", NOW + 2);
  const before = await Deno.readTextFile(it.path);
  await assert.rejects(revokeToken(it.path, "other", NOW), { code: "NOT_FOUND" });

  assert.deepEqual([first.revoked_at_ms, second.revoked_at_ms], [NOW + 1, NOW + 1]);
  assert.equal(await Deno.readTextFile(it.path), before);
  assert.equal(tokenState(second, NOW), "revoked");
});

Deno.test("tokens that are created at the same time are all kept", async () => {
  await using it = await setup();
  const names = Array.from({ length: 12 }, (_, i) => `t${i}`);

  const made = await Promise.all(names.map((name) => createToken(it.path, { name }, NOW)));

  assert.deepEqual(listTokens(it.path).map(({ name }) => name).sort(), [...names].sort());
  assert.equal(new Set(made.map(({ token }) => token)).size, names.length);
});

Deno.test("bad names, patterns and times are refused before anything is written", async () => {
  await using it = await setup();
  const bad = [
    { name: "" },
    { name: "a/b" },
    { name: "x".repeat(65) },
    { name: "a", allow: [""] },
    { name: "a", allow: ['match("x")'] },
    { name: "a", allow: ["x".repeat(2_000)] },
    { name: "a", expires_ms: 0 },
    { name: "a", expires_ms: 1.5 },
    { name: "a", expires_ms: Infinity },
  ];

  for (const wanted of bad) {
    const code = "INVALID_ARGUMENTS";
    await assert.rejects(createToken(it.path, wanted, NOW), { code }, JSON.stringify(wanted));
  }
  assert.deepEqual(listTokens(it.path), []);
});

Deno.test("no more tokens are taken than the file may have", async () => {
  await using it = await setup();
  await createToken(it.path, { name: "first" }, NOW);
  const [record] = readTokens(it.path);
  const tokens = Array.from({ length: TOKENS_MAX }, (_, i) => ({ ...record, name: `t${i}` }));
  await Deno.writeTextFile(it.path, JSON.stringify({ format: 1, tokens }));

  await assert.rejects(createToken(it.path, { name: "one-more" }, NOW), /1000 tokens already/);
});

Deno.test("a file of another program is refused and left as it is", async () => {
  await using it = await setup();
  for (
    const text of ["", "null", "{}", "[]", '{"format":2,"tokens":[]}', '{"format":1,"tokens":[{}]}']
  ) {
    await Deno.writeTextFile(it.path, text);

    assert.throws(() => listTokens(it.path), { code: "store_unavailable" }, text);
    await assert.rejects(createToken(it.path, { name: "a" }, NOW), { code: "store_unavailable" });
    assert.equal(await Deno.readTextFile(it.path), text);
  }
});

Deno.test("a change waits for that of another process", async () => {
  await using it = await setup();
  const other = await Deno.open(`${it.path}.lock`, { create: true, write: true });
  await other.lock(true);

  const created = createToken(it.path, { name: "ci" }, NOW);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual(listTokens(it.path), []);
  other.close();
  await created;

  assert.deepEqual(listTokens(it.path).map(({ name }) => name), ["ci"]);
});
