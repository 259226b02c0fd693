/**
 * Builds `sdk/npm`: the SDK as one JavaScript module and one file of types, for use without a
 * registry in Deno, Node and browsers.
 *
 * The package `ws` is inside; it is evaluated only where there is a `process`, and gets the modules
 * of Node from there, so the module has no import at all. A hash of the sources stands in the
 * header; `tests/npm_package_test.ts` compares it, so what is committed is never stale.
 *
 * @module
 */
import manifest from "../deno.json" with { type: "json" };
import type ts from "typescript";

const ROOT = new URL("../", import.meta.url);
const OUT = new URL("npm/", import.meta.url);

/** What the licence of `ws` asks to be kept with copies of it. */
const NOTICE = `Contains the package ws, which is:
Copyright (c) 2011 Einar Otto Stangvik <einaros@gmail.com>
Copyright (c) 2013 Arnout Kazemier and contributors
Copyright (c) 2016 Luigi Pinca and contributors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions: The above copyright notice and this
permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT
OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

/** How the bundle gets a module of Node: at run time and only when `ws` asks for it. */
const REQUIRE = `var __require = (id) => {
  const found = globalThis.process?.getBuiltinModule?.(id);
  if (!found) throw new Error(\`Cannot find module \${id}\`);
  return found;
};`;

/** The files the package is built from, sorted; paths below the project. */
export async function sourcePaths(): Promise<string[]> {
  const paths = ["mod.ts"];
  for await (const { name } of Deno.readDir(new URL("sdk/typescript/", ROOT))) {
    if (name.endsWith(".ts") && !name.endsWith("_test.ts")) paths.push(`sdk/typescript/${name}`);
  }
  return paths.sort();
}

/** A hash of all sources, of this file and of the version of `ws` that is asked for. */
export async function hashSources(): Promise<string> {
  const parts = [manifest.version, manifest.imports.ws];
  for (const path of [...await sourcePaths(), "sdk/build_npm.ts"]) {
    parts.push(path, await readSource(path));
  }
  const bytes = new TextEncoder().encode(parts.join("\0"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Builds and writes the three files. */
async function build(): Promise<void> {
  const hash = await hashSources();
  await Deno.mkdir(OUT, { recursive: true });
  await writeOut("engine_sdk.js", await bundle(hash));
  await writeOut("engine_sdk.d.ts", await declarations());
  await writeOut("package.json", JSON.stringify(packageJson(), null, 2) + "\n");
  console.error(`built sdk/npm from sources ${hash.slice(0, 12)}`);
}

async function bundle(hash: string): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["bundle", "--quiet", "--platform=deno", "mod.ts"],
    cwd: ROOT,
    stderr: "inherit",
  });
  const { success, stdout } = await command.output();
  if (!success) throw new Error("deno bundle failed");
  const lines = [
    '// @ts-self-types="./engine_sdk.d.ts"',
    `// engine-sdk ${manifest.version}, built by sdk/build_npm.ts; sources sha256:${hash}`,
    ...NOTICE.split("\n").map((line) => `// ${line}`.trimEnd()),
  ];
  return `${lines.join("\n")}\n${tidy(new TextDecoder().decode(stdout))}`;
}

/** Takes out what only holds on the machine that builds: paths of its cache, its way to require. */
function tidy(code: string): string {
  const required = /^import \{ createRequire as \w+ \} from "node:module";\nvar __require = .*;$/m;
  if (!required.test(code)) throw new Error("the bundle requires in a way that is not known here");
  const cached = /(?<=["\s])[^"\s]*\/npm\/[^/"\s]+\/((?:@[^/"\s]+\/)?[^/"\s]+\/\d[^/"\s]*\/)/g;
  const tidied = code.replace(required, REQUIRE).replaceAll(cached, "npm/$1");
  if (/\/\.cache\/|^import /m.test(tidied)) throw new Error("the bundle is not whole by itself");
  return tidied;
}

/** One statement of a declaration file. */
interface Declaration {
  readonly text: string;
  readonly uses: ReadonlySet<string>;
}

/** All public names and what they mention, in one file that imports nothing. */
async function declarations(): Promise<string> {
  const { default: compiler } = await import("typescript");
  const found = new Map<string, Declaration>();
  const doubled = new Set<string>();
  let exported: string[] = [];
  for (const path of await sourcePaths()) {
    const file = declare(compiler, path, await readSource(path));
    for (const statement of file.statements) {
      if (path === "mod.ts") exported = exported.concat(exportsOf(compiler, statement));
      for (const name of namesOf(compiler, statement)) {
        if (found.has(name)) doubled.add(name);
        found.set(name, describe(compiler, statement, file));
      }
    }
  }
  const reached = reach(exported.map((name) => name.replace(/^type /, "")), found);
  const ambiguous = [...reached].filter((name) => doubled.has(name));
  if (ambiguous.length > 0) throw new Error(`declared twice: ${ambiguous.join(", ")}`);
  const texts = new Set([...reached].map((name) => found.get(name)!.text));
  const doc = /^\/\*\*[\s\S]*?\*\//.exec(await readSource("mod.ts"))![0];
  const list = exported.sort().map((name) => `  ${name},\n`).join("");
  return `${doc}\n\n${[...texts].join("\n\n")}\n\nexport {\n${list}};\n`;
}

function declare(compiler: typeof ts, path: string, text: string): ts.SourceFile {
  // What it cannot declare by itself becomes `any`; the package's test finds that in public names.
  const { outputText } = compiler.transpileDeclaration(text, {
    fileName: path,
    compilerOptions: {
      target: compiler.ScriptTarget.ESNext,
      module: compiler.ModuleKind.ESNext,
      isolatedDeclarations: true,
      declaration: true,
    },
  });
  return compiler.createSourceFile(`${path}.d.ts`, outputText, compiler.ScriptTarget.ESNext, true);
}

/** The names that a statement of mod.ts hands on, `type ` before those that are only types. */
function exportsOf(compiler: typeof ts, statement: ts.Statement): string[] {
  if (!compiler.isExportDeclaration(statement)) return [];
  const clause = statement.exportClause;
  if (!clause || !compiler.isNamedExports(clause)) return [];
  return clause.elements.map((element) => {
    const isType = statement.isTypeOnly || element.isTypeOnly;
    return `${isType ? "type " : ""}${element.name.text}`;
  });
}

function namesOf(compiler: typeof ts, statement: ts.Statement): string[] {
  if (compiler.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  }
  const isNamed = compiler.isClassDeclaration(statement) ||
    compiler.isFunctionDeclaration(statement) || compiler.isInterfaceDeclaration(statement) ||
    compiler.isTypeAliasDeclaration(statement);
  return isNamed && statement.name ? [statement.name.text] : [];
}

function describe(compiler: typeof ts, statement: ts.Statement, file: ts.SourceFile): Declaration {
  const uses = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (compiler.isIdentifier(node)) uses.add(node.text);
    compiler.forEachChild(node, visit);
  };
  visit(statement);
  const docs = compiler.getJSDocCommentsAndTags(statement).map((doc) => doc.getText(file));
  // A method named by a symbol is declared twice when the compiler sees one file at a time.
  const doubled = /^ +\/\*\*.*\*\/\n +\[Symbol\.\w+\]: .*;\n/m;
  const text = statement.getText(file).replace(/^export /, "").replace(doubled, "");
  return { text: [docs.at(-1), text].filter(Boolean).join("\n"), uses };
}

/** The names and all that they mention, in the order in which they are met. */
function reach(names: string[], found: ReadonlyMap<string, Declaration>): Set<string> {
  const reached = new Set<string>();
  const add = (name: string): void => {
    const declaration = found.get(name);
    if (!declaration || reached.has(name)) return;
    reached.add(name);
    for (const used of declaration.uses) add(used);
  };
  for (const name of names) {
    if (!found.has(name)) throw new Error(`mod.ts exports ${name}, which is declared nowhere`);
    add(name);
  }
  return reached;
}

function packageJson(): Record<string, unknown> {
  return {
    name: "engine-sdk",
    version: manifest.version,
    description: "Write functions anywhere, call them from anywhere: the SDK for workers",
    license: manifest.license,
    type: "module",
    exports: { ".": { types: "./engine_sdk.d.ts", default: "./engine_sdk.js" } },
    types: "./engine_sdk.d.ts",
    files: ["engine_sdk.js", "engine_sdk.d.ts"],
    engines: { node: ">=20.16" },
    sideEffects: false,
  };
}

function readSource(path: string): Promise<string> {
  return Deno.readTextFile(new URL(path, ROOT));
}

function writeOut(name: string, text: string): Promise<void> {
  return Deno.writeTextFile(new URL(name, OUT), text);
}

if (import.meta.main) await build();
