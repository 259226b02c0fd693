import assert from "node:assert/strict";
import { createMemoryBudget } from "../../../engine/platform/memory_budget.ts";
import type { FunctionView } from "../../../engine/ports/directory.ts";
import { UNLIMITED_MEMORY } from "../../../engine/ports/memory.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { fakeHttp } from "../../../tests/fakes/fake_http.ts";
import { parseTriggerConfig } from "../config.ts";
import type { Target } from "../handler.ts";
import { RouteTable } from "../routes.ts";
import { KEEP_MS, OpenApi, SLICE_MS } from "./mod.ts";

/** A clock on which each look at the time takes half a millisecond. */
class SlowClock extends FakeClock {
  #spentMs = 0;

  override now(): number {
    this.#spentMs += 0.5;
    return super.now() + this.#spentMs;
  }
}

function setup(count: number, { clock = new FakeClock(), memory = UNLIMITED_MEMORY } = {}) {
  const routes = new RouteTable<Target>();
  const add = (path: string): void => {
    const config = parseTriggerConfig({ api_path: path });
    const value = { function_id: "f", config } as unknown as Target;
    routes.add({ id: path, method: "GET", path, value });
  };
  for (let i = 0; i < count; i++) add(`/r${i}`);
  let views = 0;
  const directory = {
    function: () => {
      views++;
      return undefined;
    },
  };
  const openapi = new OpenApi({ clock, memory, directory, routes, hasToken: false });
  return { openapi, clock, add, views: () => views };
}

const pathsOf = ({ pieces }: { pieces: readonly string[] }): string[] =>
  Object.keys(JSON.parse(pieces.join("")).paths);

/** Lets promises settle. */
async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

Deno.test("the document is written once, until something changes", async () => {
  const { openapi, add, views } = setup(2);
  await openapi.read();
  const before = views();

  await openapi.read();
  assert.equal(views(), before);
  openapi.hear({ type: "supervised_changed", name: "x" });
  await openapi.read();
  assert.equal(views(), before);

  add("/new");
  openapi.change();
  assert.deepEqual(pathsOf(await openapi.read()), ["/new", "/r0", "/r1"]);
  const after = views();
  openapi.hear({ type: "functions_changed", worker_id: "w", ids_changed: false });
  await openapi.read();
  assert.ok(views() > after);
  openapi.stop();
});

Deno.test("many routes are written in slices; who asks meanwhile gets the same document", async () => {
  const { openapi, clock } = setup(500, { clock: new SlowClock() });
  let ended = 0;
  const both = [openapi.read(), openapi.read()].map((read) => read.finally(() => ended++));

  let slices = 0;
  for (; ended < 2 && slices < 1_000; slices++) {
    await settle();
    clock.tick(SLICE_MS);
  }

  assert.ok(slices > 50, `${slices} slices`);
  const [first, second] = await Promise.all(both);
  assert.equal(first!.pieces, second!.pieces);
  openapi.stop();
});

Deno.test("a read after a change waits for a document that was begun after it", async () => {
  const { openapi, clock, add } = setup(50, { clock: new SlowClock() });
  const early = openapi.read();
  await settle();
  add("/new");
  openapi.change();
  let late: string[] | undefined;
  void openapi.read().then((text) => late = pathsOf(text));

  for (let i = 0; i < 1_000 && !late; i++) {
    await settle();
    clock.tick(SLICE_MS);
  }

  assert.ok(late?.includes("/new"));
  await early;
  openapi.stop();
});

Deno.test("the document counts as memory, and is dropped when nothing asks for it", async () => {
  const clock = new FakeClock();
  const memory = createMemoryBudget(1_000_000, queueMicrotask);
  const { openapi } = setup(5, { clock, memory });
  await openapi.read();
  assert.ok(memory.used("bodies") > 1_000);

  clock.tick(KEEP_MS);

  assert.equal(memory.used("bodies"), 0);
  await openapi.read();
  openapi.stop();
  assert.equal(memory.used("bodies"), 0);
});

Deno.test("a document that does not fit into memory is refused, and nothing stays taken", async () => {
  const memory = createMemoryBudget(1_000, queueMicrotask);
  const { openapi } = setup(5, { memory });

  await assert.rejects(openapi.read(), { code: "overloaded" });
  assert.equal(memory.used("bodies"), 0);
});

Deno.test("stop() ends those that wait", async () => {
  const { openapi } = setup(500, { clock: new SlowClock() });
  const reading = openapi.read();
  const ended = assert.rejects(reading, { code: "invocation_stopped" });
  await settle();

  openapi.stop();

  await ended;
});

Deno.test("page() returns the text in pieces, and says when it has changed meanwhile", async () => {
  const { openapi } = setup(1_000);
  const url = "http://127.0.0.1:3111";
  const texts: string[] = [];
  let page = await openapi.page(null, url) as JsonObject;
  const { next_cursor: second } = page;
  for (;; page = await openapi.page({ cursor: page.next_cursor! }, url) as JsonObject) {
    texts.push(page.text as string);
    assert.deepEqual([page.routes, page.url], [1_000, url]);
    if (page.next_cursor === undefined) break;
  }

  assert.ok(texts.length > 1, `${texts.length} pages`);
  assert.equal(pathsOf({ pieces: texts }).length, 1_000);
  openapi.change();
  await assert.rejects(openapi.page({ cursor: second! }, url), { code: "version_mismatch" });
  for (const cursor of ["x", "1:99", "1:-1", "1:0.5", ":"]) {
    await assert.rejects(openapi.page({ cursor }, url), { code: "version_mismatch" });
  }
  for (const payload of [{ cursor: 1 }, { cursor: "x".repeat(101) }, []] as Json[]) {
    await assert.rejects(openapi.page(payload, url), { code: "deserialization_error" });
  }
  openapi.stop();
});

Deno.test("/openapi.json is not there unless the configuration says so", async () => {
  const { fetch } = fakeHttp();

  assert.equal((await fetch("GET /openapi.json")).status, 404);
});

Deno.test("/openapi.json describes the routes of the moment, with their functions", async () => {
  const { route, fetch, types, views, openapi, running } = fakeHttp({ openapi: true });
  const view = {
    function_id: "f",
    namespace: "default",
    worker_name: "shop",
    description: "Ships",
  };
  views.set("f", view as unknown as FunctionView);
  const id = route("POST /orders", "f", { auth_token: "s3cret" });

  const response = await fetch("GET /openapi.json");

  assert.equal(response.headers.get("content-type"), "application/json");
  const text = await response.text();
  assert.equal(JSON.parse(text).paths["/orders"].post.summary, "Ships");
  assert.ok(!text.includes("s3cret"));
  types.unregisterTrigger({ id, trigger_type: "http" });
  assert.deepEqual((await (await fetch("GET /openapi.json")).json()).paths, {});
  assert.equal(running.size, 0);
  assert.equal((await fetch("POST /openapi.json")).status, 404);
  openapi.stop();
});

Deno.test("a document of many pieces is a stream, whose memory is taken until it ends", async () => {
  const memory = createMemoryBudget(100_000_000, queueMicrotask);
  const { openapi } = setup(1_000, { memory });
  const { stream, headers } = await openapi.respond();
  const taken = memory.used("bodies");
  openapi.stop();
  assert.equal(memory.used("bodies"), taken);

  const decoder = new TextDecoder();
  let text = "";
  for (let part = await stream!.read(); part; part = await stream!.read()) {
    text += decoder.decode(part.bytes(), { stream: true });
  }
  for (let i = 0; i < 2; i++) stream!.cancel();

  assert.equal(pathsOf({ pieces: [text] }).length, 1_000);
  assert.equal(memory.used("bodies"), 0);
  assert.deepEqual(headers[0], ["content-type", "application/json"]);
});

Deno.test("a route /openapi.json stands before the document", async () => {
  const { route, fetch } = fakeHttp({ openapi: true }, { mine: () => "mine" });
  route("GET /openapi.json", "mine");

  assert.equal(await (await fetch("GET /openapi.json")).text(), "mine");
});

Deno.test("the token and the hosts of the listener guard the document like a route", async () => {
  const { fetch, openapi } = fakeHttp({ openapi: true, auth_token: "key" });
  const get = async (headers: Record<string, string>) =>
    (await fetch("GET /openapi.json", { headers })).status;

  assert.equal(await get({}), 401);
  assert.equal(await get({ authorization: "Bearer key", host: "evil.example" }), 403);
  assert.equal(await get({ authorization: "Bearer key" }), 200);
  openapi.stop();
});

Deno.test("while the engine drains the document is refused like a route", async () => {
  const { fetch, handler } = fakeHttp({ openapi: true });
  await handler.drain();

  assert.equal((await fetch("GET /openapi.json")).status, 503);
});
