// Two centrals that append to one database of request logs: they begin it at once, take turns, take each batch once, and who
// follows misses nothing.

import { describe, expect, test } from "vitest";
import { silentLog } from "../../../../src/base/log.ts";
import { LogThread } from "../../../../src/central/agents/log-client.ts";
import { findRequests, type FindQuery } from "../../../../src/central/agents/log-finder.ts";
import { logWay } from "../../../support/any-logs.ts";
import { judgeLogsAt } from "../../../support/log-engine-kill.ts";
import { postgresBin, PostgresServer } from "../../../support/postgres-server.ts";
import { requestRecord } from "../../../support/request-records.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const bin = postgresBin();
const epoch = "00000000000000e1";
const domain = "www.example.com";
const nowMs = Date.parse("2030-01-15T12:00:00Z");
const rounds = 25;
const perBatch = 4;
const never = new AbortController().signal;

const everything: FindQuery = {
  siteIds: [1],
  domain,
  filter: {},
  since: undefined,
  until: undefined,
  limit: 500,
  after: undefined,
  follow: "0000-00-00.0",
  only: undefined,
  nowMs,
};

describe.skipIf(bin === undefined)("two centrals at one database of request logs", () => {
  test("each batch is taken once, whoever is sent it, and followed once, in the order of commits", async () => {
    await using server = await PostgresServer.start(bin ?? "");
    using dirOfOne = tempDir();
    using dirOfOther = tempDir();
    const database = logWay({ bin: bin ?? "", server }, "shared");
    const entry = new URL("../../../../src/central/logger.ts", import.meta.url);
    const open = (directory: string): LogThread =>
      new LogThread({ entry, directory, database, log: silentLog(), broken: () => {} });
    await using one = open(dirOfOne.path);
    await using other = open(dirOfOther.path);
    const send = async (to: LogThread, no: number, round: number) => {
      const firstSeq = round * perBatch + 1;
      const lines = Array.from({ length: perBatch }, (_, at) =>
        JSON.stringify(requestRecord(no * 10_000 + firstSeq + at)),
      );
      const { kind } = await to.append({
        siteId: 1,
        lane: { epoch, no },
        firstSeq,
        lastSeq: firstSeq + perBatch - 1,
        encoding: "identity",
        body: Buffer.from(lines.join("\n")),
        nowMs,
      });
      return kind;
    };
    const followed: number[] = [];
    let { follow } = everything;
    const look = async (): Promise<void> => {
      const found = await findRequests(one, { ...everything, follow }, never);
      for (const text of found.entries) followed.push(Number(Object(JSON.parse(text)).connection));
      ({ follow } = found);
    };
    for (let round = 0; round < rounds; round++) {
      // Lane 3 is one whose agent got no answer, and sends the same to the other.
      const kinds = await Promise.all([
        send(one, 1, round),
        send(other, 2, round),
        send(one, 3, round),
        send(other, 3, round),
        look().then(() => "followed"),
      ]);
      expect(kinds.toSorted()).toEqual([
        "committed",
        "committed",
        "committed",
        "followed",
        "repeated",
      ]);
    }
    await look();
    expect(followed).toHaveLength(3 * rounds * perBatch);
    expect(new Set(followed).size).toBe(followed.length);
    const marks = await judgeLogsAt(server, "shared");
    expect([...marks.values()]).toEqual(Array(3).fill(rounds * perBatch));
  }, 240_000);
});
