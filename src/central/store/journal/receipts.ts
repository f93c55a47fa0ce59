// Receipts of agents, stored once each, with what follows from them in the same transaction; those of many agents by the same statements.

import { setImmediate } from "node:timers/promises";
import { sql } from "kysely";
import { Together } from "../../../base/together.ts";
import type { Position } from "../../../wire/position.ts";
import type { Receipt } from "../../../wire/receipt.ts";
import type { Store, Tx } from "../engine/database.ts";
import { noteFailedTrials, type FailedTrial } from "../content/fleet-trials.ts";
import { noteSeen } from "./instances-seen.ts";
import {
  endImport,
  failImport,
  judgeImport,
  type ImportDeps,
} from "../content/import-completion.ts";
import { leaveToOthers, noSiteCode } from "../content/import-without.ts";
import { journalHeads } from "./journal.ts";
import { countOf, parseDetail, type ReceiptDetail } from "./receipt-detail.ts";
import type { SharedCommits } from "../engine/shared-commits.ts";
import { insertListed, listed, rowsAtOnce } from "../engine/listed.ts";
import { parts } from "../engine/parts.ts";
import { isStoreUnreachable } from "../engine/postgres-faults.ts";

export type ReceiptDeps = ImportDeps & {
  readonly store: Store;
  readonly commits: Pick<SharedCommits, "run">;
  readonly now: () => Date;
};

/** The receipts of one instance, in its order. */
type Given = {
  readonly deploymentSiteId: number;
  readonly instanceId: string;
  readonly receipts: readonly Receipt[];
  /** Told beside them. */
  readonly position: Position | undefined;
};
type Judgement = Awaited<ReturnType<typeof judgeImport>>;
/** The receipts, with the imports that they end. */
type Judged = Given & {
  readonly imports: ReadonlyMap<Receipt, string>;
  readonly judgements: ReadonlyMap<Receipt, Judgement>;
};

/** The most that PostgreSQL's integer holds: 24 days. */
const tookMsMax = 2 ** 31 - 1;
/** The most receipts of one transaction: some 50 ms on SQLite, and what PostgreSQL takes in one statement. */
const receiptsAtOnce = (store: Store): number => Math.max(1_000, rowsAtOnce(store));

export class ReceiptIntake {
  readonly #deps: ReceiptDeps;
  readonly #imports: Together<Given, ReadonlyMap<Receipt, string>>;
  readonly #writes: Together<Judged, void>;
  /** Under way, by import and manifest. */
  readonly #judging = new Map<string, Promise<Judgement>>();

  constructor(deps: ReceiptDeps) {
    this.#deps = deps;
    const bounds = {
      gather: () => setImmediate(),
      weightMax: receiptsAtOnce(deps.store),
      weightOf: ({ receipts }: Given) => receipts.length,
      failsAll: isStoreUnreachable,
    };
    this.#imports = new Together<Given, ReadonlyMap<Receipt, string>>({
      ...bounds,
      run: async (all) => importsOf(deps.store, all),
    });
    this.#writes = new Together<Judged, void>({
      ...bounds,
      run: async (all) => {
        const at = deps.now().toISOString();
        const unit = all.every(isOwnAlone) ? "receipts" : undefined;
        await deps.commits.run(async (tx) => writeAll(tx, all, at), unit);
        return all.map(() => undefined);
      },
    });
  }

  /** Durable when it resolves. A receipt beyond the journal's head speaks of another history and is left out. */
  async save(
    deploymentSiteId: number,
    instanceId: string,
    receipts: readonly Receipt[],
    position?: Position,
  ): Promise<void> {
    const given = { deploymentSiteId, instanceId, receipts, position };
    const imports = await this.#imports.ask(given);
    // Files are read and judged before the transaction: nothing waits for the disk inside it.
    const judgements = new Map<Receipt, Judgement>();
    for (const [receipt, importId] of imports)
      if (receipt.phase === "applied")
        judgements.set(receipt, await this.#judge(importId, receipt.detail));
    await this.#writes.ask({ ...given, imports, judgements });
  }

  /** A receipt that is repeated while it is judged, by an agent that did not wait, asks for no second judgement. */
  async #judge(importId: string, detail: Receipt["detail"]): Promise<Judgement> {
    const key = JSON.stringify([importId, detail["manifest"]]);
    const known = this.#judging.get(key);
    if (known !== undefined) return known;
    const judging = judgeImport(this.#deps, importId, detail).finally(() =>
      this.#judging.delete(key),
    );
    this.#judging.set(key, judging);
    return judging;
  }
}

/** Whether nothing is written but what belongs to the instance. */
function isOwnAlone(one: Judged): boolean {
  return one.imports.size === 0 && failedTrialsOf(one).length === 0;
}

async function writeAll(tx: Tx, all: readonly Judged[], at: string): Promise<void> {
  const heads = await journalHeads(tx, [...new Set(all.map((one) => one.deploymentSiteId))]);
  const own = all.map((one) => {
    const headSeq = heads.get(one.deploymentSiteId);
    if (headSeq === undefined) throw new TypeError(`no deployment site ${one.deploymentSiteId}`);
    return { ...one, receipts: one.receipts.filter(({ seq }) => seq <= headSeq) };
  });
  await noteSeen(tx, own, at);
  await insertReceipts(tx, own, at);
  for (const one of own) {
    await correctAll(tx, one, at);
    await endImports(tx, one, at);
    await noteFailedTrials(tx, failedTrialsOf(one), at);
  }
}

/** Versions that were in force at an instance and failed there; what was refused never was in force. */
function failedTrialsOf({ deploymentSiteId, instanceId, receipts }: Given): readonly FailedTrial[] {
  return receipts
    .filter(({ phase, detail }) => phase === "failed" && detail["code"] === "VIEWSET_PROBE_FAILED")
    .map((receipt) => {
      const { seq } = receipt;
      return { deploymentSiteId, instanceId, seq, reason: reasonOf(receipt) };
    });
}

async function insertReceipts(tx: Tx, all: readonly Given[], at: string): Promise<void> {
  const rows = all.flatMap(({ deploymentSiteId, instanceId, receipts }) =>
    receipts.map(({ seq, phase, detail, took_ms }) => ({
      deployment_site_id: deploymentSiteId,
      instance_id: instanceId,
      seq,
      phase,
      detail: JSON.stringify(detail),
      took_ms: Math.min(took_ms, tookMsMax),
      when_received: at,
    })),
  );
  await insertListed(tx, "receipts", receiptColumns, rows, sql`ON CONFLICT DO NOTHING`);
}

const receiptColumns = {
  deployment_site_id: "integer",
  instance_id: "text",
  seq: "bigint",
  phase: "text",
  detail: "text",
  took_ms: "integer",
  when_received: "text",
} as const;

const correctionOf = (detail: ReceiptDetail): number => countOf(detail, "correction") ?? 0;

/** Inserted just now or before; where one says something newer than what is stored, that is stored. */
async function correctAll(tx: Tx, given: Given, at: string): Promise<void> {
  for (const receipt of given.receipts)
    if (correctionOf(receipt.detail) > 0) await correct(tx, given, receipt, at);
}

async function correct(
  tx: Tx,
  { deploymentSiteId, instanceId }: Given,
  { seq, phase, detail }: Receipt,
  at: string,
): Promise<void> {
  const own = { deployment_site_id: deploymentSiteId, instance_id: instanceId, seq, phase };
  const { detail: json } = await tx
    .selectFrom("receipts")
    .select("detail")
    .where((where) => where.and(own))
    .executeTakeFirstOrThrow();
  const stored = parseDetail(json);
  if (correctionOf(stored) >= correctionOf(detail)) return;
  // A snapshot at this place covers the entries before it all the same.
  const kept = stored["snapshot"] === true ? stored : {};
  await tx
    .updateTable("receipts")
    .set({ detail: JSON.stringify({ ...kept, ...detail }), when_received: at })
    .where((where) => where.and(own))
    .execute();
}

async function endImports(
  tx: Tx,
  { instanceId, receipts, imports, judgements }: Judged,
  at: string,
): Promise<void> {
  for (const receipt of receipts) {
    const importId = imports.get(receipt);
    if (importId === undefined) continue;
    const judgement = judgements.get(receipt);
    if (judgement !== undefined) await endImport(tx, importId, judgement, at);
    else if (receipt.detail["code"] === noSiteCode)
      await leaveToOthers(tx, importId, instanceId, at);
    else if (receipt.phase !== "gone") await failImport(tx, importId, reasonOf(receipt), at);
  }
}

const placeColumns = { place: "integer", id: "integer", seq: "bigint" } as const;

/** Returns the imports that receipts end, by what the journal says of their entry, not by what they say. */
async function importsOf(
  store: Store,
  all: readonly Given[],
): Promise<readonly ReadonlyMap<Receipt, string>[]> {
  const places = all.flatMap(({ deploymentSiteId, receipts }, no) =>
    // A snapshot at its position says nothing of an import there.
    receipts
      .filter(({ detail }) => detail["snapshot"] !== true)
      .map((receipt) => ({ no, deploymentSiteId, receipt })),
  );
  const imports = all.map(() => new Map<Receipt, string>());
  for (const part of parts(places, rowsAtOnce(store))) {
    const asked = part.map(({ deploymentSiteId: id, receipt: { seq } }, place) => {
      return { place, id, seq };
    });
    const { rows } = await sql<{ readonly place: number; readonly body: string }>`
      SELECT asked.place, body
      FROM ${listed(store, placeColumns, asked)} AS asked
      CROSS JOIN journal INNER JOIN journal_bodies ON digest = body_digest
      WHERE deployment_site_id = asked.id AND journal.seq = asked.seq AND kind = 'viewset.import'
    `.execute(store);
    for (const { place, body } of rows) {
      const found = part[place];
      // Written by appendJournal from a checked body.
      const { import_id: importId } = JSON.parse(body) as { readonly import_id: string };
      if (found !== undefined) imports[found.no]?.set(found.receipt, importId);
    }
  }
  return imports;
}

function reasonOf({ phase, detail }: Receipt): string {
  const reason = detail["reason"];
  return typeof reason === "string" && reason !== "" ? reason : `the agent ${phase} it`;
}
