/**
 * How pages refer to workers, functions and triggers: addresses, links, labels, and the controls
 * that select what lists show.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { DEFAULT_NAMESPACE, type JsonObject } from "../../../../sdk/typescript/wire/protocol.ts";
import {
  Badge,
  Code,
  CopyButton,
  Link,
  link,
  type QueryMembers,
  Select,
  Toggle,
  useLive,
  useQuery,
  useQueryMember,
  VirtualList,
} from "../kit/mod.ts";

/** Identifies a function in lists. */
export function functionKey(namespace: string, function_id: string): string {
  return `${namespace}/${function_id}`;
}

/** The address of a function; an empty namespace is the default one. */
export function functionAddress(
  function_id: string,
  namespace: string,
  query: QueryMembers = {},
): string {
  return namespace === "" || namespace === DEFAULT_NAMESPACE
    ? link("/functions", function_id, query)
    : link("/functions", namespace, function_id, query);
}

/** A link to a worker; `null` for no name. */
export function workerLink(name: string): VNode | null {
  return name === "" ? null : <Link to={link("/workers", name)}>{name}</Link>;
}

/** A link to a function; `null` for no id. */
export function functionLink(function_id: string | null, namespace = ""): VNode | null {
  if (function_id === null || function_id === "") return null;
  return <Link to={functionAddress(function_id, namespace)}>{function_id}</Link>;
}

/** A number or a time in digits of equal width; `suffix` follows in a lighter colour. */
export function figure(text: string, suffix = ""): VNode {
  return (
    <span class="num">
      {text}
      {suffix !== "" && <span class="quiet">{suffix}</span>}
    </span>
  );
}

/** An id with a copy button; `what` names it in the button's label, such as `span id`. */
export function copiedId(id: string, what: string): VNode | null {
  if (id === "") return null;
  return (
    <span class="with-copy">
      <code class="code cut">{id}</code>
      <CopyButton text={() => id} label={`Copy the ${what}`} />
    </span>
  );
}

/**
 * A trigger in a few words, such as `GET /orders/:id`; of an unknown type `summary` or its
 * configuration.
 */
export function triggerLabel(type: string, config: unknown, summary = ""): string {
  const fields = (typeof config === "object" && config !== null ? config : {}) as Record<
    string,
    unknown
  >;
  const text = (name: string): string => typeof fields[name] === "string" ? fields[name] : "";
  if (type === "http" && text("api_path") !== "") {
    const path = text("api_path");
    const method = (text("http_method") || "GET").toUpperCase();
    return `${method} ${path.startsWith("/") ? path : `/${path}`}`;
  }
  if (type === "websocket" && text("api_path") !== "") {
    const path = text("api_path");
    return `WS ${path.startsWith("/") ? path : `/${path}`}`;
  }
  if (type === "state" && text("scope") !== "") {
    return text("key") === "" ? text("scope") : `${text("scope")} / ${text("key")}`;
  }
  const known = text("expression") || text("topic") || text("stream_name") || text("queue");
  if (known !== "") return known;
  const short = summary || JSON.stringify(config ?? {});
  return short === "{}" || short === "null" ? "always" : short;
}

/** Whether engine and console call a function for themselves. */
export function isOwnFunction(function_id: string): boolean {
  return /^(engine|engine-console)::/.test(function_id);
}

/** Marks a trigger that does not fire, with the reason; nothing for one that does. */
export function InactiveBadge(
  { status, reason }: { status?: string | undefined; reason?: string | undefined },
): VNode | null {
  if (status === undefined || status === "active") return null;
  return <Badge tone="warn" title={reason}>{status}</Badge>;
}

/** Whether a list also shows what belongs to the engine itself; in the address as `all`. */
export function useEngineOwn(): [boolean, (shown: boolean) => void] {
  const [all, setAll] = useQueryMember("all");
  return [all === "yes", (shown) => setAll(shown ? "yes" : "")];
}

/** The control of {@linkcode useEngineOwn}. */
export function EngineOwnToggle(): VNode {
  const [all, setAll] = useEngineOwn();
  return <Toggle label="Engine's own" checked={all} onChange={setAll} />;
}

/** Selects one of the connected workers; a selected one that left stays in the list. */
export function WorkerSelect(
  { value, onChange }: { value: string; onChange: (value: string) => void },
): VNode {
  const { items } = useQuery<JsonObject>(
    { function_id: "engine::workers::list", items: "workers", key: ["id"] },
    [{ type: "engine::workers-available" }],
  );
  const choices = useMemo(() => {
    const names = new Set(items.map(({ name }) => String(name)));
    if (value !== "") names.add(value);
    const named = [...names].sort().map((name) => ({ value: name, label: name }));
    return [{ value: "", label: "Any worker" }, ...named];
  }, [items, value]);
  return <Select label="Worker" quiet value={value} choices={choices} onChange={onChange} />;
}

/** Height of a name in a {@linkcode NameList}, in pixels. */
const NAME_HEIGHT = 32;

/** A list of names beside a page, each a link. */
export function NameList(
  { label, names, open, to }: {
    label: string;
    names: readonly string[];
    /** The name whose page is shown. */
    open: string;
    to: (name: string) => string;
  },
): VNode {
  return (
    <nav class="state-scopes" aria-label={label}>
      <h2>
        {label} <span class="count">{names.length}</span>
      </h2>
      <VirtualList
        items={names}
        rowHeight={NAME_HEIGHT}
        keyOf={(name) => name}
        label={label}
        reach={names.indexOf(open)}
        row={(name) => (
          <div role="listitem" style={{ height: `${NAME_HEIGHT}px` }}>
            <Link to={to(name)} class="state-scope" title={name} current={name === open}>
              {name}
            </Link>
          </div>
        )}
      />
    </nav>
  );
}

/** Says why there is nothing to press on a page that is not the operator's. */
export function ReadOnlyNotice({ wanted }: { wanted: string }): VNode | null {
  const { operator, connection } = useLive().status.value;
  if (operator || connection !== "open") return null;
  return (
    <p class="quiet">
      This page may only look. To {wanted}, open it with{" "}
      <span class="whole">
        <Code>engine console --open</Code>
      </span>
    </p>
  );
}
