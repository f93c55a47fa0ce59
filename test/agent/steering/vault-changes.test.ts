// Keys and certificates from entries and snapshots: what is receipted, what is committed with the flip, and what a start makes of it. The vault is the real one.

import { rmSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openVault, type Vault } from "../../../src/agent/vault/vault.ts";
import type { Correction, Documents } from "../../../src/agent/link/agent-db.ts";
import { takeVault, VaultChanges } from "../../../src/agent/steering/vault-changes.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import {
  CertificateTable,
  type CertificateTableRef,
} from "../../../src/core/serving/certificate-table.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { parseSha256 } from "../../../src/core/ids.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import type { Snapshot } from "../../../src/wire/snapshot.ts";
import { SealedSite } from "../../support/sealed-site.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { makeCertificate } from "../../support/x509.ts";

const stop = new AbortController().signal;
const epoch = "0123456789abcdef0123456789abcdef";
const at = (seq: number) => ({ epoch, seq });
const leaf = makeCertificate({ names: ["a.example.com"] });
const other = makeCertificate({ names: ["b.example.com"] });

/** What outlives a start. */
class Host {
  readonly site = new SealedSite();
  readonly documents = new Map<string, unknown>();
  readonly corrections: Correction[] = [];
  readonly stateDir: string;
  snapshots: (Snapshot | Error)[] = [];
  /** What comes of a sign-in; nothing for a host that has the last secret16. */
  signIn: ((own: { site: SealedSite["site"] }) => unknown) | undefined;

  constructor(stateDir: string) {
    this.stateDir = stateDir;
  }

  async start() {
    const own = { site: this.site.site };
    const vault = await openVault({
      stateDir: this.stateDir,
      site: () => own.site,
      getBlob: async () => {
        throw new AccelError("NOT_FOUND", "there is no blob");
      },
      left: async () => undefined,
      now: () => new Date("2031-01-01T00:00:00Z"),
      registry: new Registry(),
      health: new Health(() => new Date()),
    });
    const run = new Run(this, vault, own);
    await run.changes.restore();
    return run;
  }
}

class Run {
  readonly changes: VaultChanges;
  readonly vault: Vault;
  /** Of the state in force. */
  table: CertificateTableRef | undefined;
  failing = "";

  constructor(host: Host, vault: Vault, own: { site: SealedSite["site"] }) {
    this.vault = vault;
    const documents: Documents = {
      get: (key) => host.documents.get(key),
      put: (changes, corrections?: readonly Correction[]) => {
        for (const [key, value] of Object.entries(changes))
          if (value === null) host.documents.delete(key);
          else host.documents.set(key, value);
        host.corrections.push(...(corrections ?? []));
      },
    };
    this.changes = new VaultChanges({
      vault,
      documents,
      serving: {
        restoreCertificates: (table) => void (this.table = table),
        publish: async (override, commit) => {
          const certificates = override?.certificates;
          if (this.failing === "stage") throw new Error("not staged");
          commit?.();
          if (certificates !== undefined) this.table = certificates ?? undefined;
        },
      },
      getSnapshot: async () => {
        const next = host.snapshots.shift() ?? new Error("no snapshot");
        if (next instanceof Error) throw next;
        return next;
      },
      signIn: async () => void (await host.signIn?.(own)),
      log: silentLog(),
      random: () => 0,
      stop,
    });
  }

  served(): readonly string[] {
    if (this.table === undefined) return [];
    const table = new CertificateTable(this.table);
    return table.certificates.map((one) => `${one.names.join()} ${table.keyOf(one)}`);
  }
}

const servedA = [`a.example.com ${leaf.key}`];
const servedB = [`b.example.com ${other.key}`];

async function withOne(host: Host): Promise<Run> {
  host.site.addKey();
  const run = await host.start();
  await run.changes.changeKeys(host.site.keysBody(), at(1));
  const outcome = await run.changes.changeCertificates(
    { certificates: [host.site.certificate(leaf)] },
    at(2),
    stop,
  );
  expect(outcome).toEqual({ phase: "applied", detail: { certificates: 1 } });
  return run;
}

test("entries are applied, told, and in force again after a start", async () => {
  using dir = tempDir();
  const host = new Host(dir.path);
  const key = host.site.addKey();
  const run = await host.start();
  expect(run.served()).toEqual([]);
  const keys = host.site.keysBody();
  const told = { phase: "applied", detail: { keys: 1, newest: key } };
  expect(await run.changes.changeKeys(keys, at(1))).toEqual(told);
  expect(await run.changes.changeKeys(keys, at(1))).toEqual(told);
  const body = { certificates: [host.site.certificate(leaf)] };
  const outcome = { phase: "applied", detail: { certificates: 1 } };
  expect(await run.changes.changeCertificates(body, at(2), stop)).toEqual(outcome);
  expect(await run.changes.changeCertificates(body, at(2), stop)).toEqual(outcome);
  expect(run.served()).toEqual(servedA);
  expect((await host.start()).served()).toEqual(servedA);
  const next = await host.start();
  await next.changes.changeCertificates({ certificates: [] }, at(3), stop);
  expect(next.served()).toEqual([]);
  expect((await host.start()).served()).toEqual([]);
  expect(readdirSync(join(dir.path, "vault"))).toEqual(["keys.json"]);
  expect([...host.documents.keys()]).toEqual([]);
});

test("what is not right is refused with the reason, what is not there any more fails; the ones before are served", async () => {
  using dir = tempDir();
  const host = new Host(dir.path);
  const run = await withOne(host);
  const wrong = { ...host.site.certificate(other), chain: leaf.pem };
  const refused = await run.changes.changeCertificates({ certificates: [wrong] }, at(3), stop);
  expect(refused).toMatchObject({ phase: "refused", detail: { code: "CERTIFICATES_INVALID" } });
  const blob = parseSha256("0".repeat(64));
  if (blob === undefined) throw new Error("no digest");
  const gone = await run.changes.changeCertificates({ blob, count: 1_000 }, at(4), stop);
  expect(gone).toMatchObject({ phase: "failed", detail: { reason: /a later entry brings them/ } });
  expect(run.served()).toEqual(servedA);
  expect((await host.start()).served()).toEqual(servedA);
});

test("when the state cannot be published nothing has changed, and the entry can be repeated", async () => {
  using dir = tempDir();
  const host = new Host(dir.path);
  const run = await withOne(host);
  run.failing = "stage";
  const body = { certificates: [host.site.certificate(other)] };
  await expect(run.changes.changeCertificates(body, at(3), stop)).rejects.toThrow("not staged");
  expect(run.served()).toEqual(servedA);
  expect((await host.start()).served()).toEqual(servedA);
  run.failing = "";
  await run.changes.changeCertificates(body, at(3), stop);
  expect(run.served()).toEqual(servedB);
  expect((await host.start()).served()).toEqual(servedB);
});

test("what another secret16 sealed fails, is kept, and a start with that secret takes it into use and corrects the receipts", async () => {
  using dir = tempDir();
  const host = new Host(dir.path);
  const run = await withOne(host);
  const old = host.site.secret16;
  host.site.secret16 = "f".repeat(32);
  const second = host.site.addKey();
  const reason = expect.stringContaining(second);
  const failed = { phase: "failed", detail: { reason, code: "VAULT_LOCKED" } };
  expect(await run.changes.changeKeys(host.site.keysBody(), at(3))).toEqual(failed);
  const body = { certificates: [host.site.certificate(other)] };
  expect(await run.changes.changeCertificates(body, at(4), stop)).toEqual(failed);
  expect(run.served()).toEqual(servedA);

  host.site.secret16 = old;
  expect((await host.start()).served()).toEqual(servedA);
  expect(host.corrections).toEqual([]);
  host.site.secret16 = "f".repeat(32);
  expect((await host.start()).served()).toEqual(servedB);
  expect(host.corrections).toEqual([
    { ...at(3), phase: "applied", detail: {} },
    { ...at(4), phase: "applied", detail: { certificates: 1 } },
  ]);
  expect([...host.documents.keys()]).toEqual(["certificates"]);
  expect((await host.start()).served()).toEqual(servedB);
  expect(host.corrections).toHaveLength(2);
});

test("a rotated secret16 that the host can learn locks nothing", async () => {
  using dir = tempDir();
  const host = new Host(dir.path);
  const run = await withOne(host);
  host.site.secret16 = "f".repeat(32);
  host.site.addKey();
  host.signIn = (own) => void (own.site = host.site.site);
  expect(await run.changes.changeKeys(host.site.keysBody(), at(3))).toMatchObject({
    phase: "applied",
  });
  const body = { certificates: [host.site.certificate(other)] };
  expect(await run.changes.changeCertificates(body, at(4), stop)).toMatchObject({
    phase: "applied",
  });
  expect(run.served()).toEqual(servedB);
});

test("a secret16 that comes later takes into use what waited, without a restart, and corrects the receipts", async () => {
  using dir = tempDir();
  const host = new Host(dir.path);
  const run = await withOne(host);
  host.site.secret16 = "f".repeat(32);
  host.site.addKey();
  let learn = (): void => undefined;
  host.signIn = (own) => {
    learn = () => void (own.site = host.site.site);
    throw new AccelError("CENTRAL_UNREACHABLE", "away");
  };
  await run.changes.changeKeys(host.site.keysBody(), at(3));
  const body = { certificates: [host.site.certificate(other)] };
  await run.changes.changeCertificates(body, at(4), stop);
  await run.changes.unlock();
  expect([run.served(), host.corrections]).toEqual([servedA, []]);
  learn();
  await run.changes.unlock();
  expect(run.served()).toEqual(servedB);
  expect(host.corrections).toEqual([
    { ...at(3), phase: "applied", detail: {} },
    { ...at(4), phase: "applied", detail: { certificates: 1 } },
  ]);
  expect((await host.start()).served()).toEqual(servedB);
});

function snapshotOf(host: Host, seqs: Snapshot["vault_entries"], of = leaf): Snapshot {
  const chain = parseSha256(chainStart);
  if (chain === undefined) throw new Error("no digest");
  return {
    epoch,
    seq: 9,
    chain,
    domains: { domains: [] },
    policy: { domains: [] },
    viewsets: [],
    bots: [],
    keys: host.site.keysBody(),
    certificates: { certificates: [host.site.certificate(of)] },
    vault_entries: seqs,
    imports: [],
  };
}

test("a snapshot brings both, and what came of each is told at its own place", async () => {
  using dir = tempDir();
  const host = new Host(dir.path);
  host.site.addKey();
  const run = await host.start();
  const snapshot = snapshotOf(host, { keys: 3, certificates: null });
  const told = await takeVault(run.changes, snapshot, stop);
  expect(told).toMatchObject([{ seq: 3, phase: "applied" }]);
  expect(run.served()).toEqual(servedA);
  const wrong = { ...snapshotOf(host, { keys: 3, certificates: 4 }, other), keys: { keys: [] } };
  host.site.addKey();
  const next = { ...wrong, certificates: { certificates: [host.site.certificate(other)] } };
  const failed = await takeVault(run.changes, next, stop);
  expect(failed).toMatchObject([
    { seq: 3, phase: "applied" },
    { seq: 4, phase: "failed", detail: { code: "VAULT_LOCKED" } },
  ]);
  expect(run.served()).toEqual(servedA);
});

test.each(["keys.json", "certificates"])(
  "%s damaged: fetched again, until central has answered",
  async (damaged) => {
    using dir = tempDir();
    const host = new Host(dir.path);
    host.documents.set("domains", { domains: [] });
    await withOne(host);
    const directory = join(dir.path, "vault");
    for (const name of readdirSync(directory).filter((one) => one.startsWith(damaged)))
      writeFileSync(join(directory, name), "damaged");
    const run = await host.start();
    expect(run.served()).toEqual([]);
    host.snapshots = [
      new AccelError("CENTRAL_UNREACHABLE", "away"),
      snapshotOf(host, { keys: 1, certificates: 2 }),
    ];
    await run.changes.heal();
    expect(run.served()).toEqual(servedA);
    const again = await host.start();
    expect(again.served()).toEqual(servedA);
    await again.changes.heal(); // Nothing to do: no snapshot is asked for.
    expect(host.snapshots).toEqual([]);
  },
);

test("keys that came when this host did not know of keys are fetched; a host without any state waits for its first snapshot", async () => {
  using dir = tempDir();
  const host = new Host(dir.path);
  host.site.addKey();
  host.snapshots = [snapshotOf(host, { keys: 1, certificates: 2 })];
  await (await host.start()).changes.heal();
  expect(host.snapshots).toHaveLength(1);
  host.documents.set("domains", { domains: [] });
  const run = await host.start();
  await run.changes.heal();
  expect([run.served(), host.snapshots]).toEqual([servedA, []]);
  // Deleted at central: nobody asks without end.
  host.documents.clear();
  host.documents.set("domains", { domains: [] });
  await run.vault.forget();
  host.snapshots = [new AccelError("SITE_DELETED", "gone"), new Error("asked again")];
  await (await host.start()).changes.heal();
  expect(host.snapshots).toHaveLength(1);
});

test("a deleted site leaves nothing", async () => {
  using dir = tempDir();
  const host = new Host(dir.path);
  const run = await withOne(host);
  await run.changes.forget();
  expect([run.served(), [...host.documents.keys()]]).toEqual([[], []]);
  expect(readdirSync(join(dir.path, "vault"))).toEqual([]);
  expect((await host.start()).served()).toEqual([]);
  rmSync(join(dir.path, "vault"), { recursive: true });
  expect((await host.start()).served()).toEqual([]);
});
