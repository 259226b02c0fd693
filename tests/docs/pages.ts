/**
 * The pages that users read, README.md and docs/, and the examples of code in them.
 *
 * @module
 */
import { readTexts } from "../fakes/source_tree.ts";
import { codeBlocks } from "./markdown.ts";

/** README.md and all pages below docs/ and examples/, by path. */
export async function readPages(): Promise<ReadonlyMap<string, string>> {
  const texts = await readTexts();
  return new Map(
    texts.filter(({ path }) => /^(README|(docs|examples)\/.*)\.md$/.test(path))
      .map(({ path, text }) => [path, text]),
  );
}

/** An example and where it is. */
export interface Example {
  readonly path: string;
  /** In its page, from 0. */
  readonly number: number;
  readonly code: string;
}

/** All examples of a language. */
export function examplesOf(pages: ReadonlyMap<string, string>, language: string): Example[] {
  return [...pages].flatMap(([path, text]) =>
    codeBlocks(text).filter((block) => block.language === language)
      .map(({ code }, number) => ({ path, number, code }))
  );
}

/**
 * The first example of a language that has a text, README.md's before those of docs.
 *
 * @throws {Error} when no page has one.
 */
export async function exampleWith(language: string, text: string): Promise<string> {
  const found = examplesOf(await readPages(), language).find(({ code }) => code.includes(text));
  if (!found) throw new Error(`No page has an example in ${language} with ${text}`);
  return found.code;
}
