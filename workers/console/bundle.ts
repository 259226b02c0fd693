/**
 * Makes the console's page one file: `deno task console`.
 *
 * Scripts, styles and the frame of HTML become `dist/console.html`, which is committed, so that
 * whoever runs the engine needs no build. The file carries a hash of what it was made of; a test
 * compares it, so that a page that was changed and not built is noticed.
 *
 * @module
 */

const PAGE = new URL("./page/", import.meta.url);
const DIST = new URL("./dist/console.html", import.meta.url);
const WIRE = new URL("./wire.ts", import.meta.url);
const LIMITS = new URL("../../sdk/typescript/wire/limits.ts", import.meta.url);

/** What the page is made of: everything below `page/` but tests, sorted by path. */
export async function pageSources(): Promise<{ readonly path: string; readonly text: string }[]> {
  const paths: string[] = [];
  for await (const path of filesBelow("")) {
    if (/\.(tsx?|css|html|json)$/.test(path) && !/_test\.tsx?$/.test(path)) paths.push(path);
  }
  const read = async (path: string) => ({
    path,
    text: await Deno.readTextFile(new URL(path, PAGE)),
  });
  return await Promise.all(paths.sort().map(read));
}

/** A hash of the sources, of what the wire looks like and of the bounds that the page names. */
export async function sourcesHash(): Promise<string> {
  const sources = await pageSources();
  const limits = await Deno.readTextFile(LIMITS);
  const named = new Set(sources.flatMap(({ text }) => limitNames(text)));
  const bounds = limits.split("\n").filter((line) => named.has(constantName(line)));
  const all = [...sources.map(({ path, text }) => `${path}\n${text}`), ...bounds.sort()];
  all.push(await Deno.readTextFile(WIRE));
  const bytes = new TextEncoder().encode(all.join("\0"));
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 32);
}

/** The hash in a built page; `undefined` when it has none. */
export function builtHash(html: string): string | undefined {
  return /<meta name="engine-console-sources" content="(\w+)">/.exec(html)?.[1];
}

/**
 * The page as one HTML text.
 *
 * @throws {Error} With what the bundler said when the sources do not fit together.
 */
export async function buildPage(): Promise<string> {
  const sources = await pageSources();
  const frame = sources.find(({ path }) => path === "index.html")!.text;
  const style = sources.filter(({ path }) => path.endsWith(".css"))
    .sort((a, b) => styleRank(a.path) - styleRank(b.path)).map(({ text }) => text).join("\n");
  const script = await bundleScript();
  return fillFrame(frame, { style: packStyle(style), script, hash: await sourcesHash() });
}

/** Puts the parts into the frame; a script that names its own end does not end there. */
export function fillFrame(
  frame: string,
  { style, script, hash }: { readonly style: string; readonly script: string; hash: string },
): string {
  const safe = script.trim().replaceAll(/<(\/script|!--)/gi, "\\x3C$1");
  return frame
    .replace('sources" content=""', () => `sources" content="${hash}"`)
    .replace("<style></style>", () => `<style>${style}</style>`)
    .replace("<script></script>", () => `<script>${safe}</script>`);
}

/** Styles without comments and without space that says nothing; texts in quotes stay. */
export function packStyle(text: string): string {
  const parts = text.replaceAll(/\/\*[\s\S]*?\*\//g, "").split(/("(?:[^"\\]|\\.)*")/);
  return parts.map((part, at) => at % 2 === 1 ? part : packPart(part)).join("").trim();
}

function packPart(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(/ ?([{};,]) ?/g, "$1")
    .replaceAll(/([\w-]): /g, "$1:").replaceAll(";}", "}");
}

async function bundleScript(): Promise<string> {
  const out = await Deno.makeTempFile({ suffix: ".js" });
  try {
    const args = ["bundle", "--quiet", "--platform", "browser", "--format", "iife", "--minify"];
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [...args, "-o", out, "main.tsx"],
      cwd: PAGE,
      env: { NO_COLOR: "1" },
    }).output();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
    return await Deno.readTextFile(out);
  } finally {
    await Deno.remove(out);
  }
}

/** The kit's styles come before those of pages, which may change them. */
function styleRank(path: string): number {
  return path.startsWith("style/") ? 0 : 1;
}

function limitNames(text: string): string[] {
  const lists = text.matchAll(/import \{([^}]*)\} from "[./]*sdk\/typescript\/limits\.ts"/g);
  return [...lists].flatMap(([, names]) => names!.split(",").map((name) => name.trim()));
}

function constantName(line: string): string {
  return /^export const (\w+)/.exec(line)?.[1] ?? "";
}

async function* filesBelow(folder: string): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(new URL(folder || ".//", PAGE))) {
    const path = `${folder}${entry.name}`;
    if (entry.isDirectory) yield* filesBelow(`${path}/`);
    else yield path;
  }
}

if (import.meta.main) {
  const html = await buildPage();
  await Deno.mkdir(new URL(".//", DIST), { recursive: true });
  await Deno.writeTextFile(DIST, html);
  console.log(`dist/console.html: ${Math.ceil(html.length / 1024)} KB`);
}
