// What an answer of central to a batch means. Only central's own words make a record poison: what stands between may refuse anything.

import { decodeRequestLogAnswer } from "../../../wire/request-log.ts";
import { decodeAgentApiError } from "../../../wire/token.ts";
import { sleep } from "../../../base/wait.ts";
import { backoffMs, linkBackoff, type Backoff } from "../../../core/backoff.ts";
import type { LaneBatch } from "../spool/spool-messages.ts";

export type Posted = {
  readonly status: number;
  /** Undefined when it is no JSON. */
  readonly answer: unknown;
  readonly retryAfterMs: number | undefined;
};

export type ShipStep =
  /** Central has everything through `mark`. */
  | { readonly kind: "committed" | "conflict"; readonly mark: number }
  /** Something in the batch is refused: look for it in half of it. */
  | { readonly kind: "halve" }
  /** The encoding is refused: the same batch in another one. */
  | { readonly kind: "recode"; readonly why: string }
  /** The one record is refused. */
  | { readonly kind: "poison"; readonly why: string }
  /** Says nothing about the batch: the same again, after so long at least. */
  | { readonly kind: "wait"; readonly leastMs: number; readonly why: string };

/** Whatever a peer says: after so long it is asked again. */
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
      // That is where this batch began: nothing learnt from it.
      return mark === undefined || mark === firstSeq - 1 ? wait : { kind: "conflict", mark };
    }
    case 400:
    case 413:
      if (lines > 1) return { kind: "halve" };
      // A gap stands for nothing that could be set aside.
      const isOwn = refusal.ok && refusal.value.code === refusalCodes[status];
      return isOwn && !isGap ? { kind: "poison", why } : wait;
    case 415:
      return { kind: "recode", why };
    default:
      return wait;
  }
}

// How long the shipper waits after a batch that central did not take.

/**
 * The backoff while requests wait for room (`spool.when_full: block`). Visitors are refused meanwhile, so no
 * wait is longer than central takes to come back.
 */
const blockingBackoff: Backoff = { firstMs: 100, mostMs: 5_000 };
/** A wait that is long already becomes short so soon after requests begin to wait. */
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
