import assert from "node:assert/strict";
import { operationIdOf, templateOf } from "./paths.ts";

Deno.test("templateOf() writes open segments in braces, with or without a leading slash", () => {
  for (const path of ["/orders/:id/lines/:no", "orders/:id/lines/:no"]) {
    const { template, shape, params } = templateOf(path);

    assert.equal(template, "/orders/{id}/lines/{no}");
    assert.equal(shape, "/orders/{}/lines/{}");
    assert.deepEqual(params, [{ key: "id", name: "id" }, { key: "no", name: "no" }]);
  }
});

Deno.test("templateOf() names the rest of a path, also beside a parameter of that name", () => {
  assert.equal(templateOf("/files/*").template, "/files/{rest}");
  assert.deepEqual(templateOf("/:rest/*").params, [
    { key: "rest", name: "rest" },
    { key: "*", name: "rest_2" },
  ]);
});

Deno.test("templateOf() escapes what a path or a template may not hold", () => {
  assert.equal(
    templateOf("/a{b}/%7Bc%7D/é/%2F/50%").template,
    "/a%7Bb%7D/%7Bc%7D/%C3%A9/%2F/50%25",
  );
  assert.equal(templateOf("/\ud800").template, "/%EF%BF%BD");
  assert.deepEqual(templateOf("/:a{b}/:a}b}").params.map(({ name }) => name), ["a_b_", "a_b__2"]);
});

Deno.test("templateOf() keeps a slash at the end, which is significant", () => {
  assert.equal(templateOf("/orders/").template, "/orders/");
  assert.equal(templateOf("/").template, "/");
});

Deno.test("operationIdOf() reads as words where these tell paths apart", () => {
  assert.equal(operationIdOf("GET", "/"), "get");
  assert.equal(operationIdOf("POST", "/orders"), "post_orders");
  assert.equal(operationIdOf("GET", "orders/:id"), "get_orders_by_id");
  assert.equal(operationIdOf("GET", "/users/:user_id/files/*"), "get_users_by_user__id_files_rest");
  assert.equal(operationIdOf("GET", "/user-profiles"), "get_user-profiles");
});

Deno.test("operationIdOf() differs for paths whose words are equal, and is the same always", () => {
  const paths = ["/a/b", "/a_b", "/a__b", "/a/:b", "/a/by/b", "/a/*", "/a/rest", "/a/b/", "/a.b"];
  const ids = [...paths, "//a/b", "/_/a", "/a/_", "/:a/b", "/by/a", "/é", "/è", "/", "//"].map(
    (path) => operationIdOf("GET", path),
  );

  assert.equal(new Set(ids).size, ids.length, ids.join(" "));
  assert.equal(operationIdOf("GET", "/a.b"), "get_a__b_3297b271");
  assert.equal(operationIdOf("GET", "a.b"), "get_a__b_3297b271");
});
