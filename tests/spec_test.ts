/**
 * References to the specification, sdk/PROTOCOL.md: every section that a source, a test or a
 * document cites exists, and all citations are spelled alike.
 *
 * @module
 */
import assert from "node:assert/strict";
import { readTexts } from "./fakes/source_tree.ts";

const SPEC = "sdk/PROTOCOL.md";
const THIS = "tests/spec_test.ts";
const SPELLING = 'write "PROTOCOL 3.5", "PROTOCOL 4.1 rule 9" or "PROTOCOL 3.3 to 3.7 and 13.6"';

const ITEM = String.raw`\d{1,2}(?:\.\d{1,2})?(?: rule \d{1,2})?`;
const CITATION = new RegExp(
  String.raw`\bPROTOCOL (${ITEM}(?:(?:, | and |, and | to )${ITEM})*)`,
  "g",
);
/** The name without a section behind it, unless it is a path or a quoted word. */
const ODD_NAME = /(?<!")\bPROTOCOL\b(?! \d)(?!\.md(?! \d))/g;

const texts = await readTexts();
const spec = texts.find(({ path }) => path === SPEC)!.text;
const known = sectionsOf(spec);

for (const { path, text } of texts) {
  if (path === THIS || path === SPEC) continue;
  const prose = unwrapped(text);
  const cited = [...prose.matchAll(CITATION)].flatMap(([, list]) =>
    list!.split(/, and |, | and | to /)
  );
  const odd = [...prose.matchAll(ODD_NAME)];
  if (cited.length + odd.length === 0) continue;

  Deno.test(`${path} cites sections that exist`, () => {
    assert.deepEqual(cited.filter((section) => !known.has(section)), []);
    const around = odd.map(({ index }) => prose.slice(Math.max(0, index - 20), index + 30));
    assert.deepEqual(around, [], SPELLING);
  });
}

Deno.test(`${SPEC} refers to sections of its own that exist`, () => {
  const prose = spec.replaceAll(/^```[\s\S]*?^```$/gm, "").replaceAll(/`[^`]*`/g, "");
  const dotted = prose.matchAll(/(?<![\d.])\d{1,2}\.\d{1,2}(?: rule \d{1,2})?(?!\.?\d)/g);
  const whole = prose.matchAll(/\b[Ss]ection (\d+)\b/g);

  const referred = [...[...dotted].map(([all]) => all), ...[...whole].map(([, number]) => number!)];

  assert.ok(referred.length > 100, `${referred.length} references`);
  assert.deepEqual(referred.filter((section) => !known.has(section)), []);
});

Deno.test(`${SPEC} numbers its sections without gaps`, () => {
  for (const section of known) {
    const [, before, last] = /^(.*?)(\d+)$/.exec(section)!;
    if (last !== "1") assert.ok(known.has(`${before}${Number(last) - 1}`), section);
  }
  assert.ok(known.has("1.1") && known.has("13.24") && known.has("4.1 rule 9"));
});

/** `3`, `3.5`; the points of a list in a section as `4.1 rule 9`, in a chapter as `13.6`. */
function sectionsOf(markdown: string): Set<string> {
  const sections = new Set<string>();
  let section = "";
  for (const line of markdown.split("\n")) {
    const [, heading] = /^##+ (\d+(?:\.\d+)?)\.? /.exec(line) ?? [];
    const [, point] = /^(\d+)\. /.exec(line) ?? [];
    if (heading) section = heading;
    else if (!point) continue;
    if (heading) sections.add(heading);
    else sections.add(section.includes(".") ? `${section} rule ${point}` : `${section}.${point}`);
  }
  return sections;
}

/** Without the breaks of lines, and what begins a line of a comment. */
function unwrapped(text: string): string {
  return text.replaceAll(/\n[ \t]*(?:\*(?!\/)|\/\/|#+)?[ \t]*/g, " ");
}
