// `/clear-accelerator-cache/`: what was cleared where, as the agents proved it, and what would be cleared.

import { Type, type Static } from "typebox";
import { tagBytesMax } from "../../core/http/cache-tags.ts";
import { clearItemCharsMax, clearItemsMax } from "../../core/patterns/clear-items.ts";
import { indexColumns } from "../../core/patterns/index-schema.ts";
import { DryRunSample } from "../ask.ts";
import { Count, Timestamp } from "../parts.ts";
import { ProofProgress } from "./proof.ts";
import { body, BooleanLike, Id, open, shape } from "./shape.ts";

const clearPatternsMax = 64;
const patternLengthMax = 4_096;

const texts = (maxLength: number, maxItems: number, description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength }), { minItems: 1, maxItems, description }),
  );

/** What a clear names beside patterns. */
const named = {
  urls: texts(
    clearItemCharsMax,
    clearItemsMax,
    "Each is a URL, or a path with its query, and is cleared exactly. Scheme, port and fragment do not count. A path means every host of the domain.",
  ),
  prefixes: texts(
    clearItemCharsMax,
    clearItemsMax,
    "Each is a path of whole segments, perhaps with a host: `/foo` clears `/foo`, everything below it, and both with any query, but not `/foobar`.",
  ),
  tags: texts(
    tagBytesMax,
    clearItemsMax,
    "Each is a tag that the origin gave its responses in `Cache-Tag`, `Surrogate-Key`, `xkey`, `Cache-Tags`, `X-Cache-Tags` or `X-Magento-Tags`, byte for byte.",
  ),
  hosts: texts(253, clearItemsMax, "Each is a host of the domain, of which everything is cleared."),
};
/** What matches was made stale and kept. */
const soft = Type.Optional(Type.Literal(true));
/** Everything of the domain or sub-domain is cleared. */
const everything = Type.Optional(Type.Literal(true));

export const cacheClear = body(
  {
    url_path_patterns: texts(
      patternLengthMax,
      clearPatternsMax,
      "An entry that matches one of them is cleared. `url:z2fcssz2f*` is everything under `/css/`.",
    ),
    ...named,
    /** Clears everything of the domain or sub-domain. */
    everything: Type.Optional(BooleanLike),
    soft: Type.Optional({
      ...BooleanLike,
      description:
        "What matches becomes stale at once and is kept: it is served only where a rule for stale answers allows it, until the origin has confirmed or replaced it. Agents of the release before take it out.",
    }),
    /** Counts and samples what the clear would hit; nothing is cleared. */
    dry_run: Type.Optional(BooleanLike),
  },
  [],
  {
    description: `At least one thing must be named, at most ${clearItemsMax} altogether. Whatever one of them names is cleared, in one clear: all of it or, if one of them is refused, nothing. Patterns are full-text queries (FTS5) over the columns ${indexColumns.join(", ")}. A dry run counts and samples what would be cleared, and clears nothing.`,
    examples: [
      { urls: ["https://www.example.com/blog/post.html", "/search?q=shoes"] },
      { prefixes: ["/css"], hosts: ["img.example.com"] },
      { everything: true },
      { tags: ["product-17"], soft: true },
      { url_path_patterns: ["path:products"], dry_run: true },
    ],
  },
);

const countOrNull = (description: string) => Type.Union([Count, Type.Null()], { description });
const msOrNull = (description: string) =>
  Type.Union([Type.Number({ minimum: 0 }), Type.Null()], { description });

/** What was proved about a clear; each is null until it was told. */
const proof = {
  state: ProofProgress,
  matched: countOrNull(
    "How many entries it made unservable, or a soft clear stale; those that were stale already are counted again.",
  ),
  removed: countOrNull("How many of those are deleted; none by a soft clear."),
  blocked_in_flight: countOrNull(
    "How many responses were being fetched when the clear came, match it, and were not stored. The figure grows until the last of those fetches has ended. A response that several clears match counts for the oldest clear that came after the response was requested.",
  ),
  took_ms: countOrNull(
    "The time at the agent until nothing that matches was servable, or fresh after a soft clear, durably, and the proof of that was written.",
  ),
  invisible_ms: msOrNull(
    "The part of that time until nothing that matches was servable, or fresh after a soft clear.",
  ),
  gone_ms: msOrNull(
    "The time from then until the deletion had ended, or a soft clear was noted with all that it matches.",
  ),
  verified: Type.Union([Type.Boolean(), Type.Null()], {
    description:
      "Whether a second search after the deletion found nothing that is servable, or fresh after a soft clear. Of a deployment: at each of its instances; null until all of them have told.",
  }),
  widened: Type.Optional(
    Type.Boolean({
      description:
        "More was cleared than what was named: everything of the host or domain. Agents of the release before, which know patterns only, widen clears that name anything else.",
    }),
  ),
  error: Type.Optional(Type.String()),
};

/** One agent of a deployment. */
export const ClearInstance = open({
  instance_id: Type.String(),
  ...proof,
  last_seen: Timestamp,
  connected: Type.Optional(
    Type.Boolean({
      description:
        "True where a pending instance is connected: its channel is open, and central heard from it within 20 seconds. Whether it has the clear only its report says: a host that is frozen or was cut off since serves what it has.",
    }),
  ),
  silent_s: Type.Optional(
    Type.Integer({
      minimum: 0,
      description:
        "How many seconds ago central heard last from a pending instance whose channel is open. Agents speak every 15 seconds at least.",
    }),
  ),
});
export type ClearInstance = Static<typeof ClearInstance>;

/** Counts are sums over the instances that were seen lately, times are their longest. */
export const ClearDeployment = open(
  {
    deployment_site_id: Id,
    ...proof,
    /** When a pending deployment was last seen. */
    last_seen: Type.Optional(Timestamp),
    /** The instances seen within a day, and in any case the one seen last. */
    instances: Type.Array(ClearInstance),
  },
  { title: "ClearDeployment" },
);
export type ClearDeployment = Static<typeof ClearDeployment>;

export const ClearState = open(
  {
    clear_id: Type.String(),
    domain: Type.String(),
    /** The patterns as they were given. */
    patterns: Type.Array(Type.String()),
    ...named,
    everything,
    soft,
    deployments: Type.Array(ClearDeployment),
  },
  {
    title: "Clear",
    description:
      "What the deployments' agents have proved of it so far. Null means not reported yet.",
    examples: [
      {
        clear_id: "6f1d2c3b4a59687786950a1b2c3d4e5f",
        domain: "www.example.com",
        patterns: [],
        urls: ["/blog/post.html"],
        deployments: [
          {
            deployment_site_id: 7,
            state: "applied",
            matched: 214,
            removed: 214,
            blocked_in_flight: 0,
            took_ms: 31,
            invisible_ms: 12.5,
            gone_ms: 80.1,
            verified: true,
            instances: [],
          },
        ],
      },
    ],
  },
);
export type ClearState = Static<typeof ClearState>;
/** What a clear names beside patterns, as it was given. */
export type ClearNamed = Pick<ClearState, keyof typeof named | "everything" | "soft">;
export const clearStateShape = shape(ClearState);

/** One clear of a list. */
export const ClearRecord = open(
  {
    /** Counts the clears of the domain, with its sub-domains, from 1. */
    id: Id,
    ...ClearState.properties,
    when_created: Timestamp,
  },
  {
    title: "ClearRecord",
    description: "A past clear, and what the deployments' agents have proved of it so far.",
    examples: [
      {
        id: 12,
        clear_id: "6f1d2c3b4a59687786950a1b2c3d4e5f",
        domain: "www.example.com",
        patterns: [],
        prefixes: ["/css"],
        deployments: [],
        when_created: "2026-11-23T12:00:00.000Z",
      },
    ],
  },
);
export type ClearRecord = Static<typeof ClearRecord>;
export const clearRecordShape = shape(ClearRecord);

/**
 * `unreachable` means that no agent of the deployment is connected, `pending` that one is and has not
 * answered in time.
 */
const DryRunProgress = Type.Union([
  Type.Literal("answered"),
  Type.Literal("pending"),
  Type.Literal("unreachable"),
  Type.Literal("failed"),
]);
const dryRunResult = {
  state: DryRunProgress,
  matched: countOrNull("How many entries the clear would match."),
  over_budget: Type.Optional(
    Type.Boolean({ description: "Matching took too long: the clear would be widened." }),
  ),
  error: Type.Optional(Type.String()),
};

export const DryRunDeployment = open(
  {
    deployment_site_id: Id,
    ...dryRunResult,
    /** The newest entries that match, at most 20; each pattern clears its URL and no other. */
    samples: Type.Array(DryRunSample),
    last_seen: Type.Optional(Timestamp),
    instances: Type.Array(open({ instance_id: Type.String(), ...dryRunResult })),
  },
  { title: "DryRunDeployment" },
);
export type DryRunDeployment = Static<typeof DryRunDeployment>;

export const DryRun = open(
  {
    dry_run: Type.Literal(true),
    domain: Type.String(),
    patterns: Type.Array(Type.String()),
    ...named,
    everything,
    soft,
    deployments: Type.Array(DryRunDeployment),
  },
  {
    title: "DryRun",
    examples: [
      {
        dry_run: true,
        domain: "www.example.com",
        patterns: ["path:css"],
        deployments: [
          {
            deployment_site_id: 7,
            state: "unreachable",
            matched: null,
            samples: [],
            instances: [],
          },
        ],
      },
    ],
  },
);
export type DryRun = Static<typeof DryRun>;
export const dryRunShape = shape(DryRun);

export const clearAnswerShape = shape(Type.Union([ClearState, DryRun]));
