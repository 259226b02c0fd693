import assert from "node:assert/strict";
import { EventFeed } from "./event_feed.ts";

Deno.test("EventFeed.publish() calls every listener until it stops listening", () => {
  const heard: string[] = [];
  const feed = new EventFeed<string>(() => {});
  const stop = feed.listen((item) => heard.push(`a ${item}`));
  feed.listen((item) => heard.push(`b ${item}`));

  feed.publish("1");
  stop();
  feed.publish("2");

  assert.deepEqual(heard, ["a 1", "b 1", "b 2"]);
});

Deno.test("EventFeed reports a listener that throws, and calls the others", () => {
  const heard: string[] = [];
  const reasons: string[] = [];
  const feed = new EventFeed<string>((reason) => reasons.push(reason));
  feed.listen(() => {
    throw new Error("boom");
  });
  feed.listen((item) => heard.push(item));

  feed.publish("1");

  assert.deepEqual([heard, reasons], [["1"], ["Error: boom"]]);
});

Deno.test("EventFeed does not report a failure of its own report", () => {
  const reasons: string[] = [];
  const feed: EventFeed<string> = new EventFeed((reason) => {
    reasons.push(reason);
    feed.publish(reason);
  });
  feed.listen((item) => {
    throw new Error(item);
  });

  feed.publish("1");
  feed.publish("2");

  assert.deepEqual(reasons, ["Error: 1", "Error: 2"]);
});
