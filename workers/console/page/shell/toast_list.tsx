/**
 * The notices at the edge of the page.
 *
 * @module
 */
import type { VNode } from "preact";
import { Button } from "../kit/controls.tsx";
import { Icon } from "../kit/icons.tsx";
import { useShell } from "../kit/shell.ts";

const ICONS = { ok: "check", bad: "warning", info: "info" } as const;

/** See the module. */
export function ToastList(): VNode {
  const { toasts } = useShell();
  return (
    <div class="toasts" role="log" aria-label="Notices" aria-live="polite">
      {toasts.list.value.map((toast) => (
        <div key={toast.id} class={`toast ${toast.tone}`}>
          <Icon name={ICONS[toast.tone]} />
          <div>
            <b>{toast.text}</b>
            {toast.detail && <p>{toast.detail}</p>}
          </div>
          <Button
            kind="bare"
            small
            icon="close"
            label="Close the notice"
            onPress={() => toasts.close(toast.id)}
          />
        </div>
      ))}
    </div>
  );
}
