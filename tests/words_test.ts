/**
 * Phrases that a reader would have to learn here although the field has words for them: they stand
 * nowhere, neither in the sources nor in the documents, templates and examples.
 *
 * Words of the sources alone are in tidy_test.ts.
 *
 * @module
 */
import assert from "node:assert/strict";
import { readTexts } from "./fakes/source_tree.ts";

/** What stands nowhere, and what is written instead. */
const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/\bhow (a|the) workers? fares?\b/i, "the status of a worker"],
  [/\bwhat became of a (call|job whose)\b/i, "explain what happened to, the outcome of"],
  [/\bwhat may be wrong and say\b/i, "check for common problems and suggest fixes"],
  [/\bgo(es)? on with what comes\b/i, "follow new output"],
  [/\bbehind (a|the) (function )?id\b/i, "after"],
  [/\bkeeps nothing apart\b/i, "no isolation"],
  [/\breceived nothing there\b/i, "not found"],
  [/\bWhich \w+\? Such as\b/i, "Missing …. Example: …"],
  [/\bwants another token\b/i, "rejected the token"],
  [/\byet; going on without\b/i, "Not connected; retrying in the background"],
  [/\bgoes on by itself\b/i, "reconnecting, continues"],
  [/\bended well\b/i, "succeeded"],
  [/\binstall(s|ed|ing)? anew\b/i, "reinstall"],
  [/\bsingle copy\b/i, "one replica"],
  [/\btime-outs?\b/i, "timeout"],
  [/\b(no|some|any|every)body\b|\bwhoever\b/i, "the caller, the peer, no worker"],
  [/\b(is|are|was|were|be|been) told\b/i, "the message that is sent, and who receives it"],
  [/\blets? go of\b/i, "release"],
  [/\bgoodbyes?\b|\bfarewells?\b/i, "close frame, close reason"],
  [/\bfares\b/i, "status"],
  [/"(Called before|Forget|Hold|Whole time|Held|Processor|of one)"/, "words of the console"],
];

/** Lists and the history of the words themselves; `nobody` is a user of every Unix. */
const ALLOWED = /^(tests\/(words|tidy)_test\.ts|engine\/vm\/guest\/files\.ts|CHANGELOG\.md)$/;

Deno.test("no text has a phrase that the field has a word for", async () => {
  const texts = (await readTexts()).filter(({ path }) => !ALLOWED.test(path));
  assert.ok(texts.length > 1_500, `${texts.length} texts`);

  const found = texts.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, i) =>
      PHRASES.filter(([phrase]) => phrase.test(line))
        .map(([phrase, instead]) => `${path}:${i + 1} ${phrase.exec(line)![0]} -> ${instead}`)
    )
  );

  assert.deepEqual(found, []);
});
