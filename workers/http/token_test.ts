/**
 * Who gets past the token.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fakeHttp } from "../../tests/fakes/fake_http.ts";

Deno.test("A token is asked for where one is configured, in the header or the query", async () => {
  const { route, fetch } = fakeHttp({ auth_token: "s3cret" }, { f: () => ({}) });
  route("GET /f", "f");
  const with_ = (authorization: string) => fetch("GET /f", { headers: { authorization } });

  assert.equal((await fetch("GET /f")).status, 401);
  assert.equal((await fetch("GET /unknown")).status, 401);
  assert.equal((await with_("Bearer wrong")).status, 401);
  assert.equal((await with_("Bearer s3cret2")).status, 401);
  assert.equal((await with_("Basic s3cret")).status, 401);
  assert.equal((await with_("Bearer s3cret")).status, 200);
  assert.equal((await fetch("GET /f?token=s3cret")).status, 200);
  assert.equal((await fetch("GET /f?token=")).status, 401);
  assert.equal((await fetch("OPTIONS /f")).status, 200);
});
