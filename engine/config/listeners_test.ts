import assert from "node:assert/strict";
import { parseConfig } from "./config.ts";
import { AUTH_TIMEOUT_MS, listenerChanges, LISTENERS_MAX } from "./listeners.ts";

function parse(...lines: string[]) {
  const text = ["engine:", "  listeners:", ...lines.map((line) => `    ${line}`)].join("\n");
  return parseConfig(text, "/p/config.yaml", [], {}).engine.listeners;
}

function problems(...lines: string[]): string[] {
  try {
    parse(...lines);
  } catch (thrown) {
    return (thrown as { details: { problems: string[] } }).details.problems;
  }
  return [];
}

Deno.test("a listener has an address, tokens and rules of its own", () => {
  const [listener, ...others] = parse(
    "- name: partners",
    "  port: 49200",
    "  auth_token: secret",
    "  tokens: true",
    "  middleware_function_id: gate::check",
    "  rbac:",
    "    auth_function_id: auth::partners",
    "    expose_functions:",
    '      - match("orders::*")',
    "      - orders::list",
    "      - { match: stock::*, namespace: blue }",
    "      - { metadata: { public: true } }",
    "    on_function_registration_function_id: auth::register",
  );

  assert.deepEqual(others, []);
  assert.deepEqual(listener, {
    name: "partners",
    host: "127.0.0.1",
    port: 49200,
    auth_token: "secret",
    tokens: true,
    insecure: false,
    allowed_origins: [],
    middleware_function_id: "gate::check",
    rbac: {
      auth_function_id: "auth::partners",
      auth_timeout_ms: AUTH_TIMEOUT_MS,
      expose_functions: [
        'match("orders::*")',
        "orders::list",
        { match: "stock::*", namespace: "blue" },
        { metadata: { public: true } },
      ],
      on_function_registration_function_id: "auth::register",
    },
  });
});

Deno.test("an address that others reach needs a token, created ones, or a word that it is meant", () => {
  const host = ["- name: a", "  port: 1", "  host: 0.0.0.0"];

  assert.match(problems(...host)[0]!, /listeners\[0\].host: expected a loopback address, or auth_/);
  // An auth function does not guard telemetry.
  assert.equal(problems(...host, "  rbac: { auth_function_id: f }").length, 1);
  for (const key of ["auth_token: x", "tokens: true", "insecure: true"]) {
    assert.deepEqual(problems(...host, `  ${key}`), [], key);
  }
});

Deno.test("every problem of a listener is reported with its place", () => {
  const found = problems(
    "- name: a",
    "- name: a",
    "  port: 70000",
    "  rbac:",
    "    auth_timeout_ms: 1",
    "    expose: []",
    "    expose_functions:",
    "      - orders::*",
    "      - 5",
    "- port: 1",
    "- name: a b",
    "  port: 0",
    "  rbac: { expose_functions: all }",
  );

  assert.deepEqual(found.map((each) => each.replace(/ \(line.*$/, "")), [
    "engine.listeners[0].port: expected 0 to 65535, received nothing",
    "engine.listeners[1].name: expected every name once, received a again, first in line 3",
    "engine.listeners[1].rbac.expose: expected one of the keys auth_function_id, " +
    "auth_timeout_ms, expose_functions, on_function_registration_function_id, " +
    "on_trigger_registration_function_id, on_trigger_type_registration_function_id, " +
    "received an unknown key; did you mean expose_functions?",
    "engine.listeners[1].rbac.auth_timeout_ms: expected 50 to 60000, received 1",
    'engine.listeners[1].rbac.expose_functions[0]: expected match("orders::*"), ' +
    'received "orders::*"',
    'engine.listeners[1].rbac.expose_functions[1]: expected match("orders::*"), ' +
    "{ match, namespace } or { metadata, namespace }, received 5",
    "engine.listeners[1].port: expected 0 to 65535, received 70000",
    "engine.listeners[2].name: expected a name for logs and lists, received nothing",
    "engine.listeners[3].name: expected 1 to 64 letters, digits, -, _ or ., beginning with a " +
    'letter or digit, received "a b"',
    'engine.listeners[3].rbac.expose_functions: expected a list, received "all"',
  ]);
});

Deno.test("there are no listeners by default, and not more than fit", () => {
  assert.deepEqual(parseConfig("workers: []", "/p/config.yaml", [], {}).engine.listeners, []);
  const many = Array.from({ length: LISTENERS_MAX + 1 }, (_, i) => `- { name: l${i}, port: 0 }`);
  assert.deepEqual(problems(...many), [
    "engine.listeners: expected at most 32, received a list (line 2)",
  ]);
});

Deno.test("rules are listed with their source, tokens of listeners shortened", () => {
  const text = "engine:\n  listeners: [{ name: a, port: 0, auth_token: very-secret-token }]\n";
  const { values } = parseConfig(text, "/p/config.yaml", [], {});

  const value = values.find(({ key }) => key === "engine.listeners")!;
  assert.equal(value.needs_restart, true);
  assert.equal(JSON.stringify(value).includes("very-secret-token"), false);
});

Deno.test("listenerChanges() says what stays in force until the next start", () => {
  const running = parse(
    "- { name: a, port: 1 }",
    "- { name: b, port: 2 }",
    "- { name: c, port: 3 }",
  );
  const wanted = parse(
    "- { name: b, port: 2, rbac: { auth_function_id: auth::b } }",
    "- { name: c, port: 3 }",
    "- { name: d, port: 4 }",
  );

  assert.equal(
    listenerChanges(running, wanted),
    "until the engine restarts, a stays open, b keeps its port, tokens and rules, " +
      "d is not open yet",
  );
});
