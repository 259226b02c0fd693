/**
 * The page as a whole: side bar, banner, the page that the address names, palette, notices.
 *
 * @module
 */
import { type ReadonlySignal, signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useErrorBoundary, useMemo } from "preact/hooks";
import { Link, type Shell, ShellContext, useNow, useRoute, useShell } from "../kit/context.tsx";
import { Button, Field } from "../kit/controls.tsx";
import { formatSpan } from "../kit/format.tsx";
import { Icon } from "../kit/icons.tsx";
import { Empty } from "../kit/layout.tsx";
import type { Connection } from "../kit/live.ts";
import type { ConsolePage } from "../kit/router.ts";
import { KeyChords, KeysDialog } from "./keys.tsx";
import { Palette } from "./palette.tsx";
import { SideBar } from "./side_bar.tsx";

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
