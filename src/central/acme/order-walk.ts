// Takes an order as far as it goes now: reads what is stored, does what its phase asks for, stores what came of it, and
// again, until it has to wait. What a kill interrupts is done once more from what is stored.

import { isToAnswer, mayStillLook } from "../../core/acme/challenge-answer.ts";
import { eventOfProblem } from "../../core/acme/directory-problem.ts";
import type { LeftOut, OrderEvent, OrderMoment } from "../../core/acme/order-step.ts";
import { renewalAskedAgainMs, renewalMs, renewalWithinMs } from "../../core/acme/renewal.ts";
import { AccelError } from "../../core/faults.ts";
import type { AcmeAuthorization, DirectoryOrder } from "../../wire/acme.ts";
import { acmeAccount, setAccountUrl } from "../store/acme/acme-accounts.ts";
import {
  challengeStanding,
  isRoomFor,
  type ChallengeReach,
} from "../store/acme/acme-challenges.ts";
import {
  acmeOrder,
  type AcmeOrder,
  type PublishedChallenge,
} from "../store/acme/acme-order-rows.ts";
import {
  noChallengeRoom,
  noteAnswer,
  openOrder,
  orderKey,
  sealOrderKey,
  takeIssued,
  takeOrderEvent,
  takeWindow,
  type OrderNews,
  type OrderTaken,
} from "../store/acme/acme-orders.ts";
import type { CustomerStore } from "../store/engine/customer-store.ts";
import type { Work } from "../store/engine/work.ts";
import { recordAudit } from "../store/people/audit.ts";
import type { CheckedCertificate } from "../store/vault/certificates.ts";
import { newPrivateKey, requestFor } from "./certificate-key.ts";
import { signerOf, type AcmeDirectories, type DirectoryReply, type Signer } from "./directories.ts";
import {
  challengesToTell,
  orderFailed,
  refusedFor,
  strangeProofs,
  working,
} from "./order-events.ts";
import { expiryOf, isWindowDue, lifeOf, msOfWindow, nameOf } from "./order-times.ts";
import type { SelfCheck } from "./self-check.ts";

/** Whether a chain and a key can be served; the reason where they cannot. */
export type CheckIssued = (
  chainPem: string,
  keyPem: string,
  now: Date,
) =>
  | { readonly ok: true; readonly certificate: CheckedCertificate }
  | { readonly ok: false; readonly reason: string };

export type OrderWalkDeps = ChallengeReach & {
  readonly customers: Pick<CustomerStore, "run">;
  readonly directories: AcmeDirectories;
  readonly selfCheck: Pick<SelfCheck, "look">;
  readonly checkIssued: CheckIssued;
  readonly wake: (deploymentSiteIds: readonly number[]) => void;
  readonly now: () => Date;
  readonly random: () => number;
  /** Called with what happened to an order, after it was stored. */
  readonly onEvent: (order: AcmeOrder, event: OrderEvent) => void;
  /** The longest that an order is walked with at once. */
  readonly walkMsMax?: number;
};

/** The challenges that are looked at side by side. */
const looksAtOnce = 10;
/** More steps than an order has: one that goes in a circle waits for its next turn. */
const stepsMax = 20;
/** Whatever is asked ends after so long. The longest step looks at 100 hosts, ten at once, 20 s each: 200 s. */
const walkMsMaxDefault = 300_000;
/** No further step is begun after so long, so that each has four minutes. */
const stepsMs = 60_000;

type Reply<T> = DirectoryReply<T>;
type Failed = Exclude<Reply<unknown>, { kind: "ok" }>;

export class OrderWalk {
  readonly #deps: OrderWalkDeps;
  readonly #stop: AbortSignal;

  constructor(deps: OrderWalkDeps, stop: AbortSignal) {
    this.#deps = deps;
    this.#stop = stop;
  }

  /** Resolves when the order has to wait. Throws what the store throws. */
  async walk(id: number): Promise<void> {
    const { now, walkMsMax = walkMsMaxDefault } = this.#deps;
    const signal = AbortSignal.any([this.#stop, AbortSignal.timeout(walkMsMax)]);
    const lastStepMs = now().getTime() + stepsMs;
    for (let step = 0; step < stepsMax && !signal.aborted; step++) {
      if (now().getTime() > lastStepMs) return;
      const order = await this.#change(async (work) => dueNow(work, id));
      if (order === undefined || (await this.#step(order, signal)) === "waits") return;
    }
  }

  /** `waits`: there is nothing to do at once. */
  async #step(order: AcmeOrder, signal: AbortSignal): Promise<"goes-on" | "waits"> {
    switch (order.phase) {
      case "resting":
        return isWindowDue(order, this.#deps.now().getTime())
          ? this.#askWindow(order, signal)
          : this.#begin(order);
      case "placing":
        return this.#place(order, signal);
      case "publishing":
        return this.#publish(order, signal);
      case "asking":
        return this.#ask(order, signal);
      default:
        return order.phase satisfies never;
    }
  }

  async #begin(order: AcmeOrder): Promise<"goes-on" | "waits"> {
    // The key is durable before the directory hears of the order: what it issues is then never without one.
    const privateKey = newPrivateKey();
    return this.#take(order, { kind: "begun" }, (work) => ({
      keySealed: sealOrderKey(work, order.id, privateKey),
    }));
  }

  async #askWindow(order: AcmeOrder, signal: AbortSignal): Promise<"goes-on" | "waits"> {
    const { directories, now, random } = this.#deps;
    const name = nameOf(order);
    const document = await directories.document(order.directory, signal);
    const renewalInfo = document.kind === "ok" ? document.value.renewalInfo : undefined;
    const asked =
      renewalInfo === undefined || name === undefined
        ? undefined
        : await directories.renewalWindow(renewalInfo, name, signal);
    const told = asked?.kind === "ok" ? asked : undefined;
    const windowAskedMs = now().getTime() + renewalAskedAgainMs(told?.retryAfterMs);
    const window = told && `${told.value.start}/${told.value.end}`;
    const within =
      told && window !== order.renewalWindow
        ? renewalWithinMs(msOfWindow(told.value), lifeOf(order), random())
        : undefined;
    const renewal =
      window === undefined || within === undefined ? {} : { renewal: { window, renewMs: within } };
    await this.#change(async (work) => takeWindow(work, order, { windowAskedMs, ...renewal }));
    return "goes-on";
  }

  async #place(order: AcmeOrder, signal: AbortSignal): Promise<"goes-on" | "waits"> {
    const { directories } = this.#deps;
    // Asked before the directory is: an order may wait for hours.
    const isRoom = await this.#change(async (work) => isRoomFor(work, order, order.ordered.length));
    if (!isRoom) return this.#take(order, noChallengeRoom);
    const signer = await this.#signer(order, signal);
    if ("failed" in signer) return this.#failed(order, signer.failed);
    const { ordered: names, orderUrl } = order;
    if (orderUrl === null) {
      const replaces = nameOf(order);
      const placed = await directories.newOrder(signer, { names, replaces }, signal);
      if (placed.kind !== "ok") return this.#failed(order, placed);
      const { location, value } = placed;
      if (location === undefined)
        return this.#failed(order, unreachable("the directory gives the order no URL"));
      const expires = expiryOf(value, this.#deps.now().getTime());
      return this.#take(order, { kind: "placed" }, () => ({ orderUrl: location, expires }));
    }
    const found = await directories.order(signer, orderUrl, signal);
    if (found.kind !== "ok") return this.#failed(order, found);
    const asked = await this.#authorizations(order, signer, found.value, signal);
    if (asked.kind !== "ok") return this.#failed(order, asked);
    if (found.value.status === "invalid")
      return this.#take(order, orderFailed(found.value, asked.value));
    const challenges = challengesToTell(signer, asked.value);
    if (!Array.isArray(challenges)) return this.#take(order, challenges);
    return this.#open(order, challenges);
  }

  async #open(
    order: AcmeOrder,
    challenges: readonly PublishedChallenge[],
  ): Promise<"goes-on" | "waits"> {
    const { event, taken } = await this.#change(async (work) =>
      openOrder(work, order, challenges, this.#moment(work)),
    );
    return this.#told(order, event, taken);
  }

  async #publish(order: AcmeOrder, signal: AbortSignal): Promise<"goes-on" | "waits"> {
    const { challenges } = order;
    const standing =
      challenges.length === 0
        ? ({ kind: "told" } as const)
        : await this.#change(async (work) => challengeStanding(work, order, this.#deps));
    if (standing.kind === "awaited") return this.#take(order, standing);
    const hosts = await this.#lookAtAll(challenges, signal);
    if (this.#stop.aborted) return "waits";
    const isWrong = Object.keys(hosts).length > 0;
    return this.#take(order, isWrong ? { kind: "mismatched", hosts } : { kind: "answered" });
  }

  async #lookAtAll(
    challenges: readonly PublishedChallenge[],
    signal: AbortSignal,
  ): Promise<LeftOut> {
    const { selfCheck } = this.#deps;
    const wrong: [string, string][] = [];
    const left = [...challenges];
    const looking = async (): Promise<void> => {
      for (let one = left.shift(); one !== undefined; one = left.shift()) {
        const looked = await selfCheck.look(one, signal);
        if (looked.kind === "elsewhere") wrong.push([one.host, looked.reason]);
      }
    };
    await Promise.all(Array.from({ length: looksAtOnce }, looking));
    return Object.fromEntries(wrong.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  async #ask(order: AcmeOrder, signal: AbortSignal): Promise<"goes-on" | "waits"> {
    const { directories } = this.#deps;
    const signer = await this.#signer(order, signal);
    if ("failed" in signer) return this.#failed(order, signer.failed);
    const { orderUrl } = order;
    if (orderUrl === null)
      return this.#take(order, { kind: "forgotten", reason: "the order has no URL" });
    const found = await directories.order(signer, orderUrl, signal);
    if (found.kind !== "ok") return this.#failed(order, found);
    switch (found.value.status) {
      case "valid":
        return this.#fetch(order, signer, found.value, signal);
      case "ready":
        return this.#finalize(order, signer, found.value, signal);
      case "pending":
      case "invalid":
        return this.#look(order, signer, found.value, signal);
      default:
        return this.#take(order, working(found));
    }
  }

  /** Asks the directory to look at each challenge that it was not asked to look at yet. */
  async #look(
    order: AcmeOrder,
    signer: Signer,
    found: DirectoryOrder,
    signal: AbortSignal,
  ): Promise<"goes-on" | "waits"> {
    const asked = await this.#authorizations(order, signer, found, signal);
    if (asked.kind !== "ok") return this.#failed(order, asked);
    const isOver =
      found.status === "invalid" ||
      asked.value.some(({ status }) => !["pending", "valid"].includes(status));
    // The agents go on answering for the other hosts while the directory looks at them.
    if (isOver)
      return this.#take(
        order,
        this.#isLookedAt(order, asked.value) ? working(asked) : orderFailed(found, asked.value),
      );
    for (const { status, challenges } of asked.value) {
      const challenge = challenges.find(({ type }) => type === "http-01");
      if (status !== "pending" || challenge?.status !== "pending") continue;
      const told = order.challenges.find(({ token }) => token === challenge.token);
      if (told === undefined) return this.#take(order, otherChallenges);
      if (!isToAnswer(told.answer, this.#deps.now().getTime())) continue;
      const answered = await this.#answer(order, signer, { ...told, url: challenge.url }, signal);
      if (answered === "overtaken") return "waits";
      if (answered.kind !== "ok") return this.#failed(order, answered);
    }
    return this.#take(order, working(asked));
  }

  /** That a challenge is answered is durable before the directory hears it, and that the directory has the answer at once after. */
  async #answer(
    order: AcmeOrder,
    signer: Signer,
    { token, url }: { readonly token: string; readonly url: string },
    signal: AbortSignal,
  ): Promise<Reply<undefined> | "overtaken"> {
    const { directories, now } = this.#deps;
    const atMs = now().getTime();
    const note = async (isTaken: boolean) =>
      this.#change(async (work) => noteAnswer(work, order, token, { atMs, isTaken }));
    if ((await note(false)) === "overtaken") return "overtaken";
    const looked = await directories.look(signer, url, signal);
    if (looked.kind === "ok" && (await note(true)) === "overtaken") return "overtaken";
    return looked;
  }

  /** Whether the directory may still look at a host, because it was asked to. */
  #isLookedAt({ challenges }: AcmeOrder, authorizations: readonly AcmeAuthorization[]): boolean {
    const nowMs = this.#deps.now().getTime();
    const pending = authorizations.filter(({ status }) => status === "pending");
    const tokens = pending.flatMap((one) => one.challenges.map(({ token }) => token));
    return challenges.some((one) => tokens.includes(one.token) && mayStillLook(one.answer, nowMs));
  }

  async #finalize(
    order: AcmeOrder,
    signer: Signer,
    { finalize }: DirectoryOrder,
    signal: AbortSignal,
  ): Promise<"goes-on" | "waits"> {
    const request = requestFor(await this.#keyOf(order), order.ordered);
    const done = await this.#deps.directories.finalize(signer, finalize, request, signal);
    if (done.kind !== "ok") return this.#failed(order, done);
    return done.value.status === "valid"
      ? this.#fetch(order, signer, done.value, signal)
      : this.#take(order, working(done));
  }

  async #fetch(
    order: AcmeOrder,
    signer: Signer,
    { certificate: url }: DirectoryOrder,
    signal: AbortSignal,
  ): Promise<"goes-on" | "waits"> {
    const { directories, checkIssued, now, random } = this.#deps;
    if (url === undefined)
      return this.#failed(order, unreachable("the directory issued, and names no certificate"));
    const chain = await directories.certificate(signer, url, signal);
    if (chain.kind !== "ok") return this.#failed(order, chain);
    const checked = checkIssued(chain.value, await this.#keyOf(order), now());
    if (!checked.ok) return this.#take(order, refusedFor(`what was issued ${checked.reason}`));
    const { certificate } = checked;
    const missing = order.ordered.filter((name) => !certificate.names.includes(name));
    if (missing.length > 0)
      return this.#take(order, refusedFor(`what was issued does not name ${missing.join(", ")}`));
    const document = await directories.document(order.directory, signal);
    const hasWindow = document.kind === "ok" && document.value.renewalInfo !== undefined;
    const life = lifeOf({ ...certificate, whenIssued: now().toISOString() });
    const renewMs = renewalMs(life, random());
    const issued = { ...certificate, renewMs, windowAskedMs: hasWindow ? now().getTime() : null };
    const taken = await this.#change(async (work) => {
      const outcome = await takeIssued(work, order, issued, this.#moment(work));
      if (outcome === "taken") await recordIssue(work, order, certificate);
      return outcome;
    });
    const { windowAskedMs } = issued;
    if (taken === "taken") this.#deps.onEvent(order, { kind: "issued", renewMs, windowAskedMs });
    return "waits";
  }

  async #keyOf({ id }: AcmeOrder): Promise<string> {
    const key = await this.#change(async (work) => orderKey(work, id));
    if (key === undefined)
      throw new AccelError("STORE_DAMAGED", `the order ${id} of a certificate has no key`);
    return key;
  }

  /** Returns the authorizations of an order: of its own names alone, whatever the directory lists. */
  async #authorizations(
    { ordered }: AcmeOrder,
    signer: Signer,
    { authorizations }: DirectoryOrder,
    signal: AbortSignal,
  ): Promise<Reply<readonly AcmeAuthorization[]>> {
    const found: AcmeAuthorization[] = [];
    const { length } = authorizations;
    if (length > ordered.length)
      return strangeProofs(`${length} proofs for ${ordered.length} hosts`);
    let waitMs: number | undefined;
    for (const url of authorizations) {
      const reply = await this.#deps.directories.authorization(signer, url, signal);
      if (reply.kind !== "ok") return reply;
      const host = reply.value.identifier.value.toLowerCase();
      if (!ordered.includes(host))
        return strangeProofs(`a proof for ${host}, which was not ordered`);
      found.push(reply.value);
      waitMs = reply.retryAfterMs ?? waitMs;
    }
    return { kind: "ok", value: found, location: undefined, retryAfterMs: waitMs };
  }

  /** Returns who signs for the order. The account is made where the directory does not have it yet. */
  async #signer(
    order: AcmeOrder,
    signal: AbortSignal,
  ): Promise<Signer | { readonly failed: Failed }> {
    const { directory, email } = order;
    const account = await this.#change(async (work) => acmeAccount(work, order, newPrivateKey));
    const signer = signerOf(directory, account.privateKey, account.url);
    if (signer.accountUrl !== undefined) return signer;
    const made = await this.#deps.directories.newAccount(signer, email, signal);
    if (made.kind !== "ok") return { failed: made };
    const { location: url } = made;
    if (url === undefined) return { failed: unreachable("the directory gives the account no URL") };
    await this.#change(async (work) => setAccountUrl(work, account.id, url));
    return { ...signer, accountUrl: url };
  }

  async #failed(order: AcmeOrder, failed: Failed): Promise<"goes-on" | "waits"> {
    // Central stops: that is no failure, and the next start goes on from what is stored.
    if (this.#stop.aborted) return "waits";
    if (failed.kind === "unreachable")
      return this.#take(order, {
        kind: "put-off",
        reason: failed.reason,
        retryAfterMs: undefined,
      });
    const { problem } = failed;
    // The key is kept: the same account is made, or found, with it again.
    if (problem.type === "accountDoesNotExist")
      await this.#change(async (work) => {
        const account = await acmeAccount(work, order, newPrivateKey);
        await setAccountUrl(work, account.id, null);
      });
    return this.#take(order, eventOfProblem(problem));
  }

  async #take(
    order: AcmeOrder,
    event: OrderEvent,
    news: (work: Work) => OrderNews = () => ({}),
  ): Promise<"goes-on" | "waits"> {
    const taken = await this.#change(async (work) =>
      takeOrderEvent(work, order, event, news(work), this.#moment(work)),
    );
    return this.#told(order, event, taken);
  }

  #told(order: AcmeOrder, event: OrderEvent, taken: OrderTaken): "goes-on" | "waits" {
    if (taken === "overtaken") return "waits";
    this.#deps.onEvent(order, event);
    return "goes-on";
  }

  #moment({ at }: Work): OrderMoment {
    return { nowMs: Date.parse(at), random: this.#deps.random() };
  }

  async #change<T>(action: (work: Work) => Promise<T>): Promise<T> {
    const { customers, wake } = this.#deps;
    const { value, appended } = await customers.run(async (work) => ({
      keep: true,
      value: await action(work),
    }));
    wake(appended);
    return value;
  }
}

async function dueNow(work: Work, id: number): Promise<AcmeOrder | undefined> {
  const order = await acmeOrder(work.tx, id);
  return order !== undefined && order.dueMs <= Date.parse(work.at) ? order : undefined;
}

const otherChallenges: OrderEvent = {
  kind: "forgotten",
  reason: "the directory has other challenges for the order than before",
};

const unreachable = (reason: string): Failed => ({ kind: "unreachable", reason });

async function recordIssue(
  work: Work,
  { id, domain, customerId, directory }: AcmeOrder,
  { names, notAfter, fingerprint }: CheckedCertificate,
): Promise<void> {
  await recordAudit(work, {
    via: "central",
    who: "central",
    user_id: null,
    customer_id: customerId,
    action: "certificate issued",
    ids: { acme_order_id: id },
    change: { domain, directory, names: [...names], not_after: notAfter, fingerprint },
    address: null,
    request_id: null,
  });
}
