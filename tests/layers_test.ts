/**
 * Who may import whom: DESIGN's table as a program, one test per file.
 *
 * @module
 */
import assert from "node:assert/strict";
import { importsOf, readSources, type SourceFile } from "./fakes/source_tree.ts";

/** A layer: which files are in it, which layers and packages they may import. */
interface Layer {
  readonly name: string;
  readonly files: RegExp;
  readonly layers: readonly string[];
  /** Package specifier to the files that may import it; all files of the layer if left out. */
  readonly packages?: Readonly<Record<string, RegExp>>;
}

/** Folders that touch the world behind an interface of `engine/ports`. */
const ADAPTERS =
  /^engine\/(channels|cluster|config|install|platform|process|served|store|supervisor|telemetry|transport|vm|watch)\//;

/** The first that matches a path is its layer. */
const LAYERS: readonly Layer[] = [
  {
    name: "contract",
    files: /^sdk\/typescript\/wire\//,
    layers: ["contract"],
  },
  { name: "ports", files: /^engine\/ports\//, layers: ["contract", "ports"] },
  { name: "core", files: /^engine\/core\//, layers: ["contract", "ports", "core"] },
  {
    name: "sdk",
    files: /^(sdk\/(typescript|browser|testing)\/|mod\.ts$)/,
    layers: ["contract", "sdk"],
    packages: {
      ws: /ws_(transport|socket)\.ts$/,
    },
  },
  {
    name: "adapters",
    files: /^engine\/auth\//,
    layers: ["contract", "ports", "core", "adapters", "sdk"],
    packages: { "node:crypto": /./ },
  },
  {
    name: "adapters",
    files: ADAPTERS,
    layers: ["contract", "ports", "core", "adapters", "embedded"],
    packages: {
      "@nats-io/transport-node": /engine\/cluster\/nats_bus\.ts$/,
      yaml: /engine\/config\/yaml\.ts$/,
      "ipaddr.js": /engine\/served\/addresses\.ts$/,
      ajv: /engine\/platform\/schema_(check|keywords|loading)\.ts$/,
      "@nats-io/jetstream": /engine\/cluster\/jet_stream\.ts$/,
      pg: /engine\/cluster\/postgres\.ts$/,
      re2js: /engine\/platform\/schema_(check|keywords|loading)\.ts$/,
      "node:buffer":
        /engine\/transport\/(local_connection|serve_listener|frames|write_queue|socket)\.ts$/,
      "node:crypto": /./,
      "node:dns": /engine\/served\/http_functions\.ts$/,
      "node:http": /engine\/served\/(http_client|answer)\.ts$/,
      "node:https": /engine\/served\/http_client\.ts$/,
      "node:net": /engine\/cluster\/nats_bus\.ts$/,
      "node:fs": /engine\/(install\/worker_files|store\/kv_store)\.ts$/,
      "node:stream": /engine\/(transport\/socket|served\/paced_reading)\.ts$/,
      "node:timers": /engine\/transport\/(tick_budget|socket)\.ts$/,
      "node:sqlite": /engine\/store\/(kv_file|state_file)\.ts$/,
      "node:v8": /engine\/platform\/memory_budget\.ts$/,
      "node:tls": /engine\/(transport\/socket|cluster\/nats_bus)\.ts$/,
      "node:module": /engine\/platform\/schema_check\.ts$/,
      "node:util": /engine\/config\/variables\.ts$/,
      "node:vm": /engine\/platform\/schema_check\.ts$/,
      "node:zlib": /engine\/(vm\/image\/kernel_file|store\/record)\.ts$/,
    },
  },
  {
    name: "page",
    files: /^workers\/console\/page\//,
    layers: ["contract", "ports", "page", "page wire"],
    packages: {
      preact: /./,
      "@preact/signals": /./,
      "@dagrejs/dagre": /\/kit\//,
    },
  },
  {
    name: "workers",
    files: /^workers\//,
    layers: ["contract", "ports", "sdk", "workers", "built page"],
    packages: {
      croner: /^workers\/cron\/expression\.ts$/,
      valibot: /^workers\/kit\/schema\.ts$/,
      "@valibot/to-json-schema": /^workers\/kit\/schema\.ts$/,
      hono: /^workers\/(http|console)\/server\.ts$/,
      ws: /^workers\/console\/web_socket\.ts$/,
      "node:stream": /^workers\/console\/web_socket\.ts$/,
      "node:buffer": /^workers\/kit\/http\/(head|response)\.ts$/,
      "node:crypto": /^workers\/(http\/guard|cron\/records)\.ts$/,
    },
  },
  {
    name: "assembly",
    files: /^engine\//,
    layers: ["contract", "ports", "core", "sdk", "adapters", "workers", "assembly", "embedded"],
  },
  {
    name: "customers",
    files: /^(cli|templates)\//,
    layers: ["customers", "sdk door", "engine door", "embedded"],
    packages: {
      commander: /^cli\//,
      "@commander-js/extra-typings": /^cli\//,
      yaml: /^cli\/output\.ts$/,
      "node:child_process": /^cli\/commands\/engine\/daemon\.ts$/,
      "node:fs": /^cli\/commands\/engine\/daemon\.ts$/,
      "node:process": /^cli\/commands\/repl\.ts$/,
      "node:readline": /^cli\/commands\/repl\.ts$/,
    },
  },
  {
    name: "conformance",
    files: /^sdk\/conformance\//,
    layers: ["conformance", "contract", "sdk door"],
    packages: {
      "node:http": /scripted_engine\.ts$/,
      ws: /scripted_engine\.ts$/,
      zod: /probe\.ts$/,
    },
  },
  {
    name: "build",
    files: /^sdk\/(build_npm|package)\.ts$/,
    layers: ["build", "embedded"],
    packages: { typescript: /./ },
  },
];

/** Words that would give the core time, chance or waiting of its own. */
const BANNED_IN_CORE =
  /\b(async|await|Promise|Deno|setTimeout|setInterval|queueMicrotask|Date|console|crypto|fetch)\b/;

for (const file of await readSources()) {
  const layer = LAYERS.find(({ files }) => files.test(file.path));
  if (file.path.startsWith("tests/") || file.path.endsWith("_test.ts")) continue;

  Deno.test(`${file.path} imports only what its layer may`, () => {
    assert.ok(layer, `${file.path} is in no layer of tests/layers_test.ts`);
    for (const found of importsOf(file)) refuse(file, layer, found.specifier, found.embedded);
  });

  if (layer?.name === "core") {
    Deno.test(`${file.path} has no time, chance or waiting of its own`, () => {
      const line = withoutComments(file.text).split("\n").find((line) => BANNED_IN_CORE.test(line));

      assert.equal(line, undefined);
    });
  }
}

function refuse(file: SourceFile, layer: Layer, specifier: string, embedded: boolean): void {
  const target = targetOf(file.path, specifier, embedded);
  if (target === undefined) {
    const allowed = layer.packages?.[packageOf(specifier)];
    assert.ok(allowed?.test(file.path), `${file.path} may not import ${specifier}`);
    return;
  }
  const ok = target.some((name) => layer.layers.includes(name));
  assert.ok(ok, `${file.path} (${layer.name}) may not import ${specifier} (${target.join(", ")})`);
}

/** The names under which a layer may list the imported file; `undefined` for a package. */
function targetOf(from: string, specifier: string, embedded: boolean): string[] | undefined {
  if (/^engine-sdk(\/(browser|testing))?$/.test(specifier)) return ["sdk", "sdk door"];
  if (!specifier.startsWith(".")) return undefined;
  const path = new URL(specifier, `file:///${from}`).pathname.slice(1);
  if (embedded && path.startsWith("workers/console/dist/")) return ["built page"];
  if (embedded || path === "deno.json") return ["embedded"];
  if (path === "workers/console/wire.ts") return ["workers", "page wire"];
  if (path === "mod.ts") return ["sdk", "sdk door"];
  if (path === "engine/mod.ts") return ["assembly", "engine door"];
  return [LAYERS.find(({ files }) => files.test(path))?.name ?? "no layer"];
}

function packageOf(specifier: string): string {
  if (specifier.startsWith("node:")) return specifier;
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : parts[0]!;
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/\/\/.*$/gm, "")
    .replaceAll(/`(?:[^`\\]|\\.)*`|"(?:[^"\\]|\\.)*"/g, '""');
}
