/**
 * Asks for the token where the page does not hold it, or holds an old one.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { Button, Field } from "../kit/controls.tsx";
import { useShell } from "../kit/shell.ts";

/** See the module. */
export function TokenForm(): VNode {
  const { live, session } = useShell();
  const token = useSignal("");
  const wrong = session.token() !== "";
  const submit = () => {
    if (token.value.trim() === "") return;
    session.setToken(token.value.trim());
    live.start();
  };
  return (
    <div class="token-form">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <h1>This console needs a token</h1>
        <p>
          It is in{" "}
          <code class="code">config.yaml</code>, as token of engine-console or auth_token of engine.
        </p>
        <Field
          label="Token"
          type="password"
          code
          value={token.value}
          onChange={(value) => token.value = value}
          error={wrong && token.value === "" ? "The console does not take the token it got" : null}
        />
        <Button kind="primary" type="submit">Open the console</Button>
      </form>
    </div>
  );
}
