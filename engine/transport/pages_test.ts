import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { PAGE_TIMEOUT_MS, Pages } from "./pages.ts";

const PAGE = { status: 200, contentType: "text/plain", body: "calls 1\n" };

Deno.test("a page is made for who asks, with the query", async () => {
  const { pages, ask } = setup();
  pages.serve("/metrics", ({ path, query }) => ({ ...PAGE, body: `${path} ${query.get("of")}` }));

  assert.deepEqual(await ask("/metrics?of=math"), { ...PAGE, body: "/metrics math" });
});

Deno.test("where no page is, nothing is answered, nor after a page is gone", async () => {
  const { pages, ask } = setup();
  const stop = pages.serve("/metrics", () => PAGE);

  assert.equal(ask("/"), undefined);
  assert.equal(ask("/metrics/"), undefined);
  assert.ok(await ask("/metrics"));
  stop();

  assert.equal(ask("/metrics"), undefined);
});

Deno.test("a path has one page", () => {
  const { pages } = setup();
  pages.serve("/metrics", () => PAGE);

  assert.throws(() => pages.serve("/metrics", () => PAGE), /\/metrics exists already/);
});

Deno.test("a page asks for the token, an open one does not", async () => {
  const { pages, ask } = setup({ authToken: "secret" });
  pages.serve("/metrics", () => PAGE);
  pages.serve("/healthz", () => PAGE, { open: true });

  assert.equal((await ask("/metrics"))!.status, 401);
  assert.equal((await ask("/metrics", { authorization: "Bearer wrong" }))!.status, 401);
  assert.equal((await ask("/metrics", { authorization: "Bearer secret" }))!.status, 200);
  assert.equal((await ask("/metrics?token=secret"))!.status, 200);
  assert.equal((await ask("/healthz"))!.status, 200);
});

for (const host of ["evil.example", "evil.example:49134", "localhost.evil.example", "", "a b"]) {
  Deno.test(`a page on loopback is refused to who asks for "${host}"`, async () => {
    const { pages, ask } = setup();
    pages.serve("/metrics", () => PAGE);
    pages.serve("/healthz", () => PAGE, { open: true });

    assert.equal((await ask("/metrics", { host }))!.status, 403);
    assert.equal((await ask("/healthz", { host }))!.status, 200);
  });
}

for (const host of ["localhost:49134", "127.0.0.1:49134", "[::1]:49134", "engine.localhost"]) {
  Deno.test(`a page on loopback is served to who asks for "${host}"`, async () => {
    const { pages, ask } = setup();
    pages.serve("/metrics", () => PAGE);

    assert.equal((await ask("/metrics", { host }))!.status, 200);
  });
}

Deno.test("a page that others reach, or that has a token, is served under any name", async () => {
  for (const options of [{ isLoopback: false }, { authToken: "s" }]) {
    const { pages, ask } = setup(options);
    pages.serve("/metrics", () => PAGE);

    assert.equal((await ask("/metrics?token=s", { host: "engine.example" }))!.status, 200);
  }
});

Deno.test("a page that takes too long is given up", async () => {
  const { pages, ask, clock } = setup();
  pages.serve("/metrics", () => new Promise(() => {}));

  const answer = ask("/metrics")!;
  clock.tick(PAGE_TIMEOUT_MS);

  assert.deepEqual(await answer, {
    status: 503,
    message: `The page /metrics took longer than ${PAGE_TIMEOUT_MS} ms; ask again later`,
  });
});

for (
  const [name, make] of [
    ["throws", () => {
      throw new Error("boom");
    }],
    ["rejects", () => Promise.reject(new Error("boom"))],
  ] as const
) {
  Deno.test(`a page that ${name} is a 500, and the log says why`, async () => {
    const { pages, ask, logged } = setup();
    pages.serve("/metrics", make);

    const { status } = (await ask("/metrics"))!;

    assert.equal(status, 500);
    assert.deepEqual(logged.map(({ fields }) => fields), [{
      path: "/metrics",
      reason: "Error: boom",
    }]);
  });
}

function setup(options: { authToken?: string; isLoopback?: boolean } = {}) {
  const clock = new FakeClock();
  const logged: LogLine[] = [];
  const pages = new Pages({ clock, log: recordingLog(logged), isLoopback: true, ...options });
  const ask = (target: string, headers: Record<string, string> = {}) => {
    const { pathname: path, searchParams: query } = new URL(target, "http://127.0.0.1");
    const all = new Headers({ host: "127.0.0.1", ...headers });
    return pages.answer({ path, query, headers: all, address: "127.0.0.1" });
  };
  return { pages, ask, clock, logged };
}
