/**
 * The app: side bar, banner, the page that the address names, command palette, toasts.
 *
 * @module
 */
import { type ReadonlySignal, signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useErrorBoundary, useLayoutEffect } from "preact/hooks";
import { Link, type Shell, ShellContext, useNow, useRoute, useShell } from "../kit/context.tsx";
import { Button, Field } from "../kit/controls.tsx";
import { formatSpan } from "../kit/format.tsx";
import { Icon } from "../kit/icons.tsx";
import { Empty } from "../kit/layout.tsx";
import type { LiveStatus } from "../kit/live.ts";
import type { ConsolePage } from "../kit/router.ts";
import { KeysDialog, useKeys } from "./keys.tsx";
import { Palette } from "./palette.tsx";
import { SideBar } from "./side_bar.tsx";

const TOAST_ICONS = { ok: "check", bad: "warning", info: "info" } as const;

/** The whole app. */
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
  // Without delay, because charts read the colours of the theme when they render.
  useLayoutEffect(() =>
    preferences.theme.subscribe((theme) => {
      document.documentElement.dataset.theme = theme;
    }), [preferences]);
  useKeys(pages, (dialog) => open.value = dialog);
  useEffect(() => router.start(), [router]);
  const isRefused = live.status.value.connection === "refused";
  return (
    <>
      <a class="skip" href="#content">Skip to the content</a>
      <div class="frame">
        <SideBar pages={pages} onSearch={() => open.value = "palette"} />
        <main id="content" tabIndex={-1}>
          <Banner />
          {isRefused ? <TokenForm /> : <CurrentPage pages={pages} />}
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

function CurrentPage({ pages }: { pages: readonly ConsolePage[] }): VNode | null {
  const { router } = useShell();
  const { path, segments } = useRoute();
  const first = pages[0];
  const page = pages.find((page) => path === page.path || path.startsWith(`${page.path}/`));
  const isHome = path === "/" && first !== undefined;
  useEffect(() => {
    if (isHome) router.go(first.path, { replace: true });
  }, [isHome]);
  useLayoutEffect(() => {
    document.title = page ? `${page.title} · Engine` : "Engine";
  }, [page]);
  if (isHome) return null;
  if (page === undefined) return <NoSuchPage />;
  const rest = segments.slice(page.path.split("/").length - 1);
  return <PageBoundary key={page.path} page={page} rest={rest} />;
}

/** Shows a page, or the error that it threw, so that the rest of the app keeps working. */
function PageBoundary({ page, rest }: { page: ConsolePage; rest: readonly string[] }): VNode {
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

function NoSuchPage(): VNode {
  return (
    <Empty icon="search" title="There is no such page" action={<Link to="/">To the start</Link>}>
      <p>The address may be of another version of the console.</p>
    </Empty>
  );
}

/** Shown while the engine or the console is unreachable. */
function Banner(): VNode {
  const { live } = useShell();
  const { connection, since_ms } = live.status.value;
  const text = bannerText(live.status.value);
  return (
    <div role="status" class="banner-place">
      {text !== null && (
        <div class="banner">
          <Icon name="warning" />
          <p>
            <b>{text}</b> <Since since_ms={since_ms} /> The data shown is older; reconnecting.
          </p>
          {connection === "lost" && <Button small onPress={() => live.connect()}>Try now</Button>}
        </div>
      )}
    </div>
  );
}

/** Counts seconds, which screen readers do not read out. */
function Since({ since_ms }: { since_ms: number }): VNode {
  return <span aria-hidden="true">for {formatSpan(useNow() - since_ms)}.</span>;
}

function bannerText({ connection, engine }: LiveStatus): string | null {
  if (connection === "lost") return "The console is unreachable";
  return connection === "open" && engine === false ? "The engine is unreachable" : null;
}

/** Asks for the access token, when the page has none or was refused with the one it has. */
function TokenForm(): VNode {
  const { live, session } = useShell();
  const token = useSignal("");
  const isWrong = session.token() !== "";
  const submit = () => {
    if (token.value.trim() === "") return;
    session.setToken(token.value.trim());
    live.connect();
  };
  const error = isWrong && token.value === "" ? "The console does not take the token it got" : null;
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
          error={error}
        />
        <Button kind="primary" type="submit">Open the console</Button>
      </form>
    </div>
  );
}

function ToastList(): VNode {
  const { toasts } = useShell();
  return (
    <div class="toasts" role="log" aria-label="Notices" aria-live="polite">
      {toasts.list.value.map((toast) => (
        <div key={toast.id} class={`toast ${toast.tone}`}>
          <Icon name={TOAST_ICONS[toast.tone]} />
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

/** A signal with the time, updated once a second; call the second element to stop it. */
export function secondClock(now: () => number): [ReadonlySignal<number>, () => void] {
  const clock = signal(now());
  const timer = setInterval(() => clock.value = now(), 1_000);
  return [clock, () => clearInterval(timer)];
}
