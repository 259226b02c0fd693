/**
 * The Logs page: the live log of all workers and of the engine.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import {
  Button,
  type ConsolePage,
  Dot,
  Empty,
  formatCount,
  Page,
  Search,
  Select,
  useQueryMember,
  useShell,
  useTypedMember,
} from "../../kit/mod.ts";
import { LOG_LEVELS, LOG_SOURCES, type LogFilter, type LogLevel } from "./log_lines.ts";
import { useLogs } from "./use_logs.ts";
import { LogTable, SOURCE_WORDS } from "./log_table.tsx";
import { WorkerSelect } from "../references.tsx";

const LEVELS = LOG_LEVELS.map((level) => ({
  value: level,
  label: level === "trace" ? "Every level" : level === "error" ? "error" : `${level} and above`,
}));
const SOURCES = [
  { value: "", label: "Any source" },
  ...LOG_SOURCES.map((source) => ({ value: source, label: SOURCE_WORDS[source] ?? source })),
];

const EXAMPLE = `import { Logger } from "engine-sdk";

new Logger().info("Hello", { from: "a worker" });`;

/** `/logs`. */
export const logsPage: ConsolePage = {
  path: "/logs",
  title: "Logs",
  icon: "logs",
  group: "observe",
  key: "l",
  onPhones: true,
  view: LogsPage,
};

function LogsPage(): VNode {
  const { live } = useShell();
  const [typed, type, text] = useTypedMember("text");
  const [level, setLevel] = useQueryMember("level", "trace");
  const [worker, setWorker] = useQueryMember("worker");
  const [source, setSource] = useQueryMember("source");
  const [functionId, setFunction] = useQueryMember("function");
  const [traceId, setTrace] = useQueryMember("trace");
  const filter = useMemo(
    (): LogFilter => ({ level: knownLevel(level), worker, functionId, traceId, text, source }),
    [level, worker, functionId, traceId, text, source],
  );
  const logs = useLogs(filter, true);
  const [isHeld, hold] = useState(false);
  const isFiltered = level !== "trace" ||
    [worker, functionId, traceId, text, source].join("") !== "";
  const moreFilters = (
    <>
      <Select label="Level" quiet value={knownLevel(level)} choices={LEVELS} onChange={setLevel} />
      <WorkerSelect value={worker} onChange={setWorker} />
      <Select label="Source" quiet value={source} choices={SOURCES} onChange={setSource} />
      <Only label="function" value={functionId} onClear={() => setFunction("")} />
      <Only label="trace" value={traceId} onClear={() => setTrace("")} />
    </>
  );
  const isLive = !isHeld && live.status.value.engine === true;
  return (
    <Page
      title="Logs"
      fill
      filters={<Search label="Find in the logs" placeholder="Text" value={typed} onChange={type} />}
      moreFilters={moreFilters}
      count={
        <span class="log-state">
          <Dot tone={isLive ? "ok" : "neutral"} label={isLive ? "Live" : "Paused"} pulse={isLive} />
          {isLive ? "Live" : "Paused"} · {formatCount(logs.lines.length)} lines
        </span>
      }
      actions={
        <>
          <Button icon={isHeld ? "play" : "pause"} pressed={isHeld} onPress={() => hold(!isHeld)}>
            {isHeld ? "Resume" : "Pause"}
          </Button>
          <Button icon="trash" label="Clear the view" onPress={logs.clear} />
        </>
      }
    >
      <LogTable
        logs={logs}
        word={text}
        isHeld={isHeld}
        onHold={hold}
        empty={<NoLines isFiltered={isFiltered} level={knownLevel(level)} />}
      />
    </Page>
  );
}

/** A filter that came with a link, with a button that removes it. */
function Only(
  { label, value, onClear }: { label: string; value: string; onClear: () => void },
): VNode | null {
  if (value === "") return null;
  const short = value.length > 28 ? `${value.slice(0, 12)}…${value.slice(-8)}` : value;
  return (
    <Button icon="close" label={`Any ${label}, not only ${value}`} title={value} onPress={onClear}>
      {`${label} ${short}`}
    </Button>
  );
}

/** What is good about levels without lines. */
const QUIET: Partial<Record<LogLevel, string>> = {
  error: "No errors were logged",
  warn: "No warnings or errors were logged",
};

function NoLines({ isFiltered, level }: { isFiltered: boolean; level: LogLevel }): VNode {
  const { router } = useShell();
  const quiet = QUIET[level];
  if (quiet !== undefined) {
    return (
      <Empty
        icon="check"
        title={quiet}
        action={<Button onPress={() => router.setQuery({ level: null })}>Show every level</Button>}
      >
        This is so for the lines that the engine keeps and that fit the other filters.
      </Empty>
    );
  }
  if (isFiltered) {
    return (
      <Empty
        icon="filter"
        title="No line fits"
        action={<Button onPress={() => router.go("/logs")}>Show all lines</Button>}
      >
        Lines that fit will appear here as they are said.
      </Empty>
    );
  }
  return (
    <Empty icon="logs" title="Nothing was said yet">
      What workers print or log appears here at once, tied to the call that was running:
      <pre>{EXAMPLE}</pre>
    </Empty>
  );
}

function knownLevel(level: string): LogLevel {
  return LOG_LEVELS.find((known) => known === level) ?? "trace";
}
