import assert from "node:assert/strict";
import { Feed } from "./feed.ts";

Deno.test("a feed tells everybody who listens, until they stop", () => {
  const heard: string[] = [];
  const feed = new Feed<string>(() => {});
  const stop = feed.listen((item) => heard.push(`a ${item}`));
  feed.listen((item) => heard.push(`b ${item}`));

  feed.tell("1");
  stop();
  feed.tell("2");

  assert.deepEqual(heard, ["a 1", "b 1", "b 2"]);
});

Deno.test("a listener that throws is reported, and the others hear all the same", () => {
  const heard: string[] = [];
  const reasons: string[] = [];
  const feed = new Feed<string>((reason) => reasons.push(reason));
  feed.listen(() => {
    throw new Error("boom");
  });
  feed.listen((item) => heard.push(item));

  feed.tell("1");

  assert.deepEqual([heard, reasons], [["1"], ["Error: boom"]]);
});

Deno.test("a failure that is told on the same feed ends there", () => {
  const reasons: string[] = [];
  const feed: Feed<string> = new Feed((reason) => {
    reasons.push(reason);
    feed.tell(reason);
  });
  feed.listen((item) => {
    throw new Error(item);
  });

  feed.tell("1");
  feed.tell("2");

  assert.deepEqual(reasons, ["Error: 1", "Error: 2"]);
});
