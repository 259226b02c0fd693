/**
 * Says that the engine or the console is gone, for as long as it is.
 *
 * @module
 */
import type { VNode } from "preact";
import { Button } from "../kit/controls.tsx";
import { formatSpan } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import type { Connection } from "../kit/live.ts";
import { useNow, useShell } from "../kit/shell.ts";

/** See the module. */
export function Banner(): VNode {
  const { live } = useShell();
  const words = wordsOf(live.connection.value);
  return (
    <div role="status" class="banner-place">
      {words !== null && (
        <div class="banner">
          <Icon name="warning" />
          <p>
            <b>{words}</b> <Lasting since_ms={live.connection.value.since_ms} />{" "}
            What you see is from before; it goes on by itself.
          </p>
          {live.connection.value.line === "lost" && (
            <Button small onPress={() => live.start()}>Try now</Button>
          )}
        </div>
      )}
    </div>
  );
}

/** Counts on by itself, but is not read out each second. */
function Lasting({ since_ms }: { since_ms: number }): VNode {
  return <span aria-hidden="true">since {formatSpan(useNow() - since_ms)}.</span>;
}

function wordsOf({ line, engine }: Connection): string | null {
  if (line === "lost") return "The console is not reachable";
  return line === "open" && engine === false ? "The engine is not reachable" : null;
}
