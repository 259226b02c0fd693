/**
 * A function that is asked once a second while a component is mounted, such as for totals of which
 * rates are made. Nothing fires when they change.
 *
 * @module
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { CallFailure, useIsOffered, useLive, useNow } from "../../kit/mod.ts";

/** After a failed call the next one follows when the clock has changed so often. */
const TICKS_AFTER_FAILURE = 5;

/** The last answer, and how the asking goes. */
export interface Sampled<T> {
  /** `absent`: no worker offers the function. */
  readonly status: "loading" | "ready" | "absent" | "failed";
  /** `undefined`: there was none yet. */
  readonly answer: T | undefined;
  /** Increases with every answer. */
  readonly version: number;
  readonly error: CallFailure | null;
  /** Asks at once. */
  readonly refresh: () => void;
}

/** Asks a function once a second while it is offered; `sampled` is called with each answer. */
export function useSampled<T>(
  function_id: string,
  sampled: (answer: T, at_ms: number) => void,
): Sampled<T> {
  const live = useLive();
  const now = useNow();
  const [asked, setAsked] = useState<Omit<Sampled<T>, "refresh">>({
    status: "loading",
    answer: undefined,
    version: 0,
    error: null,
  });
  const turn = useRef({ busy: false, rest: 0, abort: new AbortController() });
  const isOffered = useIsOffered(function_id);
  const isAway = live.status.value.engine === false;
  const ask = () => {
    const { current } = turn;
    if (current.busy || isAway || !isOffered) return;
    current.busy = true;
    const { signal } = current.abort;
    live.call(function_id, {}, { signal, background: true }).then((json: Json) => {
      const answer = json as T;
      sampled(answer, Date.now());
      setAsked(({ version }) => ({ status: "ready", answer, version: version + 1, error: null }));
    }, (thrown: unknown) => {
      if (signal.aborted) return;
      current.rest = TICKS_AFTER_FAILURE;
      const error = thrown instanceof CallFailure ? thrown : null;
      setAsked((before) => ({ ...before, status: "failed", error }));
    }).finally(() => current.busy = false);
  };
  useEffect(() => {
    if (turn.current.rest > 0) turn.current.rest--;
    else ask();
  }, [now]);
  useEffect(() => void (isOffered && ask()), [isOffered]);
  useEffect(() => () => turn.current.abort.abort(), []);
  return { ...asked, ...isOffered === false && { status: "absent" }, refresh: ask };
}
