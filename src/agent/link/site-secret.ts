// The secret16 that this host signs in with: that of its file, or one that central gave in its place after a rotation.
//
// Systemd shows the file's secret at a start and nobody but root can write it, so the newer one lies in the state directory:
// `secret16.json`, mode 0600, {"format": 1, "name16", "replaces", "secret16", "since"}. `replaces` is the digest of the secret in the file. Whoever writes
// another secret into the file has the last word: what lies in the state directory is then dropped.
//
// A rotation may come while the disk is full, and central takes the secret before it for a while only. So a file of one block waits beside it, `secret16.room`, and
// is written over and renamed then. Where not even that can be done, as on a disk that is read-only, the new secret is in use from memory, and is written as
// soon as that can be.

import { randomBytes } from "node:crypto";
import { open, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { renameDurable, writeDurable } from "../../base/durable-file.ts";
import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { Mutex } from "../../base/mutex.ts";
import { openNextSecret } from "../../base/vault-seal.ts";
import { sleep } from "../../base/wait.ts";
import { AccelError, isShortage, messageOf, systemCode } from "../../core/faults.ts";
import {
  parseSecret16,
  sha256Of,
  type Name16,
  type Secret16,
  type Sha256,
} from "../../core/ids.ts";
import { parseJson } from "../../core/journal/json-text.ts";

/** What a session needs of it. */
export type SecretInUse = Pick<SiteSecret, "value" | "replace" | "refused">;

/** Makes a secret that nothing is put in place of. */
export function fixedSecret(value: Secret16): SecretInUse {
  return { value, replace: async () => undefined, refused: () => undefined };
}

export type SiteSecretOptions = {
  readonly stateDir: string;
  readonly name16: Name16;
  /** The secret of the file that the settings name. */
  readonly secret16: Secret16;
  readonly health: Health;
  readonly log: Log;
  readonly now: () => Date;
  readonly stop: AbortSignal;
};

type Newer = { readonly value: Secret16; readonly since: string };

const warning = "secret_file_outdated";
const unkept = "secret_not_kept";
const writeAgainMs = 10_000;

export class SiteSecret {
  readonly #options: SiteSecretOptions;
  #newer: Newer | undefined;
  /** Whether the file's secret is tried, because central refused the newer one. */
  #triesFile = false;
  #onChange: (() => void) | undefined;
  /** What of the newer one is to be written. */
  #unwritten: string | undefined;
  #writesLater = false;
  readonly #writing = new Mutex();

  /** Use openSiteSecret instead. */
  constructor(options: SiteSecretOptions, newer: Newer | undefined) {
    this.#options = options;
    this.#newer = newer;
    this.#tell();
  }

  get value(): Secret16 {
    return this.#triesFile || this.#newer === undefined
      ? this.#options.secret16
      : this.#newer.value;
  }

  /** Called after each change. */
  onChange(changed: () => void): void {
    this.#onChange = changed;
  }

  /** Takes the secret that central gives in place of this one; it is durable when this resolves. Throws SEAL_BROKEN. */
  async replace(sealed: string): Promise<void> {
    const { name16, secret16, log, now } = this.#options;
    const value = openNextSecret(sealed, { name16, secret16: this.value });
    if (value === this.value) return;
    const since = now().toISOString();
    const kept = { format: 1, name16, replaces: digestOf(secret16), secret16: value, since };
    this.#unwritten = JSON.stringify(kept);
    const why = await this.#writing.run(async () => this.#write());
    this.#newer = { value, since };
    this.#triesFile = false;
    const where = why === undefined ? "in the state directory" : "in memory only";
    log.info({ name16, why }, `secret16 was rotated; the new one is in use, and ${where}`);
    this.#tell(why);
    this.#onChange?.();
    if (why !== undefined) void this.#writeLater();
  }

  /** Returns why what is kept cannot be written; undefined when it is. */
  async #write(): Promise<string | undefined> {
    const text = this.#unwritten;
    if (text === undefined) return undefined;
    try {
      await writeInRoom(this.#options.stateDir, text);
      if (this.#unwritten === text) this.#unwritten = undefined;
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  async #writeLater(): Promise<void> {
    const { stop } = this.#options;
    if (this.#writesLater) return;
    this.#writesLater = true;
    while (this.#unwritten !== undefined && (await sleep(writeAgainMs, stop))) {
      const why = await this.#writing.run(async () => this.#write());
      // Another rotation may have come meanwhile.
      if (why !== undefined || this.#unwritten === undefined) this.#tell(why);
    }
    this.#writesLater = false;
  }

  /** Notes that central refused the secret. */
  refused(): void {
    // A central that was restored from a backup may have the older one.
    if (this.#newer !== undefined) this.#triesFile = !this.#triesFile;
  }

  #tell(unwrittenWhy?: string): void {
    const { health } = this.#options;
    if (unwrittenWhy === undefined) health.settle(unkept);
    else
      health.raise(
        unkept,
        "error",
        `secret16 was rotated at central, and the new one is in memory only: it cannot be written (${unwrittenWhy})`,
        "Put the disk of the state directory right before the agent is restarted: it would sign in with the secret before. If it has been: `accel-agent join --central URL --replace` with a new code.",
      );
    if (this.#newer === undefined || unwrittenWhy !== undefined) return health.settle(warning);
    health.raise(
      warning,
      "info",
      `secret16 was rotated at central; since ${this.#newer.since} this host uses the new one, which its state directory has, while the file of secret16 has the one before`,
      "Nothing is urgent. To bring the file up to date: `accel-agent join --central URL --replace` with a new code, or write the deployment site's secret16 into it and restart.",
    );
  }
}

type Kept = Pick<SiteSecretOptions, "stateDir" | "name16" | "secret16">;

/** Returns the secret that a start would sign in with, for a command that looks at a host. Throws DISK_FAILED. */
export async function secretOfStart(options: Kept): Promise<Secret16> {
  const kept = await readKept(options.stateDir);
  return (kept === undefined ? undefined : newerOf(kept, options))?.value ?? options.secret16;
}

/** Opens the secret of this start; `options.secret16` is the one of the file. Throws DISK_FAILED. */
export async function openSiteSecret(options: SiteSecretOptions): Promise<SiteSecret> {
  const path = pathOf(options.stateDir);
  await takeRoom(options.stateDir);
  const kept = await readKept(options.stateDir);
  if (kept === undefined) return new SiteSecret(options, undefined);
  const newer = newerOf(kept, options);
  if (newer === undefined && isOfNewerRelease(kept))
    options.log.warn(
      { path },
      "what is kept of a rotation was written by a newer release and stays as it is; the secret of the file is in use. If central refuses it: `accel-agent join --central URL --replace`",
    );
  else if (newer === undefined) {
    options.log.info(
      { path },
      "what is kept of a rotation is damaged, of another site, or older than the file of secret16; the secret of the file is in use",
    );
    await rm(path, { force: true });
  }
  return new SiteSecret(options, newer);
}

/** One block is enough, and more than what is kept takes. */
const roomBytes = 4_096;

/** Writes what is kept durably; on a full disk in the room for it. */
async function writeInRoom(stateDir: string, text: string): Promise<void> {
  try {
    await writeDurable(pathOf(stateDir), text);
  } catch (error) {
    if (!isShortage(error)) throw error;
    await using file = await open(roomOf(stateDir), "r+").catch(() => {
      throw error; // There is no room: why it was needed says more.
    });
    await file.write(text, 0);
    await file.truncate(Buffer.byteLength(text));
    await file.sync();
    await renameDurable(roomOf(stateDir), pathOf(stateDir));
  }
  await takeRoom(stateDir);
}

/** Makes the room for the next rotation. Without it, that works as long as the disk has any. */
async function takeRoom(stateDir: string): Promise<void> {
  const held = await stat(roomOf(stateDir)).catch(() => undefined);
  if (held?.size === roomBytes) return;
  // Of zeros some file systems keep no block.
  await writeDurable(roomOf(stateDir), randomBytes(roomBytes)).catch(() => undefined);
}

async function readKept(stateDir: string): Promise<string | undefined> {
  const path = pathOf(stateDir);
  return readFile(path, "utf8").catch((error: unknown) => {
    if (systemCode(error) === "ENOENT") return undefined;
    throw new AccelError("DISK_FAILED", `${path} cannot be read`, { cause: error });
  });
}

const isOfNewerRelease = (kept: string): boolean =>
  Number((Object(parseJson(kept)) as Record<string, unknown>)["format"]) > 1;

function newerOf(kept: string, { name16, secret16 }: Kept): Newer | undefined {
  const { format, ...raw } = Object(parseJson(kept)) as Record<string, unknown>;
  const value = parseSecret16(raw["secret16"]);
  if (format !== 1 || value === undefined || typeof raw["since"] !== "string") return undefined;
  const isOfFile = raw["name16"] === name16 && raw["replaces"] === digestOf(secret16);
  return isOfFile && value !== secret16 ? { value, since: raw["since"] } : undefined;
}

const digestOf = (secret16: Secret16): Sha256 => sha256Of(secret16);
const pathOf = (stateDir: string): string => join(stateDir, "secret16.json");
const roomOf = (stateDir: string): string => join(stateDir, "secret16.room");
