/**
 * What stands in front of answers to web pages.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Cors, type CorsConfig } from "./cors.ts";
import { makePageApp, type PlainHeaders } from "./page_app.ts";

const ORIGIN = "https://a.example";

/** The app before a handler that always gives `answer`; `reached` is what came to it. */
function setup(answer: Response, config: Partial<CorsConfig> = {}) {
  const reached: [Request, PlainHeaders][] = [];
  const cors = new Cors({ origins: [ORIGIN], methods: ["GET"], ...config });
  const app = makePageApp(cors, (request, headers) => {
    reached.push([request, headers]);
    return Promise.resolve(answer);
  });
  return { app, reached };
}

for (const method of ["GET", "HEAD", "POST"]) {
  Deno.test(`The page app gives a ${method} the very answer that was made, not a copy`, async () => {
    const answer = new Response(null, { headers: [["x-b", "1"], ["a", "2"]] });
    const { app } = setup(answer);

    const given = await app(new Request("http://a/f", { method }), { origin: ORIGIN });

    assert.equal(given, answer);
    assert.equal(given.headers.get("access-control-allow-origin"), ORIGIN);
    assert.equal(given.headers.get("vary"), "Origin");
  });
}

Deno.test("The page app hands on the request as it came, whatever its path", async () => {
  const { app, reached } = setup(new Response());
  const headers = { origin: ORIGIN };

  for (const path of ["/", "", "/a//b/", "/%zz", "/*", "/:id?x=1#y"]) {
    const request = new Request(`http://a${path}`, { method: "HEAD" });
    await app(request, headers);

    const [[came, seen]] = reached.splice(0) as [[Request, PlainHeaders]];
    assert.equal(came, request);
    assert.equal(seen, headers);
  }
});

Deno.test("The page app answers OPTIONS itself", async () => {
  const { app, reached } = setup(new Response("answer"));

  const given = await app(new Request("http://a/f", { method: "OPTIONS" }), {
    origin: "https://b.example",
    "access-control-request-headers": "x-a",
  });

  assert.equal(given.status, 200);
  assert.equal(await given.text(), "");
  assert.deepEqual([...given.headers], [
    ["access-control-allow-headers", "x-a"],
    ["access-control-allow-methods", "GET"],
    ["access-control-max-age", "600"],
    ["vary", "Origin"],
  ]);
  assert.deepEqual(reached, []);
});

Deno.test("The page app keeps what the handler said of its own about origins", async () => {
  const own = { "access-control-allow-origin": "https://mine.example", vary: "accept" };
  const { app } = setup(new Response("answer", { headers: own }));

  const given = await app(new Request("http://a/f"), { origin: ORIGIN });

  assert.equal(given.headers.get("access-control-allow-origin"), "https://mine.example");
  assert.equal(given.headers.get("vary"), "accept, Origin");
  assert.equal(await given.text(), "answer");
});
