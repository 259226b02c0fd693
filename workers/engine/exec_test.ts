import assert from "node:assert/strict";
import { ExecInputs } from "./exec.ts";

const HELLO = new TextEncoder().encode("hello").toBase64();

Deno.test("ExecInputs passes on pieces and answers when the command has taken them", async () => {
  const inputs = new ExecInputs();
  const { stream, close } = inputs.open("caller", "i");
  let isAnswered = false;

  const answer = inputs.write("caller", { input: "i", data: HELLO });
  void answer.then(() => isAnswered = true);
  await Promise.resolve();
  assert.equal(isAnswered, false);
  const reader = stream.getReader();
  const { value } = await reader.read();
  assert.equal(new TextDecoder().decode(value), "hello");
  assert.deepEqual(await answer, { is_open: true });

  const last = inputs.write("caller", { input: "i", end: true });
  assert.equal((await reader.read()).done, true);
  assert.deepEqual(await last, { is_open: false });
  assert.deepEqual(await inputs.write("caller", { input: "i", data: HELLO }), { is_open: false });
  close();
});

Deno.test("ExecInputs answers that an input is not open: unknown, of another caller, ended", async () => {
  const inputs = new ExecInputs();
  const { close } = inputs.open("caller", "i");
  const waiting = inputs.write("caller", { input: "i", data: HELLO });

  assert.deepEqual(await inputs.write("caller", { input: "x" }), { is_open: false });
  assert.deepEqual(await inputs.write("other", { input: "i" }), { is_open: false });
  close();
  assert.deepEqual(await waiting, { is_open: false });
  assert.deepEqual(await inputs.write("caller", { input: "i", end: true }), { is_open: false });
  inputs.open("caller", "i").close();
});

Deno.test("ExecInputs bounds inputs and waiting pieces, and refuses what is not base64", async () => {
  const inputs = new ExecInputs();
  const open = Array.from({ length: 64 }, (_, i) => inputs.open("caller", `${i}`));

  assert.throws(() => inputs.open("caller", "64"), { code: "overloaded" });
  assert.throws(() => inputs.open("caller", "0"), { code: "INVALID_ARGUMENTS" });
  const waiting = Array.from(
    { length: 16 },
    () => inputs.write("caller", { input: "0", data: HELLO }),
  );
  await assert.rejects(inputs.write("caller", { input: "0", data: HELLO }), { code: "overloaded" });
  await assert.rejects(inputs.write("caller", { input: "1", data: "%" }), {
    code: "deserialization_error",
  });
  for (const { close } of open) close();
  await Promise.all(waiting);
});
