// Secrets that somebody types or pipes into a command.

import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { Readable } from "node:stream";
import { AccelError } from "../core/faults.ts";

export type SecretInput = Readable & {
  readonly isTTY?: boolean;
  setRawMode?(mode: boolean): unknown;
};

/**
 * Reads the first line of standard input; on a terminal it is asked for unseen, and twice where a mistyped one would be
 * noticed by nobody. A secret never comes from argv, which all users of the host see.
 */
export async function readSecret(
  what: string,
  input: SecretInput,
  say: (text: string) => void,
  stop: AbortSignal,
  asked: "once" | "twice" = "twice",
): Promise<string> {
  if (input.isTTY !== true) {
    for await (const line of createInterface({ input, signal: stop })) return line;
    throw new AccelError("USAGE", `no ${what} on standard input`);
  }
  const typed = new UnseenLines(input);
  try {
    say(`${what}: `);
    const first = await typed.next(stop);
    if (asked === "once") return first;
    say(`\n${what}, again: `);
    if ((await typed.next(stop)) !== first)
      throw new AccelError("USAGE", `what was typed differs: no ${what} was set`);
    return first;
  } finally {
    typed.end();
    say("\n");
  }
}

/** Reads lines from a terminal that does not show what is typed. */
class UnseenLines {
  readonly #input: SecretInput;
  #waiting: string[] = [];

  constructor(input: SecretInput) {
    this.#input = input;
    input.setEncoding("utf8");
    input.setRawMode?.(true);
  }

  /** Returns the next line. Throws USAGE if it is interrupted. */
  async next(stop: AbortSignal): Promise<string> {
    const line: string[] = [];
    for (;;) {
      const char = this.#waiting.shift();
      if (char === undefined) {
        const chunks: unknown[] = await once(this.#input, "data", { signal: stop });
        this.#waiting = Array.from(String(chunks[0]));
      } else if (char === "\r" || char === "\n") return line.join("");
      else if (char === "\u0003" || char === "\u0004") throw new AccelError("USAGE", "interrupted");
      else if (char === "\u007f" || char === "\b") line.pop();
      else line.push(char);
    }
  }

  end(): void {
    this.#input.setRawMode?.(false);
    this.#input.pause(); // Otherwise it keeps the program alive.
  }
}
