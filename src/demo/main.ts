// `npm start`: the whole service on this machine. Central and the agent run as processes, with a small
// backend beside them; what is shown was asked for through the public interfaces.

import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command, CommandContext } from "../base/command.ts";
import { writeDurable } from "../base/durable-file.ts";
import { lockStateDir } from "../base/state-lock.ts";
import { once } from "../base/wait.ts";
import { AccountFile } from "./account.ts";
import { startDemoBackend } from "./backend.ts";
import { demoDevlove, plainDevlove } from "./devlove.ts";
import { demoUsage, readDemoOptions, type DemoOptions } from "./options.ts";
import { panel, type DemoPlaces } from "./panel.ts";
import { parentGone } from "./parent.ts";
import { requirePorts } from "./ports.ts";
import { startProgram } from "./program.ts";
import { customer, enrol, ensureDomain, importAndActivate } from "./provision.ts";
import { demoDomain, demoPaths, writeAgentSettings, writeCentralSettings } from "./settings.ts";
import { siteFingerprint } from "./site-fingerprint.ts";
import { openStateDir, stateFault } from "./state-dir.ts";

export const demoCommand: Command = {
  summary: "Runs central, an agent, a backend and a site on this machine, and shows what to try.",
  usage: demoUsage,
  async run(context) {
    await runDemo(readDemoOptions(context.args), context);
  },
};

const loopback = "127.0.0.1";

async function runDemo(
  options: DemoOptions,
  { program, out, env, stop: asked }: CommandContext,
): Promise<void> {
  const beganMs = performance.now();
  const { stateDir } = options;
  const say = progressLine(out);
  await openStateDir(stateDir);
  await using stack = new AsyncDisposableStack();
  stack.use(lockStateDir(stateDir));
  await requirePorts(options, loopback);
  const placesFile = join(stateDir, "demo.json");
  await rm(placesFile, { force: true });
  const { gone } = stack.use(parentGone(env));
  const stop = AbortSignal.any([asked, gone]);
  try {
    const places = await startEverything(stack, options, { program, say, stop });
    if (places === undefined) return;
    await writeDurable(placesFile, `${JSON.stringify(places, null, 2)}\n`);
    stack.defer(() => rm(placesFile, { force: true }));
    say("", true);
    out(panel(places, options, performance.now() - beganMs));
  } catch (error) {
    // Requests to a program that is being stopped fail.
    if (stop.aborted) return;
    throw stateFault(stateDir, error);
  }
  await once(stop);
  say("stopping", true);
}

type Start = Pick<CommandContext, "program" | "stop"> & {
  readonly say: (text: string, ends?: boolean) => void;
};

/** Returns undefined if it was stopped before everything was up. */
async function startEverything(
  stack: AsyncDisposableStack,
  options: DemoOptions,
  { program, say, stop }: Start,
): Promise<DemoPlaces | undefined> {
  const { stateDir, ports } = options;
  const centralUrl = `http://${loopback}:${ports.central}`;
  const metricsUrl = `http://${loopback}:${ports.metrics}`;
  const paths = demoPaths(options);
  const start = async (name: "central" | "agent", args: readonly string[], url: string) => {
    say(`starting ${name === "agent" ? "the agent" : name}`);
    const logFile = name === "agent" ? paths.agentLog : paths.centralLog;
    const onRestart = (how: string): void => say(`accel-${name} ${how}; starting it again`, true);
    const readyUrl = `${url}/readyz`;
    const compileCache = join(stateDir, name, "compile-cache");
    const how = { program, name, args, logFile, compileCache, readyUrl, stop, onRestart };
    stack.use(await startProgram(how));
  };

  const backendUrl = options.backendUrl ?? (await openBackend(stack, ports.backend));
  await writeCentralSettings(options, paths);
  await start("central", ["serve", "--config", paths.central], centralUrl);
  const account = new AccountFile(stateDir);
  const { id, name16, secret16 } = await enrol(centralUrl, account);

  const site = siteOf(options, backendUrl);
  const secret = existsSync(paths.secret) ? null : secret16;
  await writeAgentSettings(options, paths, { name16, secret16: secret, ...site });
  await start("agent", ["run", "--config", paths.agent], metricsUrl);
  await using client = customer(centralUrl, account);
  await ensureDomain(client, account, id);
  const fingerprint = await siteFingerprint(site.viewsDir, site.devlove);
  if (account.current.activated !== fingerprint) {
    const viewset = `demo-${fingerprint}`;
    await importAndActivate({ client, siteId: id, viewset, onProgress: say, stop });
    if (stop.aborted) return undefined;
    await account.save({ activated: fingerprint });
  }
  return {
    central_url: centralUrl,
    api_token: account.current.token ?? "",
    username: `demo-${account.current.run}`,
    accelerator_url: `http://${loopback}:${ports.accelerator}`,
    metrics_url: metricsUrl,
    deployment_site_id: id,
    name16,
    domain: demoDomain,
    backend_url: backendUrl,
  };
}

/** Opens the backend. It ends with the stack, after the agent, so that requests still under way find it. */
async function openBackend(stack: AsyncDisposableStack, port: number): Promise<string> {
  const forever = new AbortController().signal;
  const backend = await startDemoBackend({ host: loopback, port, stop: forever });
  return stack.use(backend).url;
}

function siteOf(
  { siteDir }: DemoOptions,
  backendUrl: string,
): { viewsDir: string; devlove: string } {
  if (siteDir === undefined)
    return {
      viewsDir: fileURLToPath(new URL("./site/", import.meta.url)),
      devlove: demoDevlove({ domain: demoDomain, backendUrl }),
    };
  const notFound = existsSync(join(siteDir, "404.html")) ? "/404.html" : null;
  return { viewsDir: siteDir, devlove: plainDevlove({ domain: demoDomain, backendUrl, notFound }) };
}

/** Writes progress: on a terminal as one line that changes, elsewhere as a line for each new text. */
function progressLine(out: (text: string) => void): (text: string, ends?: boolean) => void {
  const terminal = process.stdout.isTTY;
  let last = "";
  return (text, ends = false) => {
    if (text === last) return;
    last = text;
    if (terminal)
      out(`\r\u001B[K${text === "" ? "" : `  ${text} …`}${ends && text !== "" ? "\n" : ""}`);
    else if (text !== "") out(`  ${text} …\n`);
  };
}
