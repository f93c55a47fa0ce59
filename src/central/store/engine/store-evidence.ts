// What a central knows by itself of what its store had, and whether the store still has it. Pure.
//
// Each writing transaction leaves a number in the store, in the table `commit_marks`: a `run` of central counts from 0. A negative one, -n, says that those below n were
// removed. What a failover loses is the end of the server's log. So if a transaction was lost whose end had been told to anybody, then one of the last that were told is missing: those that were at work at the same
// time are not more than there are connections.

import type { Json } from "../../../core/journal/canonical-json.ts";

/** A server at one of its starts, and the database on it. */
export type ServerIdentity = {
  /** Of `initdb`: a standby has that of its primary. */
  readonly systemId: string;
  /** Rises with each promotion. */
  readonly timeline: number;
  /** When the server was started, in its own words. */
  readonly startedAt: string;
  readonly databaseId: string;
  /** Whether a COMMIT waits for a standby. */
  readonly isSynchronous: boolean;
};

export type Acknowledged = { readonly no: number; readonly atMs: number };
/** The newest entry of a site's journal whose commit was acknowledged. */
export type JournalTold = { readonly siteId: number; readonly seq: number; readonly atMs: number };

export type StoreEvidence = {
  /** Names one run of a central. */
  readonly run: string;
  readonly epoch: string;
  readonly server: Pick<ServerIdentity, "systemId" | "timeline" | "isSynchronous">;
  /** Whether nothing was acknowledged that is not in it. A file that is written again and again is not final until central ends. */
  readonly isFinal: boolean;
  /** The last that were acknowledged, in the order of that. Never empty. */
  readonly commits: readonly Acknowledged[];
  /** The last entries that were acknowledged, by site. */
  readonly journals: readonly JournalTold[];
};

/** What a store has of it. */
export type StoreFound = {
  readonly server: ServerIdentity;
  readonly epoch: string;
  /** The epochs that it had before. */
  readonly formerEpochs: readonly string[];
  /** The numbers of the run that are there. */
  readonly numbers: readonly number[];
  /** Numbers below this one were removed when they had served. */
  readonly removedBelow: number;
  /** Whether there is no number of any run: an operator has removed them, to tell of a restored backup. */
  readonly isUnmarked: boolean;
  /** The heads of the journals that the evidence names, by site; sites that are not there are left out. */
  readonly heads: ReadonlyMap<number, number>;
};

/** What is known of what was lost. */
export type StoreLoss = {
  /** False: commits may be missing, and nobody can tell. */
  readonly isCertain: boolean;
  /** What was acknowledged before is there. */
  readonly sinceMs: number;
  /** When the last one was acknowledged that is known of. */
  readonly untilMs: number;
  /** So many are known to be missing; more may be. */
  readonly commits: number;
  /** Journals that ended beyond where they end now. */
  readonly journals: readonly {
    readonly siteId: number;
    readonly fromSeq: number;
    readonly toSeq: number;
  }[];
  readonly timelines: { readonly before: number; readonly now: number };
};

/** What a central had acknowledged that came to its store when another had found out already that the store lost something. */
export type FurtherLoss = Pick<StoreLoss, "sinceMs" | "untilMs" | "commits"> & {
  /** The numbers that are missing. */
  readonly numbers: readonly number[];
  /** The last entry that it had told of each journal since the first of them. What stands there now may be another entry of the same number. */
  readonly journals: readonly { readonly siteId: number; readonly toSeq: number }[];
};

/** A further loss, with what the failover had left of each journal: what was lost of it begins behind that. */
export type PlacedLoss = Omit<FurtherLoss, "journals"> & Pick<StoreLoss, "journals">;

/** Pure. `left`: where each journal ended when the failover was found. A journal that has all of it lost nothing. */
export function placedLoss(loss: FurtherLoss, left: ReadonlyMap<number, number>): PlacedLoss {
  const journals = loss.journals.flatMap(({ siteId, toSeq }) => {
    const fromSeq = (left.get(siteId) ?? 0) + 1;
    return fromSeq > toSeq ? [] : [{ siteId, fromSeq, toSeq }];
  });
  return { ...loss, journals };
}

export type Judgement =
  | { readonly kind: "whole" }
  /** Another central has given the store another epoch, or a backup was restored. `lost`: what this one had acknowledged and is missing. */
  | { readonly kind: "renewed"; readonly lost: FurtherLoss | undefined }
  /** A backup of the database was restored with a state directory of the same moment: what was acknowledged until then is there. */
  | { readonly kind: "restored"; readonly backedUpMs: number }
  | { readonly kind: "less"; readonly loss: StoreLoss };

/** As many of the last acknowledged transactions are remembered: more than a pool may have connections. */
export const commitsKept = 256;
/** As many journals are remembered with their ends, and so many of one transaction. */
export const journalsKept = 500;
export const journalsOfCommit = 100;

export function judgeStore(evidence: StoreEvidence, found: StoreFound): Judgement {
  const isSameEpoch = found.epoch === evidence.epoch;
  if (!isSameEpoch && found.formerEpochs.includes(evidence.epoch))
    return { kind: "renewed", lost: furtherLoss(evidence, found) };
  const lost = isSameEpoch ? missing(evidence, found) : evidence.commits;
  const isCertain = lost.length > 0;
  if (!isCertain && !isUncertain(evidence, found.server)) return { kind: "whole" };
  const lastMs = Math.max(...evidence.commits.map(({ atMs }) => atMs));
  const sinceMs = isCertain ? Math.min(...lost.map(({ atMs }) => atMs)) : lastMs;
  const journals = evidence.journals.flatMap(({ siteId, seq }) => {
    const head = found.heads.get(siteId) ?? 0;
    return seq > head ? [{ siteId, fromSeq: head + 1, toSeq: seq }] : [];
  });
  if (isSameEpoch && journals.length === 0 && wasUnmarked(evidence, found))
    return { kind: "restored", backedUpMs: lastMs };
  const timelines = { before: evidence.server.timeline, now: found.server.timeline };
  const commits = lost.length;
  return {
    kind: "less",
    loss: { isCertain, sinceMs, untilMs: lastMs, commits, journals, timelines },
  };
}

/** Returns what was acknowledged and is not there. */
function missing({ commits }: StoreEvidence, found: StoreFound): readonly Acknowledged[] {
  const there = new Set(found.numbers);
  return commits.filter(({ no }) => no >= found.removedBelow && !there.has(no));
}

/** The mark that stands for numbers that were removed: in the transaction that removes them, so that a failover loses both or neither. */
export const removalMark = (below: number): number => -below;

/** Tells the marks of a run by what they say. */
export function marksFound(marks: readonly number[]): Pick<StoreFound, "numbers" | "removedBelow"> {
  const numbers = marks.filter((mark) => mark >= 0);
  return { numbers, removedBelow: Math.max(0, ...marks.map((mark) => -mark)) };
}

function furtherLoss(evidence: StoreEvidence, found: StoreFound): FurtherLoss | undefined {
  const lost = missing(evidence, found);
  if (lost.length === 0) return undefined;
  const times = lost.map(({ atMs }) => atMs);
  const sinceMs = Math.min(...times);
  const journals = evidence.journals
    .filter(({ atMs }) => atMs >= sinceMs)
    .map(({ siteId, seq }) => ({ siteId, toSeq: seq }));
  const numbers = lost.map(({ no }) => no);
  return { sinceMs, untilMs: Math.max(...times), commits: lost.length, numbers, journals };
}

/**
 * Whether the numbers were taken out of a store that has all that was acknowledged. A run's first number is older than each entry of a journal that it told, and a failover loses
 * the end of the log alone: so an entry that is there says that the numbers had been there. Without one, a server that was promoted may have lost the whole run.
 */
function wasUnmarked({ journals, server }: StoreEvidence, found: StoreFound): boolean {
  const isPromoted =
    server.systemId === found.server.systemId && server.timeline < found.server.timeline;
  return found.isUnmarked && (journals.length > 0 || !isPromoted);
}

/** This central was cut off, and another server took over that had not confirmed each commit: the last ones may be missing that no file knows of. */
function isUncertain({ isFinal, server: before }: StoreEvidence, now: ServerIdentity): boolean {
  const isOther = before.systemId !== now.systemId || before.timeline !== now.timeline;
  return !isFinal && isOther && !before.isSynchronous;
}

/** A server that was primary before another took over, and was not shut off. */
export function isFormerPrimary(
  before: Pick<ServerIdentity, "systemId" | "timeline">,
  now: Pick<ServerIdentity, "systemId" | "timeline">,
): boolean {
  return before.systemId === now.systemId && now.timeline < before.timeline;
}

/** Whether nothing can have been lost between the two: the same start of the same server. */
export function isSameServer(one: ServerIdentity | undefined, other: ServerIdentity): boolean {
  return (
    one !== undefined &&
    one.systemId === other.systemId &&
    one.timeline === other.timeline &&
    one.startedAt === other.startedAt &&
    one.databaseId === other.databaseId
  );
}

/** As it stands in the audit trail and in the store. */
export function lossFacts(loss: StoreLoss): { readonly [name: string]: Json } {
  const { isCertain, sinceMs, untilMs, commits, journals, timelines } = loss;
  return {
    certain: isCertain,
    since: new Date(sinceMs).toISOString(),
    until: new Date(untilMs).toISOString(),
    commits_missing_at_least: commits,
    journals: journals.map(placeFacts),
    timeline_before: timelines.before,
    timeline_now: timelines.now,
  };
}

type LostEntries = StoreLoss["journals"][number];

function placeFacts({ siteId, fromSeq, toSeq }: LostEntries) {
  return { deployment_site_id: siteId, from_seq: fromSeq, to_seq: toSeq };
}

const placeText = ({ siteId, fromSeq, toSeq }: LostEntries): string =>
  `${siteId} (${fromSeq} to ${toSeq})`;

const journalsNamed = 10;

/** As it stands in the audit trail. */
export function furtherLossFacts(loss: PlacedLoss): { readonly [name: string]: Json } {
  return {
    since: new Date(loss.sinceMs).toISOString(),
    until: new Date(loss.untilMs).toISOString(),
    commits_missing_at_least: loss.commits,
    journals: loss.journals.map(placeFacts),
  };
}

/** Says it in sentences, behind what is known already. */
export function furtherLossText({ sinceMs, untilMs, commits, journals }: PlacedLoss): string {
  const named = journals.map(placeText);
  const entries =
    named.length === 0
      ? ""
      : `. Among them are entries of the journals of deployment sites ${listed(named)}`;
  return `Another central had acknowledged at least ${commits} more of the lost changes ${whenText(sinceMs, untilMs)}${entries}`;
}

function whenText(sinceMs: number, untilMs: number): string {
  const [since, until] = [sinceMs, untilMs].map((ms) => new Date(ms).toISOString());
  return since === until ? `at ${since}` : `between ${since} and ${until}`;
}

function listed(named: readonly string[]): string {
  const rest = named.length > journalsNamed ? ` and ${named.length - journalsNamed} more` : "";
  return `${named.slice(0, journalsNamed).join(", ")}${rest}`;
}

/** Says it in sentences, for a log line and a warning: they put a point behind the last one. */
export function lossText(loss: StoreLoss): string {
  const { isCertain, sinceMs, untilMs, commits, journals, timelines } = loss;
  const named = journals.map(placeText);
  const entries =
    named.length === 0
      ? ""
      : `. Among them are, at least, entries of the journals of deployment sites ${listed(named)}`;
  const server =
    timelines.before === timelines.now
      ? `The server is still at timeline ${timelines.now}`
      : `The server's timeline was ${timelines.before} and is ${timelines.now}`;
  return isCertain
    ? `the store lost changes that were acknowledged ${whenText(sinceMs, untilMs)}: at least ${commits} of them${entries}. ${server}`
    : `the store may have lost changes that were acknowledged after ${new Date(sinceMs).toISOString()}: central was cut off, and another server took over before it was started again. ${server}`;
}

/** Undefined for what no central has written. */
export function parseEvidence(text: string): StoreEvidence | undefined {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return undefined;
  }
  const fields = Object(raw) as Readonly<Record<string, unknown>>;
  const server = Object(fields["server"]) as Readonly<Record<string, unknown>>;
  const { run, epoch, isFinal, commits, journals } = fields;
  const { systemId, timeline, isSynchronous } = server;
  if (typeof run !== "string" || typeof epoch !== "string" || typeof isFinal !== "boolean")
    return undefined;
  if (typeof systemId !== "string" || typeof timeline !== "number") return undefined;
  if (typeof isSynchronous !== "boolean") return undefined;
  const told = numbersOf(commits, ["no", "atMs"]);
  const ends = numbersOf(journals, ["siteId", "seq", "atMs"]);
  if (told === undefined || told.length === 0 || ends === undefined) return undefined;
  return {
    run,
    epoch,
    isFinal,
    server: { systemId, timeline, isSynchronous },
    commits: told.map(({ no, atMs }) => ({ no, atMs })),
    journals: ends.map(({ siteId, seq, atMs }) => ({ siteId, seq, atMs })),
  };
}

/** Parses a list of objects whose named members are whole numbers; undefined for anything else. */
function numbersOf<Name extends string>(
  list: unknown,
  names: readonly Name[],
): readonly Readonly<Record<Name, number>>[] | undefined {
  if (!Array.isArray(list)) return undefined;
  const parsed = list.map((one: unknown) => Object(one) as Readonly<Record<Name, number>>);
  return parsed.every((one) => names.every((name) => Number.isSafeInteger(one[name])))
    ? parsed
    : undefined;
}
