/**
 * The scopes of the state, of which one is looked at.
 *
 * @module
 */
import type { VNode } from "preact";
import { Link, link, useShell, VirtualList } from "../../kit/mod.ts";

const ROW_HEIGHT = 32;

/** A list beside the entries; phones choose in a field instead. */
export function StateScopes(
  { scopes, open }: { scopes: readonly string[]; open: string },
): VNode {
  const { router } = useShell();
  const { view } = Object.fromEntries(router.route.value.query);
  return (
    <nav class="state-scopes" aria-label="Scopes">
      <h2>
        Scopes <span class="count">{scopes.length}</span>
      </h2>
      <VirtualList
        items={scopes}
        rowHeight={ROW_HEIGHT}
        keyOf={(scope) => scope}
        label="Scopes"
        reach={scopes.indexOf(open)}
        row={(scope) => (
          <div role="listitem" style={{ height: `${ROW_HEIGHT}px` }}>
            <Link
              to={link("/state", scope, { view })}
              class="state-scope"
              title={scope}
              current={scope === open}
            >
              {scope}
            </Link>
          </div>
        )}
      />
    </nav>
  );
}
