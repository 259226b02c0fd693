/**
 * A table of log lines of any number, with the detail view of one.
 *
 * Up and Down move while the box has the focus. The table follows new lines until one scrolls up.
 *
 * @module
 */
import type { ComponentChildren, JSX, VNode } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Badge,
  Button,
  CopyButton,
  Detail,
  Failed,
  formatCount,
  formatDateTime,
  JsonView,
  Link,
  link,
  Pairs,
  rowAfterKey,
  Skeleton,
  Split,
  Stack,
  stackOf,
  Time,
  type Tone,
  useFocusBack,
  useIsNarrow,
  VirtualList,
} from "../../kit/mod.ts";
import {
  countNewer,
  fieldsOf,
  fieldsText,
  type LogKey,
  type LogLevel,
  type LogLine,
  splitAtWord,
} from "./log_lines.ts";
import type { Logs } from "./use_logs.ts";
import { figure, functionLink, workerLink } from "../references.tsx";

const ROW_HEIGHT = 24;
/** On phones a line has two rows: when, how bad and whose, then the text. */
const NARROW_ROW_HEIGHT = 44;
const PAGE_ROWS = 20;

/** The colour of each level. */
const LEVEL_TONES: Readonly<Record<LogLevel, Tone>> = {
  trace: "neutral",
  debug: "neutral",
  info: "info",
  warn: "warn",
  error: "bad",
};

/** Properties of a {@linkcode LogTable}. */
interface LogTableProps {
  readonly logs: Logs;
  /** A word that is highlighted. */
  readonly word?: string;
  /** Hides the links to traces, because all lines are of one trace. */
  readonly hideTrace?: boolean;
  /** New lines are held back. */
  readonly isHeld?: boolean;
  readonly onHold?: (held: boolean) => void;
  readonly empty: ComponentChildren;
}

/** A table of log lines. */
export function LogTable(props: LogTableProps): VNode {
  const { logs, isHeld = false, onHold } = props;
  const [chosen, choose] = useState<LogKey | null>(null);
  const box = useFocusBack(chosen !== null);
  const [reach, setReach] = useState<LogKey | null>(null);
  const frozen = useRef(logs.lines);
  if (!isHeld) frozen.current = logs.lines;
  const lines = frozen.current;
  const waiting = isHeld ? countNewer(logs.lines, lines.at(-1)?.key) : 0;
  const older = async () => {
    const first = logs.lines[0]?.key;
    onHold?.(false);
    await logs.loadOlder();
    // The line that was the first stays visible.
    if (first !== undefined) setReach(first);
  };
  const goOn = () => {
    onHold?.(false);
    setReach(logs.lines.at(-1)?.key ?? null);
  };
  if (logs.status === "failed") {
    return <Failed what="Logs cannot be read" error={logs.error} retry={logs.retry} />;
  }
  if (logs.status === "loading" && lines.length === 0) return <Skeleton rows={12} />;
  if (lines.length === 0) return <>{props.empty}</>;
  const line = lines.find(({ key }) => key === chosen);
  return (
    <Split detail={line && <LineDetail line={line} onClose={() => choose(null)} />}>
      <div ref={box} class="said-box">
        <Notes logs={logs} onOlder={() => void older()} />
        <Lines
          {...props}
          lines={lines}
          chosen={chosen}
          choose={choose}
          reach={reach}
          onAtEnd={(atEnd) => {
            setReach(null);
            onHold?.(!atEnd);
          }}
        />
        {waiting > 0 && (
          <div class="log-waiting">
            <Button kind="primary" small icon="down" onPress={goOn}>
              {`${formatCount(waiting)} new ${waiting === 1 ? "line" : "lines"}`}
            </Button>
          </div>
        )}
      </div>
    </Split>
  );
}

/** Above the lines: that there are older ones, or that some are missing. */
function Notes({ logs, onOlder }: { logs: Logs; onOlder: () => void }): VNode | null {
  if (!logs.hasOlder && logs.dropped === 0) return null;
  return (
    <div class="log-notes">
      {logs.hasOlder && <Button small kind="bare" icon="up" onPress={onOlder}>Older lines</Button>}
      {logs.dropped > 0 && (
        <span class="quiet num">
          {formatCount(logs.dropped)} lines were left out: there were too many
        </span>
      )}
    </div>
  );
}

interface LinesProps extends LogTableProps {
  readonly lines: readonly LogLine[];
  /** Key of the selected line. */
  readonly chosen: LogKey | null;
  readonly choose: (key: LogKey | null) => void;
  /** Key of the line to scroll to instead of the selected one. */
  readonly reach: LogKey | null;
  readonly onAtEnd: (atEnd: boolean) => void;
}

function Lines(props: LinesProps): VNode {
  const { lines, chosen, choose, reach, word = "", hideTrace = false, isHeld = false } = props;
  const id = useId();
  const rowHeight = useIsNarrow() ? NARROW_ROW_HEIGHT : ROW_HEIGHT;
  const placeOf = (wanted: LogKey | null): number =>
    wanted === null ? -1 : lines.findIndex(({ key }) => key === wanted);
  const at = placeOf(chosen);
  const keyDown = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
    if (event.target !== event.currentTarget) return;
    const to = rowAfterKey(event.key, at < 0 ? lines.length : at, lines.length, PAGE_ROWS);
    if (to === undefined) return;
    event.preventDefault();
    choose(lines[to]!.key);
  };
  return (
    <div class="log-lines">
      <VirtualList
        items={lines}
        rowHeight={rowHeight}
        keyOf={({ key }) => key}
        role="rowgroup"
        box={{
          role: "grid",
          tabIndex: 0,
          "aria-label": "Log lines",
          "aria-rowcount": lines.length,
          "aria-activedescendant": at < 0 ? undefined : `${id}-${at}`,
          onKeyDown: keyDown,
        }}
        reach={reach === null ? at : placeOf(reach)}
        follow={!isHeld}
        onAtEnd={props.onAtEnd}
        row={(line, place) => (
          <Line
            id={`${id}-${place}`}
            line={line}
            place={place}
            height={rowHeight}
            word={word}
            hideTrace={hideTrace}
            isChosen={line.key === chosen}
            onPress={() => choose(line.key === chosen ? null : line.key)}
          />
        )}
      />
    </div>
  );
}

interface LineProps {
  readonly id: string;
  readonly line: LogLine;
  readonly place: number;
  /** In pixels. */
  readonly height: number;
  readonly word: string;
  readonly hideTrace: boolean;
  readonly isChosen: boolean;
  readonly onPress: () => void;
}

function Line({ id, line, place, height, word, hideTrace, isChosen, onPress }: LineProps): VNode {
  return (
    <div
      role="row"
      id={id}
      class={`said-line ${line.level} ${isChosen ? "chosen" : ""}`}
      style={{ height: `${height}px` }}
      aria-rowindex={place + 1}
      aria-selected={isChosen}
      onClick={onPress}
    >
      <span role="gridcell" class="log-time">
        <Time ms={line.atMs} fine />
      </span>
      <span role="gridcell" class="log-level">{line.level}</span>
      <span role="gridcell" class="log-worker cut">
        {line.worker}
        {line.replica !== null && line.replica > 1 && <span class="quiet">#{line.replica}</span>}
        {line.engine !== null && <span class="quiet">@{line.engine}</span>}
      </span>
      <span role="gridcell" class="log-text cut">
        <Marked text={line.text} word={word} />
        <LogFields line={line} />
      </span>
      <span role="gridcell" class="log-links">
        {!hideTrace && line.traceId !== null && (
          <Link
            to={traceLink(line)}
            class="log-trace"
            title="Show the trace"
            label={`Trace of: ${line.text.slice(0, 80)}`}
          >
            trace
          </Link>
        )}
      </span>
    </div>
  );
}

/** A line outside of a table: time, level, text. */
export function LogLineText({ line }: { line: LogLine }): VNode {
  return (
    <span class={`log-short ${line.level}`}>
      <Time ms={line.atMs} fine /> <b class="log-level">{line.level}</b> {line.text}
    </span>
  );
}

/** The first fields of a line. */
export function LogFields({ line }: { line: LogLine }): VNode | null {
  const text = fieldsText(line);
  return text === "" ? null : <span class="log-extras">{text}</span>;
}

function Marked({ text, word }: { text: string; word: string }): VNode {
  if (word === "") return <>{text}</>;
  return (
    <>
      {splitAtWord(text, word).map((part, at) =>
        part.isHit ? <mark key={at}>{part.text}</mark> : part.text
      )}
    </>
  );
}

function LineDetail({ line, onClose }: { line: LogLine; onClose: () => void }): VNode {
  const { worker, functionId, traceId } = line;
  const stack = stackOf(line.attributes);
  const attributes = fieldsOf(line);
  const copy = () => JSON.stringify(line, null, 2);
  return (
    <Detail
      title={<Badge tone={LEVEL_TONES[line.level]}>{line.level}</Badge>}
      label={`Log line of ${worker}`}
      actions={<CopyButton text={copy} label="Copy the line" />}
      onClose={onClose}
    >
      <pre class="raw-text" tabIndex={0}>{line.text}</pre>
      {stack !== null && <Stack text={stack} />}
      <Pairs
        pairs={[
          ["When", figure(formatDateTime(line.atMs, true))],
          ["Worker", workerLink(worker)],
          ["Replica", line.replica],
          ["Source", SOURCE_WORDS[line.source] ?? line.source],
          ["Function", functionLink(functionId)],
          ["Trace", traceId && <TraceLink key="trace" line={line} />],
        ]}
      />
      {functionId && (
        <p>
          <Link to={link("/logs", { function: functionId })}>Lines of this function only</Link>
        </p>
      )}
      {Object.keys(attributes).length > 0 && (
        <JsonView value={attributes as Json} label="Fields" depth={2} />
      )}
    </Detail>
  );
}

/** The sources of log lines, for people. */
export const SOURCE_WORDS: Readonly<Record<string, string | undefined>> = {
  logger: "Logger of the SDK",
  output: "Printed by the process",
  engine: "The engine itself",
  function: "A call of engine::log",
};

function TraceLink({ line }: { line: LogLine }): VNode {
  return (
    <Link to={traceLink(line)}>
      <code class="code">{line.traceId}</code>
    </Link>
  );
}

function traceLink({ traceId, spanId }: LogLine): string {
  return link("/traces", traceId ?? "", { span: spanId });
}
