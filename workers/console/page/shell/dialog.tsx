/**
 * A window over the page. The browser keeps the focus inside and gives it back.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** See the module. Escape and a click beside it close it. */
export function Dialog(
  { label, class: name, onClose, children }: {
    /** Said by screen readers. */
    label: string;
    class: string;
    onClose: () => void;
    children: ComponentChildren;
  },
): VNode {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current!.showModal();
    return () => box.current?.close();
  }, []);
  return (
    <dialog
      ref={box}
      class={name}
      aria-label={label}
      onClose={onClose}
      onClick={(event) => event.target === event.currentTarget && onClose()}
    >
      {children}
    </dialog>
  );
}
