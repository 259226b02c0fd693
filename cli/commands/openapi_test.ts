import assert from "node:assert/strict";
import { InvocationError, type Json, type JsonObject } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

const DOCUMENT = { openapi: "3.1.0", paths: { "/a": {} }, info: { title: "t", version: "1" } };
const URL_OF_ROUTES = "http://127.0.0.1:3111";

function pageOf(text: string, more: JsonObject = {}): JsonObject {
  return { text, routes: 1, url: URL_OF_ROUTES, ...more };
}

function setup(answer: (payload: JsonObject) => Json) {
  return new FakeTerminal({ functions: { "engine::http::openapi": answer } });
}

Deno.test("openapi joins the pages and prints the document with the address of its routes", async () => {
  const text = JSON.stringify(DOCUMENT);
  const terminal = setup(({ cursor }) =>
    cursor === undefined
      ? pageOf(text.slice(0, 20), { next_cursor: "1:1" })
      : pageOf(text.slice(20))
  );

  assert.equal(await terminal.run("openapi"), 0);

  const { servers, ...rest } = JSON.parse(terminal.outText);
  assert.deepEqual(rest, DOCUMENT);
  assert.deepEqual(servers, [{ url: URL_OF_ROUTES }]);
  assert.deepEqual(terminal.calls.map(({ payload }) => payload), [{}, { cursor: "1:1" }]);
  assert.deepEqual(terminal.errLines, []);
  assert.equal(terminal.openConnections, 0);
});

Deno.test("openapi --out writes a file and prints nothing on standard output", async () => {
  const terminal = setup(() => pageOf(JSON.stringify(DOCUMENT)));

  const code = await terminal.run("openapi", "--out", "o.json", "--server", "https://x.example/v1");

  assert.equal(code, 0);
  const text = terminal.written.get("o.json")!;
  assert.ok(text.endsWith("}\n"));
  assert.deepEqual(JSON.parse(text).servers, [{ url: "https://x.example/v1" }]);
  assert.deepEqual(terminal.outLines, []);
  assert.deepEqual(terminal.errLines, ["Wrote 1 route to o.json"]);
});

Deno.test("openapi --json prints one line", async () => {
  const terminal = setup(() => pageOf(JSON.stringify(DOCUMENT)));

  await terminal.run("openapi", "--json");

  assert.equal(terminal.outLines.length, 1);
  assert.equal(JSON.parse(terminal.outText).openapi, "3.1.0");
});

Deno.test("without engine-http openapi fails with the command that adds it", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("openapi"), 1);

  assert.deepEqual(terminal.errLines, [
    "error: This engine serves no HTTP routes: engine-http does not run. " +
    "To add it: engine worker add engine-http",
  ]);
});

Deno.test("a document that changes while it is read is read again, a few times", async () => {
  let calls = 0;
  const body = { code: "version_mismatch", message: "changed" };
  const changed = new InvocationError(body, "engine::http::openapi");
  const changes = (times: number) =>
    setup(() => {
      if (calls++ < times) throw changed;
      return pageOf(JSON.stringify(DOCUMENT));
    });

  assert.equal(await changes(2).run("openapi"), 0);
  calls = 0;
  const terminal = changes(100);
  assert.equal(await terminal.run("openapi"), 1);
  assert.equal(calls, 5);
  assert.match(terminal.errText, /^error: The routes kept changing/);
});

Deno.test("a server that is no URL is refused before anything is asked", async () => {
  const terminal = setup(() => pageOf("{}"));

  assert.equal(await terminal.run("openapi", "--server", "not a url"), 2);

  assert.deepEqual(terminal.calls, []);
});
