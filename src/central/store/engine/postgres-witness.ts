// Finds out whether a PostgreSQL has what this central acknowledged, before anything else is asked of it.
//
//   at the start         the file of the central before is compared with the store; a store that has less gets another epoch, in one transaction
//   at each connection   a server that was started again, or another one, is compared with what is remembered; nobody uses it until it was found whole
//   every few seconds    the epoch is looked at, which another central may have changed
//   where it has less    central opens its store anew: what it knows in memory is of a store that is no more
//
// A restart loses nothing, nor does a synchronous standby that takes over: all numbers are there.

import { randomBytes } from "node:crypto";
import { CompiledQuery } from "kysely";
import pg from "pg";
import { repeating } from "../../../base/wait.ts";
import { AccelError, systemCode } from "../../../core/faults.ts";
import { CommitMarks } from "./commit-marks.ts";
import { storeEpoch, type Store, type Tx } from "./database.ts";
import { EvidenceFile, readEvidence, writeEvidence } from "./evidence-file.ts";
import { readCommitted } from "./read-committed.ts";
import { noteFailover, noteFurtherLoss, noteRestored } from "./restores.ts";
import {
  furtherLossText,
  isFormerPrimary,
  isSameServer,
  judgeStore,
  lossText,
  marksFound,
  removalMark,
  type Judgement,
  type ServerIdentity,
  type StoreEvidence,
  type StoreFound,
  type StoreLoss,
} from "./store-evidence.ts";

export type WitnessOptions = {
  /** The file of evidence. */
  readonly path: string;
  /** Names server and database in messages. */
  readonly where: string;
  readonly now: () => Date;
  /** Called once, when the store must be opened anew; must not throw. */
  readonly onLess: (error: AccelError) => void;
  /** Called when another server, or another start of it, has all that was acknowledged; must not throw. */
  readonly onWhole: (before: ServerIdentity, now: ServerIdentity) => void;
  /** Called when the file could not be written; must not throw. */
  readonly onFailure: (error: unknown) => void;
};

export type EpochWatchOptions = {
  readonly intervalMs?: number;
  /** Called after each look with what it failed by; undefined: the store answered. Must not throw. */
  readonly onAsked: (error: unknown) => void;
};

export type Witnessed = {
  readonly witness: StoreWitness;
  /** What the store had lost, for which it has another epoch now; undefined: nothing. */
  readonly loss: StoreLoss | undefined;
  /** Why the store has another epoch, or what was added to an account of losses, in words for the log. */
  readonly told: string | undefined;
};

/** Numbers that have served are removed when there are so many. */
const removedAtOnce = 1_000;
/** What each run has removed stays told for a year: a state directory that old is of no use. */
const runsKeptMs = 400 * 86_400_000;

const watchIntervalMs = 5_000;

type Ask = (text: string, values: readonly unknown[]) => Promise<readonly Row[]>;
type Row = Readonly<Record<string, unknown>>;

export class StoreWitness implements AsyncDisposable {
  readonly marks: CommitMarks;
  readonly #options: WitnessOptions;
  readonly #epoch: string;
  readonly #file: EvidenceFile;
  #server: ServerIdentity;
  /** The server of each connection that is in use. */
  readonly #clients = new Map<pg.ClientBase, ServerIdentity>();
  #remove: (below: number) => Promise<void> = async () => undefined;
  #removedBelow = 0;
  #isLess = false;

  private constructor(made: {
    readonly options: WitnessOptions;
    readonly marks: CommitMarks;
    readonly epoch: string;
    readonly server: ServerIdentity;
  }) {
    this.#options = made.options;
    this.marks = made.marks;
    this.#epoch = made.epoch;
    this.#server = made.server;
    const { marks } = made;
    this.#file = new EvidenceFile({
      path: made.options.path,
      evidence: (isFinal) => this.#evidence(isFinal),
      onSaved: async ({ commits }) =>
        this.#removeBelow(Math.min(marks.servedBelow, ...commits.map(({ no }) => no))),
      onFailure: made.options.onFailure,
    });
    this.marks.onChange = () => this.#file.changed();
  }

  /**
   * Compares the store with the evidence of the central before, and gives it another epoch if it has less. Begins a run of its own. The tables are there; nobody else
   * of this process uses the store yet. Throws STORE_UNREACHABLE for a server that was primary before.
   */
  static async open(store: Store, options: WitnessOptions): Promise<Witnessed> {
    const { path, now, where } = options;
    const before = await readEvidence(path);
    const ask: Ask = async (text, values) =>
      (await store.executeQuery<Row>(CompiledQuery.raw(text, [...values]))).rows;
    const found = await readFound(ask, before);
    if (before !== undefined && isFormerPrimary(before.server, found.server))
      throw formerPrimary(where, before.server, found.server);
    const judgement = before === undefined ? undefined : judgeStore(before, found);
    const loss = judgement?.kind === "less" ? judgement.loss : undefined;
    const at = now().toISOString();
    const marks = new CommitMarks(randomBytes(8).toString("hex"), now);
    const begun = await store.transaction().execute(async (tx) => {
      // Another central that came at the same time was first: what it wrote is to be judged.
      if ((await storeEpoch(tx)) !== found.epoch) return undefined;
      await tx.insertInto("commit_marks").values({ run: marks.run, no: 0, at }).execute();
      if (before === undefined || judgement === undefined) return { epoch: found.epoch };
      return noted(tx, { before, judgement, epoch: found.epoch, at });
    });
    if (begun === undefined) return StoreWitness.open(store, options);
    const { epoch, told } = begun;
    const witness = new StoreWitness({ options, marks, epoch, server: found.server });
    await writeEvidence(path, witness.#evidence(false));
    if (before !== undefined) await forgetRun(store, before.run, at);
    const yearAgo = new Date(now().getTime() - runsKeptMs).toISOString();
    await store.deleteFrom("commit_marks").where("at", "<", yearAgo).execute();
    return { witness, loss, told };
  }

  /** Removes numbers that have served from this store. Given once. */
  removesFrom(store: Store): void {
    this.#remove = async (below) => {
      const at = this.#options.now().toISOString();
      await readCommitted(store, "commit_marks").execute(async (tx) =>
        removeNumbers(tx, { run: this.marks.run, below, at }),
      );
    };
  }

  /** Returns why a new connection must not be used; undefined: its server has all that was acknowledged. Throws what asking throws. */
  async admit(client: pg.ClientBase): Promise<Error | undefined> {
    const { where, onWhole } = this.#options;
    const ask: Ask = async (text, values) => (await client.query<Row>(text, [...values])).rows;
    const server = identityOf(await ask(identitySql, []));
    if (this.#isLess) return this.#less();
    if (!isSameServer(this.#server, server)) {
      const before = this.#server;
      if (isFormerPrimary(before, server)) return formerPrimary(where, before, server);
      const found = await readFound(ask, { run: this.marks.run, journals: this.marks.journals });
      const judgement = judgeStore(this.#evidence(true), found);
      if (judgement.kind !== "whole") return this.#less();
      // Unless another connection was as fast.
      if (isSameServer(this.#server, before)) {
        this.#server = server;
        this.#file.changed();
        onWhole(before, server);
        this.#endOthers();
      }
      if (!isSameServer(this.#server, server))
        return new AccelError("STORE_UNREACHABLE", `${where} led to two servers at once`);
    }
    this.#clients.set(client, server);
    client.once("end", () => this.#clients.delete(client));
    return undefined;
  }

  /** Looks every few seconds whether the store still has the epoch that it had: another central may have given it another one. */
  watch(
    store: Store,
    { intervalMs = watchIntervalMs, onAsked }: EpochWatchOptions,
  ): AsyncDisposable {
    const look = async (): Promise<void> => {
      const epoch = await storeEpoch(store);
      onAsked(undefined);
      if (epoch !== this.#epoch) this.#less();
    };
    return repeating(intervalMs, look, { onError: onAsked });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file[Symbol.asyncDispose]();
  }

  #less(): AccelError {
    const error = new AccelError(
      "STORE_REWOUND",
      `the store ${this.#options.where} has not all that central acknowledged, or another epoch: another server took over, or a backup was restored`,
    );
    if (!this.#isLess) this.#options.onLess(error);
    this.#isLess = true;
    return new AccelError("STORE_UNREACHABLE", `${error.message}; central opens it anew`);
  }

  /** Connections to the server before, which may live on beside its successor. */
  #endOthers(): void {
    for (const [client, server] of this.#clients)
      if (!isSameServer(this.#server, server)) {
        this.#clients.delete(client);
        if (client instanceof pg.Client) client.end().catch(() => undefined);
      }
  }

  #evidence(isFinal: boolean): StoreEvidence {
    const { systemId, timeline, isSynchronous } = this.#server;
    const { run, commits, journals } = this.marks;
    const server = { systemId, timeline, isSynchronous };
    return { run, epoch: this.#epoch, server, isFinal, commits, journals };
  }

  async #removeBelow(no: number): Promise<void> {
    if (no - this.#removedBelow < removedAtOnce) return;
    this.#removedBelow = no;
    // The next time removes what is left here.
    await this.#remove(no).catch(() => undefined);
  }
}

type Noting = {
  readonly before: StoreEvidence;
  readonly judgement: Judgement;
  /** The epoch that the store has. */
  readonly epoch: string;
  /** Now, ISO 8601. */
  readonly at: string;
};

/** Writes what follows of the judgement, and returns the store's epoch, with what is to be logged. */
async function noted(
  tx: Tx,
  { before, judgement, epoch, at }: Noting,
): Promise<{ readonly epoch: string; readonly told?: string }> {
  switch (judgement.kind) {
    case "whole":
      return { epoch };
    case "less":
      return {
        epoch: await noteFailover(tx, judgement.loss, at),
        told: lossText(judgement.loss),
      };
    case "restored": {
      const since = new Date(judgement.backedUpMs).toISOString();
      return {
        epoch: await noteRestored(tx, judgement.backedUpMs, at),
        told: `the store was restored from a backup: what was changed between ${since} and ${at} may be lost, and what was acknowledged before is there`,
      };
    }
    case "renewed": {
      const { lost } = judgement;
      // Of older runs no number is kept.
      if (lost === undefined || Date.parse(at) - lost.untilMs > runsKeptMs) return { epoch };
      const added = await noteFurtherLoss(tx, before, lost, at);
      return added === undefined ? { epoch } : { epoch, told: furtherLossText(added) };
    }
    default:
      return judgement satisfies never;
  }
}

/** Asks whether a start would be refused by what the file of evidence says; writes nothing. Throws STORE_UNREACHABLE for a server that was primary before, and FILE_UNUSABLE. */
export async function tryEvidence(store: Store, path: string, where: string): Promise<void> {
  const before = await readEvidence(path);
  if (before === undefined) return;
  const { rows } = await store.executeQuery<Row>(CompiledQuery.raw(identitySql, []));
  const server = identityOf(rows);
  if (isFormerPrimary(before.server, server)) throw formerPrimary(where, before.server, server);
}

function formerPrimary(
  where: string,
  before: Pick<ServerIdentity, "timeline">,
  now: Pick<ServerIdentity, "timeline">,
): AccelError {
  return new AccelError(
    "STORE_UNREACHABLE",
    `${where} is a former primary (timeline ${now.timeline}): central has seen its successor (timeline ${before.timeline})`,
    {
      hint: "Shut the former primary off, or make it a standby of its successor, and let `store.url` lead to the primary.",
    },
  );
}

/** Each of these functions may be called by everybody. The name of a segment of the log begins with the timeline. */
const identitySql = `
  SELECT (SELECT system_identifier::text FROM pg_control_system()) AS system_id,
    left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline,
    pg_postmaster_start_time()::text AS started_at,
    (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database_id,
    current_setting('synchronous_standby_names') <> ''
      AND current_setting('synchronous_commit') <> 'local' AS synchronous
`;

function identityOf([row = {}]: readonly Row[]): ServerIdentity {
  return {
    systemId: String(row["system_id"]),
    timeline: Number.parseInt(String(row["timeline"]), 16),
    startedAt: String(row["started_at"]),
    databaseId: String(row["database_id"]),
    isSynchronous: row["synchronous"] === true,
  };
}

/** Reads what the store has of what the evidence names. Throws STORE_UNREACHABLE where there is no store. */
async function readFound(
  ask: Ask,
  evidence: Pick<StoreEvidence, "run" | "journals"> | undefined,
): Promise<StoreFound> {
  const server = identityOf(await ask(identitySql, []));
  const [store] = await ask("SELECT epoch FROM store WHERE id = 1", []).catch((error: unknown) => {
    // undefined_table
    if (systemCode(error) !== "42P01") throw error;
    throw new AccelError("STORE_UNREACHABLE", "the database holds no store", { cause: error });
  });
  const former = await ask("SELECT epoch_before FROM restores", []);
  const marks = await ask("SELECT no FROM commit_marks WHERE run = $1", [evidence?.run ?? ""]);
  const [marked] = await ask("SELECT 1 FROM commit_marks LIMIT 1", []);
  const sites = evidence?.journals.map(({ siteId }) => siteId) ?? [];
  const heads = await ask(
    "SELECT id, journal_head AS head FROM deployment_sites WHERE id = ANY ($1::int[])",
    [sites],
  );
  return {
    server,
    epoch: String(store?.["epoch"]),
    formerEpochs: former.map((row) => String(row["epoch_before"])),
    ...marksFound(marks.map(({ no }) => Number(no))),
    isUnmarked: marked === undefined,
    heads: new Map(heads.map(({ id, head }) => [Number(id), Number(head)])),
  };
}

/** A run that is over has no number but the one that tells of its removal: an older copy of its file then is not taken for a loss. */
async function forgetRun(store: Store, run: string, at: string): Promise<void> {
  await store.transaction().execute(async (tx) => {
    const newest = await tx
      .selectFrom("commit_marks")
      .select((mark) => mark.fn.max("no").as("no"))
      .where("run", "=", run)
      .executeTakeFirst();
    if (typeof newest?.no === "number" && newest.no >= 0)
      await removeNumbers(tx, { run, below: newest.no + 1, at });
  });
}

type Removal = { readonly run: string; readonly below: number; readonly at: string };

/** Removes the numbers of a run below one of them, and says so in their place. `at`: now, ISO 8601. */
export async function removeNumbers(tx: Tx, { run, below, at }: Removal): Promise<void> {
  await tx.deleteFrom("commit_marks").where("run", "=", run).where("no", "<", below).execute();
  await tx
    .insertInto("commit_marks")
    .values({ run, no: removalMark(below), at })
    .execute();
}
