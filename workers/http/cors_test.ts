/**
 * What web pages of other origins are told.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fakeHttp } from "../../tests/fakes/fake_http.ts";

Deno.test("OPTIONS is answered for every path with what pages may do", async () => {
  const { fetch } = fakeHttp();

  const response = await fetch("OPTIONS /any/path", {
    headers: { origin: "https://a.example", "access-control-request-headers": "x-a, x-b" },
  });

  assert.equal(response.status, 200);
  assert.equal(await response.text(), "");
  assert.equal(response.headers.get("access-control-allow-origin"), "*");
  assert.match(response.headers.get("access-control-allow-methods")!, /POST.*OPTIONS/);
  assert.equal(response.headers.get("access-control-allow-headers"), "x-a, x-b");
});

Deno.test("Only configured origins are allowed when there are some", async () => {
  const cors = { origins: ["https://a.example"], methods: ["get"] };
  const { route, fetch } = fakeHttp({ cors }, { f: () => ({}) });
  route("GET /f", "f");

  const known = await fetch("GET /f", { headers: { origin: "https://a.example" } });
  const other = await fetch("GET /f", { headers: { origin: "https://b.example" } });
  const ahead = await fetch("OPTIONS /f", { headers: { origin: "https://b.example" } });

  assert.equal(known.headers.get("access-control-allow-origin"), "https://a.example");
  assert.equal(known.headers.get("vary"), "Origin");
  assert.equal(other.headers.get("access-control-allow-origin"), null);
  assert.equal(ahead.headers.get("access-control-allow-origin"), null);
  assert.equal(ahead.headers.get("access-control-allow-methods"), "GET");
});

Deno.test("A handler's own CORS header is not doubled", async () => {
  const headers = { "access-control-allow-origin": "https://mine.example" };
  const { route, fetch } = fakeHttp({}, { f: () => ({ headers }) });
  route("GET /f", "f");

  const response = await fetch("GET /f");

  assert.equal(response.headers.get("access-control-allow-origin"), "https://mine.example");
});

Deno.test("A handler's own vary does not hide that the answer depends on the origin", async () => {
  const cors = { origins: ["https://a.example"] };
  const { route, fetch } = fakeHttp({ cors }, { f: () => ({ headers: { vary: "accept" } }) });
  route("GET /f", "f");

  const response = await fetch("GET /f", { headers: { origin: "https://a.example" } });

  assert.equal(response.headers.get("vary"), "accept, Origin");
});
