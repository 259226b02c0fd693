/**
 * `engine::channels::create` called by workers of a real router.
 *
 * @module
 */
import assert from "node:assert/strict";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { CHANNELS_PER_OWNER_MAX } from "../../engine/ports/channels.ts";
import type { ChannelRefs } from "../../sdk/typescript/wire/channels.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { CheckedFunctions } from "./functions.ts";
import { engine } from "./mod.ts";
import { registerChannels } from "./channels.ts";

const FUNCTION_ID = "engine::channels::create";

Deno.test("engine::channels::create returns references to both ends", async () => {
  await using local = new LocalEngine();
  await local.start(engine);
  const worker = await local.connect("shop");

  const { writer, reader } = await worker.trigger<Json, ChannelRefs>({
    function_id: FUNCTION_ID,
    payload: {},
  });

  assert.equal(writer.channel_id, reader.channel_id);
  assert.deepEqual([writer.direction, reader.direction], ["write", "read"]);
  assert.equal(local.channels.stats.open, 1);
});

Deno.test("channels count as those of the connection that creates them", async () => {
  await using local = new LocalEngine();
  await local.start(engine);
  const [greedy, other] = [await local.connect("greedy"), await local.connect("other")];
  for (let i = 0; i < CHANNELS_PER_OWNER_MAX; i++) {
    await greedy.trigger({ function_id: FUNCTION_ID, payload: {} });
  }

  const refused = greedy.trigger({ function_id: FUNCTION_ID, payload: {} });

  await assert.rejects(refused, { code: "overloaded", retryable: true });
  await other.trigger({ function_id: FUNCTION_ID });
});

for (
  const [given, frames] of [
    [undefined, 64],
    [null, 64],
    [1, 1],
    [2.9, 2],
    [0, 1],
    [-5, 1],
    [1_024, 1_024],
    [1e300, 1_024],
  ] as const
) {
  Deno.test(`buffer_size ${given} becomes ${frames} frames`, () => {
    assert.equal(framesFor(given === undefined ? {} : { buffer_size: given }), frames);
  });
}

for (const buffer_size of ["64", [], true]) {
  Deno.test(`buffer_size ${JSON.stringify(buffer_size)} is refused`, () => {
    assert.throws(() => framesFor({ buffer_size }), { code: "deserialization_error" });
  });
}

/** The frames of the channel that a call creates. */
function framesFor(payload: Json): number {
  let run: ((payload: Json, metadata: Json, context: object) => unknown) | undefined;
  let frames = 0;
  const worker = {
    registerFunction: (id: string, handler: typeof run) => {
      run = handler;
      return { id, unregister() {} };
    },
  };
  const ref = { channel_id: "", access_key: "", direction: "read" } as const;
  registerChannels(new CheckedFunctions(worker as never), {
    stats: { open: 0, created: 0, bytes: 0 },
    offer: () => assert.fail("not here"),
    create: (_owner, bufferFrames) => {
      frames = bufferFrames;
      return { writer: { ...ref, direction: "write" }, reader: ref };
    },
  });
  run!(payload, null, {});
  return frames;
}
