// What follows from what happened to an order of a certificate: its next phase, and when it is looked at again. Pure:
// the same order, event, time and chance give the same.
//
//   resting      nothing is to be done before the certificate is renewed, or before a failure is over
//   placing      the directory is told of the order, and asked for its challenges
//   publishing   agents are told of the challenges, then central looks at them as the directory will
//   asking       the directory is asked to look, to issue, and for the certificate
//
// Each phase is durable before anything of it is said to the directory. What a kill interrupted is begun again: an
// order that the directory knows and central does not is one too many there, and nothing is lost here.

import { backoffMs, type Backoff } from "../backoff.ts";

export type OrderPhase = "resting" | "placing" | "publishing" | "asking";

/** Why hosts are left out of an order, by their names. */
export type LeftOut = Readonly<Record<string, string>>;

/** How often in a row an order met each kind of trouble: the pauses of one kind are no longer for what another kind was. */
export type InRow = Readonly<
  Record<"refused" | "forgotten" | "put-off" | "mismatched" | "working", number>
>;

export const noneInRow: InRow = {
  refused: 0,
  forgotten: 0,
  "put-off": 0,
  mismatched: 0,
  working: 0,
};

export type AcmeOrderState = {
  readonly phase: OrderPhase;
  /** How often it failed since the last certificate. */
  readonly attempts: number;
  readonly inRow: InRow;
  /** What a person reads of the last failure, or of whom it waits for; null if there is nothing to tell. */
  readonly error: string | null;
  /** The names that the certificate should have. */
  readonly names: readonly string[];
  /** The names of the order under way. */
  readonly ordered: readonly string[];
  readonly leftOut: LeftOut;
  /** When its challenges were first told, ms since the epoch; null if they were not. */
  readonly publishedMs: number | null;
  /** When the directory forgets the order, ms since the epoch. */
  readonly expiresMs: number | null;
  /** The certificate that is there. */
  readonly issued: Issued | null;
};

export type Issued = { readonly names: readonly string[]; readonly renewMs: number };

export type OrderEvent =
  /** It is due. */
  | { readonly kind: "begun" }
  /** The directory knows the order. */
  | { readonly kind: "placed" }
  /** Its challenges were told to the agents. */
  | { readonly kind: "opened" }
  /** Agents do not have the challenges yet, or have no room for them. `hosts` are those that are waited for unusually long. */
  | { readonly kind: "awaited"; readonly hosts: readonly string[] }
  /** Hosts do not answer as the directory would need it, each with its reason. */
  | { readonly kind: "mismatched"; readonly hosts: LeftOut }
  /** Every host answers. */
  | { readonly kind: "answered" }
  /** The directory has not finished. */
  | { readonly kind: "working"; readonly retryAfterMs: number | undefined }
  /** Nobody answered, or the directory says that it cannot now. The order stays as it is. */
  | {
      readonly kind: "put-off";
      readonly reason: string;
      readonly retryAfterMs: number | undefined;
    }
  /** The directory knows the order no more. */
  | { readonly kind: "forgotten"; readonly reason: string }
  /** The order has failed for good: another one is needed. `hosts` are those that it failed for, where that is known. */
  | {
      readonly kind: "refused";
      readonly reason: string;
      readonly retryAfterMs: number | undefined;
      readonly hosts: LeftOut;
    }
  | {
      readonly kind: "issued";
      readonly renewMs: number;
      /** When the directory is asked for its window of renewal; null: it has none. */
      readonly windowAskedMs: number | null;
    };

export type OrderChange = Pick<
  AcmeOrderState,
  "phase" | "attempts" | "inRow" | "error" | "ordered" | "leftOut"
> & {
  readonly dueMs: number;
  /** From when somebody may have it tried before it is due. */
  readonly tryFromMs: number;
  /** Whether the directory's order under way ends with it: another one is placed, or none. */
  readonly isOver: boolean;
};

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Central looks for itself, which costs nobody else anything. */
const lookPause: Backoff = { firstMs: 5 * secondMs, mostMs: 10 * minuteMs };
const putOffPause: Backoff = { firstMs: 2 * secondMs, mostMs: hourMs };
/** Let's Encrypt takes five failures an hour of an account and a host. */
const refusedPause: Backoff = { firstMs: 15 * minuteMs, mostMs: 12 * hourMs };
/** Somebody who has mended something may have it tried two minutes later, twice; then each half hour: four failures an hour at most. */
const triedSoon = { times: 2, pauseMs: 2 * minuteMs };
const triedLaterMs = 30 * minuteMs;
/** What answered that it cannot now, or did not answer, is not asked without a pause, whoever wants it. */
const askedAgainMs = 10 * secondMs;

/** Room for challenges is looked for less often than agents that have them: it may take hours. */
const awaitedPauseMs = (phase: OrderPhase): number => (phase === "placing" ? 10 : 1) * secondMs;
/** For so long hosts that do not answer hold up those that do. */
export const heldUpMs = hourMs;
/** Hosts that were left out are tried again after so long. */
const leftOutAgainMs = dayMs;
const workingPause: Backoff = { firstMs: secondMs, mostMs: 5 * minuteMs };
/** A directory that has not finished when it is asked for the seventh time, after a minute, is told of. */
const workingToldAt = 7;
/** A directory that says "in a year" is asked again before. */
const retryAfterMaxMs = 7 * dayMs;

type Kind = OrderEvent["kind"];

/** What ends with an event: a directory that answers is there again, and hosts that answer are right again. */
const endsWith: Readonly<Partial<Record<Kind, Partial<InRow>>>> = {
  placed: { "put-off": 0 },
  opened: { "put-off": 0 },
  answered: { mismatched: 0, working: 0 },
  working: { "put-off": 0 },
  forgotten: { "put-off": 0, working: 0 },
  refused: { "put-off": 0 },
  issued: noneInRow,
};

function inRowAfter(inRow: InRow, kind: Kind): InRow {
  const left = { ...inRow, ...endsWith[kind] };
  return Object.hasOwn(inRow, kind) ? { ...left, [kind]: inRow[kind as keyof InRow] + 1 } : left;
}

export type OrderMoment = { readonly nowMs: number; readonly random: number };

type ChangeOnly = Omit<OrderChange, "tryFromMs">;

export function nextOrder(
  order: AcmeOrderState,
  event: OrderEvent,
  moment: OrderMoment,
): OrderChange {
  const change = changeBy(order, event, moment);
  return { ...change, tryFromMs: triedFrom(order, event, change, moment.nowMs) };
}

/** The limits of directories hold for whoever wants an order tried, too. */
function triedFrom(
  order: AcmeOrderState,
  event: OrderEvent,
  { dueMs, inRow, phase }: ChangeOnly,
  nowMs: number,
): number {
  const asked = (leastMs: number, retryAfterMs = 0): number =>
    nowMs + Math.max(leastMs, Math.min(retryAfterMs, retryAfterMaxMs));
  switch (event.kind) {
    case "refused": {
      const isSoon = inRow.refused <= triedSoon.times;
      return asked(isSoon ? triedSoon.pauseMs : triedLaterMs, event.retryAfterMs);
    }
    case "put-off":
    case "working":
      return asked(askedAgainMs, event.retryAfterMs);
    case "forgotten":
      return asked(askedAgainMs);
    case "mismatched":
      // Another order for a host that was left out costs the directory something, a look costs it nothing.
      return asked(phase === "resting" ? lookPause.mostMs : lookPause.firstMs);
    case "issued":
      // The same certificate would be issued again, and directories count these by the week.
      return order.inRow.refused > 0 ? dueMs : nowMs;
    case "begun":
    case "placed":
    case "opened":
    case "awaited":
    case "answered":
      return nowMs;
    default:
      return event satisfies never;
  }
}

export type WaitingOrder = Pick<AcmeOrderState, "phase" | "attempts" | "error"> & {
  readonly dueMs: number;
  /** Null: at any time. */
  readonly tryFromMs: number | null;
};

/** `later`: it may be tried from then on. `rests`: there is nothing to try before its certificate is renewed, or hosts that were added are gathered. */
export type TryNow =
  | { readonly kind: "now" }
  | { readonly kind: "later"; readonly fromMs: number }
  | { readonly kind: "rests" };

/** Says whether an order that waits may be tried now, before it is due. One that is due is being tried. */
export function tryNow(
  { phase, attempts, error, dueMs, tryFromMs }: WaitingOrder,
  nowMs: number,
): TryNow {
  if (dueMs <= nowMs) return { kind: "now" };
  if (phase === "resting" && attempts === 0 && error === null) return { kind: "rests" };
  const fromMs = Math.min(tryFromMs ?? nowMs, dueMs);
  return fromMs <= nowMs ? { kind: "now" } : { kind: "later", fromMs };
}

function changeBy(
  order: AcmeOrderState,
  event: OrderEvent,
  { nowMs, random }: OrderMoment,
): ChangeOnly {
  const { phase, attempts, error, ordered, leftOut } = order;
  const inRow = inRowAfter(order.inRow, event.kind);
  const same = { phase, attempts, inRow, error, ordered, leftOut, isOver: false };
  // Half of the pause is by chance: the directory's limits want a least one, and orders that fail together part.
  const again = (pause: Backoff, times: number, leastMs = 0): number =>
    nowMs +
    Math.max(Math.min(leastMs, retryAfterMaxMs), backoffMs(times - 1, 0.5 + random / 2, pause));
  switch (event.kind) {
    case "begun":
      return { ...same, phase: "placing", dueMs: nowMs, ordered: namesToOrder(order) };
    case "placed":
      return { ...same, dueMs: nowMs };
    case "opened":
      return { ...same, phase: "publishing", error: null, dueMs: nowMs }; // There is room for it.
    case "awaited":
      return {
        ...same,
        error: awaitedText(event.hosts) ?? error,
        dueMs: nowMs + awaitedPauseMs(phase),
      };
    case "answered":
      // Whoever was waited for, or did not answer, is no reason any more.
      return { ...same, phase: "asking", error: null, dueMs: nowMs };
    case "working":
      return working(order, same, event.retryAfterMs, { nowMs, random });
    case "mismatched":
      return mismatched(
        { ...order, inRow },
        event.hosts,
        nowMs,
        again(lookPause, inRow.mismatched),
      );
    case "put-off":
      return {
        ...same,
        attempts: attempts + 1,
        error: event.reason,
        dueMs: again(putOffPause, inRow["put-off"], event.retryAfterMs),
      };
    case "forgotten":
      return {
        ...same,
        phase: "placing",
        attempts: attempts + 1,
        error: event.reason,
        dueMs: again(putOffPause, inRow.forgotten),
        isOver: true,
      };
    case "refused":
      return {
        phase: "resting",
        attempts: attempts + 1,
        inRow,
        error: event.reason,
        ordered: [],
        leftOut: leftOutAfter(order, event.hosts),
        dueMs: again(refusedPause, inRow.refused, event.retryAfterMs),
        isOver: true,
      };
    case "issued":
      return issuedChange(order, event, nowMs);
    default:
      return event satisfies never;
  }
}

/** After a failure hosts that it was for are left out; a certificate that was issued, or given up, is tried whole. */
function namesToOrder({ names, attempts, leftOut }: AcmeOrderState): readonly string[] {
  const left = attempts === 0 ? names : names.filter((name) => !Object.hasOwn(leftOut, name));
  return left.length === 0 ? names : left;
}

/** An order that is still not finished when it ends is over, as one that the directory knows no more. */
function working(
  order: AcmeOrderState,
  same: Omit<ChangeOnly, "dueMs">,
  retryAfterMs: number | undefined,
  moment: OrderMoment,
): ChangeOnly {
  const { nowMs } = moment;
  if (order.expiresMs !== null && nowMs >= order.expiresMs) {
    const reason = "the directory had not finished the order when the order expired";
    return changeBy(order, { kind: "forgotten", reason }, moment);
  }
  const times = same.inRow.working;
  const { firstMs, mostMs } = workingPause;
  const waitMs = Math.max(backoffMs(times - 1, 1, { firstMs, mostMs }), retryAfterMs ?? 0);
  return {
    ...same,
    error: times < workingToldAt ? same.error : "the directory has not finished the order yet",
    dueMs: nowMs + Math.min(mostMs, waitMs),
  };
}

/** One failure may be a passing one; after the second the others go on without the hosts that it is for. */
function leftOutAfter({ inRow, ordered }: AcmeOrderState, hosts: LeftOut): LeftOut {
  const failed = Object.keys(hosts);
  const others = ordered.filter((name) => !Object.hasOwn(hosts, name));
  return inRow.refused > 0 && failed.length > 0 && others.length > 0 ? hosts : {};
}

function issuedChange(
  order: AcmeOrderState,
  { renewMs, windowAskedMs }: Extract<OrderEvent, { readonly kind: "issued" }>,
  nowMs: number,
): ChangeOnly {
  const { ordered, names } = order;
  const missing = names.filter((name) => !ordered.includes(name));
  const leftOut = Object.fromEntries(
    missing.map((name) => [name, order.leftOut[name] ?? "was added after the order"]),
  );
  const isWhole = missing.length === 0;
  return {
    phase: "resting",
    attempts: 0,
    inRow: noneInRow,
    error: isWhole ? null : leftOutText(leftOut),
    ordered: [],
    leftOut,
    dueMs: Math.min(renewMs, isWhole ? (windowAskedMs ?? renewMs) : nowMs + leftOutAgainMs),
    isOver: true,
  };
}

function mismatched(
  order: AcmeOrderState,
  hosts: LeftOut,
  nowMs: number,
  againMs: number,
): ChangeOnly {
  const { attempts, inRow, ordered, publishedMs, expiresMs, issued } = order;
  const error = leftOutText(hosts);
  const waits = {
    phase: "publishing",
    attempts: attempts + 1,
    inRow,
    error,
    ordered,
    leftOut: order.leftOut,
    dueMs: againMs,
    isOver: false,
  } as const;
  const another = { ...waits, phase: "placing", dueMs: nowMs, isOver: true } as const;
  if (expiresMs !== null && nowMs >= expiresMs) return another;
  const others = ordered.filter((name) => !Object.hasOwn(hosts, name));
  const isHeldUp = publishedMs !== null && nowMs - publishedMs >= heldUpMs;
  if (!isHeldUp || others.length === 0) return waits;
  const leftOut = { ...order.leftOut, ...hosts };
  const isServed =
    issued !== null &&
    issued.renewMs > nowMs &&
    others.every((name) => issued.names.includes(name));
  if (!isServed) return { ...another, ordered: others, leftOut };
  const dueMs = Math.min(issued.renewMs, nowMs + leftOutAgainMs);
  return {
    ...another,
    phase: "resting",
    attempts: 0,
    inRow: noneInRow,
    ordered: [],
    leftOut,
    dueMs,
  };
}

/** The most hosts that an error names. */
const hostsToldMax = 5;

function awaitedText(hosts: readonly string[]): string | undefined {
  if (hosts.length === 0) return undefined;
  const more = hosts.length - hostsToldMax;
  const told = hosts.slice(0, hostsToldMax).join("; ");
  return `waits for ${told}${more > 0 ? `; and ${more} more` : ""}`;
}

function leftOutText(hosts: LeftOut): string {
  const all = Object.entries(hosts);
  const told = all
    .slice(0, hostsToldMax)
    .map(([name, reason]) => (namesHost(reason, name) ? reason : `${name}: ${reason}`));
  const more = all.length - told.length;
  return [...told, ...(more > 0 ? [`and ${more} more hosts`] : [])].join("; ");
}

/** Whether the reason says itself which host it is of, not only one whose name has it at its end. */
function namesHost(reason: string, host: string): boolean {
  return reason.split(/[\s:,]+/).includes(host);
}
