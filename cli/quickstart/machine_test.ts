import assert from "node:assert/strict";
import { CommandError } from "../failure.ts";
import { checkPort, checkPython, LiveShell, requestUntilServed, within } from "./machine.ts";

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

Deno.test("checkPython() accepts an installed Python only", async () => {
  await checkPython();
  await assert.rejects(() => checkPython("python-of-nowhere"), /install python-of-nowhere 3\.10/);
});

Deno.test("within() gives up in time", async () => {
  assert.equal(await within(60_000, Promise.resolve(1)), 1);
  assert.equal(await within(1, new Promise(() => {})), undefined);
});

Deno.test("requestUntilServed() repeats until the route exists", async () => {
  let asked = 0;
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request) => {
      asked++;
      return new Response(request.method, { status: asked < 3 ? 404 : 200 });
    },
  );
  const url = `http://127.0.0.1:${server.addr.port}/`;

  const response = await requestUntilServed(url, { method: "POST" }, 60_000);

  assert.deepEqual([response.status, await response.text(), asked], [200, "POST", 3]);
});

Deno.test("requestUntilServed() gives up on an address without a listener", async () => {
  await assert.rejects(() => requestUntilServed("http://127.0.0.1:1/", {}, 0), /received nothing/);
});

/** A shell whose program is `sh -c`, so that the arguments of a test are the script. */
function setup() {
  const said: string[] = [];
  const shell = new LiveShell({
    name: "sh",
    command: ["sh", "-c"],
    directory: "/",
    env: { ANSWER: "42" },
    say: (line) => said.push(line),
  });
  return { said, shell };
}

Deno.test("LiveShell.run() shows the command and its output, and returns the output", async () => {
  const { said, shell } = setup();

  const outcome = await shell.run(['echo "a $ANSWER"; printf "no newline"; exit 3']);

  assert.deepEqual(outcome, { code: 3, stdout: "a 42\nno newline\n", stderr: "" });
  assert.deepEqual(said, [
    `$ sh 'echo "a $ANSWER"; printf "no newline"; exit 3'`,
    "  a 42",
    "  no newline",
  ]);
});

Deno.test("LiveShell keeps what it does not show", async () => {
  const { said, shell } = setup();

  const outcome = await shell.run(["echo out; echo log >&2"], { outOnly: true });
  await shell.run(["echo hidden"], { quiet: true });

  assert.equal(outcome.stderr, "log\n");
  assert.deepEqual(said.slice(1), ["  out"]);
});

Deno.test("LiveShell.start() reports whether a text is printed before the end", async () => {
  const { shell } = setup();
  const process = shell.start(["echo ready; exec sleep 600"]);

  assert.equal(await process.sees("ready"), true);
  const never = process.sees("steady");
  process.kill("SIGKILL");

  assert.equal(await never, false);
  assert.match(process.printed, /ready/);
  await process.ended;
  process.kill("SIGKILL");
});

Deno.test("LiveShell.runUntil() repeats quietly until the outcome is accepted", async () => {
  const { said, shell } = setup();
  const file = await Deno.makeTempFile();

  const outcome = await shell.runUntil(
    [`echo x >> ${file}; wc -l < ${file}`],
    ({ stdout }) => stdout.trim() === "3",
    30_000,
  );

  assert.equal(outcome.stdout.trim(), "3");
  assert.equal(said.length, 2);
  await Deno.remove(file);
});

Deno.test("LiveShell.runUntil() gives up", async () => {
  const { said, shell } = setup();

  await assert.rejects(() => shell.runUntil(["echo no"], () => false, 0), /no other outcome/);
  assert.deepEqual(said, ["$ sh 'echo no'", "  no"]);
});
