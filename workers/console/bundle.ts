/**
 * Builds the console's page into one file: `deno task console`.
 *
 * Scripts, styles and `index.html` become `dist/console.html`, which is committed, so that running
 * the engine needs no build. The file contains a hash of its sources, and a test compares that
 * hash, so a changed page that was not built fails the gate.
 *
 * @module
 */

const PAGE = new URL("./page/", import.meta.url);
const DIST = new URL("./dist/console.html", import.meta.url);

/** The sources of the page: everything below `page/` but tests, sorted by path. */
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

/** A hash of the sources and of the constants that they import from outside of `page/`. */
export async function sourcesHash(): Promise<string> {
  const sources = await pageSources();
  const constants = await Promise.all(sources.flatMap(outsideConstants).map(readConstant));
  const parts = sources.map(({ path, text }) => `${path}\n${text}`);
  const all = [...parts, ...new Set(constants.sort())].join("\0");
  const bytes = new TextEncoder().encode(all);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 32);
}

/** The hash in a built page; `undefined` when it has none. */
export function builtHash(html: string): string | undefined {
  return /<meta name="engine-console-sources" content="(\w+)">/.exec(html)?.[1];
}

/**
 * The page as one HTML text.
 *
 * @throws {Error} With the output of the bundler when it fails.
 */
export async function buildPage(): Promise<string> {
  const sources = await pageSources();
  const frame = sources.find(({ path }) => path === "index.html")!.text;
  const style = sources.filter(({ path }) => path.endsWith(".css"))
    .sort((a, b) => styleRank(a.path) - styleRank(b.path)).map(({ text }) => text).join("\n");
  const script = await bundleScript();
  return fillFrame(frame, { style: packStyle(style), script, hash: await sourcesHash() });
}

/** Inserts the parts into `index.html`; a `</script>` within the script is escaped. */
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

/** Minifies styles: no comments, no needless space; quoted texts stay as they are. */
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

/** Styles of pages come after the general ones, so that they win. */
function styleRank(path: string): number {
  return path.startsWith("style/") ? 0 : 1;
}

/** A constant that a source imports from outside of `page/`. */
interface OutsideConstant {
  readonly module: URL;
  readonly name: string;
}

function outsideConstants({ path, text }: { path: string; text: string }): OutsideConstant[] {
  const imports = text.matchAll(/^import \{([^}]*)\} from "(\.\.\/[^"]+)";$/gm);
  return [...imports].flatMap(([, names, specifier]) => {
    const module = new URL(specifier!, new URL(path, PAGE));
    if (module.href.startsWith(PAGE.href)) return [];
    const values = names!.split(",").map((name) => name.trim()).filter((name) =>
      /^\w+$/.test(name)
    );
    return values.map((name) => ({ module, name }));
  });
}

/** The declaration of a constant, as its module has it. */
async function readConstant({ module, name }: OutsideConstant): Promise<string> {
  const text = await Deno.readTextFile(module);
  return new RegExp(`^export const ${name}\\b[^;]*;`, "m").exec(text)?.[0] ?? name;
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
