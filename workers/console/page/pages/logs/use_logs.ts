/**
 * The log lines that match a filter: stored ones, new ones as they come, and older ones on demand.
 *
 * @module
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import { type CallFailure, type Live, useShell, useTrigger } from "../../kit/mod.ts";
import {
  type LogFilter,
  type LogLine,
  LogTail,
  matchesFilter,
  readLogLine,
  SEVERITY_OF,
} from "./log_lines.ts";
import { numberOf, objectOf } from "../../kit/json.ts";

/** Lines fetched at once. */
const PAGE_LINES = 500;
/** New lines arrive in batches of this time. */
const BATCH_MS = 250;

/** Log lines, the oldest first. */
export interface Logs {
  readonly status: "loading" | "ready" | "failed";
  readonly lines: readonly LogLine[];
  /** How many lines were left out because there were too many. */
  readonly dropped: number;
  readonly error: CallFailure | null;
  /** Whether the engine may have older lines, and there is room for them. */
  readonly hasOlder: boolean;
  readonly loadOlder: () => Promise<void>;
  readonly clear: () => void;
  readonly retry: () => void;
}

interface State {
  readonly status: Logs["status"];
  readonly lines: readonly LogLine[];
  readonly dropped: number;
  readonly error: CallFailure | null;
  readonly hasOlder: boolean;
}

const EMPTY: State = { status: "loading", lines: [], dropped: 0, error: null, hasOlder: false };

/** `follow`: new lines are added as they come; otherwise only when `version` changes. */
export function useLogs(filter: LogFilter, follow: boolean, version = 0): Logs {
  const { live, toasts } = useShell();
  const asked = JSON.stringify(filter);
  const tail = useRef(new LogTail());
  const current = useRef(asked);
  const [state, setState] = useState<State>(EMPTY);
  const [attempt, setAttempt] = useState(0);
  const show = useCallback((change: Partial<State>) => {
    const { lines, dropped } = tail.current;
    setState((was) => ({ ...was, ...change, lines, dropped }));
  }, []);
  const isBack = live.status.value.engine === true;
  useEffect(() => {
    // With another filter, or an engine that numbers lines anew, the old lines are dropped.
    tail.current = new LogTail();
    current.current = asked;
    show({ status: "loading", error: null, hasOlder: false });
  }, [live, asked, isBack]);
  useEffect(() => {
    if (!isBack) return;
    const gone = new AbortController();
    newestLines(live, filter, gone.signal).then((lines) => {
      tail.current.add(lines);
      show({ status: "ready", error: null, hasOlder: lines.length >= PAGE_LINES });
    }).catch((error: CallFailure) => {
      if (!gone.signal.aborted) show({ status: "failed", error });
    });
    return () => gone.abort();
  }, [live, asked, isBack, version, attempt]);
  useTrigger<JsonObject>(
    follow ? { type: "log", config: triggerConfig(filter) } : null,
    (fired) => {
      tail.current.miss(numberOf(fired.dropped));
      const lines = linesOf(fired).filter((line) => matchesFilter(line, filter));
      if (tail.current.add(lines) > 0 || numberOf(fired.dropped) > 0) show({});
    },
    (count) => {
      tail.current.miss(count);
      show({});
    },
  );
  const loadOlder = useCallback(async () => {
    try {
      const lines = await olderLines(live, filter, tail.current);
      if (current.current !== asked) return;
      const isMore = tail.current.addOlder(lines) && lines.length >= PAGE_LINES;
      show({ hasOlder: isMore && tail.current.hasRoom });
    } catch (failure) {
      toasts.show("bad", `Older lines: ${(failure as Error).message}`);
    }
  }, [live, asked]);
  const clear = useCallback(() => {
    tail.current.clear();
    show({ hasOlder: false });
  }, []);
  // Lines of the previous filter are not shown for this one.
  const shown = current.current === asked ? state : EMPTY;
  return { ...shown, loadOlder, clear, retry: () => setAttempt(attempt + 1) };
}

async function newestLines(
  live: Live,
  filter: LogFilter,
  signal: AbortSignal,
): Promise<LogLine[]> {
  return linesOf(await live.call("engine::logs::list", listPayload(filter), { signal }));
}

async function olderLines(live: Live, filter: LogFilter, tail: LogTail): Promise<LogLine[]> {
  const first = tail.lines[0];
  if (first === undefined) return [];
  // Numbers are those of one engine; lines of this time that are known already are not added.
  const isOfOne = tail.lines.every(({ engine }) => engine === null);
  const before = isOfOne ? { before_seq: first.seq } : { end_time: first.atMs };
  const payload = { ...listPayload(filter), ...before };
  return linesOf(await live.call("engine::logs::list", payload));
}

function listPayload(filter: LogFilter): JsonObject {
  const { level, worker, functionId, traceId, text, source } = filter;
  return {
    limit: PAGE_LINES,
    ...level !== "trace" && { severity_min: SEVERITY_OF[level] },
    ...worker !== "" && { worker },
    ...functionId !== "" && { function_id: functionId },
    ...traceId !== "" && { trace_id: traceId },
    ...text !== "" && { text },
    ...source !== "" && { source },
  };
}

function triggerConfig({ level, worker, functionId, text }: LogFilter): JsonObject {
  return {
    batch_ms: BATCH_MS,
    ...level !== "trace" && { min_level: level },
    ...worker !== "" && { worker },
    ...functionId !== "" && { function_id: functionId },
    ...text !== "" && { text },
  };
}

function linesOf(answer: Json): LogLine[] {
  const { logs } = objectOf(answer);
  return (Array.isArray(logs) ? logs : []).map(readLogLine);
}
