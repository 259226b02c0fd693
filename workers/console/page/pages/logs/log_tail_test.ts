import assert from "node:assert/strict";
import { readLogLine } from "./log_record.ts";
import { LogTail, newerThan } from "./log_tail.ts";

Deno.test("LogTail holds lines by number, whatever the order they come in", () => {
  const tail = new LogTail(10);

  tail.add(lines(5, 6));
  tail.add(lines(3, 4, 5));
  tail.addOlder(lines(2, 1, 2));

  assert.deepEqual(numbers(tail), [1, 2, 3, 4, 5, 6]);
});

Deno.test("LogTail.add() says how many lines were new", () => {
  const tail = new LogTail(10);

  assert.equal(tail.add(lines(1, 2)), 2);
  assert.equal(tail.add(lines(2, 3, 3)), 1);
  assert.equal(tail.add([]), 0);
});

Deno.test("LogTail.add() pushes out the oldest lines and counts them", () => {
  const tail = new LogTail(3);

  tail.add(lines(1, 2, 3, 4, 5));
  tail.miss(2);

  assert.deepEqual(numbers(tail), [3, 4, 5]);
  assert.equal(tail.dropped, 4);
});

Deno.test("LogTail.addOlder() takes the newest of the older, as far as there is room", () => {
  const tail = new LogTail(4);
  tail.add(lines(10, 11));

  assert.equal(tail.addOlder(lines(5, 6, 7)), true);
  assert.deepEqual(numbers(tail), [6, 7, 10, 11]);
  assert.equal(tail.hasRoom, false);
  assert.equal(tail.addOlder(lines(1)), false);
});

Deno.test("LogTail.addOlder() of lines that are known adds nothing", () => {
  const tail = new LogTail(4);
  tail.add(lines(1, 2));

  assert.equal(tail.addOlder(lines(1, 2)), false);
});

Deno.test("LogTail.lines is another array after a change, the same without", () => {
  const tail = new LogTail(4);
  tail.add(lines(1));
  const before = tail.lines;

  tail.add(lines(1));
  assert.equal(tail.lines, before);
  tail.add(lines(2));
  assert.notEqual(tail.lines, before);
});

Deno.test("LogTail.clear() forgets the lines and the count", () => {
  const tail = new LogTail(1);
  tail.add(lines(1, 2));

  tail.clear();

  assert.deepEqual([numbers(tail), tail.dropped], [[], 0]);
});

Deno.test("newerThan() counts the lines behind one, also when that was pushed out", () => {
  assert.equal(newerThan(lines(3, 4, 7), 4), 1);
  assert.equal(newerThan(lines(3, 4, 7), 1), 3);
  assert.equal(newerThan(lines(3, 4, 7), 7), 0);
  assert.equal(newerThan([], 7), 0);
});

function lines(...seqs: number[]) {
  return seqs.map((seq) => readLogLine({ seq, body: `line ${seq}` }));
}

function numbers(tail: LogTail): number[] {
  return tail.lines.map(({ seq }) => seq);
}
