// The tables of `analytics.db`: what is counted of all domains, folded from the files of days. Seconds since the epoch.
//
//   file(day, inode, token, change, record_id, record_mark, is_gone)   how far each file was folded: its bucket table to `change` under `token`, its
//                                              records to `record_id`, whose `record_mark` tells whether it still lies there
//   series(id, site_id, domain)                domain "": what is missing of the whole deployment site
//   counts(series_id, fineness, at, day, counts)   fineness 0, 1, 2: minute, hour, day; day: the file that it came from, so that it is replaced, never added
//   top(series_id, fineness, at, kind, day, keys)  the same of the most frequent keys
//   cut(what, at)                              what lay before was removed for lack of room; what: minute, hour, day, top hour, top day

import type { Migration } from "../../base/sqlite.ts";

const analyticsTables = `
  CREATE TABLE file (
    day TEXT PRIMARY KEY, inode INTEGER NOT NULL, token TEXT NOT NULL, change INTEGER NOT NULL,
    record_id INTEGER NOT NULL, record_mark TEXT NOT NULL, is_gone INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE series (
    id INTEGER PRIMARY KEY, site_id INTEGER NOT NULL, domain TEXT NOT NULL, UNIQUE (site_id, domain)
  ) STRICT;
  CREATE TABLE counts (
    series_id INTEGER NOT NULL, fineness INTEGER NOT NULL, at INTEGER NOT NULL, day TEXT NOT NULL,
    counts BLOB NOT NULL, PRIMARY KEY (series_id, fineness, at, day)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX counts_by_time ON counts (fineness, at);
  CREATE INDEX counts_of_file ON counts (day);
  CREATE TABLE top (
    series_id INTEGER NOT NULL, fineness INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL,
    day TEXT NOT NULL, keys BLOB NOT NULL, PRIMARY KEY (series_id, fineness, kind, at, day)
  ) STRICT;
  CREATE INDEX top_by_time ON top (fineness, at);
  CREATE INDEX top_of_file ON top (day, kind);
  CREATE TABLE cut (what TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
`;

export const analyticsMigrations: readonly Migration[] = [(db) => db.exec(analyticsTables)];
