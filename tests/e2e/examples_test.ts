/**
 * The systems in `examples/`, each run as it stands by an engine of its own, as plain processes.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject, Worker } from "../../mod.ts";
import { chromiumHere } from "../console/console_browser.ts";
import { HeadlessBrowser } from "../console/headless_browser.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const EXAMPLES = new URL("../../examples/", import.meta.url).pathname;
/** Dependencies are installed first, on a machine that may be busy. */
const START_LIMIT_MS = 180_000;
const SECRET = "s3cret";
/** One red pixel. */
const PNG = Uint8Array.fromBase64(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
);

/** A running example, and a worker that looks at it. */
interface Example extends AsyncDisposable {
  readonly engine: EngineProcess;
  readonly worker: Worker;
  readonly http: string;
  call<T = Json>(function_id: string, payload: JsonObject): Promise<T>;
}

/** Starts an example and waits until its functions are there. */
async function startExample(name: string, functions: readonly string[]): Promise<Example> {
  await using stack = new AsyncDisposableStack();
  const engine = stack.use(await EngineProcess.startCopy(`${EXAMPLES}${name}`));
  const worker = engine.connect("asks");
  stack.defer(() => worker.shutdown());
  const call = <T>(function_id: string, payload: JsonObject) =>
    worker.trigger<Json, T>({ function_id, payload });
  await until(
    async () => {
      const list = await call<{ functions: { function_id: string }[] }>(
        "engine::functions::list",
        {},
      );
      const ids = new Set(list.functions.map(({ function_id }) => function_id));
      return functions.every((id) => ids.has(id));
    },
    () => engine.stderr,
    START_LIMIT_MS,
  );
  const info = await call<{ endpoints: { name: string; url: string }[] }>(
    "engine::supervisor::info",
    {},
  );
  const http = info.endpoints.find(({ name }) => name === "http")!.url;
  const kept = stack.move();
  return { engine, worker, http, call, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** Sends JSON. */
function send(method: string, url: string, body: Json): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(url, { method, headers, body: JSON.stringify(body) });
}

/** Status and JSON of a response. */
async function answerOf(response: Promise<Response>): Promise<[number, JsonObject]> {
  const found = await response;
  return [found.status, await found.json()];
}

function codeOf([status, body]: [number, JsonObject]): [number, Json | undefined] {
  return [status, (body.error as JsonObject).code];
}

Deno.test("the shop sells what it has, once per order, and sends a mail", async () => {
  await using shop = await startExample("shop", ["orders::put", "orders::get", "mail::send"]);
  const article = { count: 3, cents: 1000 };
  await shop.call("state::set", { scope: "stock", key: "A1", value: article });
  const order = { sku: "A1", count: 2, email: "ada@example.com" };
  const put = (id: string, body: JsonObject) =>
    answerOf(send("PUT", `${shop.http}/orders/${id}`, body));

  const both = await Promise.all([put("7", order), put("7", order)]);
  const tooMany = await put("8", order);
  const wrong = await put("9", { ...order, count: 0 });
  await shop.call("configuration::set", {
    id: "shop",
    value: { currency: "USD", shipping_cents: 0 },
  });
  await until(async () =>
    (await put(crypto.randomUUID(), { ...order, count: 1 }))[1].total !== "14.90 EUR"
  );

  assert.deepEqual(both, Array(2).fill([201, { ...order, total: "24.90 EUR" }]));
  assert.deepEqual(codeOf(tooMany), [409, "out_of_stock"]);
  assert.deepEqual(codeOf(wrong), [400, "invalid_order"]);
  assert.deepEqual(await answerOf(fetch(`${shop.http}/orders/7`)), [200, both[0]![1]]);
  assert.deepEqual(codeOf(await answerOf(fetch(`${shop.http}/orders/8`))), [404, "no_such_order"]);
  await until(async () => {
    const text = await shop.call("state::get", { scope: "sent", key: order.email });
    return typeof text === "string";
  }, "the mail was sent");
});

Deno.test("the webhook takes what is signed, and handles each delivery once", async () => {
  Deno.env.set("WEBHOOK_SECRET", SECRET);
  await using webhook = await startExample("webhook", ["webhook::receive", "webhook::handle"])
    .finally(() => Deno.env.delete("WEBHOOK_SECRET"));
  const body = '{ "repository": {"full_name": "ada/engine",  "stargazers_count": 7} }';
  const deliver = async (id: string, text: string) => {
    const headers = {
      "content-type": "application/json",
      "x-github-delivery": id,
      "x-hub-signature-256": `sha256=${await hmac(body)}`,
    };
    return await answerOf(
      fetch(`${webhook.http}/webhook`, { method: "POST", headers, body: text }),
    );
  };

  const forged = await deliver("d0", body.replace("7", "8"));
  const first = await deliver("d1", body);
  const again = await deliver("d1", body);

  assert.deepEqual(codeOf(forged), [401, "bad_signature"]);
  assert.deepEqual([first, again], Array(2).fill([202, { accepted: "d1" }]));
  const stars = { scope: "repositories", key: "ada/engine" };
  await until(async () => await webhook.call("state::get", stars) !== null, "it was handled");
  assert.deepEqual(await webhook.call("state::get", stars), { stars: 7 });
  const { queues } = await webhook.call<{ queues: JsonObject[] }>("engine::queue::list", {});
  const { done_total } = queues.find(({ name }) => name === "deliveries")!;
  assert.equal(done_total, 1);
});

async function hmac(text: string): Promise<string> {
  const bytes = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes.encode(SECRET), algorithm, false, [
    "sign",
  ]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes.encode(text))).toHex();
}

Deno.test("the thumbnails are made of images, and followed by a stream", async () => {
  const functions = ["images::upload", "images::shrink", "images::thumbnail", "page::index"];
  await using images = await startExample("thumbnails", functions);
  const states = new Map<string, Json>();
  images.worker.stream<{ state: string }>("images").onEvent(({ id, event }) => {
    if (event.type === "create" || event.type === "update") states.set(id!, event.data.state);
  });
  const upload = async (body: Uint8Array<ArrayBuffer>) => {
    const headers = { "content-type": "image/png" };
    const [status, { id }] = await answerOf(
      fetch(`${images.http}/images`, { method: "POST", headers, body }),
    );
    assert.equal(status, 202);
    return id as string;
  };

  const [image, other] = [await upload(PNG), await upload(new Uint8Array(3_000_000))];
  await until(async () => {
    const list = await images.call<JsonObject[]>("stream::list", {
      stream_name: "images",
      group_id: "all",
    });
    return list.every(({ state }) => state !== "waiting");
  }, "both were looked at");
  const made = await fetch(`${images.http}/images/${image}`);
  const none = await answerOf(fetch(`${images.http}/images/${other}`));

  assert.equal(made.headers.get("content-type"), "image/jpeg");
  assert.deepEqual((await made.bytes()).slice(0, 3), Uint8Array.of(0xff, 0xd8, 0xff));
  assert.deepEqual(codeOf(none), [404, "no_thumbnail"]);
  await until(() => states.get(image) === "ready" && states.get(other) === "not an image");
  const [, { port }] = await answerOf(fetch(`${images.http}/streams`));
  assert.ok(Number(port) > 0);
  assert.match(await (await fetch(`${images.http}/`)).text(), /connectStreams/);
  assert.match(
    await (await fetch(`${images.http}/engine_sdk_browser.js`)).text(),
    /connectStreams/,
  );
});

/** A message of the chat. */
interface Said {
  readonly n: number;
  readonly from: string;
  readonly text: string;
}

Deno.test("the chat reaches all in a room, and remembers what was said", async () => {
  await using chat = await startExample("chat", ["chat::connect", "chat::message", "chat::page"]);
  const url = `${chat.http.replace("http", "ws")}/rooms`;
  const join = async (path: string) => {
    const socket = new WebSocket(`${url}/${path}`);
    const said: Said[] = [];
    socket.onmessage = ({ data }) => void said.push(...JSON.parse(data));
    socket.onopen = () => socket.send('{"read":true}');
    socket.onerror = () => {};
    await until(() => socket.readyState !== WebSocket.CONNECTING);
    return {
      socket,
      said,
      async [Symbol.asyncDispose]() {
        socket.close();
        await until(() => socket.readyState === WebSocket.CLOSED);
      },
    };
  };
  await until(async () => {
    const { routes } = await chat.call<{ routes: Json[] }>("websocket::routes", {});
    return routes.length === 1;
  }, "the route is there");
  await using ada = await join("lobby?name=Ada");
  await using bob = await join("lobby?name=Bob");
  await using other = await join("attic?name=Eve");
  await using nameless = await join("lobby");

  ada.socket.send('{"say":"hi"}');
  bob.socket.send('{"say":"hello"}');
  await until(() => ada.said.length === 2 && bob.said.length === 2);
  await using late = await join("lobby?name=Late");
  await until(() => late.said.length === 2);

  const texts = (said: readonly Said[]) => said.map(({ from, text }) => `${from}: ${text}`).sort();
  assert.deepEqual(late.said.map(({ n }) => n), [1, 2]);
  assert.deepEqual(texts(ada.said), ["Ada: hi", "Bob: hello"]);
  assert.deepEqual(texts(late.said), texts(ada.said));
  assert.deepEqual(other.said, []);
  assert.equal(nameless.socket.readyState, WebSocket.CLOSED);
  assert.match(await (await fetch(`${chat.http}/`)).text(), /<title>Chat/);
});

Deno.test({
  name: "pages of the board are workers; one of another origin is refused, and the log says how",
  ignore: chromiumHere === undefined,
  async fn() {
    await using board = await startExample("browser", [
      "board::write",
      "files::/",
      "files::listener",
    ]);
    await using browser = await HeadlessBrowser.start();
    const open = async () => {
      const shown = await browser.open(board.http);
      await shown.page.waitForFunction("document.getElementById('state').value === 'connected'");
      return shown;
    };
    await using ada = await open();
    await using bob = await open();
    const written = await board.call("board::write", { text: "hello" });
    await bob.page.fill("#text", "hi");
    await bob.page.press("#text", "Enter");
    for (const { page } of [ada, bob]) {
      await page.waitForFunction("document.querySelectorAll('#notes li').length === 2");
      assert.deepEqual(await page.locator("#notes li").allTextContents(), ["hi", "hello"]);
    }
    assert.deepEqual(written, { pages: 2 });
    assert.deepEqual([ada.problems, bob.problems], [[], []]);

    await using other = await browser.open("about:blank");
    await other.page.route("https://board.test/**", async (route) => {
      const { pathname } = new URL(route.request().url());
      const { headers, status } = await fetch(`${board.http}${pathname}`, { method: "HEAD" });
      const body = await (await fetch(`${board.http}${pathname}`)).text();
      await route.fulfill({ status, contentType: headers.get("content-type")!, body });
    });
    // Else Chromium itself keeps pages of the world from this machine.
    await other.page.context().grantPermissions(["local-network-access"]);
    await other.page.goto("https://board.test/");
    await until(
      () => board.engine.stderr.includes("https://board.test"),
      () => `${other.problems}\n${board.engine.stderr}`,
      8_000,
    );
    const line = board.engine.stderr.split("\n").find((text) =>
      text.includes("https://board.test")
    )!;
    assert.match(line, /a page of another origin was refused; to allow it, list its origin/);
    assert.match(line, /pages\.allowed_origins/);
  },
});

Deno.test("the report has the sales of the day before, as CSV", async () => {
  await using report = await startExample("report", ["report::make", "report::show"]);
  const zone = new Intl.DateTimeFormat("sv", { timeZone: "Europe/Berlin" });
  const day = zone.format(Date.now() - 86_400_000);
  for (const [key, sku, cents] of [["1", "A1", 100], ["2", "A1", 50], ["3", "B2", 30]] as const) {
    await report.call("state::set", {
      scope: "sales",
      key: `${day}/${key}`,
      value: { sku, cents },
    });
  }
  await report.call("state::set", {
    scope: "sales",
    key: "2020-01-01/1",
    value: { sku: "A1", cents: 9 },
  });

  const none = await answerOf(fetch(`${report.http}/reports/${day}`));
  const run = await report.engine.command("cron", "run", "report::make");
  const made = await fetch(`${report.http}/reports/${day}`);

  assert.deepEqual(codeOf(none), [404, "no_report"]);
  assert.equal(run.code, 0, run.stderr);
  assert.equal(made.headers.get("content-type"), "text/csv");
  assert.equal(await made.text(), "article,cents\r\nA1,150\r\nB2,30\r\n");
});

for (const path of await sourcesOf("")) {
  if (path.endsWith(".ts") || path.endsWith(".html")) {
    Deno.test(`examples/${path} is formatted`, async () => {
      await succeeds(Deno.execPath(), "fmt", "--check", "--no-config", "--line-width=100", path);
    });
  }
  if (path.endsWith(".ts")) {
    Deno.test(`examples/${path} is checked and linted`, async () => {
      const config = new URL("../../deno.json", import.meta.url).pathname;
      const copy = await Deno.makeTempDir();
      const text = await Deno.readTextFile(`${EXAMPLES}${path}`);
      const file = `${copy}/main.ts`;
      await Deno.writeTextFile(file, text.replace('"engine-sdk/browser.js"', '"./client.txt"'));
      await Deno.writeTextFile(`${copy}/client.txt`, "");
      await Deno.writeTextFile(`${copy}/page.html`, "");

      await succeeds(Deno.execPath(), "check", "--config", config, file);
      await succeeds(Deno.execPath(), "lint", "--no-config", file);
      await Deno.remove(copy, { recursive: true });
    });
  }
}

/** Sources of the examples, relative to their folder. */
async function sourcesOf(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(`${EXAMPLES}${folder}`)) {
    if (name.startsWith(".") || name === "data") continue;
    if (isDirectory) found.push(...await sourcesOf(`${folder}${name}/`));
    else found.push(`${folder}${name}`);
  }
  return found.sort();
}

async function succeeds(command: string, ...args: string[]): Promise<void> {
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args,
    cwd: EXAMPLES,
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert.equal(code, 0, text);
}
