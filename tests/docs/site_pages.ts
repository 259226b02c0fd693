/**
 * The documents as pages of the site: which there are, where each is, and what its links become.
 *
 * @module
 */
import { linksOf } from "./markdown.ts";

/** A page of the site. */
export interface SitePage {
  /** In the site, such as `docs/how-to/http.md`; `index.md` is the first page of a folder. */
  readonly path: string;
  readonly title: string;
  readonly text: string;
}

/** A section of the sidebar. */
export interface SiteSection {
  readonly text: string;
  readonly items: readonly { readonly text: string; readonly link: string }[];
}

/** The four kinds of documents, and what else is shown. */
const SECTIONS: readonly (readonly [title: string, pages: RegExp])[] = [
  ["Start", /^index\.md$/],
  ["Tutorial", /^docs\/tutorial\//],
  ["How to", /^docs\/how-to\//],
  ["Reference", /^(docs\/reference\/|sdk\/[A-Z]+\.md|sdk\/python\/index\.md|CHANGELOG\.md)/],
  ["Explanation", /^(docs\/explanation\/|ARCHITECTURE\.md|SECURITY\.md)/],
  ["Examples", /^examples\//],
  ["More", /^/],
];

/** Documents of the project that the site shows. */
export const SHOWN =
  /^(README|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md$|^(docs|examples)\/.*\.md$|^sdk\/([A-Z]+|python\/README)\.md$/;

/** Code, which stays as it is, or a link or picture with its label. */
const CODE_OR_LINK = /`[^`\n]*`|(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g;

/** All pages, from documents by path. */
export function sitePages(documents: ReadonlyMap<string, string>): SitePage[] {
  return [...documents].filter(([path]) => SHOWN.test(path)).map(([path, text]) => ({
    path: sitePath(path),
    title: /^# (.+)$/m.exec(text)?.[1]?.replaceAll("`", "") ?? path,
    text: pageText(path, text, (file) => documents.has(file) && SHOWN.test(file)),
  }));
}

/**
 * The sidebar: each page in the first section that it belongs to, in the order in which the first
 * page links them, the others behind by their titles.
 */
export function siteSections(pages: readonly SitePage[]): SiteSection[] {
  const left = new Set(pages);
  const home = pages.find(({ path }) => path === "index.md");
  const links = home === undefined ? [] : linksOf(home.text).map((link) => link.slice(1));
  return SECTIONS.map(([text, pattern]) => {
    const own = [...left].filter(({ path }) => pattern.test(path));
    for (const page of own) left.delete(page);
    const items = own.sort((a, b) => byPlace(a, b, links)).map(({ path, title }) => ({
      text: title,
      link: `/${path.replace(/(index)?\.md$/, "")}`,
    }));
    return { text, items };
  }).filter(({ items }) => items.length > 0);
}

function byPlace(a: SitePage, b: SitePage, links: readonly string[]): number {
  const placeOf = ({ path }: SitePage): number => {
    const place = links.indexOf(path);
    return place < 0 ? links.length : place;
  };
  return placeOf(a) - placeOf(b) || (a.title < b.title ? -1 : 1);
}

function sitePath(path: string): string {
  return path.replace(/(^|\/)README\.md$/, "$1index.md");
}

/** Text outside of code that the site would read as a template or a tag stands for itself. */
function pageText(path: string, text: string, isPage: (file: string) => boolean): string {
  const parts = text.replaceAll(/^<!--.*?-->\n/gms, "").split(/(^ *```[^]*?^ *```$)/m);
  return parts.map((part, i) => i % 2 === 1 ? part : proseText(path, part, isPage)).join("");
}

function proseText(path: string, text: string, isPage: (file: string) => boolean): string {
  const linked = text.replaceAll(CODE_OR_LINK, (all, mark, label, link) => {
    if (link === undefined || mark === "!" || /^([a-z]+:|#)/.test(link)) return all;
    const { pathname, hash } = new URL(link, `file:///${path}`);
    const file = pathname.slice(1);
    if (isPage(file)) return `[${label}](/${sitePath(file)}${hash})`;
    return label.includes(file) ? label : `${label} (\`${file}\`)`; // A file of the sources.
  });
  return linked.split(/(`[^`\n]*`)/).map((part, i) =>
    i % 2 === 1 ? part : part.replaceAll("{{", "&#123;&#123;")
  ).join("");
}
