// What central asks an agent on the channel, outside the journal, to be answered within a deadline. A
// question changes nothing and is not repeated.
//
//   ask     {type, id, deadline_ms, dry_run}    what would the clear of these patterns hit? An agent that cannot tell in time may say nothing
//   answer  {type, id, matched, samples, …}     counts every servable entry that matches; the newest ones as samples

import { Type, type Static } from "typebox";
import { patternCharsMax, patternsMax } from "../core/patterns/pattern-budget.ts";
import { ClearExtension } from "./clear-items.ts";
import { closed } from "./validate.ts";
import { Count, HostText, Timestamp } from "./parts.ts";

export const dryRunSamplesMax = 20;
export const askDeadlineMsMax = 30_000;
/** The most characters of a sample's text. A request line is shorter; longer text is cut. */
export const sampleTextMax = 16_384;
const reasonCharsMax = 1_000;

/** A question with the body of a `cache.clear`, and its extension, which only agents are asked that take it. */
export const DryRunQuestion = closed({
  domain: HostText,
  host: Type.Union([HostText, Type.Null()]),
  patterns: Type.Array(Type.String({ maxLength: patternCharsMax }), {
    minItems: 1,
    maxItems: patternsMax,
  }),
  /** As beside an entry of the journal: if it is there, it says all and the patterns do not count. */
  items: Type.Optional(ClearExtension),
});
export type DryRunQuestion = Static<typeof DryRunQuestion>;

export const DryRunSample = closed({
  kind: Type.Union([Type.Literal("static"), Type.Literal("generated")]),
  path: Type.String({ maxLength: sampleTextMax }),
  query: Type.String({ maxLength: sampleTextMax }),
  mime: Type.String({ maxLength: 255 }),
  size: Count,
  stored_at: Timestamp,
  /** Clears this URL and no other. */
  pattern: Type.String({ maxLength: patternCharsMax }),
});
export type DryRunSample = Static<typeof DryRunSample>;

export const DryRunResult = closed({
  matched: Count,
  samples: Type.Array(DryRunSample, { maxItems: dryRunSamplesMax }),
  /** Matching took too long: nothing was counted, and a clear of these patterns would be widened. */
  over_budget: Type.Optional(Type.Boolean()),
  /** Why nothing was counted. */
  error: Type.Optional(Type.String({ maxLength: reasonCharsMax })),
});
export type DryRunResult = Static<typeof DryRunResult>;

const Id = Type.String({ minLength: 1, maxLength: 64 });

export const AskMessage = closed({
  type: Type.Literal("ask"),
  id: Id,
  deadline_ms: Type.Integer({ minimum: 1, maximum: askDeadlineMsMax }),
  dry_run: DryRunQuestion,
});
export type AskMessage = Static<typeof AskMessage>;

export const AnswerMessage = closed({
  type: Type.Literal("answer"),
  id: Id,
  ...DryRunResult.properties,
});
export type AnswerMessage = Static<typeof AnswerMessage>;

/** The reason of an answer that has nothing else to tell. */
export function failedDryRun(reason: string): DryRunResult {
  return { matched: 0, samples: [], error: reason.slice(0, reasonCharsMax) };
}
