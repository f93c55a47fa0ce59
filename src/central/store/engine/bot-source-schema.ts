// The table of lists that are fetched from URLs, in the manner of schema.ts, and the step that makes it.

import type { Generated } from "kysely";
import type { Sha256 } from "../../../core/ids.ts";

export type BotSourceTables = {
  /** Where the addresses of a bot are fetched from. The bot itself comes to be with the first list. */
  bot_sources: {
    id: Generated<number>;
    domain_id: number;
    host: string;
    kind: "bad" | "vip";
    bot: string;
    url: string;
    /** The URL is that at which the owner of the crawler publishes its addresses; it follows the release of central. */
    is_published: Generated<number>;
    interval_s: number;
    created_by: string;
    when_created: string;
    /** What the server said of the list that was taken in last, and the digest of what the bot held then. */
    etag: string | null;
    last_modified: string | null;
    digest: Sha256 | null;
    when_next: string;
    /** The next list may leave the bot with little, once. */
    allow_shrink: Generated<number>;
    /** While it is fetched: who does, and until when nobody else may. */
    taken_by: string | null;
    taken_until: string | null;
    when_tried: string | null;
    /** When the server last sent a list that was taken in, or said that it is as before. */
    when_fetched: string | null;
    /** How the last attempt ended; null: there was none. */
    outcome: "changed" | "unchanged" | "failed" | "refused" | null;
    reason: string | null;
    /** Attempts in a row that failed or were refused. */
    failures: Generated<number>;
  };
};

/** Lists of addresses that are fetched from URLs. */
export const botSources = `
  CREATE TABLE bot_sources (
    id $id, domain_id integer → domains, host text NOT NULL, kind text NOT NULL, bot text NOT NULL, url text NOT NULL,
    is_published integer NOT NULL DEFAULT 0, interval_s integer NOT NULL, created_by text NOT NULL, when_created text NOT NULL, etag text, last_modified text,
    digest text, when_next text NOT NULL, allow_shrink integer NOT NULL DEFAULT 0, taken_by text, taken_until text,
    when_tried text, when_fetched text, outcome text, reason text, failures integer NOT NULL DEFAULT 0,
    CONSTRAINT bot_sources_per_bot UNIQUE (domain_id, host, kind, bot)
  );
  CREATE INDEX bot_sources_when_next ON bot_sources (when_next);
`;
