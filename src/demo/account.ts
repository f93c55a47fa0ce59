// What the demo remembers between starts: who it is at central, and the idempotency keys of what it asks for.
// They are written before each first request, so that a start that was killed half-way goes on where it was.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { writeDurable } from "../base/durable-file.ts";

export type Account = {
  /** Names everything of this demo at central; it is also the stem of the Idempotency-Keys. */
  readonly run: string;
  readonly token: string | null;
  readonly site: { readonly id: number; readonly name16: string } | null;
  /** The fingerprint of the site folder and devlove that were activated last. */
  readonly activated: string | null;
};

const fresh = (): Account => ({
  run: randomUUID().slice(0, 8),
  token: null,
  site: null,
  activated: null,
});

export class AccountFile {
  readonly #path: string;
  #account: Account;

  constructor(stateDir: string) {
    this.#path = join(stateDir, "account.json");
    this.#account = read(this.#path) ?? fresh();
  }

  get current(): Account {
    return this.#account;
  }

  async save(change: Partial<Account> = {}): Promise<void> {
    this.#account = { ...this.#account, ...change };
    await writeDurable(this.#path, `${JSON.stringify(this.#account, null, 2)}\n`);
  }
}

/** Reads what `save` wrote. A file that is missing or not whole starts anew. */
function read(path: string): Account | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Account;
  } catch {
    return undefined;
  }
}
