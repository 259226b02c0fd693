/**
 * `deno task docs`: builds the site of the documents into dist/docs, with VitePress, which npm
 * installs beside the caches of CI. The site needs no other server, its search included.
 *
 * `--serve` serves it on port 3114 of this machine (`--port N`) until Ctrl-C.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { readTexts } from "../fakes/source_tree.ts";
import { sitePages, siteSections } from "./site_pages.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const CACHE = `${ROOT}.ci-cache/docs-site`;
const GENERATOR = "vitepress@1.6.4";
const SERVE_PORT = "3114";

/** Why the site cannot be built here; `undefined` if it can. */
export async function missingTools(): Promise<string | undefined> {
  const node = await runs("node", ["--version"]);
  if (!node) return "node is not on the path";
  return await installGenerator() ? undefined : `npm cannot install ${GENERATOR}`;
}

/** Builds the site into a directory (absolute), which is replaced. */
export async function buildSite(out: string): Promise<void> {
  const source = `${CACHE}/source-${crypto.randomUUID()}`;
  try {
    await writeSources(source, out);
    const { success, stdout, stderr } = await new Deno.Command("node", {
      args: [`${CACHE}/node_modules/vitepress/bin/vitepress.js`, "build", source],
      cwd: CACHE,
      env: { NO_COLOR: "1" },
    }).output();
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    if (!success) throw new Error(`The site was not built:\n${text}`);
  } finally {
    await Deno.remove(source, { recursive: true });
  }
}

/** Installs the generator once. */
async function installGenerator(): Promise<boolean> {
  const isThere = await Deno.stat(`${CACHE}/${GENERATOR}`).then(() => true, () => false);
  if (isThere) return true;
  await Deno.mkdir(CACHE, { recursive: true });
  await Deno.writeTextFile(`${CACHE}/package.json`, '{ "private": true, "type": "module" }\n');
  const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0"];
  if (!await runs("npm", ["install", ...flags, GENERATOR], CACHE)) return false;
  await Deno.writeTextFile(`${CACHE}/${GENERATOR}`, "");
  return true;
}

/** The pages, their pictures and the configuration. */
async function writeSources(source: string, out: string): Promise<void> {
  const texts = (await readTexts()).filter(({ path }) => path.endsWith(".md"));
  const pages = sitePages(new Map(texts.map(({ path, text }) => [path, text])));
  for (const { path, text } of pages) await write(`${source}/${path}`, text);
  await copyPictures(`${ROOT}docs`, `${source}/docs`);
  const sidebar = siteSections(pages);
  const anchor = await Deno.readTextFile(new URL("markdown.ts", import.meta.url));
  const config = {
    title: "engine",
    description: "Write functions anywhere, call them from anywhere",
    outDir: out,
    ignoreDeadLinks: "localhostLinks",
    markdown: { html: false },
    themeConfig: { sidebar, outline: [2, 3], search: { provider: "local" } },
  };
  await write(`${source}/.vitepress/anchor.ts`, anchor);
  await write(
    `${source}/.vitepress/config.ts`,
    `import { anchorOf } from "./anchor.ts";\nconst config = ${JSON.stringify(config)};\n` +
      "config.markdown.anchor = { slugify: anchorOf };\nexport default config;\n",
  );
}

async function copyPictures(from: string, to: string): Promise<void> {
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyPictures(`${from}/${name}`, `${to}/${name}`);
    else if (name.endsWith(".png")) {
      await Deno.mkdir(to, { recursive: true });
      await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
    }
  }
}

async function write(path: string, text: string): Promise<void> {
  await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  await Deno.writeTextFile(path, text);
}

async function runs(command: string, args: string[], cwd = ROOT): Promise<boolean> {
  const silent = { stdin: "null", stdout: "null", stderr: "null" } as const;
  const program = new Deno.Command(command, { args, cwd, ...silent });
  return await program.output().then(({ success }) => success, () => false);
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  json: "application/json",
  png: "image/png",
  woff2: "font/woff2",
};

/** Answers requests with the files of a site. */
export async function siteFile(directory: string, { url }: Request): Promise<Response> {
  const path = decodeURIComponent(new URL(url).pathname);
  const name = path.endsWith("/") ? `${path}index.html` : path;
  for (const file of [name, `${name}.html`]) {
    const bytes = await Deno.readFile(`${directory}${file}`).catch(() => undefined);
    const type = TYPES[file.split(".").at(-1)!] ?? "application/octet-stream";
    if (bytes) return new Response(bytes, { headers: { "content-type": type } });
  }
  return new Response("There is no such page\n", { status: 404 });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { serve: { type: "boolean" }, port: { type: "string", default: SERVE_PORT } },
  });
  const missing = await missingTools();
  if (missing !== undefined) {
    console.error(missing);
    Deno.exit(1);
  }
  const out = `${ROOT}dist/docs`;
  await buildSite(out);
  console.log(`dist/docs is built; deno task docs --serve shows it`);
  if (values.serve) {
    const listen = { hostname: "127.0.0.1", port: Number(values.port) };
    Deno.serve(listen, (request) => siteFile(out, request));
  }
}
