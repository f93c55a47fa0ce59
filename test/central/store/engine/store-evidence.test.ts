// What a central makes of what it remembers and what its store has: rows, and any failover of any history by chance.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  commitsKept,
  isFormerPrimary,
  isSameServer,
  judgeStore,
  lossFacts,
  lossText,
  marksFound,
  parseEvidence,
  removalMark,
  type ServerIdentity,
  type StoreEvidence,
  type StoreFound,
} from "../../../../src/central/store/engine/store-evidence.ts";
import { CommitMarks } from "../../../../src/central/store/engine/commit-marks.ts";

const server: ServerIdentity = {
  systemId: "77",
  timeline: 1,
  startedAt: "2030-01-01 00:00:00+00",
  databaseId: "16384",
  isSynchronous: false,
};
const promoted = { ...server, timeline: 2, startedAt: "2030-01-02 00:00:00+00" };
const at = (no: number): number => Date.parse("2030-01-02T00:00:00Z") + no * 1_000;
const commitsOf = (...numbers: readonly number[]) => numbers.map((no) => ({ no, atMs: at(no) }));
const evidence: StoreEvidence = {
  run: "r1",
  epoch: "e1",
  server,
  isFinal: true,
  commits: commitsOf(7, 8, 9),
  journals: [{ siteId: 4, seq: 12, atMs: at(9) }],
};
const found: StoreFound = {
  server: promoted,
  epoch: "e1",
  formerEpochs: [],
  numbers: [5, 6, 7, 8, 9],
  removedBelow: 5,
  isUnmarked: false,
  heads: new Map([[4, 12]]),
};

describe("judgement", () => {
  const rows: readonly [string, Partial<StoreEvidence>, Partial<StoreFound>, unknown][] = [
    ["all is there", {}, {}, { kind: "whole" }],
    ["more is there than was acknowledged", {}, { numbers: [7, 8, 9, 10] }, { kind: "whole" }],
    ["older ones were removed", { commits: commitsOf(2, 3) }, {}, { kind: "whole" }],
    [
      "all are missing but a higher one that was committed before them",
      {},
      { numbers: [9] },
      { kind: "less", loss: expect.objectContaining({ commits: 2, sinceMs: at(7) }) },
    ],
    [
      "the last one is missing",
      {},
      { numbers: [5, 6, 7, 8], heads: new Map([[4, 10]]) },
      {
        kind: "less",
        loss: {
          isCertain: true,
          sinceMs: at(9),
          untilMs: at(9),
          commits: 1,
          journals: [{ siteId: 4, fromSeq: 11, toSeq: 12 }],
          timelines: { before: 1, now: 2 },
        },
      },
    ],
    [
      "one is missing that was committed last, though a higher number is there",
      {},
      { numbers: [7, 9] },
      { kind: "less", loss: expect.objectContaining({ commits: 1, sinceMs: at(8), journals: [] }) },
    ],
    [
      "nothing of the run is there, and its site is not",
      {},
      { numbers: [], removedBelow: 0, heads: new Map() },
      {
        kind: "less",
        loss: expect.objectContaining({
          commits: 3,
          sinceMs: at(7),
          journals: [{ siteId: 4, fromSeq: 1, toSeq: 12 }],
        }),
      },
    ],
    [
      "the epoch is one that another central gave",
      {},
      { epoch: "e2", formerEpochs: ["e0", "e1"] },
      { kind: "renewed", lost: undefined },
    ],
    [
      "another central gave the epoch, and this one had acknowledged what is not there: the journals that it told since then",
      {
        journals: [
          { siteId: 3, seq: 40, atMs: at(7) },
          { siteId: 4, seq: 12, atMs: at(9) },
        ],
      },
      { epoch: "e2", formerEpochs: ["e1"], numbers: [5, 6, 7] },
      {
        kind: "renewed",
        lost: {
          sinceMs: at(8),
          untilMs: at(9),
          commits: 2,
          numbers: [8, 9],
          journals: [{ siteId: 4, toSeq: 12 }],
        },
      },
    ],
    [
      "an operator told of a backup of this moment: what was acknowledged until then is there",
      {},
      { numbers: [], isUnmarked: true },
      { kind: "restored", backedUpMs: at(9) },
    ],
    [
      "an operator told of a backup, and the server is the same",
      { journals: [] },
      { server, numbers: [], isUnmarked: true },
      { kind: "restored", backedUpMs: at(9) },
    ],
    [
      "an operator told of a backup that is older than what central noted",
      {},
      { numbers: [], isUnmarked: true, heads: new Map([[4, 10]]) },
      { kind: "less", loss: expect.objectContaining({ isCertain: true, commits: 3 }) },
    ],
    [
      "a promoted server has lost the first run of all, as far as anybody can tell",
      { journals: [] },
      { numbers: [], isUnmarked: true },
      { kind: "less", loss: expect.objectContaining({ isCertain: true, commits: 3 }) },
    ],
    [
      "the epoch is one of before: the store lost the transaction that had raised it",
      { epoch: "e2", commits: commitsOf(0) },
      { epoch: "e1", formerEpochs: [] },
      { kind: "less", loss: expect.objectContaining({ isCertain: true, commits: 1 }) },
    ],
    [
      "central was cut off and another server took over: nobody knows",
      { isFinal: false },
      {},
      {
        kind: "less",
        loss: expect.objectContaining({ isCertain: false, commits: 0, sinceMs: at(9) }),
      },
    ],
    [
      "central was cut off and a synchronous standby took over",
      { isFinal: false, server: { ...server, isSynchronous: true } },
      {},
      { kind: "whole" },
    ],
    [
      "central was cut off and the server was started again",
      { isFinal: false },
      { server: { ...server, startedAt: "2031-01-01 00:00:00+00" } },
      { kind: "whole" },
    ],
  ];
  test.each(rows)("%s", (_, before, now, expected) => {
    expect(judgeStore({ ...evidence, ...before }, { ...found, ...now })).toEqual(expected);
  });

  test("any end of any log: a loss is found if and only if something acknowledged is in it", () => {
    const connections = 200;
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_500 }),
        fc.infiniteStream(fc.integer({ min: 0, max: connections - 1 })),
        fc.nat(1_600),
        fc.integer({ min: 1, max: 500 }),
        (count, chances, cut, removals) => {
          const pick = (list: number[]): number =>
            list.splice(Number(chances.next().value) % list.length, 1)[0] ?? 0;
          // Numbers are taken in order; of those at work at once any commits next, and of those committed any is acknowledged next.
          const marks = new CommitMarks("r", () => new Date(0));
          const log: number[] = [0];
          const acknowledged: number[] = [];
          const [working, committed]: [number[], number[]] = [[], []];
          for (let left = count; left > 0 || working.length + committed.length > 0;) {
            const isFull = working.length + committed.length >= connections;
            if (left > 0 && !isFull && Number(chances.next().value) % 3 > 0) {
              working.push(marks.next());
              left--;
            } else if (working.length > 0 && Number(chances.next().value) % 2 === 0) {
              const no = pick(working);
              log.push(no);
              committed.push(no);
            } else if (committed.length > 0) {
              const no = pick(committed);
              acknowledged.push(no);
              marks.acknowledged(no);
              marks.ended(no);
            }
            // What has served is removed now and then, and the removal stands in the log.
            if (Number(chances.next().value) % removals === 0 && marks.servedBelow > 0)
              log.push(removalMark(marks.servedBelow));
          }
          const kept = log.slice(0, Math.max(1, log.length - cut));
          const lost = new Set(log.slice(kept.length));
          const { removedBelow } = marksFound(kept);
          const { kind } = judgeStore(
            { ...evidence, commits: marks.commits, journals: [] },
            { ...found, server, ...marksFound(kept.filter((no) => no < 0 || no >= removedBelow)) },
          );
          expect(kind).toBe(acknowledged.some((no) => lost.has(no)) ? "less" : "whole");
        },
      ),
    );
  });
});

test("servers: one start of one of them, and a primary of before", () => {
  expect(isSameServer(server, { ...server, isSynchronous: true })).toBe(true);
  expect(isSameServer(undefined, server)).toBe(false);
  for (const other of [
    promoted,
    { ...server, systemId: "78" },
    { ...server, startedAt: "later" },
    { ...server, databaseId: "16385" },
  ])
    expect(isSameServer(server, other)).toBe(false);
  expect(isFormerPrimary(promoted, server)).toBe(true);
  expect(isFormerPrimary(server, promoted)).toBe(false);
  // A cluster that was made anew begins at timeline 1.
  expect(isFormerPrimary(promoted, { systemId: "78", timeline: 1 })).toBe(false);
});

test("a loss is told with times, journals and timelines", () => {
  const judgement = judgeStore(evidence, { ...found, numbers: [7], heads: new Map([[4, 10]]) });
  if (judgement.kind !== "less") throw new TypeError(judgement.kind);
  expect(lossText(judgement.loss)).toBe(
    "the store lost changes that were acknowledged between 2030-01-02T00:00:08.000Z and 2030-01-02T00:00:09.000Z: at least 2 of them. Among them are, at least, entries of the journals of deployment sites 4 (11 to 12). The server's timeline was 1 and is 2",
  );
  const { sinceMs } = judgement.loss;
  expect(lossText({ ...judgement.loss, untilMs: sinceMs })).toContain(
    "acknowledged at 2030-01-02T00:00:08.000Z: at least 2",
  );
  expect(lossFacts(judgement.loss)).toMatchObject({
    certain: true,
    commits_missing_at_least: 2,
    journals: [{ deployment_site_id: 4, from_seq: 11, to_seq: 12 }],
  });
  const unsure = judgeStore({ ...evidence, isFinal: false }, found);
  if (unsure.kind !== "less") throw new TypeError(unsure.kind);
  expect(lossText(unsure.loss)).toMatch(/^the store may have lost .* after 2030-01-02T00:00:09/);
});

test("what is written is read again, and nothing else is", () => {
  expect(parseEvidence(JSON.stringify(evidence))).toEqual({
    ...evidence,
    server: { systemId: "77", timeline: 1, isSynchronous: false },
  });
  const broken: readonly object[] = [
    { run: 1 },
    { epoch: null },
    { isFinal: "yes" },
    { server: null },
    { server: { ...server, timeline: "1" } },
    { commits: [] },
    { commits: [{ no: "7", atMs: 1 }] },
    { journals: undefined },
    { journals: [{ siteId: 4 }] },
  ];
  for (const one of broken)
    expect(parseEvidence(JSON.stringify({ ...evidence, ...one }))).toBe(undefined);
  for (const text of ["", "null", "{", "[]"]) expect(parseEvidence(text)).toBe(undefined);
});

test("memory of acknowledgements is bounded", () => {
  let changes = 0;
  const marks = new CommitMarks("r", () => new Date(5));
  marks.onChange = () => void changes++;
  const [slow, failed] = [marks.next(), marks.next()];
  for (let count = 0; count < 1_998; count++) {
    const no = marks.next();
    marks.acknowledged(no);
    marks.ended(no);
  }
  // What is at work may be acknowledged yet.
  expect(marks.servedBelow).toBe(slow);
  marks.ended(slow);
  marks.ended(failed);
  expect(marks.servedBelow).toBe(2_000 - commitsKept + 1);
  expect(marks.commits).toHaveLength(commitsKept);
  expect(marks.commits.at(-1)).toEqual({ no: 2_000, atMs: 5 });
  marks.journalsTold(Array.from({ length: 5_000 }, (_, id) => [id, 1] as const));
  expect(marks.journals).toHaveLength(100);
  for (let id = 0; id < 1_000; id++) marks.journalsTold([[id, 2]]);
  marks.journalsTold([[500, 3]]);
  expect(marks.journals).toHaveLength(500);
  expect(marks.journals.at(-1)).toEqual({ siteId: 500, seq: 3, atMs: 5 });
  marks.journalsTold([]);
  expect(changes).toBe(3_000);
});
