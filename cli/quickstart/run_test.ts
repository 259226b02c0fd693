import assert from "node:assert/strict";
import { CommandError } from "../failure.ts";
import { callsWalkthrough } from "./calls_walkthrough.ts";
import { jobsWalkthrough } from "./jobs_walkthrough.ts";
import { type QuickstartOptions, QuickstartRun } from "./run.ts";

function setup(port: number, httpPort: number, more: Partial<QuickstartOptions> = {}) {
  const said: string[] = [];
  const run = new QuickstartRun({
    main: new URL("../main.ts", import.meta.url),
    walkthrough: callsWalkthrough,
    directory: "/nowhere/hello",
    isTemporary: false,
    port,
    httpPort,
    streamPort: 0,
    isolation: "process",
    say: (line) => said.push(line),
    ...more,
  });
  return { said, run };
}

Deno.test("the quickstart changes nothing when a port is taken", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;

  for (
    const [{ run, said }, option] of [
      [setup(port, 1), "--port"],
      [setup(0, port), "--http-port"],
      [setup(0, 0, { walkthrough: jobsWalkthrough, streamPort: port }), "--stream-port"],
    ] as const
  ) {
    await assert.rejects(() => run.steps(), (thrown) => {
      assert.ok(thrown instanceof CommandError);
      assert.ok(thrown.message.endsWith(`choose another port with ${option}`));
      return true;
    });
    await run.abandon(false);
    assert.deepEqual(said, []);
  }
});

Deno.test("the quickstart prints its addresses, and how other terminals use another port", () => {
  const { said, run } = setup(5_000, 5_001);

  run.printAddresses();

  assert.deepEqual(said.slice(1), [
    "  project  /nowhere/hello",
    "  workers  ws://127.0.0.1:5000",
    "  http     http://127.0.0.1:5001",
    "  For other terminals: export ENGINE_URL=ws://127.0.0.1:5000",
  ]);
});

Deno.test("the run of jobs prints where its page and its streams are", () => {
  const { said, run } = setup(49_134, 5_001, { walkthrough: jobsWalkthrough, streamPort: 5_002 });

  run.printAddresses();

  assert.deepEqual(said.slice(3), [
    "  page     http://127.0.0.1:5001/",
    "  streams  ws://127.0.0.1:5002/",
  ]);
});

Deno.test("the quickstart in microVMs checks first whether this machine can run them", async () => {
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(
    `${directory}/main.ts`,
    "console.log(Deno.args.join(' ')); Deno.exit(1);",
  );
  const { said, run } = setup(0, 0, {
    isolation: "microvm",
    main: new URL(`file://${directory}/main.ts`),
    directory: `${directory}/hello`,
  });

  await assert.rejects(() => run.steps(), (thrown) => {
    assert.ok(thrown instanceof CommandError);
    assert.equal(thrown.message, "this machine has no microVMs yet; run: engine vm setup");
    return true;
  });

  assert.match(said[1]!, /Workers run in microVMs; without KVM each start takes tens of seconds/);
  assert.deepEqual(said.slice(2), ["$ engine vm status", "  vm status"]);
  await Deno.remove(directory, { recursive: true });
});
