/**
 * The dead letters of a queue: payload, error and attempts, and what to do about them.
 *
 * @module
 */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import {
  Ago,
  Button,
  Empty,
  Failed,
  formatCount,
  formatDateTime,
  JsonEdit,
  Pairs,
  parseJson,
  Skeleton,
  Stack,
  useQuery,
  visibleJson,
} from "../../kit/mod.ts";
import { copiedId, functionLink } from "../references.tsx";
import { type Act, JobPayload, ON, traceLink } from "./queue_act.tsx";
import type { DeadRow, QueueRow } from "./queue_rows.ts";

/** Dead letters of one page. */
const PAGE = 50;

/** What a dead letter needs. */
interface LetterProps {
  readonly letter: DeadRow;
  readonly act: Act;
  readonly mayAct: boolean;
}

/** The dead letters of a queue, the oldest first. */
export function DeadLetters(
  { row, act, mayAct }: { row: QueueRow; act: Act; mayAct: boolean },
): VNode {
  const [offset, setOffset] = useState(0);
  const [open, setOpen] = useState<string | null>(null);
  const letters = useQuery<readonly DeadRow[]>({
    function_id: "engine::queue::dlq_messages",
    payload: { queue: row.name, offset, limit: PAGE },
  }, ON);
  const { value, error, retry } = letters;
  if (letters.status === "failed") {
    return <Failed what="The dead letters cannot be read" error={error} retry={retry} />;
  }
  if (value === null) return <Skeleton rows={4} />;
  if (value.length === 0 && offset === 0) {
    return (
      <Empty icon="check" title="No dead letter">
        A job whose last attempt failed is kept here, with its payload and its errors.
      </Empty>
    );
  }
  return (
    <div class="stack-4">
      <AllLetters row={row} act={act} mayAct={mayAct} />
      <ol class="jobs" aria-label="Dead letters, the oldest first">
        {value.map((letter) => (
          <li key={letter.id}>
            <Head
              letter={letter}
              open={open === letter.id}
              onOpen={() => setOpen(open === letter.id ? null : letter.id)}
            />
            {open === letter.id && <Letter letter={letter} act={act} mayAct={mayAct} />}
          </li>
        ))}
      </ol>
      <Pages offset={offset} setOffset={setOffset} shown={value.length} dead={row.dead} />
    </div>
  );
}

/** An answer may end early, with its bytes, so the next page begins where this one ends. */
function Pages(
  { offset, setOffset, shown, dead }: {
    offset: number;
    setOffset: (offset: number) => void;
    shown: number;
    dead: number;
  },
): VNode | null {
  const end = offset + shown;
  if (offset === 0 && end >= dead) return null;
  return (
    <div class="row-flex">
      <Button small disabled={offset === 0} onPress={() => setOffset(0)}>First</Button>
      <Button small disabled={shown === 0 || end >= dead} onPress={() => setOffset(end)}>
        Next
      </Button>
      <span class="said num">
        {shown === 0 ? "none" : `${offset + 1} to ${end}`} of {formatCount(dead)}
      </span>
    </div>
  );
}

/** Retries or, after a second click, discards all of them. */
function AllLetters({ row, act, mayAct }: { row: QueueRow; act: Act; mayAct: boolean }): VNode {
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const run = (name: "redrive" | "discard") => {
    setBusy(true);
    const said = name === "redrive" ? "jobs are given out again" : "dead letters are deleted";
    void act(name, {}, (answer) => {
      return `${formatCount(Number(answer["redriven"] ?? answer["discarded"]))} ${said}`;
    }).then(() => (setBusy(false), setAsked(false)));
  };
  return (
    <div class="form-add">
      <Button
        small
        icon="restart"
        busy={busy}
        disabled={!mayAct || row.dead === 0}
        onPress={() => run("redrive")}
      >
        Retry all
      </Button>
      {asked
        ? (
          <>
            <Button small kind="bad" icon="trash" busy={busy} onPress={() => run("discard")}>
              {`Discard all ${formatCount(row.dead)}`}
            </Button>
            <Button small kind="bare" onPress={() => setAsked(false)}>Keep</Button>
          </>
        )
        : (
          <Button
            small
            icon="trash"
            disabled={!mayAct || row.dead === 0}
            onPress={() => setAsked(true)}
          >
            Discard all
          </Button>
        )}
    </div>
  );
}

function Head(
  { letter, open, onOpen }: { letter: DeadRow; open: boolean; onOpen: () => void },
): VNode {
  return (
    <div class="row-flex">
      <Button
        small
        kind="bare"
        icon={open ? "down" : "right"}
        label={`Dead letter ${letter.id}`}
        onPress={onOpen}
      />
      <Ago ms={letter.failed_at * 1_000} />
      {functionLink(letter.function_id)}
      <span class="cut" title={letter.error}>{letter.error}</span>
    </div>
  );
}

function Letter({ letter, act, mayAct }: LetterProps): VNode {
  const [editing, setEditing] = useState(false);
  const last = letter.failures.at(-1);
  return (
    <div class="stack-4">
      <Pairs
        pairs={[
          ["Job", copiedId(letter.id, "job id")],
          ["Error", letter.error],
          ["Attempts", formatCount(letter.retries)],
          ["Died", formatDateTime(letter.failed_at * 1_000)],
          ["Trace", traceLink(letter.trace_id)],
        ]}
      />
      <ol class="attempts" aria-label="Attempts">
        {letter.failures.map(({ at_ms, code, message }, nr) => (
          <li key={nr}>
            <span class="num quiet">{formatDateTime(at_ms)}</span> <code>{code}</code> {message}
          </li>
        ))}
      </ol>
      {last?.stacktrace !== undefined && (
        <Stack text={last.stacktrace} label="Stack of the last attempt" />
      )}
      {editing ? <EditAndRetry letter={letter} act={act} onClose={() => setEditing(false)} /> : (
        <>
          <JobPayload payload={letter.payload} />
          <LetterActions
            letter={letter}
            act={act}
            mayAct={mayAct}
            onEdit={() => setEditing(true)}
          />
        </>
      )}
    </div>
  );
}

function LetterActions(
  { letter, act, mayAct, onEdit }: LetterProps & { readonly onEdit: () => void },
): VNode {
  const [busy, setBusy] = useState(false);
  const run = (name: string, said: string) => {
    setBusy(true);
    void act(name, { message_id: letter.id }, (answer) => outcome(answer["redriven"], said))
      .then(() => setBusy(false));
  };
  const shared = { small: true, busy, disabled: !mayAct };
  return (
    <div class="form-add">
      <Button {...shared} icon="restart" onPress={() => run("redrive_message", RETRIED)}>
        Retry
      </Button>
      <Button small icon="edit" disabled={!mayAct} onPress={onEdit}>Edit and retry</Button>
      <Button
        {...shared}
        kind="bad"
        icon="trash"
        onPress={() => run("discard_message", "The dead letter is deleted")}
      >
        Discard
      </Button>
    </div>
  );
}

const RETRIED = "The job is given out again";

/** Another page or program may have been first. */
function outcome(count: unknown, said: string): string {
  return count === 0 ? "It is no dead letter any more" : said;
}

function EditAndRetry(
  { letter, act, onClose }: Pick<LetterProps, "letter" | "act"> & { readonly onClose: () => void },
): VNode {
  const [text, setText] = useState(() => visibleJson(letter.payload ?? null, 2));
  const [busy, setBusy] = useState(false);
  const parsed = parseJson(text);
  const send = () => {
    if (!parsed.ok || busy) return;
    setBusy(true);
    const payload = { message_id: letter.id, data: parsed.value };
    void act("redrive_message", payload, (answer) => outcome(answer["redriven"], RETRIED))
      .then((isDone) => isDone ? onClose() : setBusy(false));
  };
  return (
    <div class="stack-4">
      <JsonEdit label="New payload" text={text} rows={10} onChange={setText} onSubmit={send} />
      <div class="form-add">
        <Button
          small
          kind="primary"
          icon="restart"
          busy={busy}
          disabled={!parsed.ok}
          onPress={send}
        >
          Retry with this
        </Button>
        <Button small onPress={onClose}>Cancel</Button>
      </div>
    </div>
  );
}
