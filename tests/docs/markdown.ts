/**
 * What tests and the site read of a Markdown page: its links, its headings and its blocks of code.
 *
 * @module
 */

/** A block of code. */
export interface CodeBlock {
  readonly language: string;
  readonly code: string;
}

/** All blocks of code, in order; those of lists without their indentation. */
export function codeBlocks(text: string): CodeBlock[] {
  return [...text.matchAll(/^( *)```(\w*)[^\n]*\n(.*?)^\1```$/gms)].map((
    [, indent, language, code],
  ) => ({
    language: language!,
    code: code!.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
}

/** Where links and pictures lead, outside of code. */
export function linksOf(text: string): string[] {
  const prose = withoutBlocks(text).replaceAll(/`[^`\n]*`/g, "");
  const inline = /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|^\[[^\]]+\]:\s+(\S+)/gm;
  return [...prose.matchAll(inline)].map(([, link, reference]) => link ?? reference!);
}

/** The anchors of all headings, spelled as GitHub does. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, title] of withoutBlocks(text).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const anchor = anchorOf(title!);
    let name = anchor;
    for (let n = 1; anchors.has(name); n++) name = `${anchor}-${n}`;
    anchors.add(name);
  }
  return anchors;
}

/** The anchor of a heading: links and code as their text, blanks as `-`, no punctuation. */
export function anchorOf(title: string): string {
  const text = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
  return text.trim().toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-");
}

function withoutBlocks(text: string): string {
  return text.replaceAll(/^ *(```+)[^\n]*\n[^]*?^ *\1 *$/gm, "");
}
