/**
 * @module
 */
import assert from "node:assert/strict";
import type { AddressBar } from "./browser.ts";
import { link, parseAddress, Router } from "./router.ts";

function setup(address = "/workers") {
  const history = [address];
  let listener = () => {};
  const bar: AddressBar = {
    read: () => history.at(-1)!,
    write: (to, replace) => {
      if (replace) history.pop();
      history.push(to);
    },
    onChange: (run) => {
      listener = run;
      return () => listener = () => {};
    },
  };
  const back = () => {
    history.pop();
    listener();
  };
  return { history, back, router: new Router(bar) };
}

for (
  const [address, path, segments] of [
    ["/", "/", []],
    ["/workers", "/workers", ["workers"]],
    ["/workers/", "/workers", ["workers"]],
    ["/workers/my%20shop?tab=logs", "/workers/my%20shop", ["workers", "my shop"]],
    ["/functions/n/a%3A%3Ab%2Fc", "/functions/n/a%3A%3Ab%2Fc", ["functions", "n", "a::b/c"]],
    ["/x/%E0%A4%A", "/x/%E0%A4%A", ["x", "%E0%A4%A"]],
    ["", "", []],
  ] as const
) {
  Deno.test(`${JSON.stringify(address)} has the segments ${JSON.stringify(segments)}`, () => {
    const route = parseAddress(address);

    assert.equal(route.path, path);
    assert.deepEqual(route.segments, segments);
  });
}

Deno.test("link() encodes parts and leaves out empty members", () => {
  assert.equal(link("/workers"), "/workers");
  assert.equal(link("/functions", "n", "a::b/c?"), "/functions/n/a%3A%3Ab%2Fc%3F");
  assert.equal(link("/logs", { worker: "a&b", text: "", level: null }), "/logs?worker=a%26b");
});

Deno.test("parseAddress() reverses link()", () => {
  const odd = "%/?#&=+ \u{1f600}";

  const { segments, query } = parseAddress(link("/x", odd, { q: odd }));

  assert.deepEqual(segments, ["x", odd]);
  assert.equal(query.get("q"), odd);
});

Deno.test("Router.go() changes address and route", () => {
  const { router, history } = setup();
  const seen: string[] = [];
  router.route.subscribe(({ path }) => seen.push(path));

  router.go("/logs?level=warn");
  router.go("/logs?level=warn");

  assert.deepEqual(seen, ["/workers", "/logs"]);
  assert.deepEqual(history, ["/workers", "/logs?level=warn"]);
});

Deno.test("Router.setQuery() changes members and replaces the address", () => {
  const { router, history } = setup("/logs?level=warn&q=x");

  router.setQuery({ q: null, worker: "shop" });
  assert.deepEqual(history, ["/logs?level=warn&worker=shop"]);
  router.setQuery({ level: "" }, { replace: false });

  assert.deepEqual(history, ["/logs?level=warn&worker=shop", "/logs?worker=shop"]);
  assert.equal(router.route.value.query.get("worker"), "shop");
});

Deno.test("Router follows back and forward while it is started", () => {
  const { router, back } = setup();
  const stop = router.start();
  router.go("/logs");
  router.go("/traces");

  back();
  assert.equal(router.route.value.path, "/logs");
  stop();
  back();

  assert.equal(router.route.value.path, "/logs");
});
