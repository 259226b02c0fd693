/**
 * A call as code to copy: command line, TypeScript, Python, and curl where HTTP leads to it.
 *
 * @module
 */
import type { VNode } from "preact";
import { DEFAULT_NAMESPACE, type Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { CopyButton, useQuery } from "../../kit/mod.ts";
import { asCommand, asCurl, asPython, asTypeScript } from "./call_snippets.ts";
import { buildRequest, draftOfCall, routeOf } from "./http_request.ts";
import type { FunctionInfo } from "./function_detail.tsx";

/** With the payload that is filled in. */
export function CallCode(
  { info, payload }: { info: FunctionInfo; payload: Json | undefined },
): VNode {
  const { function_id, namespace } = info;
  const call = { function_id, namespace, payload };
  const command = asCommand(call);
  const base = useHttpUrl();
  // Each replica registers the same routes.
  const curls = new Set(
    info.registered_triggers.filter(({ trigger_type }) => trigger_type === "http")
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

/** Where `engine-http` listens, such as `http://127.0.0.1:3111`; `undefined`: nowhere. */
export function useHttpUrl(): string | undefined {
  const { value } = useQuery<{ endpoints: { name: string; url: string }[] } & Json>(
    { function_id: "engine::supervisor::info" },
    [{ type: "engine::supervisor-changed" }],
  );
  return value?.endpoints.find(({ name }) => name === "http")?.url;
}

/** One piece of code with a button that copies it. */
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
