/**
 * Tries out a route over HTTP: path parameters, query, headers, body, and the whole answer.
 *
 * The request goes through the console to the engine's own HTTP port and nowhere else.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Badge,
  Button,
  CallFailure,
  CopyButton,
  Field,
  formatBytes,
  formatDuration,
  type HttpResponse,
  isObject,
  JsonEdit,
  JsonView,
  Link,
  link,
  parseJson,
  type Tone,
  useLive,
} from "../../kit/mod.ts";
import {
  buildRequest,
  type BuiltRequest,
  type HttpRoute,
  type RequestDraft,
  takesBody,
  type TypedPair,
} from "../functions/http_request.ts";
import { asCurl, Snippet, useHttpUrl } from "../functions/snippets.tsx";

/** A request on its way, or how the last one ended. */
type Sent =
  | { readonly state: "running" }
  | { readonly state: "answered"; readonly answer: HttpResponse }
  | { readonly state: "failed"; readonly failure: CallFailure };

const EMPTY: TypedPair = { name: "", value: "" };

/** Sends requests to a route. */
export function HttpTester({ route }: { route: HttpRoute }): VNode {
  const base = useHttpUrl() ?? "";
  const { draft, change, request, tried, sent, send, cancel } = useRequest(route);
  const preview = useMemo(() => buildRequest(route, named(route, draft)), [route, draft]);
  const isRunning = sent?.state === "running";
  return (
    <div class="tester stack-4">
      <form
        noValidate
        class="stack-4"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <Line method={draft.method} url={base + preview.path} />
        <Params route={route} draft={draft} request={request} tried={tried} change={change} />
        <Pairs
          title="Query"
          pairs={draft.query}
          problem={() => undefined}
          onChange={(query) => change({ query })}
        />
        <Pairs
          title="Headers"
          pairs={draft.headers}
          problem={(at) => request.problems[`headers.${at}`]}
          onChange={(headers) => change({ headers })}
        />
        {takesBody(draft.method) && (
          <JsonEdit
            label="Body"
            text={draft.body}
            rows={6}
            empty={null}
            error={request.problems["body"] ?? null}
            onChange={(body) => change({ body })}
            onSubmit={send}
          />
        )}
        <div class="invoke-send">
          <Button kind="primary" icon="send" type="submit" busy={isRunning}>Send</Button>
          {isRunning && <Button icon="stop" onPress={cancel}>Cancel</Button>}
        </div>
      </form>
      {sent && <Ended sent={sent} />}
      {base !== "" && <Snippet title="curl" text={curl(base, draft.method, preview)} />}
    </div>
  );
}

function Ended({ sent }: { sent: Sent }): VNode | null {
  if (sent.state === "running") return null;
  if (sent.state === "answered") return <HttpAnswerView answer={sent.answer} />;
  const { code, message } = sent.failure;
  return (
    <p class="notice bad" role="alert">
      <code class="code">{code}</code> {message}
    </p>
  );
}

/** A request being put together, and the one that was sent last. */
function useRequest(route: HttpRoute): {
  draft: RequestDraft;
  change: (part: Partial<RequestDraft>) => void;
  request: BuiltRequest;
  tried: boolean;
  sent: Sent | null;
  send: () => void;
  cancel: () => void;
} {
  const live = useLive();
  const [draft, setDraft] = useState(() => emptyRequest(route));
  const [tried, setTried] = useState(false);
  const [sent, setSent] = useState<Sent | null>(null);
  const abort = useRef<AbortController>();
  const request = useMemo(() => buildRequest(route, draft), [route, draft]);
  const send = () => {
    setTried(true);
    if (Object.keys(request.problems).length > 0 || sent?.state === "running") return;
    const { signal } = abort.current = new AbortController();
    setSent({ state: "running" });
    const { path, headers, body } = request;
    const asked = { method: draft.method, path, headers: Object.fromEntries(headers) };
    live.http({ ...asked, ...body !== undefined && { body } }, signal).then(
      (answer) => setSent({ state: "answered", answer }),
      (thrown: unknown) => {
        if (!(thrown instanceof CallFailure)) throw thrown;
        setSent({ state: "failed", failure: thrown });
      },
    );
  };
  return {
    draft,
    change: (part) => setDraft((draft) => ({ ...draft, ...part })),
    request,
    tried,
    sent,
    send,
    cancel: () => abort.current?.abort(),
  };
}

function emptyRequest({ method }: HttpRoute): RequestDraft {
  return { method, params: {}, query: [], headers: [], body: takesBody(method) ? "{}" : "" };
}

/** Parameters that are still empty are shown by their names. */
function named(route: HttpRoute, draft: RequestDraft): RequestDraft {
  const params = route.params.map((name) => {
    return [name, draft.params[name] || (name === "*" ? "" : `:${name}`)];
  });
  return { ...draft, params: Object.fromEntries(params) };
}

function Line({ method, url }: { method: string; url: string }): VNode {
  return (
    <p class="tester-line">
      <b class={`method ${method.toLowerCase()}`}>{method}</b>
      <code>{url}</code>
    </p>
  );
}

function Params(
  { route, draft, request, tried, change }: {
    route: HttpRoute;
    draft: RequestDraft;
    request: BuiltRequest;
    tried: boolean;
    change: (part: Partial<RequestDraft>) => void;
  },
): VNode | null {
  if (route.params.length === 0) return null;
  return (
    <fieldset class="form-group">
      <legend>Path</legend>
      <div class="form-members">
        {route.params.map((name) => {
          const value = draft.params[name] ?? "";
          const problem = request.problems[`params.${name}`];
          return (
            <Field
              key={name}
              label={name === "*" ? "The rest (*)" : name}
              required={name !== "*"}
              value={value}
              code
              error={tried || value !== "" ? problem ?? null : null}
              onChange={(value) => change({ params: { ...draft.params, [name]: value } })}
            />
          );
        })}
      </div>
    </fieldset>
  );
}

/** Names and values, one pair a line. */
function Pairs(
  { title, pairs, problem, onChange }: {
    title: string;
    pairs: readonly TypedPair[];
    problem: (at: number) => string | undefined;
    onChange: (pairs: readonly TypedPair[]) => void;
  },
): VNode {
  const put = (at: number, part: Partial<TypedPair>) =>
    onChange(pairs.with(at, { ...pairs[at]!, ...part }));
  return (
    <fieldset class="form-group">
      <legend>{title}</legend>
      {pairs.map(({ name, value }, at) => (
        <div class="tester-pair" key={at}>
          <Field
            quiet
            code
            label={`${title}: name ${at + 1}`}
            placeholder="name"
            value={name}
            error={problem(at) ?? null}
            onChange={(name) => put(at, { name })}
          />
          <Field
            quiet
            code
            label={`${title}: value ${at + 1}`}
            placeholder="value"
            value={value}
            onChange={(value) => put(at, { value })}
          />
          <Button
            kind="bare"
            icon="close"
            label={`Remove ${title.toLowerCase()} ${at + 1}`}
            onPress={() => onChange(pairs.toSpliced(at, 1))}
          />
        </div>
      ))}
      <Button small icon="plus" onPress={() => onChange([...pairs, EMPTY])}>Add</Button>
    </fieldset>
  );
}

function curl(base: string, method: string, { path, headers, body }: BuiltRequest): string {
  return asCurl({ method, url: base + path, headers, body });
}

/** Longest text that is shown; the whole can be copied. */
const TEXT_CHARS_MAX = 100_000;

/** A response: status, headers, and the body. */
export function HttpAnswerView({ answer }: { answer: HttpResponse }): VNode {
  const { status, headers, duration_ms, trace_id } = answer;
  return (
    <section class="outcome" aria-label="Answer" aria-live="polite">
      <header>
        <Badge tone={toneOf(status)} dot>{status}</Badge>
        <span class="num">{formatDuration(duration_ms)}</span>
        <span class="num said">{formatBytes(sizeOf(answer))}</span>
        {trace_id !== null && (
          <Link to={link("/traces", trace_id)} class="link">Show its trace</Link>
        )}
      </header>
      <Body answer={answer} />
      <details class="answer-headers">
        <summary>{headers.length} headers</summary>
        <dl class="pairs">
          {headers.map(([name, value], at) => (
            <div key={at}>
              <dt>{name}</dt>
              <dd>
                <code>{value}</code>
              </dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  );
}

function Body({ answer }: { answer: HttpResponse }): VNode {
  const { body, binary } = answer;
  const json = useMemo(() => jsonOf(answer), [answer]);
  if (body === "") return <p class="said">The answer has no body.</p>;
  if (binary) {
    return <p class="said">The body is not text: {formatBytes(sizeOf(answer))} of bytes.</p>;
  }
  if (json !== undefined) return <JsonView value={json} label="Body" depth={3} />;
  const cut = body.length - TEXT_CHARS_MAX;
  return (
    <div class="answer-text">
      <CopyButton text={() => body} label="Copy the body" />
      <pre tabIndex={0}>{body.slice(0, TEXT_CHARS_MAX)}</pre>
      {cut > 0 && <p class="said">{cut} characters more; copy it to see them.</p>}
    </div>
  );
}

function jsonOf({ body, binary, headers }: HttpResponse): Json | undefined {
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  if (binary || !/json/i.test(type)) return undefined;
  const parsed = parseJson(body);
  if (!parsed.ok) return undefined;
  // A single word or number is read best as it came.
  return isObject(parsed.value) || Array.isArray(parsed.value) ? parsed.value : undefined;
}

/** Bytes of the body. */
function sizeOf({ body, binary }: HttpResponse): number {
  return binary ? Math.floor(body.length * 3 / 4) : new TextEncoder().encode(body).length;
}

function toneOf(status: number): Tone {
  if (status >= 500) return "bad";
  if (status >= 400) return "warn";
  return status >= 300 ? "info" : "ok";
}
