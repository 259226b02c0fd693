import assert from "node:assert/strict";
import type { HttpFunctionSettings } from "../ports/config.ts";
import { Fields } from "./fields.ts";
import { httpFunctionsOf, NO_HTTP_FUNCTIONS } from "./http_functions.ts";
import { readYaml } from "./yaml.ts";

function read(text: string): { settings: HttpFunctionSettings; problems: string[] } {
  const problems: string[] = [];
  const fields = new Fields(readYaml("config.yaml", text, () => undefined), problems, [
    "http_functions",
  ]);
  return { settings: httpFunctionsOf(fields), problems };
}

Deno.test("without the section nothing is requested", () => {
  assert.deepEqual(read("http_functions:").settings, NO_HTTP_FUNCTIONS);
  assert.deepEqual(read("{}"), { settings: NO_HTTP_FUNCTIONS, problems: [] });
});

Deno.test("the section has hosts, private addresses and variables", () => {
  const { settings, problems } = read(`
http_functions:
  allow: [api.example.com, "*.example.com:8443", "http://127.0.0.1:8080"]
  allow_private: true
  auth_env: [QUOTES_TOKEN]
`);

  assert.deepEqual(problems, []);
  assert.deepEqual(settings, {
    allow: ["api.example.com", "*.example.com:8443", "http://127.0.0.1:8080"],
    allow_private: true,
    auth_env: ["QUOTES_TOKEN"],
  });
});

Deno.test("what does not fit is a problem with its place", () => {
  const cases: [string, RegExp][] = [
    ["http_functions: 7", /http_functions: expected a mapping/],
    ["http_functions: { hosts: [] }", /unknown key/],
    ["http_functions: { allow: api.example.com }", /http_functions\.allow: expected a list/],
    ["http_functions: { allow: [a.test, 'a/b'] }", /allow\[1\]: expected a host such as/],
    ["http_functions: { allow: ['ftp://a.test'] }", /allow\[0\]: expected a host/],
    ["http_functions: { allow: [7] }", /allow\[0\]: expected a string/],
    ["http_functions: { allow_private: 1 }", /allow_private: expected true or false/],
    ["http_functions: { auth_env: ['A-B'] }", /auth_env\[0\]: expected the name of an environment/],
    [`http_functions: { allow: [${"a.test,".repeat(1_001)}] }`, /at most 1000 entries/],
    [`http_functions: { auth_env: [${"A,".repeat(101)}] }`, /at most 100/],
  ];
  for (const [text, problem] of cases) {
    assert.match(read(text).problems.join("\n"), problem, text.slice(0, 80));
  }
});
