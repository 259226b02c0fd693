/**
 * Navigation between pages: a bar at the side, on phones at the bottom.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { Dot, Icon, Key } from "../kit/icons.tsx";
import { Button } from "../kit/controls.tsx";
import { Link, useRoute, useShell } from "../kit/context.tsx";
import type { ConsolePage } from "../kit/router.ts";
import type { Theme } from "../kit/browser.ts";

const GROUPS = [
  { id: "start", title: null },
  { id: "build", title: "Build" },
  { id: "observe", title: "Observe" },
  { id: "data", title: "Data" },
] as const;

const THEMES: Readonly<Record<Theme, { next: Theme; icon: "screen" | "sun" | "moon" }>> = {
  system: { next: "light", icon: "screen" },
  light: { next: "dark", icon: "sun" },
  dark: { next: "system", icon: "moon" },
};

/** The side bar; `onSearch` opens the command palette. */
export function SideBar(
  { pages, onSearch }: { pages: readonly ConsolePage[]; onSearch: () => void },
): VNode {
  const more = useSignal(false);
  const close = () => more.value = false;
  return (
    <nav class={`side ${more.value ? "more" : ""}`} aria-label="Pages">
      <div class="brand">
        <Logo />
        <span>Engine</span>
      </div>
      <button type="button" class="find" onClick={onSearch}>
        <Icon name="search" />
        <span>Search</span>
        <Key>Ctrl K</Key>
      </button>
      <div class="groups">
        {GROUPS.map((group) => {
          const inside = pages.filter((page) => page.group === group.id);
          if (inside.length === 0) return null;
          return (
            <div class="group" key={group.id}>
              {group.title !== null && <h2>{group.title}</h2>}
              {inside.map((page) => <PageLink key={page.path} page={page} onGo={close} />)}
            </div>
          );
        })}
      </div>
      <div class="phone-bar">
        {pages.filter((page) => page.onPhones).slice(0, 4).map((page) => (
          <PageLink key={page.path} page={page} onGo={close} />
        ))}
        <button
          type="button"
          class="place"
          aria-expanded={more.value}
          onClick={() => more.value = !more.value}
        >
          <Icon name={more.value ? "close" : "more"} />
          <span>More</span>
        </button>
      </div>
      <Foot />
    </nav>
  );
}

function PageLink({ page, onGo }: { page: ConsolePage; onGo: () => void }): VNode {
  const { path } = useRoute();
  const { mark: Mark } = page;
  const current = path === page.path || path.startsWith(`${page.path}/`);
  return (
    <Link
      to={page.path}
      class="place"
      current={current}
      onGo={onGo}
      title={`${page.title} (g ${page.key})`}
    >
      <Icon name={page.icon} />
      <span>{page.title}</span>
      {Mark && <Mark />}
    </Link>
  );
}

function Foot(): VNode {
  const { live, preferences } = useShell();
  const { connection, engine, version, engine_url } = live.status.value;
  const theme = preferences.theme.value;
  const { next, icon } = THEMES[theme];
  const isUp = connection === "open" && engine === true;
  const state = isUp ? "connected" : connection === "connecting" ? "connecting" : "unreachable";
  return (
    <div class="foot">
      <Dot
        tone={isUp ? "ok" : connection === "connecting" ? "neutral" : "bad"}
        label={`Engine ${state}`}
      />
      <span class="foot-engine" title={engine_url}>
        <b>{version === "" ? "engine" : `engine ${version}`}</b>
        <small>{isUp ? engine_url.replace(/^\w+:\/\//, "") : state}</small>
      </span>
      <Button
        kind="bare"
        small
        icon={icon}
        label={`Theme: ${theme}, change to ${next}`}
        onPress={() => preferences.setTheme(next)}
      />
    </div>
  );
}

/** The logo: one line in, three lines out. */
function Logo(): VNode {
  return (
    <svg class="mark" width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
      <path d="M3 11h5M8 11c4 0 3-6 8-6M8 11h8M8 11c4 0 3 6 8 6" />
      <circle cx="3.5" cy="11" r="2" />
      <circle cx="18" cy="5" r="2" />
      <circle cx="18" cy="11" r="2" />
      <circle cx="18" cy="17" r="2" />
    </svg>
  );
}
