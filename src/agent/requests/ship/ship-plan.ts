// What an answer of central to a batch means. Only central's own refusal makes a record poison, for whatever
// stands on the way may refuse anything.

import { decodeRequestLogAnswer } from "../../../wire/request-log.ts";
import { decodeAgentApiError } from "../../../wire/token.ts";
import { sleep } from "../../../base/wait.ts";
import { backoffMs, linkBackoff, type Backoff } from "../../../core/backoff.ts";
import type { LaneBatch } from "../spool/spool-messages.ts";

export type Posted = {
  readonly status: number;
  /** The decoded body; undefined if it is not JSON. */
  readonly answer: unknown;
  readonly retryAfterMs: number | undefined;
};

export type ShipStep =
  /** Central has everything through `mark`. */
  | { readonly kind: "committed" | "conflict"; readonly mark: number }
  /** Something in the batch is refused: half of it is sent, to find what. */
  | { readonly kind: "halve" }
  /** The encoding is refused: the same batch is sent in another one. */
  | { readonly kind: "recode"; readonly why: string }
  /** The one record is refused. */
  | { readonly kind: "poison"; readonly why: string }
  /** The answer says nothing about the batch: it is sent again, after `leastMs` at least. */
  | { readonly kind: "wait"; readonly leastMs: number; readonly why: string };

/** The longest `Retry-After` that is obeyed, whatever the peer says. */
const retryAfterMaxMs = 600_000;

/** The codes with which central itself refuses a batch's content. */
const refusalCodes = { 400: "invalid", 413: "too_large" } as const;

export function planAfter(
  { firstSeq, lines, isGap }: Pick<LaneBatch, "firstSeq" | "lines" | "isGap">,
  { status, answer, retryAfterMs }: Posted,
): ShipStep {
  const refusal = decodeAgentApiError(answer);
  const message = refusal.ok ? refusal.value.message : "something other than central answered";
  const why = `${status}: ${message}`;
  const wait: ShipStep = {
    kind: "wait",
    leastMs: Math.min(retryAfterMs ?? 0, retryAfterMaxMs),
    why,
  };
  switch (status) {
    case 200: {
      const decoded = decodeRequestLogAnswer(answer);
      const mark = decoded.ok ? decoded.value.committed_through : -1;
      return mark >= firstSeq ? { kind: "committed", mark } : wait;
    }
    case 409: {
      const mark = refusal.ok ? refusal.value.mark : undefined;
      // A mark where this batch began tells nothing new.
      return mark === undefined || mark === firstSeq - 1 ? wait : { kind: "conflict", mark };
    }
    case 400:
    case 413:
      if (lines > 1) return { kind: "halve" };
      // A gap has no record that could be set aside.
      const isOwn = refusal.ok && refusal.value.code === refusalCodes[status];
      return isOwn && !isGap ? { kind: "poison", why } : wait;
    case 415:
      return { kind: "recode", why };
    default:
      return wait;
  }
}

// How long the shipper waits after a batch that central did not accept.

/**
 * The backoff while requests wait for room (`spool.when_full: block`). Visitors are refused meanwhile, so no
 * wait is longer than central takes to come back.
 */
const blockingBackoff: Backoff = { firstMs: 100, mostMs: 5_000 };
/** A long wait is shortened within this time after requests begin to wait for room. */
const lookMs = 500;

type ShipPause = {
  /** The failures in a row, 1 or more. */
  readonly failures: number;
  /** The least wait that central asks for in `Retry-After`. */
  readonly leastMs: number;
  /** A random number in [0, 1). */
  readonly random: number;
  readonly isBlocking: () => boolean;
  readonly stop: AbortSignal;
};

/** Resolves when it is time to try again, or with the signal. */
export async function shipPause(pause: ShipPause): Promise<void> {
  const { failures, leastMs, random, isBlocking, stop } = pause;
  const began = performance.now();
  for (;;) {
    const backoff = isBlocking() ? blockingBackoff : linkBackoff;
    const wholeMs = leastMs + backoffMs(failures - 1, random, backoff);
    const leftMs = Math.ceil(wholeMs - (performance.now() - began));
    if (leftMs <= 0 || !(await sleep(Math.min(leftMs, lookMs), stop))) return;
  }
}
