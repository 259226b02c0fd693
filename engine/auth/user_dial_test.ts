/**
 * @module
 */
import assert from "node:assert/strict";
import type { DialOptions, TransportEvents } from "../../sdk/typescript/wire/transport.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { CONTROL_HEADER } from "./control_key.ts";
import { dialAsUser } from "./user_dial.ts";

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** A dialler, what it dialled, and the key that lies there now. */
function setup(key: string | undefined) {
  const clock = new FakeClock();
  const there = { key };
  const dialled: { events: TransportEvents; options: DialOptions; sent: unknown[] }[] = [];
  const heard: string[] = [];
  const dial = dialAsUser({
    url: "ws://127.0.0.1:1",
    clock,
    findKey: () => Promise.resolve(there.key),
    dial: (_url, events, options) => {
      const sent: unknown[] = [];
      dialled.push({ events, options, sent });
      return {
        send: (message) => void sent.push(message),
        close: (code = 1000, reason = "") => events.closed(code, reason),
      };
    },
  });
  const open = () =>
    dial("ws://127.0.0.1:1", {
      opened: () => void heard.push("opened"),
      text: (text) => void heard.push(text),
      binary: (bytes) => void heard.push(`${bytes.length} bytes`),
      closed: (code, reason) => void heard.push(`closed ${code} ${reason}`.trim()),
    }, { headers: { Authorization: "Bearer t" } });
  return { clock, there, dialled, heard, open };
}

Deno.test("dialAsUser() adds the key to the headers it is given", async () => {
  const { dialled, open } = setup("secret");

  open();
  await settle();

  assert.deepEqual(dialled[0]!.options.headers, {
    Authorization: "Bearer t",
    [CONTROL_HEADER]: "secret",
  });
});

Deno.test("dialAsUser() dials without a key where there is none", async () => {
  const { dialled, open } = setup(undefined);

  open();
  await settle();

  assert.deepEqual(dialled[0]!.options.headers, { Authorization: "Bearer t" });
});

Deno.test("dialAsUser() carries everything both ways", async () => {
  const { dialled, heard, open } = setup("secret");
  const line = open();
  await settle();
  const { events, sent } = dialled[0]!;

  events.opened();
  line.send("hello");
  events.text("welcome");
  events.binary(new Uint8Array(3));
  events.closed(1001, "bye");

  assert.deepEqual(sent, ["hello"]);
  assert.deepEqual(heard, ["opened", "welcome", "3 bytes", "closed 1001 bye"]);
});

Deno.test("dialAsUser() closes a connection when the key changes soon after, and no other", async () => {
  const { clock, there, dialled, heard, open } = setup("old");
  open();
  await settle();
  dialled[0]!.events.opened();

  clock.tick(500);
  await settle();
  assert.deepEqual(heard, ["opened"]);
  there.key = "new";
  clock.tick(1_500);
  await settle();

  assert.deepEqual(heard, ["opened", "closed 1000 the engine has a new key"]);
  assert.equal(clock.waiting, 0);
});

Deno.test("dialAsUser() compares the key for a while only", async () => {
  const { clock, there, dialled, heard, open } = setup("old");
  open();
  await settle();
  dialled[0]!.events.opened();

  clock.tick(10_000);
  await settle();
  there.key = "new";
  clock.tick(60_000);
  await settle();

  assert.deepEqual(heard, ["opened"]);
});

Deno.test("dialAsUser() does not dial when it is closed before the key was read", async () => {
  const { dialled, heard, open } = setup("secret");

  open().close(1000, "no more");
  await settle();

  assert.deepEqual([dialled, heard], [[], ["closed 1000 no more"]]);
});
