// One accelerator worker, given its parts: listens, answers, stages what main publishes, beats, drains. The thread's root opens the parts.

import { closeSync } from "node:fs";
import type { MessagePort } from "node:worker_threads";
import type { Log } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import { collectStartGarbage } from "../../base/start-garbage.ts";
import { codeOf, messageOf } from "../../core/faults.ts";
import { ClientAddresses } from "../../core/http/client-address.ts";
import type { DecisionTeller } from "../bots/decisions/decision-teller.ts";
import type { VisitorJudge } from "../bots/decisions/evidence.ts";
import type { ImageEncoder } from "../images/image-encoder.ts";
import type { LaneWriter } from "../requests/worker/lane-writer.ts";
import type { PartingLane } from "../requests/worker/parting-lane.ts";
import type { ResponseCache } from "./cached/cache-port.ts";
import { createClock, type WorkerClock } from "./clock.ts";
import { Flights } from "./cached/flights.ts";
import { VisitorShares } from "./doors/visitor-shares.ts";
import { VisitorListener, type Drain } from "./doors/listener.ts";
import { followOriginChecks } from "./origin/down-origins.ts";
import type { OriginGuard } from "./origin/origin-connector.ts";
import { OriginShares } from "./origin/origin-shares.ts";
import { OriginPools } from "./origin/origin-pools.ts";
import { hasTlsOrigin, loadTlsOrigins } from "./origin/tls-origins.ts";
import { RequestBodies } from "./bodies/request-bodies.ts";
import { LateWrites } from "./origin/late-writes.ts";
import { QuickAnswers } from "./lane/quick-answers.ts";
import { RateTable, type RateMemory } from "./limits/rate-table.ts";
import { RequestRates } from "./limits/request-rates.ts";
import { answer } from "./pipeline.ts";
import { answerProbes } from "./pool/probing.ts";
import { beforeVisitors } from "./purging/purge-gateway.ts";
import { PurgeTeller } from "./purging/purge-teller.ts";
import { ProblemLog } from "./records/problem-log.ts";
import { RecordGate } from "./records/record-gate.ts";
import { createRecorder } from "./records/recorder.ts";
import { RequestTally } from "./records/request-tally.ts";
import { SecureContexts } from "./doors/secure-contexts.ts";
import { Heartbeat, PoolWords } from "./pool/shared-words.ts";
import { StagedStates } from "./pool/staged-states.ts";
import type { LentSockets } from "./pool/visitor-sockets.ts";
import type { CertificateTableRef } from "../../core/serving/certificate-table.ts";
import { Staples } from "./doors/staples.ts";
import type { TicketKeys } from "./doors/ticket-keys.ts";
import type { FormDeps } from "./cached/forms.ts";
import { ImageMaker, type ImageMakerOptions } from "./cached/image-maker.ts";
import { VariantMaker, type VariantMakerOptions } from "./cached/variant-maker.ts";
import type { AcceleratorInit, FromWorker, ToWorker } from "./pool/worker-messages.ts";
import { OpenUpgrades } from "./upgrades/open-upgrades.ts";
import { BlobBodies } from "./files/bodies.ts";
import type { VisitorSums } from "./records/visitor-sums.ts";
import { createWorkerMetrics, type WorkerMetrics } from "./records/worker-metrics.ts";

/** Main replaces a worker whose heartbeat stands still for 5 s. */
const beatMs = 250;
/** When a worker first looks whether nobody is connected, and how much later than the one before it. */
const garbageFirstMs = 5_000;
const garbageApartMs = 250;

export type AcceleratorParts = {
  readonly cache: ResponseCache;
  readonly records: Pick<PartingLane, "accept" | "begins" | "wake" | "part">;
  /** Only where requests wait for room for their records. */
  readonly recordRoom?: Pick<LaneWriter, "claim"> | undefined;
  readonly judge: VisitorJudge;
  readonly registry: Registry;
  readonly log: Log;
  readonly random: () => number;
  readonly decisions: Pick<DecisionTeller, "note">;
  /** Makes the forms of pictures; without it none is made. */
  readonly images?: ImageEncoder;
  /** The table of `limits.requests`, from a RatesSeen. */
  readonly rates: RateMemory;
  readonly originGuard: OriginGuard;
  /** The port from an OriginChecks. */
  readonly originChecks?: MessagePort;
  /** The port from a Purges; without it nobody may purge. */
  readonly purges?: MessagePort;
};

/** Runs until main asks to drain (or its port closes); resolves when every answer has ended. The parts are the caller's to close. */
export async function runAccelerator(
  init: AcceleratorInit,
  port: MessagePort,
  parts: AcceleratorParts,
): Promise<void> {
  const clock = createClock();
  const words = new PoolWords(init.poolWords);
  using _timers = startTimers(init, words);
  await using blobs = new BlobBodies({ blobsDir: init.blobsDir, memoryMax: init.filesMemoryMax });
  const states = openStates(init, port, { words, bodies: blobs, clock });
  const metrics = createWorkerMetrics(parts.registry);
  const tally = new RequestTally(parts.registry);
  await using origins = new OriginPools(clock, parts.random, parts.originGuard);
  if (parts.originChecks !== undefined) followOriginChecks(origins, parts.originChecks);
  const problems = new ProblemLog(parts.log, clock.steadyMs);
  const shares = new OriginShares({ limits: init.originShares, metrics });
  const asking = { problems, metrics, origins, clock, shares, writes: new LateWrites() };
  await using flights = new Flights({ ...parts, ...asking });
  await using makers = new FormMakers(parts, { ...asking, words, no: init.no });
  const clients = new ClientAddresses(init.proxies.trusted, init.proxies.forwardedHeader);
  const version = (): number => states.current().version;
  using upgrades = new OpenUpgrades({ limits: init.upgrades, clock, metrics, version });
  using bodies = new RequestBodies({ limits: init.requestBodies, clock, metrics, problems });
  const deps = {
    ...parts,
    ...asking,
    bodies,
    upgrades,
    ...makers.both,
    flights,
    states,
    tally,
    clients,
    rates: new RequestRates({ ...parts, table: new RateTable(parts.rates), tally, clock }),
    tlsPort: init.tlsListen?.port ?? null,
  };
  let { ticketKeys } = init;
  const current = (): CertificateTableRef | undefined => states.current().certificates;
  const contexts = new SecureContexts({ current, clock, problems });
  const visitors = new VisitorShares({ limits: init.visitors, clients, metrics, problems });
  const staples = new Staples(clock.wallMs, init.staples);
  using gate = new RecordGate({ ...parts, recordRoom: parts.recordRoom, metrics, clock });
  using purges = PurgeTeller.open(parts.purges);
  const answerVisitor = visitors.before(async (exchange) => answer(deps, exchange));
  await using listener = new VisitorListener({
    answer: gate.before(beforeVisitors({ ...deps, purges }, answerVisitor)),
    answerNow: visitors.before(async (exchange, passed) => answer(deps, exchange, passed)),
    visitors,
    quick: new QuickAnswers({ ...deps, gate, answersMemoryMax: init.answersMemoryMax }),
    writes: asking.writes,
    usesLane: () => words.usesLane,
    nextConnection: () => (parts.records.wake(), words.nextConnection()),
    places: { enter: () => words.enter(init.no), leave: () => words.leave(init.no) },
    clients,
    contexts,
    ticketKeys: () => ticketKeys,
    staples,
    proxyProtocol: init.proxies.proxyProtocol,
    recorder: createRecorder(parts.records, tally, clock),
    metrics,
    clock,
    problems,
  });
  const onTicketKeys = (keys: TicketKeys): void => {
    ticketKeys = keys;
    listener.ticketKeysChanged();
  };
  const followed = { ...parts, init, states, listener, staples, onTicketKeys, tally, metrics };
  await listener.drain(await followMain(port, followed));
}

type SharedByMakers = Omit<VariantMakerOptions, "cache"> &
  Omit<ImageMakerOptions, "cache" | "encoder">;

/** Those who make forms of what is stored. */
class FormMakers implements AsyncDisposable {
  readonly both: Pick<FormDeps, "variants" | "imageVariants">;

  constructor({ cache, images: encoder }: AcceleratorParts, shared: SharedByMakers) {
    const variants = new VariantMaker({ ...shared, cache });
    const imageVariants = new ImageMaker({ ...shared, cache, encoder });
    this.both = { variants, imageVariants };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(Object.values(this.both).map(async (maker) => maker[Symbol.asyncDispose]()));
  }
}

type StateParts = {
  readonly words: PoolWords;
  readonly bodies: BlobBodies;
  readonly clock: WorkerClock;
};

function openStates(
  { defaultDomain }: AcceleratorInit,
  port: MessagePort,
  { words, bodies, clock }: StateParts,
): StagedStates {
  return new StagedStates(words, {
    defaultDomain,
    bodies,
    nowMs: clock.wallMs,
    onBadBlob: (blob) => port.postMessage({ kind: "bad-blob", blob } satisfies FromWorker),
  });
}

/** Starts what the worker does by the clock: it beats, and gives back what its start took once nobody is connected to it. */
function startTimers({ heartbeat: buffer, no }: AcceleratorInit, words: PoolWords): Disposable {
  const heartbeat = new Heartbeat(buffer);
  const beating = setInterval(() => heartbeat.beat(), beatMs);
  const collecting = collectStartGarbage({
    firstMs: garbageFirstMs + no * garbageApartMs,
    isIdle: () => words.openOf(no) === 0,
  });
  return {
    [Symbol.dispose]: () => {
      clearInterval(beating);
      collecting[Symbol.dispose]();
    },
  };
}

async function takeSockets(
  listener: VisitorListener,
  { listen, tlsListen }: AcceleratorInit,
  { plain, secure }: LentSockets,
): Promise<void> {
  try {
    await listener.listen({ ...listen, fd: plain });
  } catch (error) {
    if (secure !== null) closeSync(secure);
    throw error;
  }
  if (tlsListen !== null && secure !== null)
    await listener.listenSecure({ ...tlsListen, fd: secure });
}

type Followed = {
  readonly init: AcceleratorInit;
  readonly states: StagedStates;
  readonly listener: VisitorListener;
  readonly staples: Staples;
  readonly onTicketKeys: (keys: TicketKeys) => void;
  readonly registry: Registry;
  readonly tally: RequestTally;
  readonly metrics: WorkerMetrics;
  readonly records: AcceleratorParts["records"];
};

/** Does what main says until it asks to drain. */
async function followMain(
  port: MessagePort,
  { init, states, listener, staples, onTicketKeys, registry, tally, metrics, records }: Followed,
): Promise<Drain> {
  const { promise: drain, resolve: startDrain } = Promise.withResolvers<Drain>();
  const say = (message: FromWorker): void => port.postMessage(message);
  const sumsNow = (): VisitorSums => ({ ...tally.sums(), ...metrics.origin.sums() });
  const hear = async (message: ToWorker): Promise<void> => {
    if (message.kind === "stage") {
      states.stage(message.state);
      if (hasTlsOrigin(message.state)) await loadTlsOrigins();
      say({ kind: "staged", no: message.no });
    } else if (message.kind === "drop") {
      states.drop(message.below);
      say({ kind: "dropped", below: message.below });
    } else if (message.kind === "listen") {
      await takeSockets(listener, init, message.sockets);
      say({ kind: "listening", no: message.no });
    } else if (message.kind === "finish") {
      await listener.finish(message.graceMs);
      say({ kind: "finished", no: message.no });
    } else if (message.kind === "ticket-keys") onTicketKeys(message.keys);
    else if (message.kind === "staples") staples.take(message.staples);
    else if (message.kind === "metrics") {
      say({ kind: "metrics", no: message.no, metrics: await registry.getMetricsAsJSON() });
    } else if (message.kind === "sums") say({ kind: "sums", no: message.no, sums: sumsNow() });
    else if (message.kind === "probe") {
      const { no, version, probes } = message;
      const answers = await answerProbes(states.staged(version), probes);
      say({ kind: "probed", no, answers });
    } else if (message.kind === "slacken") listener.slacken(message.isSlack);
    else if (message.kind === "part") {
      const { graceMs, writesMs } = message;
      startDrain({ graceMs, writesMs, onQuiet: () => say({ kind: "quiet" }) });
      await records.part();
      say({ kind: "parted", no: message.no });
    } else {
      if (message.late !== undefined) listener.takeLate(message.late);
      startDrain({ graceMs: message.graceMs });
    }
  };
  port.on("message", (message: ToWorker) => {
    hear(message).catch((error: unknown) => {
      const no = "no" in message ? message.no : 0; // Nobody's.
      say({ kind: "refused", no, code: codeOf(error), message: messageOf(error) });
    });
  });
  port.once("close", () => startDrain({ graceMs: 0 }));
  return drain;
}
