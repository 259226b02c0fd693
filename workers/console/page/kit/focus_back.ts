/**
 * Where the keyboard goes when what was open beside a list is closed.
 *
 * @module
 */
import type { Ref } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** The list within has the focus again when what was open has taken the focus with it. */
export function useFocusBack(isOpen: boolean): Ref<HTMLDivElement> {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef(isOpen);
  useEffect(() => {
    const hasClosed = before.current && !isOpen;
    before.current = isOpen;
    if (hasClosed && document.activeElement === document.body) {
      box.current?.querySelector<HTMLElement>(".virtual")?.focus({ preventScroll: true });
    }
  }, [isOpen]);
  return box;
}
