// The store as the customer API sees it: one unit of queries per transaction, named by resource.

import type { Sealer } from "../../../base/seal.ts";
import { audit } from "./audit.ts";
import { botChecks } from "../bots/bot-checks.ts";
import { bots } from "../bots/bots.ts";
import { certificates } from "../vault/certificates.ts";
import { clears } from "../journal/clears.ts";
import { customers } from "./customers.ts";
import { deployments } from "../content/deployments.ts";
import { devloveFiles } from "../content/devlove-files.ts";
import { domains } from "../content/domains.ts";
import { idempotency } from "../engine/idempotency.ts";
import { imports } from "../content/imports.ts";
import type { MarkJournal } from "../bots/mark-journal.ts";
import { markProofs } from "../bots/mark-proof.ts";
import { packages } from "../packages/packages.ts";
import { people } from "./people.ts";
import { monitorChannels } from "../notices/monitor-channels.ts";
import { policies } from "../bots/policies.ts";
import { recovery } from "./recovery.ts";
import { sites } from "../journal/sites.ts";
import { subscriptions } from "../notices/subscriptions.ts";
import { symmetricKeys } from "../vault/symmetric-keys.ts";
import { unreviewedBots } from "../bots/unreviewed-bots.ts";
import { users } from "./users.ts";
import { viewsets } from "../content/viewsets.ts";
import type { Store } from "../engine/database.ts";
import type { Work } from "../engine/work.ts";

export type CustomerStoreDeps = {
  readonly store: Store;
  readonly sealer: Sealer;
  readonly now: () => Date;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Coalesces what changes bot sets. Without it the journals are told of each change in its own transaction. */
  readonly marks?: Pick<MarkJournal, "isDue" | "changed">;
};

export type CustomerUnit = ReturnType<typeof unitOf>;

function unitOf(work: Work) {
  return {
    at: work.at,
    audit: audit(work),
    botChecks: botChecks(work),
    bots: bots(work),
    certificates: certificates(work),
    clears: clears(work),
    customers: customers(work),
    deployments: deployments(work),
    devloveFiles: devloveFiles(work),
    domains: domains(work),
    idempotency: idempotency(work),
    imports: imports(work),
    packages: packages(work),
    people: people(work),
    markProofs: markProofs(work),
    monitorChannels: monitorChannels(work),
    policies: policies(work),
    recovery: recovery(work),
    sites: sites(work),
    subscriptions: subscriptions(work),
    symmetricKeys: symmetricKeys(work),
    unreviewedBots: unreviewedBots(work),
    users: users(work),
    viewsets: viewsets(work),
  };
}

/** The part of the store that the customer API uses. */
export type Transactions = Pick<CustomerStore, "run">;

/** The end of a transaction's action: with `keep` false all that it wrote is taken back. */
export type Ended<T> = { readonly keep: boolean; readonly value: T };

export type Done<T> = {
  readonly value: T;
  /** Deployment sites whose journal is longer now. Empty when nothing was kept. */
  readonly appended: readonly number[];
};

export class CustomerStore {
  readonly #deps: CustomerStoreDeps;

  constructor(deps: CustomerStoreDeps) {
    this.#deps = deps;
  }

  /** One transaction; transactions run one after the other. */
  async run<T>(action: (unit: CustomerUnit) => Promise<Ended<T>>): Promise<Done<T>> {
    return this.transact(async (work) => action(unitOf(work)));
  }

  async transact<T>(action: (work: Work) => Promise<Ended<T>>): Promise<Done<T>> {
    const { store, sealer, now, randomBytes, marks } = this.#deps;
    const appended = new Set<number>();
    const unjournaled = new Set<number>();
    try {
      const done = await store.transaction().execute(async (tx) => {
        const work: Work = {
          tx,
          at: now().toISOString(),
          sealer,
          randomHex: (count) => Buffer.from(randomBytes(count)).toString("hex"),
          appended,
          unjournaled,
          marksAreDue: () => marks?.isDue() ?? true,
        };
        const { keep, value } = await action(work);
        if (!keep) throw new TakenBack(value);
        return { value, appended: [...appended] };
      });
      marks?.changed(unjournaled);
      return done;
    } catch (error) {
      if (!(error instanceof TakenBack)) throw error;
      // Thrown just above, with the value of this very action.
      return { value: error.value as T, appended: [] };
    }
  }
}

/** Kysely rolls back when its callback throws, and only then. */
class TakenBack extends Error {
  readonly value: unknown;

  constructor(value: unknown) {
    super("the transaction is taken back");
    this.value = value;
  }
}
