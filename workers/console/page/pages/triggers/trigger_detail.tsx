/**
 * One trigger: what it waits for and what it runs; those of type `http` can be tried out.
 *
 * @module
 */
import type { VNode } from "preact";
import { DEFAULT_NAMESPACE, type Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Badge,
  CopyButton,
  Detail,
  Empty,
  JsonView,
  Link,
  link,
  Pairs,
  Tabs,
  useQuery,
  useQueryMember,
} from "../../kit/mod.ts";
import { routeOf } from "../functions/http_request.ts";
import { triggerLabel } from "../trigger_label.ts";
import type { TriggerItem } from "./trigger_rows.ts";
import { functionLink } from "../functions/functions.tsx";
import { HttpTester } from "./http_tester.tsx";

/** The answer of `engine::registered-triggers::info`, as far as it is shown. */
interface TriggerInfo {
  readonly metadata?: Json;
  readonly trigger: {
    readonly description: string;
    readonly worker_name: string;
    readonly configuration_schema: Json;
    readonly request_schema: Json;
  } | null;
  readonly function: { readonly namespace: string; readonly description?: string } | null;
}

const TABS = [{ id: "try", title: "Try it" }, { id: "about", title: "About" }];

/** What stands beside the list; `item` is `undefined` when there is no such trigger (any more). */
export function TriggerDetail(
  { id, item, onClose }: { id: string; item: TriggerItem | undefined; onClose: () => void },
): VNode {
  const [tab, setTab] = useQueryMember("tab", "try");
  if (item === undefined) {
    return (
      <Detail label="Trigger" title="Trigger" onClose={onClose}>
        <Empty icon="triggers" title="There is no such trigger now">
          <p>
            Its worker may have left. It has the id <code class="code">{id}</code>.
          </p>
        </Empty>
      </Detail>
    );
  }
  const { trigger_type, config, config_summary } = item;
  const name = triggerLabel(trigger_type, config, config_summary);
  const route = trigger_type === "http" ? routeOf(config) : undefined;
  return (
    <Detail
      wide
      label={`Trigger ${name}`}
      title={<code>{name}</code>}
      actions={<CopyButton text={() => id} label="Copy the id" />}
      onClose={onClose}
    >
      {route === undefined
        ? <About item={item} />
        : (
          <Tabs label="About the trigger" tabs={TABS} value={tab} onChange={setTab}>
            {tab === "about" ? <About item={item} /> : <HttpTester key={id} route={route} />}
          </Tabs>
        )}
    </Detail>
  );
}

function About({ item }: { item: TriggerItem }): VNode {
  const { id, trigger_type, function_id, worker_name, config } = item;
  const { value } = useQuery<TriggerInfo & Json>(
    { function_id: "engine::registered-triggers::info", payload: { id } },
    [{ type: "engine::triggers-available" }, { type: "engine::functions-available" }],
  );
  const namespace = value?.function?.namespace ?? DEFAULT_NAMESPACE;
  return (
    <div class="stack-4">
      {value !== null && value.trigger === null && (
        <p class="notice warn">
          Nobody provides the type <code class="code">{trigger_type}</code>{" "}
          now. The trigger waits and starts by itself when somebody does.
        </p>
      )}
      {value !== null && value.function === null && (
        <p class="notice warn">
          Nobody offers the function <code class="code">{function_id}</code>{" "}
          now, so firings fail until somebody does.
        </p>
      )}
      <Pairs
        pairs={[
          ["Type", <Badge key="">{trigger_type}</Badge>],
          ["Runs", <Link key="" to={functionLink(function_id, namespace)}>{function_id}</Link>],
          ["Asked for by", <Link key="" to={link("/workers", worker_name)}>{worker_name}</Link>],
          ["Provided by", value?.trigger?.worker_name],
          ["Id", <code key="">{id}</code>],
        ]}
      />
      <h3>Configuration</h3>
      <JsonView value={config} label="Configuration" depth={3} />
      {value?.metadata !== undefined && (
        <>
          <h3>Metadata, handed to the function</h3>
          <JsonView value={value.metadata} label="Metadata" />
        </>
      )}
      {value?.trigger && value.trigger.request_schema !== null && (
        <>
          <h3>What the function gets</h3>
          <JsonView value={value.trigger.request_schema} label="Schema of the payload" depth={2} />
        </>
      )}
      {value?.trigger && value.trigger.configuration_schema !== null && (
        <>
          <h3>What the type can be told</h3>
          <JsonView
            value={value.trigger.configuration_schema}
            label="Schema of the configuration"
            depth={2}
          />
        </>
      )}
    </div>
  );
}
