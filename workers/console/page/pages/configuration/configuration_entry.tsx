/**
 * The detail view of a configuration: its value, what its references stand for, its history.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedTrigger } from "../../../wire.ts";
import {
  Ago,
  Badge,
  Button,
  CopyButton,
  Detail,
  Empty,
  Failed,
  formatDateTime,
  isObject,
  JsonView,
  Pairs,
  type Query,
  Skeleton,
  Tabs,
  useLive,
  useQuery,
  useQueryMember,
} from "../../kit/mod.ts";
import { figure, ReadOnlyNotice, workerLink } from "../references.tsx";
import { DiffView } from "../state/changes.tsx";
import { ConfigurationEditor, type EditStart } from "./configuration_editor.tsx";
import {
  type ConfigurationChange,
  type ConfigurationRow,
  type FoundReference,
  isRestorable,
  referencesIn,
} from "./configuration_rows.ts";

/** The view of one entry, or its editor. */
export function ConfigurationEntry(
  { row, onClose }: { row: ConfigurationRow; onClose: () => void },
): VNode {
  const [tab, setTab] = useQueryMember("tab", "value");
  const [start, setStart] = useState<EditStart | null>(null);
  const { operator } = useLive().status.value;
  const expanded = useExpanded(row, operator);
  const references = useMemo(
    () => referencesIn(row.value, expanded.value?.value),
    [row.value, expanded.value],
  );
  if (start !== null) {
    const close = () => setStart(null);
    return <ConfigurationEditor row={row} start={start} references={references} onClose={close} />;
  }
  const tabs = [{ id: "value", title: "Value" }, { id: "history", title: "History" }, {
    id: "schema",
    title: "Schema",
  }];
  return (
    <Detail
      wide
      label={`Configuration ${row.id}`}
      title={<code>{row.id}</code>}
      actions={
        <>
          <CopyButton text={() => row.id} label="Copy the id" />
          {operator && (
            <Button small icon="edit" onPress={() => setStart({ kind: "now" })}>Edit</Button>
          )}
        </>
      }
      onClose={onClose}
    >
      <ReadOnlyNotice wanted="change values, and to see what references stand for" />
      <Tabs label="About the configuration" tabs={tabs} value={tab} onChange={setTab}>
        {tab === "history"
          ? <History row={row} mayAct={operator} onRestore={setStart} />
          : tab === "schema"
          ? <Schema row={row} />
          : <Value row={row} references={references} expanded={operator ? expanded : null} />}
      </Tabs>
    </Detail>
  );
}

/** The value as readers get it, with its secrets masked. */
interface Expanded {
  readonly value: Json;
}

/** Asked for where there is something to expand, since it tells what is in the environment. */
function useExpanded(row: ConfigurationRow, operator: boolean): Query<Expanded> {
  const refers = useMemo(() => referencesIn(row.value, undefined).length > 0, [row.value]);
  return useQuery<Expanded>(
    operator && refers
      ? { function_id: "configuration::get", payload: { id: row.id, masked: true } }
      : null,
    on(row.id),
  );
}

function on(configuration_id: string): readonly WatchedTrigger[] {
  return [{ type: "configuration", config: { configuration_id } }];
}

function Value(
  { row, references, expanded }: {
    row: ConfigurationRow;
    references: readonly FoundReference[];
    /** `null`: not for this page. */
    expanded: Query<Expanded> | null;
  },
): VNode {
  return (
    <div class="stack-4">
      {row.problem !== null && (
        <section class="notice warn" role="alert">
          <p>
            <b>Readers get an error.</b> {row.problem}
          </p>
        </section>
      )}
      <Pairs
        pairs={[
          ["Name", row.name === row.id ? null : row.name],
          ["Description", row.description],
          ["Version", figure(`${row.version}`)],
          ["Changed", <Ago key="" ms={row.updated_at_ms} />],
          ["Metadata", row.metadata === null ? null : <code>{JSON.stringify(row.metadata)}</code>],
        ]}
      />
      {row.has_value
        ? <JsonView value={row.value} label="Value" depth={4} />
        : (
          <Empty icon="configuration" title="No value yet">
            Readers get an error until one is set.
          </Empty>
        )}
      {row.has_secrets && row.has_value && (
        <p class="said">
          <code>[redacted]</code> stands for a secret, which is never shown here.
        </p>
      )}
      {references.length > 0 && <References references={references} expanded={expanded} />}
    </div>
  );
}

function References(
  { references, expanded }: {
    references: readonly FoundReference[];
    expanded: Query<Expanded> | null;
  },
): VNode {
  return (
    <>
      <h3>References</h3>
      <table class="plain-table" aria-label="References">
        <thead>
          <tr>
            <th>Place</th>
            <th>Reference</th>
            {expanded && <th>Stands for</th>}
          </tr>
        </thead>
        <tbody>
          {references.map(({ place, text, standsFor }) => (
            <tr key={place}>
              <td>{place}</td>
              <td>
                <code>{text}</code>
              </td>
              {expanded && (
                <td>
                  {standsFor === undefined
                    ? <span class="quiet">not known</span>
                    : <code>{JSON.stringify(standsFor)}</code>}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {expanded?.error && (
        <p class="said bad" role="alert">
          {expanded.error.message}
        </p>
      )}
    </>
  );
}

function Schema({ row: { schema } }: { row: ConfigurationRow }): VNode {
  return schema === true
    ? (
      <Empty icon="configuration" title="It was registered without a schema">
        Any JSON is taken as its value.
      </Empty>
    )
    : <JsonView value={schema} label="Schema" depth={3} />;
}

function History(
  { row, mayAct, onRestore }: {
    row: ConfigurationRow;
    mayAct: boolean;
    onRestore: (start: EditStart) => void;
  },
): VNode {
  const history = useQuery<ConfigurationChange>({
    function_id: "configuration::history",
    payload: { id: row.id },
    items: "changes",
    key: ["version"],
  }, on(row.id));
  // New ones are added at the end of a list that is kept up to date.
  const changes = history.items.toSorted((a, b) => b.version - a.version);
  if (history.status === "failed") {
    return <Failed what="The history cannot be read" error={history.error} retry={history.retry} />;
  }
  if (history.status === "loading") return <Skeleton rows={4} />;
  if (changes.length === 0) {
    return (
      <Empty icon="configuration" title="No change yet">
        Each value that is set is kept here, with who set it and what is different.
      </Empty>
    );
  }
  return (
    <ol class="config-changes" aria-label="Changes, the newest first">
      {changes.map((change, at) => (
        <Change
          key={change.version}
          change={change}
          isNow={at === 0}
          onRestore={mayAct ? () => onRestore({ kind: "restored", change }) : undefined}
        />
      ))}
    </ol>
  );
}

function Change(
  { change, isNow, onRestore }: {
    change: ConfigurationChange;
    isNow: boolean;
    onRestore: (() => void) | undefined;
  },
): VNode {
  const { version, at_ms, by, old_value, new_value } = change;
  const isKept = isRestorable(change);
  return (
    <li>
      <header>
        <b class="num">Version {version}</b>
        {isNow && <Badge tone="ok">now</Badge>}
        <time class="num quiet" dateTime={new Date(at_ms).toISOString()}>
          {formatDateTime(at_ms)}
        </time>
        <span>by {by === null ? "the engine" : workerLink(by)}</span>
        {!isNow && onRestore && (
          <Button
            small
            icon="restart"
            disabled={!isKept}
            label={`Restore version ${version}`}
            title={isKept ? undefined : "The history has no value of this size"}
            onPress={onRestore}
          >
            Restore
          </Button>
        )}
      </header>
      <DiffView
        before={old_value === null && version === 1 ? undefined : old_value}
        after={new_value}
        label={`Difference of version ${version}`}
      />
      {isSecretChange(change) && (
        <p class="said">Secrets are not in the history; a change of one shows no difference.</p>
      )}
    </li>
  );
}

/** A change that shows nothing was one of a secret, or of the order of members. */
function isSecretChange({ old_value, new_value }: ConfigurationChange): boolean {
  return isObject(new_value) && JSON.stringify(old_value) === JSON.stringify(new_value);
}
