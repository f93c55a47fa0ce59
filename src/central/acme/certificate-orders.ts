// Keeps the certificates that devloves order: finds what is wanted, takes each order further when it is due, and brings
// what was issued to the sites. Whatever it does follows from what is stored, so a start goes on where a kill stopped.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { repeatingFromNow } from "../../base/wait.ts";
import type { OrderEvent } from "../../core/acme/order-step.ts";
import { isRenewalOverdue } from "../../core/acme/renewal.ts";
import {
  differOrders,
  noteAcmeSaid,
  syncAcmeOrders,
  unreadDomains,
  type UnreadDomain,
} from "../store/acme/acme-domains.ts";
import {
  deliver,
  hasLeftOrdered,
  takeBackOrdered,
  undelivered,
} from "../store/acme/acme-delivery.ts";
import { dueOrders, type AcmeOrder, type DueOrder } from "../store/acme/acme-order-rows.ts";
import { pauseOrder } from "../store/acme/acme-orders.ts";
import { countOrders, hasOrders, dueRenewals } from "../store/acme/acme-standings.ts";
import type { Store } from "../store/engine/database.ts";
import { AcmeDevloves, type DevloveBlobs } from "./acme-devloves.ts";
import type { AcmeMetrics } from "./metrics.ts";
import { OrderWalk, type OrderWalkDeps } from "./order-walk.ts";

export type CertificateOrdersDeps = Omit<OrderWalkDeps, "onEvent"> & {
  readonly store: Store;
  readonly blobs: DevloveBlobs;
  readonly metrics: AcmeMetrics;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly log: Log;
  readonly intervalMs?: number;
  /** Whether this central takes the orders further now, and not another at the store; all warn. Always, if absent. */
  readonly isOurs?: () => boolean;
};

/** Side by side. Let's Encrypt takes 20 requests a second of a host, and an order is five within some seconds. */
const ordersAtOnce = 12;
/** Of those: directories and hosts that take their time are their customer's own. */
const ofCustomerAtOnce = 2;
const domainsAtOnce = 50;
/** A site that has no room is tried again after so long. */
const noRoomMs = 600_000;
/** An order that meets a fault of our own is tried again after so long. */
const faultyMs = 60_000;
/** Activations are looked for so often, in turns of the interval: it walks all domains. */
const turnsPerSync = 4;
/** A devlove that cannot be read is read again after so long. */
const unreadableMs = 60_000;
const urgentMs = 7 * 86_400_000;

/** Starts the service. Disposing waits for what is under way, which a directory may hold up for half a minute. */
export function startCertificateOrders(deps: CertificateOrdersDeps): AsyncDisposable {
  const { log, intervalMs = 500 } = deps;
  const ending = new AbortController();
  const stop = ending.signal;
  const orders = new CertificateOrders(deps, stop);
  const onError = (error: unknown): void =>
    log.error({ err: error }, "orders of certificates could not be taken further");
  const running = repeatingFromNow(intervalMs, async () => orders.turn(), { stop, onError });
  return {
    async [Symbol.asyncDispose]() {
      ending.abort();
      await running[Symbol.asyncDispose]();
      await orders.ended();
    },
  };
}

class CertificateOrders {
  readonly #deps: CertificateOrdersDeps;
  readonly #stop: AbortSignal;
  readonly #walk: OrderWalk;
  readonly #busy = new Map<
    number,
    { readonly customerId: number; readonly walking: Promise<void> }
  >();
  /** Until when no order is begun, because the store takes no writes. */
  #beginsFromMs = 0;
  /** Sites without room, by order, and until when they are left alone. */
  readonly #full = new Map<string, number>();
  /** Domains whose devlove cannot be read, and until when they are left alone. */
  readonly #unreadable = new Map<number, number>();
  readonly #devloves: AcmeDevloves;
  #raised = new Set<number>();
  #turns = 0;
  /** As of the last look. Before the first there may be any. */
  #hasOrders = true;

  constructor(deps: CertificateOrdersDeps, stop: AbortSignal) {
    this.#deps = deps;
    this.#stop = stop;
    this.#devloves = new AcmeDevloves(deps.blobs);
    const onEvent = (order: AcmeOrder, event: OrderEvent): void => this.#tell(order, event);
    this.#walk = new OrderWalk({ ...deps, onEvent }, stop);
  }

  async turn(): Promise<void> {
    const isOurs = this.#deps.isOurs?.() ?? true;
    if (this.#turns++ % turnsPerSync === 0) {
      if (isOurs) await this.#readDevloves();
      const hadOrders = this.#hasOrders;
      this.#hasOrders = await hasOrders(this.#deps.store);
      if (this.#hasOrders && isOurs) await this.#sync();
      if (this.#hasOrders || hadOrders) await this.#warn();
    }
    if (!this.#hasOrders || !isOurs) return;
    await this.#beginDue();
    await this.#deliver();
  }

  async ended(): Promise<void> {
    await Promise.all([...this.#busy.values()].map(({ walking }) => walking));
  }

  async #beginDue(): Promise<void> {
    const { store, now } = this.#deps;
    const free = ordersAtOnce - this.#busy.size;
    if (free <= 0 || now().getTime() < this.#beginsFromMs) return;
    const due = await dueOrders(store, {
      at: now().toISOString(),
      except: [...this.#busy.keys()],
      ofCustomer: ofCustomerAtOnce,
      // No more than so many are of customers whose places are taken.
      limit: ordersAtOnce + free,
    });
    for (const order of due)
      if (this.#busy.size < ordersAtOnce && this.#hasPlace(order)) this.#begin(order);
  }

  #hasPlace({ customerId }: DueOrder): boolean {
    const busy = [...this.#busy.values()].filter((one) => one.customerId === customerId);
    return busy.length < ofCustomerAtOnce;
  }

  #begin({ id, customerId }: DueOrder): void {
    const walking = this.#walk
      .walk(id)
      .catch(async (error: unknown) => this.#pause(id, error))
      .finally(() => this.#busy.delete(id));
    this.#busy.set(id, { customerId, walking });
  }

  /** Never rejects. */
  async #pause(order: number, fault: unknown): Promise<void> {
    const { customers, now, log } = this.#deps;
    log.error({ err: fault, order }, "the order of a certificate cannot be taken further");
    try {
      await customers.run(async (work) => ({
        keep: true,
        value: await pauseOrder(work, order, faultyMs),
      }));
    } catch {
      this.#beginsFromMs = now().getTime() + faultyMs;
    }
  }

  /** Reads the devloves that came into force since the last look. */
  async #readDevloves(): Promise<void> {
    const { store, customers, now } = this.#deps;
    for (const [id, untilMs] of this.#unreadable)
      if (untilMs <= now().getTime()) this.#unreadable.delete(id);
    for (let after = 0; !this.#stop.aborted;) {
      const unread = await unreadDomains(store, { after, limit: domainsAtOnce });
      for (const one of unread) {
        after = one.domainId;
        if (this.#unreadable.has(after)) continue;
        const read = await this.#devloves.read(one);
        if (read.ok)
          await customers.run(async (work) => ({
            keep: true,
            value: await noteAcmeSaid(work, one, read.said),
          }));
        else this.#keepUnread(one, read.reason);
      }
      if (unread.length < domainsAtOnce) return;
    }
  }

  /** What is ordered stays ordered: a fault of reading is no word of the customer's. */
  #keepUnread({ domainId, domain }: UnreadDomain, reason: string): void {
    const { now, log } = this.#deps;
    this.#unreadable.set(domainId, now().getTime() + unreadableMs);
    log.warn(
      { domain, error: reason },
      "the devlove of a domain cannot be read: its orders of certificates stay as they are, and it is read again later",
    );
  }

  /** Looks outside of a transaction whether anything differs: nearly always nothing does, and there is one writer. */
  async #sync(): Promise<void> {
    const { store, customers, wake, log } = this.#deps;
    if (!(await differOrders(store)) && !(await hasLeftOrdered(store))) return;
    const { value, appended } = await customers.run(async (work) => {
      const synced = await syncAcmeOrders(work);
      return { keep: true, value: { synced, tookBack: await takeBackOrdered(work) } };
    });
    wake(appended);
    for (const one of value.synced) log.info(one, "certificates that a domain orders");
    if (value.tookBack > 0)
      log.info(
        { certificates: value.tookBack },
        "ordered certificates were removed from sites that serve their domain no more",
      );
  }

  async #deliver(): Promise<void> {
    const { store, customers, wake, now, metrics, log } = this.#deps;
    const nowMs = now().getTime();
    for (const [key, untilMs] of this.#full) if (untilMs <= nowMs) this.#full.delete(key);
    for (const one of await undelivered(store)) {
      const key = `${one.orderId} ${one.siteId}`;
      if (this.#full.has(key)) continue;
      const { value, appended } = await customers.run(async (work) => {
        const outcome = await deliver(work, one);
        return { keep: outcome !== "too-many", value: outcome };
      });
      wake(appended);
      if (value === "gone") continue;
      const facts = { order: one.orderId, deployment_site_id: one.siteId };
      metrics.accel_central_certificate_deliveries_total.inc({ outcome: value });
      if (value === "delivered")
        log.info(facts, "an ordered certificate goes to a deployment site");
      else {
        this.#full.set(key, nowMs + noRoomMs);
        log.error(
          facts,
          "a deployment site has as many certificates as it can have: an ordered one waits",
        );
      }
    }
  }

  #tell(order: AcmeOrder, event: OrderEvent): void {
    const { metrics, log } = this.#deps;
    const { id, domain, directory, ordered: names, attempts } = order;
    const facts = { order: id, domain, directory, names };
    const counted = ["issued", "refused", "put-off", "mismatched", "forgotten"];
    if (counted.includes(event.kind))
      metrics.accel_central_certificate_order_events_total.inc({ outcome: event.kind });
    switch (event.kind) {
      case "issued":
        log.info(
          { ...facts, renewed_at: new Date(event.renewMs).toISOString() },
          "a certificate was issued",
        );
        break;
      case "refused":
        log.warn(
          { ...facts, attempt: attempts + 1, reason: event.reason },
          "the order of a certificate failed",
        );
        break;
      case "put-off":
      case "forgotten":
        log.warn(
          { ...facts, attempt: attempts + 1, reason: event.reason },
          "the order of a certificate is put off",
        );
        break;
      case "mismatched":
        // It is looked at again and again: the first time says all.
        if (attempts === 0)
          log.warn({ ...facts, hosts: event.hosts }, "hosts do not answer for their certificate");
        break;
      default:
        log.debug({ ...facts, event: event.kind }, "the order of a certificate");
    }
  }

  /** Sets what metrics say, and warns of renewals that are overdue. */
  async #warn(): Promise<void> {
    const { store, health, metrics, now } = this.#deps;
    const { states, firstExpiry } = await countOrders(store);
    for (const state of ["issued", "ordering", "proving", "failed"] as const)
      metrics.accel_central_certificate_orders.set({ state }, states.get(state) ?? 0);
    metrics.accel_central_ordered_certificate_first_expiry_timestamp_seconds.set(
      firstExpiry === null ? 0 : Math.floor(Date.parse(firstExpiry) / 1_000),
    );
    const nowMs = now().getTime();
    const raised = new Set<number>();
    for (const { id, domain, error, renewAt, notAfter } of await dueRenewals(
      store,
      now().toISOString(),
    )) {
      const endMs = Date.parse(notAfter);
      if (!isRenewalOverdue(Date.parse(renewAt), endMs, nowMs)) continue;
      raised.add(id);
      health.raise(
        "certificate_renewal_failing",
        endMs - nowMs < urgentMs ? "error" : "warning",
        `the certificate of ${domain} expires at ${notAfter} and was not renewed: ${error ?? "it is being tried"}`,
        "See docs/certificates.md, When an order fails.",
        String(id),
      );
    }
    for (const id of this.#raised)
      if (!raised.has(id)) health.settle("certificate_renewal_failing", String(id));
    this.#raised = raised;
  }
}
