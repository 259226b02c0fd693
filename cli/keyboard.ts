/**
 * Keys of the terminal, one by one, without waiting for the end of a line.
 *
 * @module
 */

/** Something with keys. */
export interface Keyboard {
  /**
   * Calls `listener` for every key, such as `q`; call the result to stop and to leave the terminal
   * as it was. `undefined` when standard input is no terminal.
   */
  listen(listener: (key: string) => void): (() => void) | undefined;
}

/** What of standard input is used. */
export interface KeyInput {
  isTerminal(): boolean;
  setRaw(isRaw: boolean, options?: { cbreak: boolean }): void;
  read(buffer: Uint8Array): Promise<number | null>;
}

/** The keyboard at an input; by default at that of this process. */
export function keyboardAt(input: KeyInput = Deno.stdin): Keyboard {
  return {
    listen(listener) {
      if (!input.isTerminal()) return undefined;
      input.setRaw(true, { cbreak: true }); // Ctrl-C stays a signal.
      let isOpen = true;
      void readKeys(input, (key) => isOpen && listener(key), () => isOpen);
      return () => {
        if (!isOpen) return;
        isOpen = false;
        input.setRaw(false);
      };
    },
  };
}

/** A reading that waits when nobody listens any more ends with the process. */
async function readKeys(
  input: KeyInput,
  hear: (key: string) => void,
  isOpen: () => boolean,
): Promise<void> {
  const buffer = new Uint8Array(64);
  const decoder = new TextDecoder();
  while (isOpen()) {
    const length = await input.read(buffer).catch(() => null);
    if (length === null) return;
    const text = decoder.decode(buffer.subarray(0, length), { stream: true });
    // Arrow keys and the like come as a sequence, which is none of the keys.
    if (!text.startsWith("\x1b")) { for (const key of text) hear(key); }
  }
}
