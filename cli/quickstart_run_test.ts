import assert from "node:assert/strict";
import { CommandError } from "./failure.ts";
import { QuickstartRun } from "./quickstart_run.ts";

function setup(port: number, httpPort: number) {
  const said: string[] = [];
  const run = new QuickstartRun({
    main: new URL("./main.ts", import.meta.url),
    directory: "/nowhere/hello",
    isTemporary: false,
    port,
    httpPort,
    say: (line) => said.push(line),
  });
  return { said, run };
}

Deno.test("the quickstart begins with nothing when a port is taken", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;

  for (
    const [{ run, said }, option] of [
      [setup(port, 1), "--port"],
      [setup(0, port), "--http-port"],
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

Deno.test("the quickstart says where all is, and how other terminals find an unusual port", () => {
  const { said, run } = setup(5_000, 5_001);

  run.sayWhereAllIs();

  assert.deepEqual(said.slice(1), [
    "  project  /nowhere/hello",
    "  workers  ws://127.0.0.1:5000",
    "  http     http://127.0.0.1:5001",
    "  For other terminals: export ENGINE_URL=ws://127.0.0.1:5000",
  ]);
});
