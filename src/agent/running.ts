// Runs the agent: locks the state directory, opens the agent (parts.ts) and keeps systemd informed.
//
// Everything is opened on one stack and closed in reverse, so that what stops last still finds what it needs.

import { randomBytes } from "node:crypto";
import { closeSync, readFileSync } from "node:fs";
import type { CommandContext } from "../base/command.ts";
import { ensureDirectory } from "../base/durable-file.ts";
import { Health } from "../base/health.ts";
import { adviceFor, agentProgram, placeOf, placeOfConfig } from "../base/instance.ts";
import type { KeptSockets } from "../base/kept-sockets.ts";
import type { LastStop } from "../base/last-stop.ts";
import { createLog, LogLevels, type Log } from "../base/log.ts";
import type { SdNotify } from "../base/sd-notify.ts";
import type { Succession } from "../base/succession.ts";
import {
  reloadSettings,
  tellUnknown,
  warnUnknown,
  type KnownSettings,
  type Reload,
} from "../base/settings-file.ts";
import { Registry } from "../base/metrics.ts";
import type { SocketCalls } from "../base/socket-calls.ts";
import { collectStartGarbage, timesToForget } from "../base/start-garbage.ts";
import { lockStateDir } from "../base/state-lock.ts";
import { once } from "../base/wait.ts";
import type { LentSockets, SocketKeeping } from "./accelerator/pool/visitor-sockets.ts";
import { runWatchdog } from "./admin/watchdog.ts";
import { HandOver, type HandOverOptions } from "./hand-over.ts";
import type { AgentOptions } from "./ground.ts";
import { openHostSites } from "./host-sites.ts";
import { openAgent, type Agent } from "./parts.ts";
import type { AgentThreads } from "./threads.ts";
import { agentFields, type AgentSettings } from "./settings/fields.ts";
import { keepLastSettings } from "./settings/last-settings.ts";
import { AccelError, messageOf } from "../core/faults.ts";
import type { Secret16 } from "../core/ids.ts";

/** How the agent is tied to systemd and to the agent before. */
export type Systemd = {
  readonly notify: SdNotify;
  readonly kept: KeptSockets;
  readonly calls: SocketCalls;
  readonly succession: Succession | undefined;
  readonly lastStop: LastStop;
  isReady: boolean;
};

export type AgentToRun = {
  readonly known: KnownSettings<typeof agentFields>;
  readonly secret16: Secret16;
  /** The path of the settings file. */
  readonly config: string;
  readonly context: CommandContext;
  readonly systemd: Systemd;
  /** The caller's. */
  readonly threads: AgentThreads;
  /** Resolves when the threads have loaded their code. */
  readonly loaded: Promise<void>;
};

/** Runs the agent until it is told to stop, or a successor serves. Throws an AccelError that says why it cannot start. */
export async function runAgent(run: AgentToRun): Promise<void> {
  const { secret16, config: configPath, context, systemd, threads, loaded } = run;
  const { settings, unknown, text } = run.known;
  const { env, program, stop, version } = context;
  const { calls, kept, notify, succession } = systemd;
  const log = createLog("accel-agent", settings.log_level);
  const logLevels = new LogLevels(log, settings.log_level);
  const now = (): Date => new Date();
  const health = openHealth({ unknown, configPath, log, now });
  const own = { node: process.execPath, program };
  const given = { own, pid: process.pid, version, configPath, env, end, log, stop };
  const handOver = new HandOver({ ...given, ...endsOf(systemd, log) });
  const caPem = caOf(settings);
  await using stack = new AsyncDisposableStack();
  const registry = new Registry();
  const sites = openHostSites(settings, { registry, health, log, stop });
  stack.defer(async () => (await sites)[Symbol.asyncDispose]());
  // A successor has that behind it before it takes anything.
  if (succession !== undefined) await Promise.all([loaded, sites]);
  const returned = await succession?.ready(stop);
  if (returned !== undefined) tellReturned(health, version, returned);
  const lock = stack.use(lockStateDir(settings.state_dir));
  await ensureDirectory(settings.state_dir);
  const agent = stack.use(
    await openAgent({
      config: configPath,
      settings,
      secret16,
      version,
      ...startOf(env),
      health,
      log,
      logLevels,
      now,
      random: Math.random,
      stop,
      caPem,
      registry,
      sites,
      sockets: { calls, kept, ...endsOf(systemd, log) },
      threads,
      replace: routesOf(handOver),
      predecessor: succession,
    }),
  );
  const reloaded = { path: configPath, running: settings, health };
  context.onReload(() => reload({ ...reloaded, notify, log, logLevels, agent }));
  systemd.isReady = true;
  await notify.send("READY=1", `STATUS=serving on ${agent.listen}`);
  log.info(
    { listen: agent.listen, metrics: agent.metricsListen, state_dir: settings.state_dir },
    "serving",
  );
  await keep(settings, text, log);
  handOver.serves(agent, returned, succession?.ended);
  const serving = { notify, agent, log, stop, handOver, threads };
  if (await serveUntil(serving, () => lock[Symbol.dispose]())) return;
  await notify.send("STOPPING=1");
  log.info({ reason: String(stop.reason) }, "stopping");
}

/** Reads the settings file again, and applies what can change while the agent runs. */
function reload({
  notify,
  log,
  logLevels,
  agent,
  ...asked
}: Omit<Reload<typeof agentFields>, "table" | "apply"> &
  Pick<ServingAgent, "notify" | "agent" | "log"> & { readonly logLevels: LogLevels }): void {
  reloadSettings(notify, log, {
    ...asked,
    table: agentFields,
    apply: ({ log_level, "accelerator.lane": usesLane }, text) => {
      void keep(asked.running, text, log);
      logLevels.set(log_level);
      agent.switchLane(usesLane);
      return { log_level, "accelerator.lane": usesLane };
    },
  });
}

/** Keeps the file for who looks at this host while it is broken. Never rejects: who serves can do without. */
async function keep({ state_dir: dir }: AgentSettings, text: string, log: Log): Promise<void> {
  await keepLastSettings(dir, text).catch((error: unknown) =>
    log.warn({ err: error }, "the settings were not kept for doctor and other commands"),
  );
}

/** What names this start: for central by chance, for systemd by its id of the run. */
function startOf(env: NodeJS.ProcessEnv): Pick<AgentOptions, "bootEpoch" | "invocation"> {
  return { bootEpoch: randomBytes(8).toString("hex"), invocation: env["INVOCATION_ID"] };
}

/** Opens what warns, of keys that nobody knows first. */
function openHealth({
  unknown,
  configPath,
  log,
  now,
}: Pick<KnownSettings<typeof agentFields>, "unknown"> & {
  readonly configPath: string;
  readonly log: Log;
  readonly now: () => Date;
}): Health {
  tellUnknown(log, unknown);
  const place = placeOfConfig(agentProgram, configPath) ?? placeOf(agentProgram);
  const health = new Health(now, (hint) => adviceFor(place, hint));
  warnUnknown(health, unknown, configPath);
  return health;
}

/** Makes the routes by which operators have the agent replaced. */
function routesOf(handOver: HandOver): AgentOptions["replace"] {
  return { replace: (asked) => handOver.replace(asked), process: () => handOver.process() };
}

/** Makes what a stop asks: whether systemd starts nothing behind it, which this process or the one before was told or can see, and to have visitors refused then. */
function endsOf(
  { lastStop, succession, calls }: Systemd,
  log: Log,
): Pick<HandOverOptions, "isLast" | "refuseAt"> & Pick<SocketKeeping, "onEnd"> {
  const isLast = async (): Promise<boolean> => lastStop.isKnown || succession?.isLast === true;
  const onEnd = (isStartedAgain: boolean): void =>
    log.info({ is_started_again: isStartedAgain }, "no visitor is accepted any more");
  const refuseLent = async (lent: LentSockets): Promise<void> => {
    const isTold = await isLast();
    onEnd(!isTold);
    if (isTold) refuseAt(lent, calls);
  };
  return { isLast, onEnd, refuseAt: refuseLent };
}

/** Nobody answers who waited there: an agent that hands over has no worker any more that could. */
function refuseAt({ plain, secure }: LentSockets, calls: SocketCalls): void {
  for (const fd of secure === null ? [plain] : [plain, secure])
    for (const waiting of calls.endListening(fd)) closeSync(waiting);
}

/** Ends another process at once. Throws where there is none. */
function end(pid: number): void {
  process.kill(pid, "SIGKILL");
}

type ServingAgent = {
  readonly notify: SdNotify;
  readonly agent: Agent;
  readonly log: Log;
  readonly stop: AbortSignal;
  readonly handOver: HandOver;
  readonly threads: AgentThreads;
};

/** Keeps systemd informed. Resolves with true when a successor serves and this agent has answered its last visitor, and with false when it is to stop. */
async function serveUntil(
  { notify, agent, log, stop, handOver, threads }: ServingAgent,
  releaseLock: () => void,
): Promise<boolean> {
  using _collecting = collectStartGarbage({ firstMs: 3_000, times: timesToForget });
  await threads.endUnused();
  while (!stop.aborted) {
    const over = new AbortController();
    const fed = AbortSignal.any([stop, over.signal]);
    const watchdog = runWatchdog({ notify, heartbeats: agent.heartbeats, log, stop: fed });
    const successor = await Promise.race([once(stop).then(() => undefined), handOver.prepared]);
    over.abort();
    await watchdog;
    if (successor === undefined) return false;
    await notify.send("WATCHDOG=1");
    // Its threads end meanwhile. Each step has an end of its own, and all together may take longer than systemd waits.
    const given = new AbortController();
    const noThreads = { read: () => ({}) };
    const feeding = runWatchdog({ notify, heartbeats: noThreads, log, stop: given.signal });
    try {
      if (await handOver.give(successor, agent, { releaseLock, notify })) return true;
    } finally {
      given.abort();
      await feeding;
    }
  }
  return false;
}

function tellReturned(health: Health, version: string, because: string): void {
  health.raise(
    "hand_over_failed",
    "error",
    `another release was to take over and did not; version ${version} serves: ${because}`,
    "See the agent's log for what it met. It is tried again by `accel-agent replace`; a restart starts the release that is installed.",
  );
}

/** Reads the file of central's authority. Throws FILE_UNUSABLE. */
function caOf({ central_ca_file: path }: AgentSettings): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new AccelError("FILE_UNUSABLE", `central_ca_file cannot be read: ${messageOf(error)}`);
  }
}
