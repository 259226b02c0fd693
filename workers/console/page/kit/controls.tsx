/**
 * Form controls: buttons, text fields, selects, toggles.
 *
 * @module
 */
import type { ComponentChildren, JSX, Ref, VNode } from "preact";
import { useId, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons.tsx";
import { useShell } from "./context.tsx";

/** How long the button shows that it has copied. */
const COPIED_MS = 1_500;

/** Properties of a {@linkcode Button}. */
interface ButtonProps {
  readonly onPress?: (() => void) | undefined;
  /** `primary`: the main action. `bad`: removes something. `bare`: without a frame. */
  readonly kind?: "plain" | "primary" | "bad" | "bare" | undefined;
  readonly icon?: IconName | undefined;
  /** Shows a spinner, and disables the button. */
  readonly busy?: boolean | undefined;
  readonly disabled?: boolean | undefined;
  readonly small?: boolean | undefined;
  /** Required when there is only an icon. */
  readonly label?: string | undefined;
  readonly title?: string | undefined;
  readonly type?: "button" | "submit" | undefined;
  /** Of a toggle button: whether it is pressed. */
  readonly pressed?: boolean | undefined;
  readonly children?: ComponentChildren | undefined;
}

/** A button. */
export function Button(props: ButtonProps): VNode {
  const { onPress, kind = "plain", icon, busy, disabled, small, label, title, pressed } = props;
  const only = props.children === undefined ? "only" : "";
  return (
    <button
      type={props.type ?? "button"}
      class={`button ${kind} ${small ? "small" : ""} ${only}`}
      disabled={disabled || busy}
      aria-busy={busy}
      aria-label={label}
      aria-pressed={pressed}
      title={title ?? (only ? label : undefined)}
      onClick={onPress && ((event) => (event.stopPropagation(), onPress()))}
    >
      {busy ? <i class="spinner" /> : icon && <Icon name={icon} />}
      {props.children !== undefined && <span>{props.children}</span>}
    </button>
  );
}

/** Properties of a {@linkcode Field}. */
export interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly type?: "text" | "number" | "password" | "datetime-local" | undefined;
  readonly placeholder?: string | undefined;
  /** Shown below the field, unless there is an `error`. */
  readonly hint?: ComponentChildren | undefined;
  readonly error?: string | null | undefined;
  readonly disabled?: boolean | undefined;
  readonly required?: boolean | undefined;
  /** In the monospace font. */
  readonly code?: boolean | undefined;
  /** Makes it a text area with this many lines. */
  readonly rows?: number | undefined;
  /** Shows the label to screen readers only. */
  readonly quiet?: boolean | undefined;
  readonly onEnter?: (() => void) | undefined;
}

/** A text field with its label, and a hint or an error below it. */
export function Field(props: FieldProps): VNode {
  const { label, value, onChange, error, hint, quiet, onEnter, code, rows } = props;
  const id = useId();
  const said = error ?? hint;
  const shared = {
    id,
    value,
    class: `input ${code ? "mono" : ""}`,
    placeholder: props.placeholder,
    disabled: props.disabled,
    required: props.required,
    spellcheck: false,
    autocomplete: "off",
    "aria-invalid": error ? true : undefined,
    "aria-describedby": said ? `${id}-said` : undefined,
    onInput: (event: JSX.TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onChange(event.currentTarget.value),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === "Enter" && (!rows || event.ctrlKey || event.metaKey)) onEnter?.();
    },
  };
  return (
    <div class="field">
      <label for={id} class={quiet ? "offscreen" : ""}>
        {label}
        {props.required && <span class="required" aria-hidden="true">*</span>}
      </label>
      {rows
        ? <textarea rows={rows} {...shared} />
        : <input type={props.type ?? "text"} {...shared} />}
      {said && <p id={`${id}-said`} class={error ? "said bad" : "said"}>{said}</p>}
    </div>
  );
}

/** An option of a {@linkcode Select}. */
interface Choice {
  readonly value: string;
  readonly label: string;
}

/** A drop-down list. */
export function Select(
  { label, value, choices, onChange, quiet, disabled, required }: {
    label: string;
    value: string;
    choices: readonly Choice[];
    onChange: (value: string) => void;
    /** Marks the label. */
    required?: boolean | undefined;
    /** Shows the label to screen readers only. */
    quiet?: boolean | undefined;
    disabled?: boolean | undefined;
  },
): VNode {
  const id = useId();
  return (
    <div class="field">
      <label for={id} class={quiet ? "offscreen" : ""}>
        {label}
        {required && <span class="required" aria-hidden="true">*</span>}
      </label>
      <div class="select">
        <select
          id={id}
          class="input"
          value={value}
          disabled={disabled}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>{choice.label}</option>
          ))}
        </select>
        <Icon name="down" size={12} />
      </div>
    </div>
  );
}

/** A choice among a few options that are shown side by side. */
export function Segments(
  { label, value, choices, onChange }: {
    label: string;
    value: string;
    choices: readonly Choice[];
    onChange: (value: string) => void;
  },
): VNode {
  return (
    <div class="segments" role="group" aria-label={label}>
      {choices.map((choice) => (
        <button
          type="button"
          key={choice.value}
          aria-pressed={choice.value === value}
          onClick={() => onChange(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </div>
  );
}

/** A switch. */
export function Toggle(
  { label, checked, onChange, disabled }: {
    label: string;
    checked: boolean;
    onChange: (checked: boolean) => void;
    disabled?: boolean | undefined;
  },
): VNode {
  return (
    <label class="toggle">
      <input
        type="checkbox"
        role="switch"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <i />
      <span>{label}</span>
    </label>
  );
}

/** A search field; the key `/` focuses the first one of the page. */
export function Search(
  { label, value, onChange, placeholder, inputRef, onKey }: {
    label: string;
    value: string;
    onChange: (value: string) => void;
    placeholder?: string | undefined;
    inputRef?: Ref<HTMLInputElement> | undefined;
    onKey?: ((event: KeyboardEvent) => void) | undefined;
  },
): VNode {
  return (
    <div class="search">
      <Icon name="search" />
      <input
        ref={inputRef ?? null}
        type="search"
        class="input"
        data-search
        aria-label={label}
        placeholder={placeholder ?? label}
        value={value}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => onChange(event.currentTarget.value)}
        onKeyDown={onKey}
      />
    </div>
  );
}

/** Copies what `text` returns, and shows that it has. Without `children` it is an icon. */
export function CopyButton(
  { text, label = "Copy", children }: { text: () => string; label?: string; children?: string },
): VNode {
  const { clipboard, toasts } = useShell();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    if (!await clipboard.copy(text())) {
      toasts.show("bad", "The browser does not let the page copy");
      return;
    }
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <Button
      kind="bare"
      small
      icon={copied ? "check" : "copy"}
      label={copied ? "Copied" : label}
      onPress={() => void copy()}
    >
      {children}
    </Button>
  );
}

/** Deletes something after a second click; `remove` reports its failure itself. */
export function DeleteButton({ remove }: { remove: () => Promise<void> }): VNode {
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const press = () => {
    setBusy(true);
    void remove().finally(() => {
      setBusy(false);
      setAsked(false);
    });
  };
  if (!asked) {
    return <Button small kind="bare" icon="trash" label="Delete" onPress={() => setAsked(true)} />;
  }
  return (
    <>
      <Button small kind="bad" icon="trash" busy={busy} onPress={press}>Delete it</Button>
      <Button small kind="bare" onPress={() => setAsked(false)}>Keep</Button>
    </>
  );
}
