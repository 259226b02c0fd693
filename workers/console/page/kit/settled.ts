/**
 * Values that change with every key, handed on when they have come to rest.
 *
 * @module
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { useQueryMember } from "./mod.ts";

/** Typed text takes effect after this time without another key. */
const SETTLE_MS = 250;

/** The value as it was before the last changes, until no change came for a moment. */
export function useSettled<T>(value: T): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** A member of the query for a field: shown at once, written into the address when at rest. */
export function useTypedMember(name: string): [string, (value: string) => void, string] {
  const [written, write] = useQueryMember(name);
  const [typed, type] = useState(written);
  const last = useRef(written);
  useEffect(() => {
    if (typed === last.current) return;
    const timer = setTimeout(() => {
      last.current = typed;
      write(typed);
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [typed, write]);
  useEffect(() => {
    // Somebody else changed the address, such as the back button or a link.
    if (written === last.current) return;
    last.current = written;
    type(written);
  }, [written]);
  return [typed, type, written];
}
