// The agent as a program: its command `run`.
//
// Visitors wait for a restart, and most of it is loading code. So little is loaded at first: it reads settings and secret, starts the threads, and loads what runs
// the agent (running.ts) while they load theirs.

import { readArgs, type Command } from "../base/command.ts";
import {
  agentProgram,
  configOf,
  placeOfConfig,
  placeOptions,
  placeUsage,
} from "../base/instance.ts";
import { KeptSockets } from "../base/kept-sockets.ts";
import { isUnitMasked, LastStop } from "../base/last-stop.ts";
import { createSdNotify, heldNotify } from "../base/sd-notify.ts";
import { loadKnownSettings } from "../base/settings-file.ts";
import { SocketCalls } from "../base/socket-calls.ts";
import { isSuccessor, Succession } from "../base/succession.ts";
import { messageOf } from "../core/faults.ts";
import { agentFields } from "./settings/fields.ts";
import { readSecret16 } from "./settings/secret.ts";
import { AgentThreads, workersOf } from "./threads.ts";

export const runCommand: Command = {
  summary:
    "Serves the domains of a deployment site until it is told to stop (SIGTERM, SIGINT). SIGHUP reloads the settings that can change while it runs.",
  usage: `accel-agent run [options]\n\n${placeUsage}`,
  async run(context) {
    const { env } = context;
    const configAsked = (): string => configOf(readArgs(context.args, placeOptions).values);
    using lastStop = new LastStop(process, () => isForbidden(configAsked()));
    const calls = new SocketCalls();
    const told = createSdNotify(env, () => calls);
    const orphaned = new AbortController();
    const succession = isSuccessor(env)
      ? new Succession(process, () => orphaned.abort("the agent before has ended"))
      : undefined;
    const notify = succession === undefined ? told : heldNotify(told, succession.main);
    const areHandedOver = succession !== undefined;
    const kept = new KeptSockets({ env, pid: process.pid, calls, notify, areHandedOver });
    const systemd = { notify, kept, calls, succession, lastStop, isReady: false };
    const stop = AbortSignal.any([context.stop, orphaned.signal]);
    try {
      const config = configAsked();
      const known = loadKnownSettings(agentFields, config);
      const secret16 = readSecret16(known.settings.secret16_file);
      await using threads = new AgentThreads();
      // It cannot look yet whether there are bot sets, and has the time.
      if (areHandedOver) threads.prepareTabler();
      const loaded = threads.prepare(workersOf(known.settings));
      const { runAgent } = await import("./running.ts");
      const given = { ...context, stop };
      await runAgent({ known, secret16, config, context: given, systemd, threads, loaded });
    } catch (error) {
      succession?.failed(`did not start: ${messageOf(error)}`);
      // A start that is broken off by a stop or a restart is no failure: who waits is for the next one, or for systemd to close the sockets.
      if (!systemd.isReady && !stop.aborted && succession === undefined) await kept.giveUp();
      throw error;
    } finally {
      succession?.[Symbol.dispose]();
    }
  },
};

/** Says whether the unit that has these settings is masked. */
function isForbidden(config: string): boolean {
  const place = placeOfConfig(agentProgram, config);
  return place !== undefined && isUnitMasked(place.unit);
}
