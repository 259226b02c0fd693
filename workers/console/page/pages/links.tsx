/**
 * Values of pairs that details show again and again: a worker, a function, a number, an id.
 *
 * @module
 */
import type { VNode } from "preact";
import { DEFAULT_NAMESPACE } from "../../../../sdk/typescript/wire/protocol.ts";
import { CopyButton, Link, link } from "../kit/mod.ts";

/** A link to a worker; `null` for no name. */
export function workerLink(name: string): VNode | null {
  return name === "" ? null : <Link to={link("/workers", name)}>{name}</Link>;
}

/** A link to a function; `null` for no id. */
export function functionLink(function_id: string | null, namespace = ""): VNode | null {
  if (function_id === null || function_id === "") return null;
  const to = namespace === "" || namespace === DEFAULT_NAMESPACE
    ? link("/functions", function_id)
    : link("/functions", namespace, function_id);
  return <Link to={to}>{function_id}</Link>;
}

/** A number or a time, whose digits stand below each other. */
export function figure(text: string, besides = ""): VNode {
  return (
    <span class="num">
      {text}
      {besides !== "" && <span class="quiet">{besides}</span>}
    </span>
  );
}

/** An id with a button that copies it; `what` is said of it, such as `span id`. */
export function copiedId(id: string, what: string): VNode | null {
  if (id === "") return null;
  return (
    <span class="with-copy">
      <code class="code cut">{id}</code>
      <CopyButton text={() => id} label={`Copy the ${what}`} />
    </span>
  );
}
