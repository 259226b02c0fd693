import assert from "node:assert/strict";
import { EXEC_OUTPUT_BYTES_MAX } from "../supervisor/limits.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeProgram } from "../../tests/fakes/fake_launcher.ts";
import { execWithin } from "./exec_bounds.ts";

function setup() {
  const clock = new FakeClock();
  const spec = { name: "w", command: "run", directory: "/", env: {} };
  const program = new FakeProgram(7, spec, () => {});
  const stopping = new AbortController();
  let bytes = 0;
  const ended = execWithin(program, clock, {
    command: ["ls", "-l"],
    output: (chunk) => void (bytes += chunk.bytes.length),
    signal: stopping.signal,
  });
  const command = program.commands[0]!;
  return { clock, command, stopping, ended, received: () => bytes };
}

Deno.test("execWithin() hands on what a command prints, and how it ended", async () => {
  const { clock, command, ended, received } = setup();

  command.output({ stream: "stdout", bytes: new Uint8Array(5) });
  command.end({ code: 3, signal: null });

  assert.deepEqual(await ended, { code: 3, signal: null });
  assert.deepEqual(command.command, ["ls", "-l"]);
  assert.equal(received(), 5);
  assert.equal(clock.waiting, 0);
});

Deno.test("execWithin() ends a command after ten minutes, and says so", async () => {
  const { clock, ended } = setup();

  clock.tick(600_000);

  const reason = "took longer than 600 s";
  assert.deepEqual(await ended, { code: null, signal: "SIGTERM", reason });
});

Deno.test("execWithin() ends a command that prints too much, and hands on no more than that", async () => {
  const { command, ended, received } = setup();
  const bytes = new Uint8Array(EXEC_OUTPUT_BYTES_MAX - 3);

  command.output({ stream: "stdout", bytes });
  command.output({ stream: "stderr", bytes: new Uint8Array(3) });
  assert.equal(command.signal.aborted, false);
  command.output({ stream: "stderr", bytes: new Uint8Array(3) });
  command.output({ stream: "stderr", bytes: new Uint8Array(3) });

  assert.equal((await ended).reason, `printed more than ${EXEC_OUTPUT_BYTES_MAX} bytes`);
  assert.equal(received(), EXEC_OUTPUT_BYTES_MAX);
});

Deno.test("execWithin() ends a command that is no longer wanted, without a reason of its own", async () => {
  const { stopping, ended, clock } = setup();

  stopping.abort();

  assert.deepEqual(await ended, { code: null, signal: "SIGTERM" });
  assert.equal(clock.waiting, 0);
});
