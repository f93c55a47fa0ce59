// How long it takes from a fault to its warning, to an alert that fires in a real Prometheus with the rules that are shipped, and to its end: the alerts
// that neither alerts.bench.ts (origin, central) nor alerts-host.bench.ts (host) makes fire.
//
// Two edges at a time. On the first one, faults that take long and do not disturb each other are made together: a certificate that expires soon, an
// origin that falters, workers that hang, the routes of request logs and of files cut by a proxy before central, a mail without a mail server. On the
// second one, one after the other, the agent is killed, central hangs, its disk fills up, and the host is cloned. A certificate's alert takes an hour by
// its rule, so the whole takes some 65 minutes. Needs root, unshare(1), mkfs.ext4(8), fsfreeze(8) and strace(1).
//
//   npm run bench -- alerts-rest [--patience MINUTES] [--only together|in-turn] [--fault PATTERN]
//
// --patience: how long an end is waited for that comes late by design; --fault: those alone whose names match.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { domain } from "../test/support/customer-script.ts";
import { Edge } from "../test/support/edge.ts";
import { freePorts } from "../test/support/free-ports.ts";
import { startFurtherAgent, type FurtherAgent } from "../test/support/further-agent.ts";
import { BatchProxy } from "../test/support/log-oracle-proxy.ts";
import { startMailServer } from "../test/support/mail-server.ts";
import { until } from "../test/support/until.ts";
import { makeAuthority } from "../test/support/x509.ts";
import { Figures } from "./support/figures.ts";
import { HungWorkers } from "./support/hung-workers.ts";
import {
  cloneDiskImage,
  fillOwnDisk,
  makeRoomOnOwnDisk,
  withDiskImage,
  withOwnDisk,
} from "./support/own-disk.ts";
import { TimedFaults, type Fault } from "./support/timed-faults.ts";
import { WatchedEdge } from "./support/watched-edge.ts";

const dayMs = 86_400_000;
const logDiskBytes = 32 * 2 ** 20;
const stateDiskBytes = 2 ** 30;
const workersOfLong = 2;
const hangs = 3;
/** Much more than it takes. */
const replacedWithinMs = 120_000;
const canariesWithinMs = 20 * 60_000;

type Rig = {
  readonly watched: WatchedEdge;
  /** What a fault has started ends with it, before the edge. */
  readonly stack: AsyncDisposableStack;
};
/** Returns how faults are timed on an edge. */
type Timing = (watched: WatchedEdge) => TimedFaults;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      patience: { type: "string", default: "40" },
      only: { type: "string" },
      fault: { type: "string", default: "" },
    },
  });
  const patienceMs = Number(values.patience) * 60_000;
  const figures = new Figures(say);
  const isMeant = new RegExp(values.fault);
  const timing: Timing = (watched) =>
    new TimedFaults({ watched, figures, say, patienceMs, isMeant });
  const parts = { together, "in-turn": inTurn };
  const meant = Object.entries(parts).filter(([name]) => [undefined, name].includes(values.only));
  const done = meant.map(async ([name, part]) => {
    const fired = await part(timing);
    return `${name}: alerts that fired: ${fired.join(", ")}`;
  });
  for (const line of await Promise.all(done)) say(line);
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join(", ")}`);
}

/** Makes those that take long and do not disturb each other. Returns the alerts that fired meanwhile. */
async function together(timing: Timing): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack();
  const edge = stack.use(await Edge.prepare());
  const proxy = stack.use(await BatchProxy.open(edge.ports.central));
  const [tlsPort] = await freePorts(1);
  const watched = stack.use(
    await WatchedEdge.open({
      edge,
      settings: ({ ports }) => ({
        central_url: `http://127.0.0.1:${proxy.port}`,
        accelerator: {
          listen: `127.0.0.1:${ports.visitors}`,
          tls_listen: `127.0.0.1:${tlsPort}`,
          workers: workersOfLong,
        },
      }),
    }),
  );
  const timed = timing(watched);
  const centralIsBack = Promise.withResolvers<void>();
  const mail = await mailWaits({ watched, stack }, centralIsBack.resolve);
  const others = [
    certificateExpires(watched),
    originFalters(watched),
    workersHang({ watched, stack }),
    logsAreCut(proxy),
    filesAreCut(watched, proxy),
  ].map((fault) => ({
    ...fault,
    breakIt: async () => {
      await centralIsBack.promise;
      await fault.breakIt();
    },
  }));
  // Where it is not made, nobody waits for it.
  const made = timed.make(mail).finally(centralIsBack.resolve);
  await Promise.all([made, ...others.map(async (fault) => timed.make(fault))]);
  await timed.ended();
  return watched.haveFired();
}

/** Makes those that stop a program or copy it. Returns the alerts that fired meanwhile. */
async function inTurn(timing: Timing): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack();
  const watched = stack.use(
    await WatchedEdge.open({
      prefix: ({ dir }) => withDiskImage(join(dir, "agent"), imageOf(dir), stateDiskBytes),
      centralPrefix: ({ dir }) => withOwnDisk(logDirOf(dir), logDiskBytes),
    }),
  );
  const timed = timing(watched);
  const faults = [
    agentDies(watched),
    centralHangs(watched),
    logDiskFills(watched),
    hostIsCloned({ watched, stack }),
  ];
  for (const fault of faults) {
    await timed.make(fault);
    await timed.ended();
  }
  return watched.haveFired();
}

/** Nobody renewed it, and ten days are left. */
function certificateExpires({ edge, siteId }: WatchedEdge): Fault {
  const authority = makeAuthority();
  const code = "certificate_expiring";
  const upload = async (days: number): Promise<void> => {
    const site = await edge.api.get(`/deployment-site/${siteId}/`);
    const { name16 } = site.body as { readonly name16: string }; // As the specification says.
    const leaf = authority.issue({ names: [domain], to: new Date(Date.now() + days * dayMs) });
    const body = { certificate: leaf.chain, private_key: leaf.key };
    mustBe(200, await edge.api.post(`/upload/certificates/${name16}/`, body));
  };
  return {
    name: "a certificate expires in ten days",
    warning: { code },
    alerts: [
      { name: "AccelAgentWarning", code, firesWithinMin: 18 },
      { name: "AccelCertificateExpires", firesWithinMin: 64 },
    ],
    breakIt: async () => upload(10),
    mend: async () => upload(90),
  };
}

function originFalters({ origin }: WatchedEdge): Fault {
  return {
    name: "the origin answers 503 to every fourth request",
    alerts: [{ name: "AccelErrorsServed", firesWithinMin: 9 }],
    breakIt: async () => origin.become("faltering"),
    mend: async () => origin.become("good"),
  };
}

/** Each hangs when the one before was replaced and its successor serves. */
function workersHang({ watched: { edge }, stack }: Rig): Fault {
  const workers = stack.use(new HungWorkers(edge.agent.pid));
  const replaced = (): number => edge.agent.said.split("accelerator worker replaced").length - 1;
  const allServe = async (): Promise<boolean> => {
    const page = await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics`);
    return (await page.text()).includes(`\naccel_agent_workers ${workersOfLong}\n`);
  };
  return {
    name: `a worker hangs ${hangs} times`,
    warning: { code: "worker_replaced" },
    alerts: [
      { name: "AccelWorkersReplaced", firesWithinMin: 5, stays: "half an hour after the first" },
    ],
    breakIt: async () => {
      for (let no = 1; no <= hangs; no++) {
        await until("a worker to hang", () => workers.hang(1));
        await until("it is replaced", () => replaced() >= no, replacedWithinMs);
        await until("the new one serves", allServe, replacedWithinMs);
      }
    },
    mend: async () => undefined, // By the agent itself.
  };
}

function logsAreCut(proxy: BatchProxy): Fault {
  return {
    name: "a proxy refuses request logs",
    warning: { code: "logs_not_shipped" },
    alerts: [
      { name: "AccelCanaryLate", firesWithinMin: 18 },
      { name: "AccelRecordsWaiting", firesWithinMin: 22 },
    ],
    breakIt: async () => void proxy.cut.add("/agent-api/v1/request-logs"),
    mend: async () => void proxy.cut.delete("/agent-api/v1/request-logs"),
  };
}

/** A version is activated whose files the agent cannot get. */
function filesAreCut({ edge: { api }, origin }: WatchedEdge, proxy: BatchProxy): Fault {
  return {
    name: "a proxy refuses files, and a version is activated",
    warning: { code: "entry_waiting" },
    alerts: [{ name: "AccelJournalBehind", firesWithinMin: 13 }],
    breakIt: async () => {
      proxy.cut.add("/agent-api/v1/blobs");
      const backend = { urls: [origin.url], connect_timeout_s: 3 };
      const content = JSON.stringify({ domains: { [domain]: { backend } } });
      const schema = "devlove/1";
      mustBe(201, await api.post(`/${domain}/devlove/second/`, { schema, content }));
      const listed = (await api.get(`/active-viewset/${domain}/`)).body;
      const versions = listed as readonly { readonly id: number; readonly name: string }[];
      const second = versions.find(({ name }) => name === "second");
      mustBe(200, await api.put(`/active-viewset/${domain}/${second?.id}/`, {}));
    },
    mend: async () => void proxy.cut.delete("/agent-api/v1/blobs"),
  };
}

/**
 * Somebody lost a token, and before the link is sent central is started without a mail server. Resolves when the mail waits for a server that is away; `onBack` is called
 * when central serves again. Its mending restarts central, which ends the alerts on what central tells: it waits for them.
 */
async function mailWaits({ watched, stack }: Rig, onBack: () => void): Promise<Fault> {
  const { edge } = watched;
  const code = "mail_unset";
  const isQuiet = async (): Promise<boolean> =>
    !(await watched.alerts("pending|firing")).includes("AccelCanaryLate");
  const restartWith = async (port: number | undefined): Promise<void> => {
    const server = `smtp://127.0.0.1:${port}`;
    const mail = { server, starttls: "never", from: "c@example.com" };
    edge.changeCentralSettings({ mail: port === undefined ? undefined : mail });
    await edge.central.terminate();
    await edge.central.restart();
  };
  const [away] = await freePorts(1);
  await restartWith(away);
  const whose = { username: "user-alerts-u", email: "user@example.com" };
  mustBe(200, await edge.api.post("/tokens/start-recovery/", whose));
  return {
    name: "a mail waits, and no mail server is set",
    warning: { code },
    alerts: [{ name: "AccelCentralWarning", code, firesWithinMin: 18 }],
    breakIt: async () => {
      try {
        await restartWith(undefined);
      } finally {
        onBack();
      }
    },
    mend: async () => {
      await until("canaries arrive", isQuiet, canariesWithinMs);
      const { port } = stack.use(await startMailServer());
      await restartWith(port);
    },
  };
}

function agentDies({ edge }: WatchedEdge): Fault {
  return {
    name: "the agent is killed",
    alerts: [{ name: "AccelAgentDown", firesWithinMin: 4 }],
    breakIt: async () => edge.agent.kill(),
    mend: async () => edge.agent.restart(),
  };
}

function centralHangs({ edge }: WatchedEdge): Fault {
  return {
    name: "central hangs",
    warning: { code: "central_unreachable" },
    alerts: [{ name: "AccelCentralDown", firesWithinMin: 4 }],
    breakIt: async () => void process.kill(edge.central.pid, "SIGSTOP"),
    mend: async () => void process.kill(edge.central.pid, "SIGCONT"),
  };
}

const logDirOf = (dir: string): string => join(dir, "central", "logs");
const imageOf = (dir: string): string => join(dir, "agent.img");

function logDiskFills({ edge }: WatchedEdge): Fault {
  const code = "logs_not_stored";
  const logDir = logDirOf(edge.dir);
  return {
    name: "central's disk of request logs is full",
    warning: { code },
    alerts: [{ name: "AccelCentralError", code, firesWithinMin: 5 }],
    breakIt: async () => fillOwnDisk(edge.central.pid, logDir, 0),
    mend: async () => makeRoomOnOwnDisk(edge.central.pid, logDir),
  };
}

/** As a virtual machine is cloned: with its machine id, and with the state directory on its disk. A copied directory alone would be noticed. */
function hostIsCloned({ watched: { edge, siteId }, stack }: Rig): Fault {
  let clone: FurtherAgent | undefined;
  const end = async (): Promise<void> => {
    await clone?.[Symbol.asyncDispose]();
    clone = undefined;
  };
  stack.defer(end);
  return {
    name: "a clone of the host runs beside it",
    alerts: [{ name: "AccelDuplicateAgents", firesWithinMin: 6 }],
    breakIt: async () => {
      clone = await startClone(edge, siteId);
    },
    mend: end,
  };
}

async function startClone(edge: Edge, siteId: number): Promise<FurtherAgent> {
  const { body } = await edge.api.get(`/deployment-site/${siteId}/`);
  const { name16 } = body as { readonly name16: string }; // As the specification says.
  const secret16 = readFileSync(join(edge.dir, "secret16"), "utf8");
  const copy = join(edge.dir, "clone.img");
  cloneDiskImage(edge.agent.pid, join(edge.dir, "agent"), imageOf(edge.dir), copy);
  return startFurtherAgent(edge, { id: siteId, name16, secret16 }, "clone", (stateDir) =>
    withDiskImage(stateDir, copy, stateDiskBytes),
  );
}

function mustBe(status: number, answer: { readonly status: number; readonly body: unknown }): void {
  if (answer.status !== status) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
}
