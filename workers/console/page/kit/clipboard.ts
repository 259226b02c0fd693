/**
 * Puts text where the person can paste it.
 *
 * @module
 */

/** Copies text. */
export interface Clipboard {
  /** Whether it was copied; a browser may refuse. */
  copy(text: string): Promise<boolean>;
}

/** The browser's own clipboard. Without it (no secure context), a hidden field does the copying. */
export const browserClipboard: Clipboard = {
  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyByField(text); // Not allowed, or not there on plain http.
    }
  },
};

function copyByField(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "offscreen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
