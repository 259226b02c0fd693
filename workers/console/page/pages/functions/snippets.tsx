/**
 * A call as code: a command line, TypeScript, Python and curl.
 *
 * Ids and payloads may come from any worker, so each is quoted for its language: no part of them is
 * run by a shell or ends a string.
 *
 * @module
 */
import type { VNode } from "preact";
import { DEFAULT_NAMESPACE, type Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { CopyButton, isObject, useQuery } from "../../kit/mod.ts";
import type { FunctionInfo } from "./function_rows.ts";
import { buildRequest, draftOfCall, routeOf } from "./http_request.ts";

/** Longer literals are written on several lines. */
const LINE_CHARS_MAX = 76;
/** A name that needs no quotes in TypeScript and in a shell. */
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** A call to show as code. */
interface SnippetCall {
  readonly function_id: string;
  readonly namespace: string;
  /** `undefined`: none. */
  readonly payload: Json | undefined;
}

/** `engine trigger …`; `undefined` for a namespace that it cannot reach. */
export function asCommand(call: SnippetCall): string | undefined {
  const { function_id, namespace, payload } = call;
  if (namespace !== DEFAULT_NAMESPACE) return undefined;
  const id = function_id.startsWith("-") || function_id.includes("=")
    ? shellWord(`--function-id=${function_id}`)
    : shellWord(function_id);
  const fields = payload === undefined ? [] : fieldWords(payload) ?? [
    `--payload=${shellWord(JSON.stringify(payload), true)}`,
  ];
  return ["engine trigger", id, ...fields].join(" ");
}

/** A program for Deno or Node with the TypeScript SDK. */
export function asTypeScript(call: SnippetCall): string {
  const members = [`function_id: ${JSON.stringify(call.function_id)}`];
  if (call.namespace !== DEFAULT_NAMESPACE) {
    members.push(`namespace: ${JSON.stringify(call.namespace)}`);
  }
  if (call.payload !== undefined) members.push(`payload: ${write(call.payload, TYPESCRIPT, 1)}`);
  return `import { registerWorker } from "engine-sdk";

const worker = registerWorker();
const result = await worker.trigger({
${members.map((member) => `  ${member},\n`).join("")}});
console.log(result);
await worker.shutdown();
`;
}

/** A program with the Python SDK. */
export function asPython(call: SnippetCall): string {
  const members = [`"function_id": ${JSON.stringify(call.function_id)}`];
  if (call.namespace !== DEFAULT_NAMESPACE) {
    members.push(`"namespace": ${JSON.stringify(call.namespace)}`);
  }
  if (call.payload !== undefined) members.push(`"payload": ${write(call.payload, PYTHON, 2)}`);
  return `from engine_sdk import register_worker

with register_worker() as worker:
    result = worker.trigger({
${members.map((member) => `        ${member},\n`).join("")}    })
    print(result)
`;
}

/** A request to show as code. */
interface SnippetRequest {
  readonly method: string;
  /** Such as `http://127.0.0.1:3111/orders/7?dry=1`. */
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | undefined;
}

/** The request as a curl command. */
export function asCurl(request: SnippetRequest): string {
  const { method, url, headers, body } = request;
  const words = ["curl"];
  // With -X HEAD, curl waits for a body that never arrives.
  if (method === "HEAD") words.push("--head");
  else if (method !== (body === undefined ? "GET" : "POST")) words.push("-X", shellWord(method));
  // curl expands brackets and braces in an address.
  if (/[[\]{}]/.test(url)) words.push("--globoff");
  words.push(shellWord(url));
  const lines = [words.join(" ")];
  for (const [name, value] of headers) lines.push(`  -H ${shellWord(`${name}: ${value}`, true)}`);
  if (body !== undefined) lines.push(`  --data-raw ${shellWord(body, true)}`);
  return lines.join(" \\\n");
}

/** A text as one word of a POSIX shell, quoted if necessary or `always`. */
export function shellWord(text: string, always = false): string {
  if (!always && /^[A-Za-z0-9_:@%+=,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** An object of scalars as `key=value` words; `undefined` for other payloads. */
function fieldWords(payload: Json): string[] | undefined {
  if (!isObject(payload)) return undefined;
  const words = Object.entries(payload).map(([name, value]) => {
    const isPlain = PLAIN_NAME.test(name) && name !== "__proto__" &&
      (value === null || typeof value !== "object");
    if (!isPlain) return undefined;
    return shellWord(`${name}=${typeof value === "string" ? fieldText(value) : String(value)}`);
  });
  return words.length <= 6 && words.every((word) => word !== undefined) ? words : undefined;
}

/** A text that the command would parse as JSON, as a JSON string. */
function fieldText(text: string): string {
  try {
    JSON.parse(text);
    return JSON.stringify(text);
  } catch {
    return text;
  }
}

/** How a language writes JSON values. */
interface Language {
  word(value: boolean | null): string;
  name(name: string): string;
  /** Inside the braces of an object on one line. */
  readonly pad: string;
  readonly indent: string;
}

const TYPESCRIPT: Language = {
  word: (value) => String(value),
  // As a plain name, it would set the prototype.
  name: (name) =>
    name === "__proto__" ? '["__proto__"]' : PLAIN_NAME.test(name) ? name : JSON.stringify(name),
  pad: " ",
  indent: "  ",
};

const PYTHON: Language = {
  word: (value) => value === null ? "None" : value ? "True" : "False",
  name: (name) => JSON.stringify(name),
  pad: "",
  indent: "    ",
};

/** A value as a literal; `level` is the indentation of its first line. */
function write(value: Json, language: Language, level: number): string {
  if (value === null || typeof value === "boolean") return language.word(value);
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((each) => write(each, language, level + 1))
    : Object.entries(value).map(([name, member]) =>
      `${language.name(name)}: ${write(member, language, level + 1)}`
    );
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (parts.length === 0) return open + close;
  const pad = isList ? "" : language.pad;
  const line = `${open}${pad}${parts.join(", ")}${pad}${close}`;
  if (!line.includes("\n") && line.length + level * language.indent.length <= LINE_CHARS_MAX) {
    return line;
  }
  const inner = language.indent.repeat(level + 1);
  const lines = parts.map((part) => `${inner}${part},\n`).join("");
  return `${open}\n${lines}${language.indent.repeat(level)}${close}`;
}

/** The call with the payload of the form, as code. */
export function CallCode(
  { info, payload }: { info: FunctionInfo; payload: Json | undefined },
): VNode {
  const { function_id, namespace } = info;
  const call = { function_id, namespace, payload };
  const command = asCommand(call);
  const base = useHttpUrl();
  // Replicas register equal routes.
  const curls = new Set(
    info.registered_triggers
      .filter(({ trigger_type, status = "active" }) =>
        trigger_type === "http" && status === "active"
      )
      .flatMap(({ config }) => base && curlOf(config, payload, base) || []),
  );
  return (
    <div class="stack-4">
      <p class="said">With the payload that is filled in under Call.</p>
      {command === undefined
        ? (
          <p class="said">
            The command line reaches the namespace <code>{DEFAULT_NAMESPACE}</code> only.
          </p>
        )
        : <Snippet title="Command line" text={command} />}
      <Snippet title="TypeScript" text={asTypeScript(call)} />
      <Snippet title="Python" text={asPython(call)} />
      {[...curls].map((text) => <Snippet key={text} title="curl" text={text} />)}
      {curls.size === 0 && (
        <p class="said">With curl it can be called when a trigger of type http runs it.</p>
      )}
    </div>
  );
}

/** The address of `engine-http`, such as `http://127.0.0.1:3111`; `undefined`: none. */
export function useHttpUrl(): string | undefined {
  const { value } = useQuery<{ endpoints: { name: string; url: string }[] } & Json>(
    { function_id: "engine::supervisor::info" },
    [{ type: "engine::supervisor-changed" }],
  );
  return value?.endpoints.find(({ name }) => name === "http")?.url;
}

/** Code with a copy button. */
export function Snippet({ title, text }: { title: string; text: string }): VNode {
  return (
    <figure class="snippet">
      <figcaption>
        {title}
        <CopyButton text={() => text} label={`Copy ${title}`} />
      </figcaption>
      <pre tabIndex={0}><code>{text}</code></pre>
    </figure>
  );
}

function curlOf(config: Json, payload: Json | undefined, base: string): string | undefined {
  const route = routeOf(config);
  if (route === undefined) return undefined;
  const draft = draftOfCall(route, payload);
  const { path, headers, body } = buildRequest(route, draft);
  return asCurl({ method: draft.method, url: base + path, headers, body });
}
