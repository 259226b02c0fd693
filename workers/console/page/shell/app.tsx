/**
 * The page as a whole: side bar, banner, the page that the address names, palette, notices.
 *
 * @module
 */
import { type ReadonlySignal, signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useErrorBoundary, useMemo } from "preact/hooks";
import { Button } from "../kit/controls.tsx";
import { KeyChords } from "./key_chords.ts";
import { Empty } from "../kit/layout.tsx";
import { Link } from "../kit/link.tsx";
import type { ConsolePage } from "../kit/page_list.ts";
import { type Shell, ShellContext, useRoute, useShell } from "../kit/shell.ts";
import { Banner } from "./banner.tsx";
import { KeysDialog } from "./keys_dialog.tsx";
import { Palette } from "./palette.tsx";
import { SideBar } from "./side_bar.tsx";
import { ToastList } from "./toast_list.tsx";
import { TokenForm } from "./token_form.tsx";

/** Everything that is to be seen. */
export function App({ shell, pages }: { shell: Shell; pages: readonly ConsolePage[] }): VNode {
  return (
    <ShellContext.Provider value={shell}>
      <Frame pages={pages} />
    </ShellContext.Provider>
  );
}

function Frame({ pages }: { pages: readonly ConsolePage[] }): VNode {
  const { live, router, preferences } = useShell();
  const open = useSignal<"palette" | "keys" | null>(null);
  useTheme(preferences.theme);
  useKeys(pages, (what) => open.value = what);
  useEffect(() => router.start(), [router]);
  const refused = live.connection.value.line === "refused";
  return (
    <>
      <a class="skip" href="#content">Skip to the content</a>
      <div class="frame">
        <SideBar pages={pages} onSearch={() => open.value = "palette"} />
        <main id="content" tabIndex={-1}>
          <Banner />
          {refused ? <TokenForm /> : <Current pages={pages} />}
        </main>
      </div>
      {open.value === "palette" && (
        <Palette
          pages={pages}
          onClose={() => open.value = null}
          onKeys={() => open.value = "keys"}
        />
      )}
      {open.value === "keys" && <KeysDialog pages={pages} onClose={() => open.value = null} />}
      <ToastList />
    </>
  );
}

function Current({ pages }: { pages: readonly ConsolePage[] }): VNode | null {
  const { router } = useShell();
  const { path, segments } = useRoute();
  const first = pages[0];
  const page = pages.find((page) => path === page.path || path.startsWith(`${page.path}/`));
  const isHome = path === "/" && first !== undefined;
  useEffect(() => {
    if (isHome) router.go(first.path, { replace: true });
  }, [isHome]);
  useEffect(() => {
    document.title = page ? `${page.title} · Engine` : "Engine";
  }, [page]);
  if (isHome) return null;
  if (page === undefined) return <Lost />;
  const rest = segments.slice(page.path.split("/").length - 1);
  return <Guarded key={page.path} page={page} rest={rest} />;
}

/** A page that fails takes nothing else with it. */
function Guarded({ page, rest }: { page: ConsolePage; rest: readonly string[] }): VNode {
  const [error, reset] = useErrorBoundary();
  const View = page.view;
  if (error === undefined) return <View rest={rest} />;
  const text = error instanceof Error ? error.message : String(error);
  return (
    <Empty
      icon="warning"
      title={`${page.title} cannot be shown`}
      action={<Button icon="restart" onPress={reset}>Try again</Button>}
    >
      <p>This is a fault of the console: {text}</p>
    </Empty>
  );
}

function Lost(): VNode {
  return (
    <Empty icon="search" title="There is no such page" action={<Link to="/">To the start</Link>}>
      <p>The address may be of another version of the console.</p>
    </Empty>
  );
}

function useTheme(theme: ReadonlySignal<string>): void {
  const chosen = theme.value;
  useEffect(() => {
    document.documentElement.dataset.theme = chosen;
  }, [chosen]);
}

function useKeys(
  pages: readonly ConsolePage[],
  show: (what: "palette" | "keys") => void,
): void {
  const { router } = useShell();
  const chords = useMemo(() => {
    const places = pages.map((page) => [`g ${page.key}`, () => router.go(page.path)] as const);
    return new KeyChords({
      ...Object.fromEntries(places),
      "Ctrl+k": () => show("palette"),
      "?": () => show("keys"),
      "/": () => document.querySelector<HTMLInputElement>("[data-search]")?.focus(),
    });
  }, [pages, router]);
  useEffect(() => {
    const down = (event: KeyboardEvent) => {
      if (event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      const writing = (event.target as Element).closest("input, textarea, select") !== null;
      const command = event.ctrlKey || event.metaKey;
      const press = { key: event.key, command, writing, at_ms: event.timeStamp };
      if (chords.press(press)) event.preventDefault();
    };
    document.addEventListener("keydown", down);
    return () => document.removeEventListener("keydown", down);
  }, [chords]);
}

/** A signal with the time, one step a second; call the second to stop it. */
export function secondClock(now: () => number): [ReadonlySignal<number>, () => void] {
  const clock = signal(now());
  const timer = setInterval(() => clock.value = now(), 1_000);
  return [clock, () => clearInterval(timer)];
}
