/**
 * Which route a request takes, also against a slow matcher that is plain to read.
 *
 * @module
 */
import assert from "node:assert/strict";
import { RouteTable } from "./routes.ts";

/** A table with routes given as `GET /path`; each leads to its own text. */
function setup(...lines: string[]): RouteTable<string> {
  const table = new RouteTable<string>();
  lines.forEach((line, i) => add(table, `t${i}`, line));
  return table;
}

function add(table: RouteTable<string>, id: string, line: string): void {
  const [method, path] = line.split(" ") as [string, string];
  table.add({ id, method, path, value: line });
}

function found(table: RouteTable<string>, line: string): [string, Record<string, string>] | null {
  const [method, path] = line.split(" ") as [string, string];
  const match = table.find(method, path);
  return match ? [match.route.value, match.params] : null;
}

Deno.test("RouteTable.find() takes literals before parameters before the wildcard", () => {
  const table = setup("GET /u/*", "GET /u/:id", "GET /u/me", "GET /u/:id/posts");

  assert.deepEqual(found(table, "GET /u/me"), ["GET /u/me", {}]);
  assert.deepEqual(found(table, "GET /u/42"), ["GET /u/:id", { id: "42" }]);
  assert.deepEqual(found(table, "GET /u/42/posts"), ["GET /u/:id/posts", { id: "42" }]);
  assert.deepEqual(found(table, "GET /u/42/likes"), ["GET /u/*", { "*": "42/likes" }]);
});

Deno.test("RouteTable.find() goes back when a literal leads nowhere", () => {
  const table = setup("GET /a/b/c", "GET /a/:x/d", "POST /a/b/d");

  assert.deepEqual(found(table, "GET /a/b/d"), ["GET /a/:x/d", { x: "b" }]);
  assert.deepEqual(found(table, "POST /a/b/d"), ["POST /a/b/d", {}]);
});

Deno.test("RouteTable.add() returns the route it stands in front of, and not itself", () => {
  const table = setup("GET /a/:x", "POST /a/:x");
  const route = { id: "n", method: "GET", path: "/a/:x", value: "new" };

  assert.equal(table.add(route)?.id, "t0");
  assert.equal(table.add({ ...route, id: "t0" })?.id, "n");
  assert.equal(table.add({ ...route, id: "t0" })?.id, "n");
  assert.equal(table.add({ ...route, method: "PUT" }), undefined);
});

Deno.test("RouteTable.find() keeps a trailing slash apart", () => {
  const table = setup("GET /a", "GET /b/", "GET /c/:id");

  assert.equal(found(table, "GET /a/"), null);
  assert.equal(found(table, "GET /b"), null);
  assert.deepEqual(found(table, "GET /b/"), ["GET /b/", {}]);
  assert.equal(found(table, "GET /c/"), null);
  assert.equal(found(table, "GET /c/1/"), null);
});

Deno.test("RouteTable.find() decodes after the split and leaves broken escapes as written", () => {
  const table = setup("GET /f/:name", "GET /g/*", "GET /caf%C3%A9", "GET /thé");

  assert.deepEqual(found(table, "GET /f/a%2Fb")?.[1], { name: "a/b" });
  assert.deepEqual(found(table, "GET /f/100%")?.[1], { name: "100%" });
  assert.deepEqual(found(table, "GET /f/%ff")?.[1], { name: "%ff" });
  assert.deepEqual(found(table, "GET /g/a%20b/%zz")?.[1], { "*": "a b/%zz" });
  assert.deepEqual(found(table, "GET /caf%c3%a9"), ["GET /caf%C3%A9", {}]);
  assert.deepEqual(found(table, "GET /th%C3%A9"), ["GET /thé", {}]);
});

Deno.test("RouteTable.find() gives the wildcard an empty rest, but needs its slash", () => {
  const table = setup("GET /files/*", "POST *");

  assert.deepEqual(found(table, "GET /files/"), ["GET /files/*", { "*": "" }]);
  assert.equal(found(table, "GET /files"), null);
  assert.deepEqual(found(table, "POST /"), ["POST *", { "*": "" }]);
});

Deno.test("RouteTable.find() takes no path that is none", () => {
  const table = setup("GET /", "GET /:id", "GET /*");

  assert.equal(found(table, "GET "), null);
  assert.deepEqual(found(table, "GET /")?.[0], "GET /");
  assert.deepEqual(found(table, "GET //")?.[0], "GET /*");
});

Deno.test("RouteTable.add() takes a path with or without its first slash as the same", () => {
  const table = setup("GET math/add", "GET /math/add");

  assert.equal(found(table, "GET /math/add")?.[0], "GET /math/add");
  table.remove("t1");
  assert.equal(found(table, "GET /math/add")?.[0], "GET math/add");
});

Deno.test("RouteTable.add() refuses other parameter names for the same shape", () => {
  const table = setup("GET /u/:id");

  assert.throws(() => add(table, "new", "GET /u/:name"), {
    code: "trigger_registration_failed",
    message: "GET /u/:name conflicts with already-registered route GET /u/:id; " +
      "name the parameters alike",
  });
  assert.deepEqual(found(table, "GET /u/1"), ["GET /u/:id", { id: "1" }]);
  assert.equal(table.size, 1);
});

Deno.test("RouteTable.add() lets other methods and longer shapes name parameters freely", () => {
  const table = setup("GET /u/:id", "POST /u/:name", "GET /u/:who/posts");

  assert.deepEqual(found(table, "POST /u/1"), ["POST /u/:name", { name: "1" }]);
  assert.deepEqual(found(table, "GET /u/1/posts"), ["GET /u/:who/posts", { who: "1" }]);
});

Deno.test("RouteTable.add() lets a route rename its own parameters", () => {
  const table = setup("GET /u/:id");

  add(table, "t0", "GET /u/:name");

  assert.deepEqual(found(table, "GET /u/1"), ["GET /u/:name", { name: "1" }]);
  assert.equal(table.size, 1);
});

Deno.test("RouteTable.remove() falls back to the route that was replaced", () => {
  const table = new RouteTable<string>();
  for (const id of ["old", "middle", "new"]) {
    table.add({ id, method: "GET", path: "/r", value: id });
  }

  assert.equal(table.find("GET", "/r")?.route.value, "new");
  assert.equal(table.remove("middle")?.id, "middle");
  assert.equal(table.find("GET", "/r")?.route.value, "new");
  table.remove("new");
  assert.equal(table.find("GET", "/r")?.route.value, "old");
  table.remove("old");
  assert.equal(table.find("GET", "/r"), undefined);
  assert.equal(table.remove("old"), undefined);
});

Deno.test("RouteTable.remove() frees a shape for other parameter names", () => {
  const table = setup("GET /u/:id/x");

  table.remove("t0");
  add(table, "t1", "GET /u/:name/x");

  assert.deepEqual(found(table, "GET /u/1/x")?.[1], { name: "1" });
});

Deno.test("RouteTable.methods() lists what a path answers to, sorted", () => {
  const table = setup("POST /a", "GET /a", "PUT /:x", "DELETE /b");

  assert.deepEqual(table.methods("/a"), ["GET", "POST", "PUT"]);
  assert.deepEqual(table.methods("/b"), ["DELETE", "PUT"]);
  assert.deepEqual(table.methods("/a/b"), []);
  table.remove("t2");
  assert.deepEqual(table.methods("/c"), []);
});

for (
  const [path, problem] of [
    ["/a/*/b", "* as the last segment"],
    ["/a/:", "parameter without a name"],
    ["/:x/:x", "names x twice"],
    ["/a?b=1", "path without query"],
    ["/a b", "path without query"],
    ["/a#b", "path without query"],
    ["/" + "a".repeat(2_000), "at most 1024"],
  ] as const
) {
  Deno.test(`RouteTable.add() refuses ${path.slice(0, 20)}`, () => {
    const table = new RouteTable<string>();

    assert.throws(() => table.add({ id: "t", method: "GET", path, value: "" }), (error: Error) => {
      return error.message.includes(problem);
    });
    assert.equal(table.size, 0);
  });
}

/** Reproducible chance. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

type Row = { id: string; method: string; path: string };

/** How well a pattern fits, part by part (0 literal, 1 parameter, 2 rest), or null. */
function rank(pattern: string, path: string): number[] | null {
  const parts = pattern.split("/").slice(1);
  const segments = path.split("/").slice(1);
  const ranks: number[] = [];
  for (let i = 0; i < parts.length; i++) {
    if (parts[i] === "*") return segments.length > i ? [...ranks, 2] : null;
    if (i >= segments.length) return null;
    if (parts[i]!.startsWith(":")) {
      if (segments[i] === "") return null;
      ranks.push(1);
    } else if (parts[i] === segments[i]) ranks.push(0);
    else return null;
  }
  return parts.length === segments.length ? ranks : null;
}

/** The best row, the newest among equals. */
function naive(rows: readonly Row[], method: string, path: string): Row | undefined {
  let best: { row: Row; ranks: string } | undefined;
  for (const row of rows) {
    const ranks = row.method === method ? rank(row.path, path)?.join("") : undefined;
    if (ranks !== undefined && (!best || ranks <= best.ranks)) best = { row, ranks };
  }
  return best?.row;
}

function randomPath(random: (below: number) => number, words: readonly string[]): string {
  return Array.from({ length: 1 + random(4) }, () => `/${words[random(words.length)]!}`).join("");
}

Deno.test("RouteTable agrees with a matcher that tries every route, over random lives", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = randomFrom(seed * 7919);
    const table = new RouteTable<null>();
    let rows: Row[] = [];

    for (let step = 0; step < 60; step++) {
      if (random(4) === 0 && rows.length > 0) {
        const { id } = rows[random(rows.length)]!;
        assert.equal(table.remove(id)?.id, id);
        rows = rows.filter((row) => row.id !== id);
      } else {
        const depth = randomPath(random, ["a", "b", ":x", ""]);
        const path = (random(5) === 0 ? `${depth}/*` : depth)
          .split("/").map((part, i) => part === ":x" ? `:x${i}` : part).join("/");
        const row = { id: `t${step}`, method: random(3) ? "GET" : "POST", path };
        table.add({ ...row, value: null });
        rows.push(row);
      }
      const path = randomPath(random, ["a", "b", "c", ""]);
      const method = random(3) ? "GET" : "POST";

      const row = naive(rows, method, path);

      assert.equal(
        table.find(method, path)?.route.id,
        row?.id,
        `seed ${seed} step ${step}: ${method} ${path}`,
      );
    }
    for (const row of rows) table.remove(row.id);
    assert.equal(table.size, 0);
    assert.deepEqual(table.methods("/a"), []);
  }
});

for (const [kind, path] of [["plain", ""], ["open", "/:id"], ["rest", "/*"]] as const) {
  Deno.test(`RouteTable.find() of ${kind} routes takes no longer among 10,000 than alone`, () => {
    const tables = [1, 10_000].map((count) => {
      const routes = new RouteTable<number>();
      for (let i = 0; i < count; i++) {
        routes.add({ id: `${i}`, method: "GET", path: `/orders/r${i}${path}`, value: i });
      }
      const last = `/orders/r${count - 1}${path === "" ? "" : "/7"}`;
      assert.equal(routes.find("GET", last)!.route.value, count - 1);
      return { routes, last };
    });

    const best = [Infinity, Infinity];
    for (let round = 0; round < 40; round++) {
      for (const [i, { routes, last }] of tables.entries()) {
        const start = performance.now();
        for (let k = 0; k < 2_000; k++) routes.find("GET", last);
        best[i] = Math.min(best[i]!, performance.now() - start);
      }
    }

    assert.ok(best[1]! < 5 * best[0]!, `${best.map((ms) => ms.toFixed(3))} ms`);
  });
}

Deno.test("RouteTable.served() has the newest route of each method and path", () => {
  const table = setup("GET /a", "POST /a", "GET /u/:id", "GET a");

  assert.deepEqual([...table.served()].map(({ value }) => value), [
    "POST /a",
    "GET /u/:id",
    "GET a",
  ]);
  table.remove("t3");
  assert.deepEqual([...table.served()].map(({ id }) => id).sort(), ["t0", "t1", "t2"]);
});

Deno.test("equal routes with an order serve by it, whenever they are added", () => {
  const at = (id: string, at: number) => ({
    id,
    method: "GET",
    path: "/x",
    value: id,
    order: { at, id },
  });
  const all = [at("a", 2), at("b", 1), at("c", 2), at("d", 0)];
  for (const first of [0, 1, 2, 3]) {
    const table = new RouteTable<string>();
    for (let i = 0; i < 4; i++) table.add(all[(first + i) % 4]!);

    const served: string[] = [];
    for (let i = 0; i < 4; i++) {
      const { route } = table.find("GET", "/x")!;
      served.push(route.id);
      table.remove(route.id);
    }

    assert.deepEqual(served, ["c", "a", "b", "d"]);
  }
});

Deno.test("a route that comes behind a newer one takes nothing over", () => {
  const table = new RouteTable<string>();
  const route = (id: string, at: number) => {
    return { id, method: "GET", path: "/x", value: id, order: { at, id } };
  };
  table.add(route("new", 9));

  assert.equal(table.add(route("old", 1)), undefined);
  assert.equal(table.add(route("newest", 10))!.id, "new");
});

Deno.test("RouteTable takes an escaped path without parameters for the same as the plain one", () => {
  const table = setup("GET /caf\u00e9/a", "POST /caf%C3%A9/a", "GET /x%2Fy", "GET /:one");

  assert.deepEqual(found(table, "POST /caf%c3%a9/%61"), ["POST /caf%C3%A9/a", {}]);
  assert.deepEqual(found(table, "GET /caf%C3%A9/a"), ["GET /caf\u00e9/a", {}]);
  assert.equal(found(table, "GET /caf%C3%A9%2Fa")?.[0], "GET /:one");
  assert.deepEqual(found(table, "GET /x%2fy"), ["GET /x%2Fy", {}]);
  assert.equal(found(table, "GET /x/y"), null);

  const route = { id: "new", method: "GET", path: "/caf%C3%A9/%61", value: "new" };
  assert.equal(table.add(route)?.id, "t0");
  assert.deepEqual(found(table, "GET /caf%C3%A9/a"), ["new", {}]);
  for (const id of ["new", "t0", "t1", "t2", "t3"]) assert.equal(table.remove(id)?.id, id);
  assert.deepEqual(table.methods("/caf%C3%A9/a"), []);
});
