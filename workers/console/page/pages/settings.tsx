/**
 * The Settings page: the effective configuration of the engine, and the origin of each value.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { ConfigValue } from "../../../../engine/ports/config.ts";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import {
  Badge,
  type Column,
  type ConsolePage,
  CopyButton,
  Empty,
  Failed,
  formatBytes,
  formatLimit,
  Page,
  Search,
  Segments,
  Skeleton,
  Split,
  Table,
  trimZeros,
  useIsNarrow,
  useQuery,
  useQueryMember,
} from "../kit/mod.ts";

const SETTINGS = { function_id: "engine::config::list" };
const CHANGES = [{ type: "engine::config-changed" }];
const NARROW_ROW = 52;

const SHOWN = [
  { value: "", label: "All" },
  { value: "set", label: "Set" },
  { value: "default", label: "Default" },
];

/** `/settings`. */
export const settingsPage: ConsolePage = {
  path: "/settings",
  title: "Settings",
  icon: "settings",
  group: "data",
  key: "e",
  view: Settings,
};

function Settings(): VNode {
  const { status, value, error, retry } = useQuery<
    { readonly settings: readonly ConfigValue[]; readonly path: string | null }
  >(SETTINGS, CHANGES);
  const [search, setSearch] = useQueryMember("q");
  const [shown, setShown] = useQueryMember("show");
  const isNarrow = useIsNarrow();
  const settings = value?.settings ?? [];
  const rows = useMemo(
    () =>
      settings.filter((setting) => {
        const isSet = setting.source !== "default";
        return (shown === "" || isSet === (shown === "set")) && matchesSearch(setting, search);
      }),
    [settings, search, shown],
  );
  return (
    <Page
      fill
      title="Settings"
      count={value && `${settings.filter(isChanged).length} of ${settings.length} changed`}
      actions={value?.path && <File path={value.path} />}
      filters={
        <>
          <Search label="Search settings" value={search} onChange={setSearch} />
          <Segments label="Show" value={shown} choices={SHOWN} onChange={setShown} />
        </>
      }
    >
      <Split>
        {status === "failed" && value === null
          ? <Failed what="The settings cannot be read" error={error} retry={retry} />
          : value === null
          ? <Skeleton rows={9} />
          : (
            <Table
              label="Settings"
              columns={isNarrow ? NARROW_COLUMNS : COLUMNS}
              rowHeight={isNarrow ? NARROW_ROW : undefined}
              items={rows}
              keyOf={({ key }) => key}
              empty={
                <Empty icon="filter" title="No setting fits">
                  <p>Search for less, or show all of them.</p>
                </Empty>
              }
            />
          )}
      </Split>
    </Page>
  );
}

const KEY: Column<ConfigValue> = {
  id: "key",
  title: "Setting",
  width: "minmax(120px, 1.2fr)",
  sort: ({ key }) => key,
  cell: (setting) => (
    <span class={`cut mono ${isChanged(setting) ? "setting-changed" : ""}`} title={setting.key}>
      {setting.key}
    </span>
  ),
};

const COLUMNS: readonly Column<ConfigValue>[] = [
  KEY,
  {
    id: "value",
    title: "Value",
    width: "minmax(84px, 1fr)",
    cell: ({ key, value }) => <Value name={key} value={value} />,
  },
  {
    id: "source",
    title: "From",
    width: "minmax(104px, 0.8fr)",
    sort: originText,
    cell: (setting) => <Origin setting={setting} />,
  },
  {
    id: "default",
    title: "Default",
    width: "minmax(100px, 0.8fr)",
    hide: "phone",
    cell: ({ key, default: usual }) => (
      <span class="cut quiet">
        <Value name={key} value={usual} />
      </span>
    ),
  },
  {
    id: "restart",
    title: "Takes effect",
    width: "112px",
    hide: "tablet",
    sort: ({ needs_restart }) => Number(needs_restart),
    cell: ({ needs_restart }) => (
      <span class="quiet">{needs_restart ? "on restart" : "at once"}</span>
    ),
  },
];

/** On phones the value is below the name: side by side both would be cut off. */
const NARROW_COLUMNS: readonly Column<ConfigValue>[] = [
  {
    ...KEY,
    title: "Setting and value",
    width: "minmax(0, 1fr)",
    cell: (setting) => (
      <span class="setting-pair">
        {KEY.cell(setting)}
        <span class="cut">
          <Value name={setting.key} value={setting.value} />
        </span>
      </span>
    ),
  },
  ...COLUMNS.filter(({ id }) => id === "source").map((from) => ({ ...from, width: "104px" })),
];
function File({ path }: { path: string }): VNode {
  return (
    <span class="row-flex config-file">
      <code class="cut quiet" title={path}>{path}</code>
      <CopyButton label="Copy the path" text={() => path} />
    </span>
  );
}

function Value({ name, value }: { name: string; value: Json }): VNode {
  if (value === null) return <span class="quiet">none</span>;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const measured = withUnit(name, value);
  if (measured !== null) return <span class="cut num" title={text}>{measured}</span>;
  return <code class="cut" title={text}>{text === "" ? '""' : text}</code>;
}

function Origin({ setting }: { setting: ConfigValue }): VNode {
  const tones = { file: "accent", variable: "info", option: "warn", default: "neutral" } as const;
  if (setting.source === "default") return <span class="quiet">default</span>;
  const words = originText(setting);
  return <Badge tone={tones[setting.source]} title={words}>{words}</Badge>;
}

const MIB = 1_048_576;

/** A number with the unit that ends its name: `max_message_bytes` 67108864 is `64 MiB`. */
export function withUnit(name: string, value: Json): string | null {
  if (typeof value !== "number") return null;
  const unit = /_(bytes|kb|mb|gb|ms|s|percent)(?:_per_\w+)?$/.exec(name)?.[1];
  switch (unit) {
    case "bytes":
      return trimZeros(formatBytes(value));
    case "kb":
      return trimZeros(formatBytes(value * 1_024));
    case "mb":
      return trimZeros(formatBytes(value * MIB));
    case "gb":
      return trimZeros(formatBytes(value * 1_024 * MIB));
    case "ms":
      return formatLimit(value);
    case "s":
      return formatLimit(value * 1_000);
    case "percent":
      return `${value} %`;
  }
  return null;
}

/** Whether the value differs from the default. */
export function isChanged({ value, default: usual }: ConfigValue): boolean {
  return JSON.stringify(value) !== JSON.stringify(usual);
}

/** The origin of a value: `line 12`, `PORT, line 12`, `command line`, `default`. */
export function originText({ source, line, variable }: ConfigValue): string {
  const place = line === null ? "" : `line ${line}`;
  switch (source) {
    case "file":
      return place || "file";
    case "variable":
      return [variable ?? "variable", place].filter((part) => part !== "").join(", ");
    case "option":
      return "command line";
    case "default":
      return "default";
  }
}

/** Whether every word of a search occurs in name, value or origin of a setting. */
export function matchesSearch(setting: ConfigValue, search: string): boolean {
  const { key, value } = setting;
  const text = `${key} ${JSON.stringify(value)} ${withUnit(key, value) ?? ""} ${
    originText(setting)
  }`
    .toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
