/**
 * The detail view of a function: calling it, its schemas and triggers, its metrics, and code that
 * calls it.
 *
 * @module
 */
import type { VNode } from "preact";
import { DEFAULT_NAMESPACE, type Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Badge,
  Chart,
  CopyButton,
  Detail,
  Empty,
  Failed,
  formatDuration,
  formatRate,
  JsonView,
  Link,
  link,
  Pairs,
  Skeleton,
  Stat,
  Tabs,
  useQuery,
  useQueryMember,
  useTrigger,
} from "../../kit/mod.ts";
import type { FunctionInfo } from "./function_rows.ts";
import { functionKey, InactiveBadge, triggerLabel } from "../references.tsx";
import { CallCode } from "./snippets.tsx";
import { InvokePanel, useInvoke } from "./invoke_panel.tsx";
import type { SamplesState } from "../metrics/samples.ts";

const TABS = [
  { id: "call", title: "Call" },
  { id: "about", title: "About" },
  { id: "metrics", title: "Metrics" },
  { id: "code", title: "Code" },
];

/** The detail view of a function. */
export function FunctionDetail(
  { function_id, namespace, samples, onClose }: {
    function_id: string;
    namespace: string;
    samples: SamplesState;
    onClose: () => void;
  },
): VNode {
  const payload = { function_id, namespace, include_replicas: true };
  const found = useQuery<FunctionInfo & Json>(
    { function_id: "engine::functions::info", payload },
    [{ type: "engine::functions-available" }, { type: "engine::triggers-available" }],
  );
  return (
    <Detail
      wide
      label={`Function ${function_id}`}
      title={<code>{function_id}</code>}
      actions={<CopyButton text={() => function_id} label="Copy the id" />}
      onClose={onClose}
    >
      {found.value !== null
        ? <Known info={found.value} samples={samples} />
        : found.status === "loading"
        ? <Skeleton />
        : found.error?.code === "NOT_FOUND"
        ? <MissingFunction function_id={function_id} retry={found.retry} />
        : <Failed what="It cannot be looked up" error={found.error} retry={found.retry} />}
    </Detail>
  );
}

function Known({ info, samples }: { info: FunctionInfo; samples: SamplesState }): VNode {
  const { function_id, namespace, request_schema } = info;
  const [tab, setTab] = useQueryMember("tab", "call");
  const invoke = useInvoke({ function_id, namespace, schema: request_schema });
  return (
    <>
      <p class="fn-head">
        {namespace !== DEFAULT_NAMESPACE && <Badge>{namespace}</Badge>}
        <Offered info={info} />
        <span class="said">{info.description ?? "It has no description"}</span>
      </p>
      <Tabs label="About the function" tabs={TABS} value={tab} onChange={setTab}>
        {tab === "about"
          ? <About info={info} />
          : tab === "metrics"
          ? <Metrics info={info} state={samples} />
          : tab === "code"
          ? <CallCode info={info} payload={invoke.read.payload} />
          : <InvokePanel invoke={invoke} />}
      </Tabs>
    </>
  );
}

/** The worker that offers it, or the engine where one does. */
function Offered({ info: { worker_name, engine } }: { info: FunctionInfo }): VNode {
  if (engine !== undefined) return <Link to={link("/cluster")} class="link">engine {engine}</Link>;
  return <Link to={link("/workers", worker_name)} class="link">{worker_name}</Link>;
}

function About({ info }: { info: FunctionInfo }): VNode {
  const { workers, metadata, request_schema, response_schema, registered_triggers } = info;
  return (
    <div class="stack-4">
      <Pairs
        pairs={[
          [
            "Worker",
            <Offered key="" info={info} />,
          ],
          ["Namespace", info.namespace],
          ["Served by", info.served_by ? <code key="">{info.served_by}</code> : null],
          ["Replicas", workers ? <Replicas key="" workers={workers} /> : null],
          [
            "Calls",
            <Link key="" to={link("/traces", { function: info.function_id })}>Its traces</Link>,
          ],
          ["Logs", <Link key="" to={link("/logs", { function: info.function_id })}>Its logs</Link>],
        ]}
      />
      {info.contenders !== undefined && (
        <p class="notice warn">
          Workers of different names offer it, and each gets some of its calls:{" "}
          {info.contenders.join(", ")}. Give one of them another id, or both the same name.
        </p>
      )}
      <h3>What it takes</h3>
      {request_schema === undefined
        ? <p class="said">It does not say. A schema makes a form here and bad calls are refused.</p>
        : <JsonView value={request_schema} label="Schema of the payload" depth={3} />}
      <h3>What it returns</h3>
      {response_schema === undefined
        ? <p class="said">It does not say.</p>
        : <JsonView value={response_schema} label="Schema of the result" depth={3} />}
      <h3>What runs it</h3>
      {registered_triggers.length === 0
        ? <p class="said">No trigger does; it runs when a worker calls it.</p>
        : (
          <ul class="fn-triggers">
            {registered_triggers.map(({ id, trigger_type, config, status, reason }) => (
              <li key={id}>
                <Badge>{trigger_type}</Badge>
                <InactiveBadge status={status} reason={reason} />
                <Link to={link("/triggers", id)}>{triggerLabel(trigger_type, config)}</Link>
              </li>
            ))}
          </ul>
        )}
      {metadata !== undefined && (
        <>
          <h3>Metadata</h3>
          <JsonView value={metadata} label="Metadata" />
        </>
      )}
    </div>
  );
}

function Replicas({ workers }: { workers: NonNullable<FunctionInfo["workers"]> }): VNode {
  return (
    <span class="fn-replicas">
      {workers.map(({ worker_id, name }) => (
        <code key={worker_id} title={worker_id}>{name} {worker_id.slice(0, 8)}</code>
      ))}
    </span>
  );
}

function Metrics({ info, state }: { info: FunctionInfo; state: SamplesState }): VNode {
  const { samples, status } = state;
  const key = functionKey(info.namespace, info.function_id);
  const traffic = samples.traffic(key);
  if (status === "loading") return <Skeleton rows={4} />;
  if (status === "failed") {
    return <Failed what="There are no metrics" error={state.error} retry={state.retry} />;
  }
  if (traffic === undefined) {
    return (
      <Empty icon="metrics" title="Not called in the last five minutes">
        Calls show up here within a second.
      </Empty>
    );
  }
  const of = (field: Parameters<typeof samples.functions.series>[1]) =>
    samples.functions.series(key, field);
  const { at_ms } = samples.functions;
  return (
    <div class="stack-4">
      <div class="stats">
        <Stat label="Calls" value={formatRate(traffic.calls_per_s)} />
        <Stat
          label="Errors"
          value={formatRate(traffic.errors_per_s)}
          {...traffic.errors_per_s > 0 && { tone: "bad" as const }}
        />
        <Stat label="p50" value={formatDuration(traffic.p50_ms)} />
        <Stat label="p99" value={formatDuration(traffic.p99_ms)} />
      </div>
      <Chart
        label="Calls and errors per second"
        at_ms={at_ms}
        series={[
          { label: "Calls", values: of("calls_per_s"), area: true },
          { label: "Errors", values: of("errors_per_s"), tone: "bad" },
        ]}
        format={formatRate}
        sync="function"
      />
      <Chart
        label="Latency"
        at_ms={at_ms}
        series={[
          { label: "p50", values: of("p50_ms") },
          { label: "p99", values: of("p99_ms") },
        ]}
        format={formatDuration}
        sync="function"
      />
    </div>
  );
}

function MissingFunction(
  { function_id, retry }: { function_id: string; retry: () => void },
): VNode {
  useTrigger({ type: "engine::functions-available" }, retry);
  return (
    <Empty icon="functions" title="No worker offers this function now">
      <p>
        <code class="code">{function_id}</code> shows up here by itself when a worker registers it.
      </p>
    </Empty>
  );
}
