/**
 * Builds `sdk/npm`: the SDK as one JavaScript module and one declaration file, for use without a
 * registry in Deno, Node and browsers; and the client of streams in the same way.
 *
 * The modules have no imports: that of workers contains the package `ws`, evaluates it only if
 * `process` exists, and gets Node's modules from there. The header has a hash of the sources, which
 * `tests/e2e/npm_package_test.ts` compares, so the committed files are never stale.
 *
 * @module
 */
import manifest from "../deno.json" with { type: "json" };
import type ts from "typescript";

const ROOT = new URL("../", import.meta.url);
const OUT = new URL("npm/", import.meta.url);

/** Notice that the licence of `ws` requires in copies. */
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

/** Replaces `require` in the bundle: loads Node modules at run time, when `ws` requires them. */
const REQUIRE = `var __require = (id) => {
  const found = globalThis.process?.getBuiltinModule?.(id);
  if (!found) throw new Error(\`Cannot find module \${id}\`);
  return found;
};`;

/** What the declarations use beyond ES2022 and the DOM, so that programs need not set `lib`. */
const LIBS = '/// <reference lib="esnext.disposable" />\n';

/** Hash of all sources, of this file and of the required version of `ws`. */
export async function hashSources(): Promise<string> {
  const parts = [manifest.version, manifest.imports.ws];
  for (const path of [...await sourcePaths(), "sdk/build_npm.ts"]) {
    parts.push(path, await readSource(path));
  }
  const bytes = new TextEncoder().encode(parts.join("\0"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A module of the package: its source, and the name of its files. */
interface PackageModule {
  readonly source: string;
  readonly name: string;
  /** Contains the package `ws`. */
  readonly hasWs: boolean;
}

const MODULES: readonly PackageModule[] = [
  { source: "mod.ts", name: "engine_sdk", hasWs: true },
  { source: "sdk/browser/mod.ts", name: "engine_sdk_browser", hasWs: false },
  { source: "sdk/testing/mod.ts", name: "engine_sdk_testing", hasWs: false },
];

/** Builds the files. */
async function build(): Promise<void> {
  const hash = await hashSources();
  await Deno.mkdir(OUT, { recursive: true });
  for (const module of MODULES) {
    await writeOut(`${module.name}.js`, await bundle(hash, module));
    await writeOut(`${module.name}.d.ts`, await declarations(module));
  }
  await writeOut("package.json", JSON.stringify(packageJson(), null, 2) + "\n");
  console.error(`built sdk/npm from sources ${hash.slice(0, 12)}`);
}

async function bundle(hash: string, module: PackageModule): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["bundle", "--quiet", "--platform=deno", module.source],
    cwd: ROOT,
    stderr: "inherit",
  });
  const { success, stdout } = await command.output();
  if (!success) throw new Error("deno bundle failed");
  const lines = [
    `// @ts-self-types="./${module.name}.d.ts"`,
    `// engine-sdk ${manifest.version}, built by sdk/build_npm.ts; sources sha256:${hash}`,
    ...module.hasWs ? NOTICE.split("\n").map((line) => `// ${line}`.trimEnd()) : [],
  ];
  return `${lines.join("\n")}\n${makePortable(new TextDecoder().decode(stdout), module)}`;
}

/** Replaces what holds only on the machine that builds: paths of its cache, and `require`. */
function makePortable(code: string, { hasWs }: PackageModule): string {
  const required = /^import \{ createRequire as \w+ \} from "node:module";\nvar __require = .*;$/m;
  if (hasWs !== required.test(code)) throw new Error("the bundle defines require unexpectedly");
  const cached = /(?<=["\s])[^"\s]*\/npm\/[^/"\s]+\/((?:@[^/"\s]+\/)?[^/"\s]+\/\d[^/"\s]*\/)/g;
  const portable = code.replace(required, REQUIRE).replaceAll(cached, "npm/$1");
  if (/\/\.cache\/|^import /m.test(portable)) {
    throw new Error("the bundle still has imports or paths of this machine");
  }
  return portable;
}

/** One statement of a declaration file. */
interface Declaration {
  readonly text: string;
  /** Identifiers in it. */
  readonly uses: ReadonlySet<string>;
}

/** Declarations of all public names and of the names they use, in one file without imports. */
async function declarations({ source }: PackageModule): Promise<string> {
  const { default: compiler } = await import("typescript");
  const found = new Map<string, Declaration>();
  const duplicates = new Set<string>();
  let exported: string[] = [];
  for (const path of await sourcePaths()) {
    const file = declare(compiler, path, await readSource(path));
    for (const statement of file.statements) {
      if (path === source) exported = exported.concat(exportsOf(compiler, statement));
      for (const name of namesOf(compiler, statement)) {
        if (found.has(name)) duplicates.add(name);
        found.set(name, describe(compiler, statement, file));
      }
    }
  }
  const used = withUses(exported.map((name) => name.replace(/^type /, "")), found);
  const ambiguous = [...used].filter((name) => duplicates.has(name));
  if (ambiguous.length > 0) throw new Error(`declared twice: ${ambiguous.join(", ")}`);
  const texts = new Set([...used].map((name) => found.get(name)!.text));
  const doc = /^\/\*\*[\s\S]*?\*\//.exec(await readSource(source))![0];
  const list = exported.sort().map((name) => `  ${name},\n`).join("");
  return `${LIBS}${doc}\n\n${[...texts].join("\n\n")}\n\nexport {\n${list}};\n`;
}

function declare(compiler: typeof ts, path: string, text: string): ts.SourceFile {
  // A type that needs inference becomes `any`, which a test of the package finds in public names.
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

/** The names that a statement of a public module exports, with the prefix `type ` for types. */
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
  // The compiler, given a single file, declares a method named by a symbol twice.
  const duplicate = /^(?: +\/\*\*.*\*\/\n)? +\[Symbol\.\w+\]: .*;\n/m;
  const text = statement.getText(file).replace(/^export /, "").replace(duplicate, "");
  return { text: [docs.at(-1), text].filter(Boolean).join("\n"), uses };
}

/** The names and all names that their declarations use, in the order of discovery. */
function withUses(names: string[], found: ReadonlyMap<string, Declaration>): Set<string> {
  const all = new Set<string>();
  const add = (name: string): void => {
    const declaration = found.get(name);
    if (!declaration || all.has(name)) return;
    all.add(name);
    for (const used of declaration.uses) add(used);
  };
  for (const name of names) {
    if (!found.has(name)) throw new Error(`${name} is exported, but no source declares it`);
    add(name);
  }
  return all;
}

/** The files the package is built from, sorted; paths relative to the project. */
async function sourcePaths(): Promise<string[]> {
  const paths = ["mod.ts"];
  const walk = async (folder: string): Promise<void> => {
    for await (const { name, isDirectory } of Deno.readDir(new URL(`${folder}/`, ROOT))) {
      const path = `${folder}/${name}`;
      if (isDirectory) await walk(path);
      else if (name.endsWith(".ts") && !name.endsWith("_test.ts")) paths.push(path);
    }
  };
  await walk("sdk/typescript");
  await walk("sdk/browser");
  await walk("sdk/testing");
  return paths.sort();
}

function packageJson(): Record<string, unknown> {
  return {
    name: "engine-sdk",
    version: manifest.version,
    description: "Write functions anywhere, call them from anywhere: the SDK for workers",
    license: manifest.license,
    type: "module",
    exports: {
      ".": { types: "./engine_sdk.d.ts", default: "./engine_sdk.js" },
      "./browser": { types: "./engine_sdk_browser.d.ts", default: "./engine_sdk_browser.js" },
      "./testing": { types: "./engine_sdk_testing.d.ts", default: "./engine_sdk_testing.js" },
    },
    types: "./engine_sdk.d.ts",
    files: MODULES.flatMap(({ name }) => [`${name}.js`, `${name}.d.ts`]),
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
