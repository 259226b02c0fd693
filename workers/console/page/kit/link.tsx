/**
 * Links within the console: real ones, so that they open in a new tab and can be copied.
 *
 * @module
 */
import type { ComponentChildren, JSX, VNode } from "preact";
import { useShell } from "./shell.ts";

/** What a {@linkcode Link} takes. */
export interface LinkProps {
  /** An address made with `link()`. */
  readonly to: string;
  readonly class?: string | undefined;
  readonly title?: string | undefined;
  /** Said by screen readers instead of the content. */
  readonly label?: string | undefined;
  /** Marks the place where the page is. */
  readonly current?: boolean | undefined;
  /** Besides going there. */
  readonly onGo?: (() => void) | undefined;
  readonly children: ComponentChildren;
}

/** Goes to another place of the console without loading it anew. */
export function Link({ to, label, current, onGo, children, ...rest }: LinkProps): VNode {
  const { router } = useShell();
  const click = (event: JSX.TargetedMouseEvent<HTMLAnchorElement>) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    router.go(to);
    onGo?.();
  };
  return (
    <a href={to} onClick={click} aria-label={label} aria-current={current && "page"} {...rest}>
      {children}
    </a>
  );
}
