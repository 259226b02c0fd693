import assert from "node:assert/strict";
import { CommandError } from "../failure.ts";
import { checkPort, checkPython, isRunning, postUntilThere, within } from "./machine.ts";

Deno.test("checkPort() lets a free port pass and names the option for a taken one", () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;

  assert.throws(() => checkPort(port, "--http-port"), (thrown) => {
    assert.ok(thrown instanceof CommandError);
    assert.match(thrown.message, /^Port \d+ is taken; .* another port with --http-port$/);
    return true;
  });
  checkPort(0, "--port");
});

Deno.test("checkPython() finds a Python that is there, and only that", async () => {
  await checkPython();
  await assert.rejects(() => checkPython("python-of-nowhere"), /install python-of-nowhere 3\.10/);
});

Deno.test("isRunning() knows a process that lives from one that has ended", async () => {
  const child = new Deno.Command("sleep", { args: ["600"] }).spawn();
  assert.equal(isRunning(child.pid), true);

  child.kill("SIGKILL");
  await child.status;

  assert.equal(isRunning(child.pid), false);
});

Deno.test("within() gives up in time", async () => {
  assert.equal(await within(60_000, Promise.resolve(1)), 1);
  assert.equal(await within(1, new Promise(() => {})), undefined);
});

Deno.test("postUntilThere() asks again until the route is there", async () => {
  let asked = 0;
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request) => {
      asked++;
      return new Response(request.method, { status: asked < 3 ? 404 : 200 });
    },
  );
  const url = `http://127.0.0.1:${server.addr.port}/`;

  const response = await postUntilThere(url, "{}", 60_000);

  assert.deepEqual([response.status, await response.text(), asked], [200, "POST", 3]);
});

Deno.test("postUntilThere() gives up on an address that nobody serves", async () => {
  await assert.rejects(() => postUntilThere("http://127.0.0.1:1/", "{}", 0), /received nothing/);
});
