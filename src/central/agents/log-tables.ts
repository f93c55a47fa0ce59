// The tables of one day's file of request records, and their migrations.
//
//   lane(id, site_id, epoch, no, mark, updated_ms)        mark: the last number committed of this lane
//   series(id, site_id, domain)                           what is read together; domain "": authorities of no domain, and canaries
//   record(id, series_id, lane_id, seq, at_us, line)      id counts up: the order of arrival; line: the JSON as it came; at_us: when it happened
//   gap(id, lane_id, from_seq, to_seq, reason, arrived_ms, at_least)   numbers that the agent reported as lost; at_least: so many of them are known to
//                                                         have stood for a record
//   canary(site_id, at_us, arrived_ms)                    the newest of each deployment site
//   bucket(series_id, minute, change, counts)             what is counted of a series in a minute (since the epoch) by when requests happened:
//                                                         core/analytics/request-counts.ts; the series of domain "" has what is missing of its site
//   counting(token, token_before, since_change)           one row: a name for what was written since the file was opened, the name before it, and the
//                                                         last `change` that was written under that
//   span(first_us, last_us, tried_ms)                     one row: between which times the file's records happened
//
// `change` counts up with every row of `bucket` that is written, so that what changed since is one search.
// `record_of_series` holds (series_id, at_us, id): a page of a domain is one search in it and as many rows as are shown, whatever else is there.

import type { Migration } from "../../base/sqlite.ts";

const firstTables = `
  CREATE TABLE lane (
    id INTEGER PRIMARY KEY, site_id INTEGER NOT NULL, epoch TEXT NOT NULL, no INTEGER NOT NULL,
    mark INTEGER NOT NULL, updated_ms INTEGER NOT NULL, UNIQUE (site_id, epoch, no)
  ) STRICT;
  CREATE TABLE record (
    id INTEGER PRIMARY KEY, site_id INTEGER NOT NULL, domain TEXT, lane_id INTEGER NOT NULL,
    seq INTEGER NOT NULL, happened REAL NOT NULL, line TEXT NOT NULL
  ) STRICT;
  CREATE INDEX record_of_domain ON record (site_id, domain);
  CREATE TABLE gap (
    id INTEGER PRIMARY KEY, lane_id INTEGER NOT NULL, from_seq INTEGER NOT NULL,
    to_seq INTEGER NOT NULL, reason TEXT NOT NULL, arrived_ms INTEGER NOT NULL
  ) STRICT;
`;

const searchByTime = `
  CREATE TABLE series (
    id INTEGER PRIMARY KEY, site_id INTEGER NOT NULL, domain TEXT NOT NULL, UNIQUE (site_id, domain)
  ) STRICT;
  INSERT INTO series (site_id, domain) SELECT DISTINCT site_id, coalesce(domain, '') FROM record;
  DROP INDEX record_of_domain;
  ALTER TABLE record RENAME TO record_before;
  CREATE TABLE record (
    id INTEGER PRIMARY KEY, series_id INTEGER NOT NULL, lane_id INTEGER NOT NULL,
    seq INTEGER NOT NULL, at_us INTEGER NOT NULL, line TEXT NOT NULL
  ) STRICT;
  INSERT INTO record SELECT
    b.id, s.id, b.lane_id, b.seq, CAST(round(min(max(b.happened, 0), 9e9) * 1e6) AS INTEGER), b.line
    FROM record_before b JOIN series s ON s.site_id = b.site_id AND s.domain = coalesce(b.domain, '')
    ORDER BY b.id;
  DROP TABLE record_before;
  CREATE INDEX record_of_series ON record (series_id, at_us);
  CREATE TABLE canary (
    site_id INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, arrived_ms INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE span (first_us INTEGER NOT NULL, last_us INTEGER NOT NULL, tried_ms INTEGER NOT NULL) STRICT;
  INSERT INTO span SELECT coalesce(min(at_us), ${Number.MAX_SAFE_INTEGER}), coalesce(max(at_us), 0), 0 FROM record;
`;

const provenGaps = `
  ALTER TABLE gap ADD COLUMN at_least INTEGER NOT NULL DEFAULT 0;
  UPDATE gap SET at_least = to_seq - from_seq + 1 WHERE reason <> 'crash';
`;

const counted = `
  CREATE TABLE bucket (
    series_id INTEGER NOT NULL, minute INTEGER NOT NULL, change INTEGER NOT NULL, counts BLOB NOT NULL,
    PRIMARY KEY (series_id, minute)
  ) STRICT;
  CREATE INDEX bucket_of_change ON bucket (change);
  CREATE TABLE counting (
    token TEXT NOT NULL, token_before TEXT NOT NULL, since_change INTEGER NOT NULL
  ) STRICT;
  INSERT INTO counting VALUES ('', '', 0);
`;

export const dayMigrations: readonly Migration[] = [
  (db) => db.exec(firstTables),
  (db) => db.exec(searchByTime),
  (db) => db.exec(provenGaps),
  (db) => db.exec(counted),
];
