// The agent as a program: its commands `run` and `check`. It reads settings and secret, locks the state
// directory, opens the agent (parts.ts) and keeps systemd informed.
//
// Everything is opened on one stack and closed in reverse, so that what stops last still finds what it needs.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { ensureDirectory } from "../base/durable-file.ts";
import { Health } from "../base/health.ts";
import { configOf, placeOptions, placeUsage } from "../base/instance.ts";
import { KeptSockets } from "../base/kept-sockets.ts";
import { createLog, LogLevels } from "../base/log.ts";
import { createSdNotify, type SdNotify } from "../base/sd-notify.ts";
import {
  reloadHelp,
  reloadOption,
  checkedSettings,
  loadKnownSettings,
  reloadSettings,
  tellUnknown,
  type KnownSettings,
} from "../base/settings-file.ts";
import { SocketCalls } from "../base/socket-calls.ts";
import { lockStateDir } from "../base/state-lock.ts";
import { once } from "../base/wait.ts";
import { runWatchdog } from "./admin/watchdog.ts";
import { examineHost } from "./examining.ts";
import { openAgent } from "./parts.ts";
import { agentFields, type AgentSettings } from "./settings/fields.ts";
import { readSecret16, secretFileOf } from "./settings/secret.ts";
import { AccelError, messageOf } from "../core/faults.ts";
import type { Secret16 } from "../core/ids.ts";

export { joinCommand } from "./join.ts";
export { diagnosticsCommand, doctorCommand, netcheckCommand } from "./examining.ts";

const deepOption = { deep: { type: "boolean", default: false } } as const;
const deepHelp = "  --deep            examine the whole host, as `accel-agent doctor` does";

export const runCommand: Command = {
  summary:
    "Serves the domains of a deployment site until it is told to stop (SIGTERM, SIGINT). SIGHUP reloads the settings that can change while it runs.",
  usage: `accel-agent run [options]\n\n${placeUsage}`,
  async run(context) {
    const calls = new SocketCalls();
    const notify = createSdNotify(context.env, () => calls);
    const kept = new KeptSockets({ env: context.env, pid: process.pid, calls, notify });
    const systemd = { notify, kept, calls, isReady: false };
    try {
      const config = configOf(readArgs(context.args, placeOptions).values);
      const known = loadKnownSettings(agentFields, config);
      const secret16 = readSecret16(known.settings.secret16_file);
      await runAgent(known, secret16, config, context, systemd);
    } catch (error) {
      // A start that is broken off by a stop or a restart is no failure: who waits is for the next one, or for systemd to close the sockets.
      if (!systemd.isReady && !context.stop.aborted) await kept.giveUp();
      throw error;
    }
  },
};

export const agentCheckCommand: Command = {
  summary:
    "Checks the settings file and the file of the secret; reports every error with file, line, key and reason.",
  usage: `accel-agent check [options]\n\n${placeUsage}\n${deepHelp}\n${reloadHelp}`,
  async run(context) {
    const { args, out } = context;
    const { values } = readArgs(args, { ...placeOptions, ...reloadOption, ...deepOption });
    const config = configOf(values);
    if (values.deep && values.reload)
      throw new AccelError("USAGE", "--deep and --reload do not go together");
    if (values.deep) return examineHost({ config, json: false }, context);
    const settings = checkedSettings(agentFields, { config, reload: values.reload }, out);
    // A reload does not read it, and what systemd shows to the agent it does not show to ExecReload.
    if (!values.reload) readSecret16(secretFileOf(settings.secret16_file));
    out(`${config}: valid, deployment site ${settings.name16}\n`);
  },
};

type Systemd = {
  readonly notify: SdNotify;
  readonly kept: KeptSockets;
  readonly calls: SocketCalls;
  isReady: boolean;
};

async function runAgent(
  { settings, unknown }: KnownSettings<typeof agentFields>,
  secret16: Secret16,
  configPath: string,
  context: CommandContext,
  systemd: Systemd,
): Promise<void> {
  const { stop, version } = context;
  const { calls, kept, notify } = systemd;
  const log = createLog("accel-agent", settings.log_level);
  const logLevels = new LogLevels(log, settings.log_level);
  tellUnknown(log, unknown);
  const now = (): Date => new Date();
  await using stack = new AsyncDisposableStack();
  stack.use(lockStateDir(settings.state_dir));
  await ensureDirectory(settings.state_dir);
  const agent = stack.use(
    await openAgent({
      settings,
      secret16,
      version,
      bootEpoch: randomBytes(8).toString("hex"),
      health: new Health(now),
      log,
      logLevels,
      now,
      random: Math.random,
      stop,
      caPem: caOf(settings),
      sockets: { calls, kept },
    }),
  );
  context.onReload(() =>
    reloadSettings(notify, log, {
      table: agentFields,
      path: configPath,
      running: settings,
      apply: ({ log_level, "accelerator.lane": usesLane }) => {
        logLevels.set(log_level);
        agent.switchLane(usesLane);
        return { log_level, "accelerator.lane": usesLane };
      },
    }),
  );
  systemd.isReady = true;
  await notify.send("READY=1", `STATUS=serving on ${agent.listen}`);
  log.info(
    { listen: agent.listen, metrics: agent.metricsListen, state_dir: settings.state_dir },
    "serving",
  );
  const watchdog = runWatchdog({ notify, heartbeats: agent.heartbeats, log, stop });
  await once(stop);
  await notify.send("STOPPING=1");
  log.info({ reason: String(stop.reason) }, "stopping");
  await watchdog;
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
