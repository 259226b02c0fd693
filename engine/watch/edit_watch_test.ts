import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { EditWatch } from "./edit_watch.ts";
import type { WorkerWatchOptions } from "./worker_watch.ts";

function setup() {
  const open = new Set<WorkerWatchOptions>();
  const opened: string[] = [];
  const warned: unknown[] = [];
  const quiet = (): void => {};
  const watch = new EditWatch(
    {
      clock: new FakeClock(),
      log: { debug: quiet, info: quiet, error: quiet, warn: (_text, it) => void warned.push(it) },
      watch: (options) => {
        open.add(options);
        opened.push(`${options.directory} ${options.watch.join(" ")}`);
        return { [Symbol.dispose]: () => void open.delete(options) };
      },
    },
    "w",
    quiet,
  );
  return { watch, open, opened, warned };
}

Deno.test("EditWatch watches a directory as a whole until its manifest is known", () => {
  const { watch, open, opened } = setup();

  watch.look("/a", true);
  watch.follow("/a", ["src"], true);
  watch.look("/a", true);

  assert.deepEqual(opened, ["/a .", "/a src engine.worker.yaml"]);
  assert.equal(open.size, 1);
});

Deno.test("EditWatch opens a watch anew only for other paths or another directory", () => {
  const { watch, opened } = setup();
  watch.follow("/a", ["."], true);

  watch.follow("/a", ["."], true);
  watch.follow("/a", [], true);
  watch.look("/b", true);

  assert.deepEqual(opened, ["/a .", "/a ", "/b ."]);
});

Deno.test("EditWatch tells the watch whether links may lead out", () => {
  const { watch, open } = setup();
  const isContained = () => [...open].map(({ isContained }) => isContained);

  watch.look("/a", true);
  assert.deepEqual(isContained(), [true]);
  watch.follow("/a", ["."], false);
  assert.deepEqual(isContained(), [false]);
});

Deno.test("EditWatch closes with its worker, and says when edits go unseen", () => {
  const { watch, open, warned } = setup();
  watch.look("/a", true);

  [...open][0]!.onFailure("too many");
  watch[Symbol.dispose]();

  assert.deepEqual(warned, [{ worker: "w", reason: "too many" }]);
  assert.equal(open.size, 0);
});

Deno.test("EditWatch that is over watches nothing that is read afterwards", () => {
  const { watch, open } = setup();
  watch.look("/a", true);

  watch[Symbol.dispose]();
  watch.follow("/a", ["src"], true);
  watch.look("/b", true);

  assert.equal(open.size, 0);
});
