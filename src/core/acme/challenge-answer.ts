// Whether a challenge is answered now. Each answer asks the directory for a validation (RFC 8555 §7.5.1), and one too many may
// come when the agents answer for the host no more: so a challenge is answered once, and then only its state is asked for.

/** What is stored of the answer to a challenge, from before it is sent. */
export type ChallengeAnswer = {
  /** When it was sent, ms since the epoch. */
  readonly atMs: number;
  /** Whether the directory said that it has it. */
  readonly isTaken: boolean;
};

/** An answer of which it is not known whether it arrived is sent again when the challenge is still pending after so long. */
export const doubtMs = 30_000;
/** For so long an order that has failed is kept for the validations that it asked for: a directory's take seconds. */
export const validationMaxMs = 300_000;

/** `answer` is that to a challenge which the directory shows as pending; undefined: there was none. */
export function isToAnswer(answer: ChallengeAnswer | undefined, nowMs: number): boolean {
  return answer === undefined || (!answer.isTaken && nowMs - answer.atMs >= doubtMs);
}

/** Whether the directory may still look, because of an answer to a challenge that is not over. */
export function mayStillLook(answer: ChallengeAnswer | undefined, nowMs: number): boolean {
  return answer !== undefined && nowMs - answer.atMs < validationMaxMs;
}
