/**
 * The answer to an HTTP request: status, headers, and the body as what it is.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Badge,
  CopyButton,
  formatBytes,
  formatDuration,
  type HttpAnswer,
  JsonView,
  Link,
  link,
  parseJson,
  type Tone,
} from "../../kit/mod.ts";
import { isObject } from "../functions/schema_fit.ts";

/** Longest text that is shown; the whole can be copied. */
const TEXT_CHARS_MAX = 100_000;

/** See the module. */
export function HttpAnswerView({ answer }: { answer: HttpAnswer }): VNode {
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

function Body({ answer }: { answer: HttpAnswer }): VNode {
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

function jsonOf({ body, binary, headers }: HttpAnswer): Json | undefined {
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  if (binary || !/json/i.test(type)) return undefined;
  const parsed = parseJson(body);
  if (!parsed.ok) return undefined;
  // A single word or number is read best as it came.
  return isObject(parsed.value) || Array.isArray(parsed.value) ? parsed.value : undefined;
}

/** Bytes of the body. */
function sizeOf({ body, binary }: HttpAnswer): number {
  return binary ? Math.floor(body.length * 3 / 4) : new TextEncoder().encode(body).length;
}

function toneOf(status: number): Tone {
  if (status >= 500) return "bad";
  if (status >= 400) return "warn";
  return status >= 300 ? "info" : "ok";
}
