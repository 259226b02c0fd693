/**
 * Secrets are redacted by name and by place; everything else stays unchanged.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { Redactor, SEARCHED_PARTS_MAX } from "./redact.ts";

const HIDDEN = "[redacted]";

for (
  const name of [
    "password",
    "Passphrase",
    "clientSecret",
    "access_token",
    "x-auth-token",
    "Authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "API_KEY",
    "apiKey",
    "x-api-key",
    "credentials",
    "private_key",
    "privateKey",
  ]
) {
  Deno.test(`Redactor redacts ${name} at any depth`, () => {
    const it = new Redactor();

    assert.deepEqual(it.value({ [name]: "x", a: 1 }), { [name]: HIDDEN, a: 1 });
    assert.deepEqual(it.value([{ deep: { [name]: { in: 1 } } }]), [{ deep: { [name]: HIDDEN } }]);
  });
}

for (const name of ["name", "compass", "keys", "author", "cookies_eaten", "api", "privacy"]) {
  Deno.test(`Redactor does not redact ${name}`, () => {
    const value = { [name]: "x" };

    assert.equal(new Redactor().value(value), value);
  });
}

Deno.test("Redactor redacts configured names, with and without *", () => {
  const it = new Redactor(["iban", "*_nr", "a.b"]);

  assert.deepEqual(
    it.value({ IBAN: 1, tax_nr: 2, street: 3, "a.b": 4, axb: 5 }),
    { IBAN: HIDDEN, tax_nr: HIDDEN, street: 3, "a.b": HIDDEN, axb: 5 },
  );
});

Deno.test("Redactor redacts exactly the places of JSON pointers", () => {
  const it = new Redactor(["/card/number", "/items/*/price", "/items/0", "/a~1b/c~0d"]);

  assert.deepEqual(
    it.value({
      card: { number: 1, holder: 2 },
      number: 3,
      items: [{ price: 4 }, { price: 5, name: 6 }],
      "a/b": { "c~d": 7 },
    }),
    {
      card: { number: HIDDEN, holder: 2 },
      number: 3,
      items: [HIDDEN, { price: HIDDEN, name: 6 }],
      "a/b": { "c~d": HIDDEN },
    },
  );
});

Deno.test("Redactor.text() returns JSON without secrets unchanged", () => {
  const it = new Redactor();

  assert.equal(it.text('{ "a" : 1.0 }'), '{ "a" : 1.0 }');
  assert.equal(it.text('{ "token" : 1.0 }'), '{"token":"[redacted]"}');
  assert.equal(it.text("{"), null);
  assert.equal(it.text("{}{"), null);
});

Deno.test("Redactor does not modify its input and handles special member names", () => {
  const value = JSON.parse('{"__proto__":{"token":1},"constructor":{"token":2}}') as Json;
  const clean = new Redactor().value(value);

  assert.equal(
    JSON.stringify(clean),
    '{"__proto__":{"token":"[redacted]"},"constructor":{"token":"[redacted]"}}',
  );
  assert.equal(JSON.stringify(value), '{"__proto__":{"token":1},"constructor":{"token":2}}');
  assert.equal(({} as { token?: number }).token, undefined);
});

Deno.test("Redactor stops at the depth bound", () => {
  const json = `${'{"a":'.repeat(20_000)}{"token":1}${"}".repeat(20_000)}`;

  const clean = new Redactor().text(json)!;

  assert.ok(!clean.includes("token"));
  assert.match(clean, /\[too deep\]/);
});

Deno.test("of a value with very many members the first ones are searched, and kept", () => {
  const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`name${i}`, "v"]));
  const redactor = new Redactor(["name1"]);

  const clean = redactor.value({ first: many, second: { token: "t" } }) as JsonObject;

  const first = clean["first"] as JsonObject;
  assert.equal(first["name0"], "v");
  assert.equal(first["name1"], "[redacted]");
  const count = Object.keys(first).length;
  assert.ok(count > 32_000 && count < SEARCHED_PARTS_MAX, `${count} members`);
  assert.equal(clean["second"], "[too much]");
  assert.deepEqual(redactor.value({ token: "t", a: [{ b: 1 }] }), {
    token: "[redacted]",
    a: [{ b: 1 }],
  });
});
