// The vault of this host: the symmetric keys and certificates that central sealed for its deployment site, in
// `state_dir/vault/` (0700, its files 0600), and the table of opened certificates that the workers serve.
//
// Invariant: certificates are taken all or none. If one cannot be opened or does not match its key, the set
// is not served, and the one before still is. Restoring needs no central, so a start serves what was in force
// before.

import { chmod, rm } from "node:fs/promises";
import { join } from "node:path";
import { ensureDirectory } from "../../base/durable-file.ts";
import type { SiteCredentials } from "../../base/vault-seal.ts";
import type { InstalledCertificate } from "../../core/serving/certificate-table.ts";
import type { CertificateFacts } from "../../core/serving/certificate-choice.ts";
import type {
  FoundCertificates,
  LockedCertificates,
  ReadyCertificates,
  StoredCertificates,
} from "../../core/serving/found-certificates.ts";
import { type Sha256, sha256Of } from "../../core/ids.ts";
import type { CertificatesChanged, CertificateState, KeysChanged } from "../../wire/vault.ts";
import type { GetBlob } from "../link/central-client.ts";
import { CertificateFiles, parseCertificates } from "./certificate-files.ts";
import { fetchCertificates } from "./fetch-certificates.ts";
import { openKeys, readKeys, takeKeys, writeKeys, type KeptKey } from "./key-file.ts";
import { openCertificates } from "./open-certificates.ts";
import { TableArenas } from "./table-arenas.ts";
import {
  soonestFirst,
  stateOf,
  VaultTelemetry,
  type VaultTelemetryDeps,
} from "./vault-telemetry.ts";

export type VaultOptions = VaultTelemetryDeps & {
  readonly stateDir: string;
  /** The credentials of now: the secret may be replaced while the agent runs. */
  readonly site: () => SiteCredentials;
  readonly getBlob: GetBlob;
  readonly now: () => Date;
  /** Resolves when no thread reads a table older than the one in force. */
  readonly left: () => Promise<void>;
};

const nothing: ReadyCertificates = {
  kind: "ready",
  stored: null,
  table: undefined,
  facts: [],
  keyNames: new Set(),
};

export class Vault {
  readonly #options: VaultOptions;
  readonly #keyPath: string;
  readonly #files: CertificateFiles;
  readonly #telemetry: VaultTelemetry;
  #keys: readonly KeptKey[];
  #inForce: readonly CertificateFacts[] = [];
  #usedKeys: ReadonlySet<string> = new Set();
  readonly #arenas: TableArenas;
  /** Use openVault instead. */
  constructor(options: VaultOptions, keys: readonly KeptKey[]) {
    const directory = directoryOf(options.stateDir);
    this.#options = options;
    this.#keyPath = keyPathOf(directory);
    this.#files = new CertificateFiles(directory);
    this.#telemetry = new VaultTelemetry(options);
    this.#arenas = new TableArenas(options.left);
    this.#keys = keys;
    this.#tellKeys();
    this.tellExpiry();
  }

  /** Whether central sealed keys under another secret16 than this host's: it was rotated. */
  isSealedUnderAnother({ keys }: KeysChanged): boolean {
    return openKeys(
      keys.map((one) => ({ ...one, isCurrent: true, key: undefined })),
      this.#options.site(),
    ).some(({ key }) => key === undefined);
  }

  /** Takes central's keys; they are durable when it resolves with the names of those that do not open. */
  async takeKeys({ keys }: KeysChanged): Promise<readonly string[]> {
    const taken = takeKeys(this.#keys, keys, this.#usedKeys, this.#options.site());
    await writeKeys(this.#keyPath, taken);
    this.#keys = taken;
    return this.#tellKeys();
  }

  /** Tries keys that did not open before with the secret16 of now. */
  async unlock(): Promise<void> {
    const keys = openKeys(this.#keys, this.#options.site());
    if (keys.every(({ key }, at) => key === this.#keys[at]?.key)) return;
    await writeKeys(this.#keyPath, keys);
    this.#keys = keys;
    this.#tellKeys();
  }

  /**
   * Prepares certificates and fetches them if they are a blob. Throws what fetching throws, such as NOT_FOUND
   * if a later entry has taken their place.
   */
  async prepare(body: CertificatesChanged, signal: AbortSignal): Promise<FoundCertificates> {
    const found = await this.#prepare(body, signal);
    this.#telemetry.arrived(
      found.kind === "locked" ? "locked" : found.kind === "ready" ? "installed" : "invalid",
    );
    return found;
  }

  async #prepare(body: CertificatesChanged, signal: AbortSignal): Promise<FoundCertificates> {
    const bytes =
      "blob" in body
        ? await fetchCertificates(body.blob, this.#options.getBlob, signal)
        : Buffer.from(JSON.stringify(body));
    const states = parseCertificates(bytes);
    if (typeof states === "string")
      return { kind: "invalid", reason: `the certificates ${sha256Of(bytes)}: ${states}` };
    if (states.length === 0) return nothing;
    const found = await this.#open(states, sha256Of(bytes), true);
    if (found.kind !== "invalid") await this.#files.write(bytes);
    return found;
  }

  /** Opens what was prepared before from its file; `torn` if that is missing or damaged. */
  async restore({ sha256 }: StoredCertificates): Promise<FoundCertificates> {
    const states = await this.#files.read(sha256);
    return states === undefined ? { kind: "torn" } : this.#open(states, sha256, false);
  }

  async #open(
    states: readonly CertificateState[],
    sha256: Sha256,
    isNew: boolean,
  ): Promise<FoundCertificates> {
    const keys = new Map(
      this.#keys.flatMap(({ name, key }) => (key === undefined ? [] : [[name, key] as const])),
    );
    const { name16 } = this.#options.site();
    const opened = await openCertificates(states, { keys, name16, isNew });
    const stored = { sha256, count: states.length };
    const keyNames = new Set(states.map(({ key_name: name }) => name));
    if (opened.kind === "locked") return { ...opened, stored, keyNames };
    if (opened.kind === "invalid") return opened;
    const { certificates } = opened;
    const table = await this.#arenas.encode(certificates);
    return { kind: "ready", stored, table, facts: certificates.map(factsOf), keyNames };
  }

  /**
   * Notes that `ready` is in force and `locked` waits for another secret16. Files and keys that neither needs
   * are removed.
   */
  async use(ready: ReadyCertificates | undefined, locked?: LockedCertificates): Promise<void> {
    this.#inForce = ready?.facts ?? [];
    this.#arenas.use(ready?.table);
    this.tellExpiry();
    const needed = [ready, locked].filter((one) => one !== undefined);
    this.#usedKeys = new Set(needed.flatMap(({ keyNames }) => [...keyNames]));
    const keys = this.#keys.filter(({ name, isCurrent }) => isCurrent || this.#usedKeys.has(name));
    if (keys.length < this.#keys.length) {
      await writeKeys(this.#keyPath, keys);
      this.#keys = keys;
      this.#tellKeys();
    }
    const files = needed.flatMap(({ stored }) => (stored === null ? [] : [stored.sha256]));
    await this.#files.keepOnly(new Set(files));
  }

  /** Removes all keys and certificates from this host. */
  async forget(): Promise<void> {
    this.#keys = [];
    await this.use(undefined);
    await this.#arenas.wipe();
    await rm(this.#keyPath, { force: true });
    await rm(`${this.#keyPath}.corrupt`, { force: true });
    this.#tellKeys();
  }

  tellExpiry(): void {
    this.#telemetry.certificates(this.#inForce, this.#options.now().getTime());
  }

  /** Returns the certificates in force that have expired, or will within the time; soonest first. */
  expiring(withinMs: number, countMax: number): readonly CertificateFacts[] {
    const endMs = this.#options.now().getTime() + withinMs;
    const soon = this.#inForce.filter(({ notAfterMs }) => notAfterMs <= endMs);
    return soonestFirst(soon).slice(0, countMax);
  }

  facts(): Readonly<Record<string, unknown>> {
    const nowMs = this.#options.now().getTime();
    return {
      keys: this.#keys.filter(({ isCurrent }) => isCurrent).length,
      locked_keys: this.lockedKeys().length,
      certificates: this.#inForce.length,
      next_to_expire: soonestFirst(this.#inForce)
        .slice(0, 5)
        .map((one) => ({
          names: one.names.slice(0, 3).join(", "),
          not_after: new Date(one.notAfterMs).toISOString(),
          state: stateOf(one, nowMs),
        })),
    };
  }

  /**
   * Whether there are no keys. Every site has at least one, so they were lost, or came when this host could
   * not take them.
   */
  get lacksKeys(): boolean {
    return this.#keys.length === 0;
  }

  /** Returns the names of the keys that do not open with this host's secret16. */
  lockedKeys(): readonly string[] {
    return this.#keys.filter(({ key }) => key === undefined).map(({ name }) => name);
  }

  #tellKeys(): readonly string[] {
    const locked = this.lockedKeys();
    this.#telemetry.keys(this.#keys.length - locked.length, locked);
    return locked;
  }
}

/** Returns the facts without the texts: what is kept beside the table must not hold a private key. */
function factsOf({ names, notBeforeMs, notAfterMs }: InstalledCertificate): CertificateFacts {
  return { names, notBeforeMs, notAfterMs };
}

const directoryOf = (stateDir: string): string => join(stateDir, "vault");
const keyPathOf = (directory: string): string => join(directory, "keys.json");

/** Opens the vault and tries keys that did not open before with the secret16 of this start. */
export async function openVault(options: VaultOptions): Promise<Vault> {
  const directory = directoryOf(options.stateDir);
  await ensureDirectory(directory);
  await chmod(directory, 0o700); // A restored backup may have given it other rights.
  const path = keyPathOf(directory);
  const kept = await readKeys(path);
  const keys = openKeys(kept, options.site());
  if (keys.some(({ key }, at) => key !== kept[at]?.key)) await writeKeys(path, keys);
  return new Vault(options, keys);
}
