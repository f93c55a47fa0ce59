// `accel-agent doctor`, `netcheck` and `diagnostics`: commands that look at this host, beside the agent or without one.

import { execFile } from "node:child_process";
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname, release, tmpdir, uptime, version as osVersion } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { askControl } from "../base/control-socket.ts";
import {
  agentProgram,
  configOf,
  placeOf,
  placeOfConfig,
  placeOptions,
  placeUsage,
  type UnitPlace,
} from "../base/instance.ts";
import { takeEnvironment } from "../base/proxy.ts";
import { listenText } from "../base/settings-fields.ts";
import { loadKnownSettings, peekAnyway } from "../base/settings-file.ts";
import { AccelError, codeOf, messageOf, systemCode } from "../core/faults.ts";
import { askCentral } from "./doctor/central.ts";
import {
  collect,
  redaction,
  secretsOf,
  type CollectedText,
  type Piece,
} from "./doctor/diagnostics.ts";
import { examine } from "./doctor/examine.ts";
import { findingLines, type AgentSeen, type Host, type LinkSeen } from "./doctor/finding.ts";
import { agentSeen } from "./doctor/agent.ts";
import type { TimedOrigins } from "./doctor/origins.ts";
import type { TimedAnswer } from "./doctor/timed-head.ts";
import { unitProperties } from "./doctor/unit.ts";
import { openEncoder, hasLibrary } from "./picturing.ts";
import { HostInstaller, installerPlaces } from "./rollout/host-installer.ts";
import { agentFields } from "./settings/fields.ts";
import { loadUsableSettings, stateDirOf } from "./settings/last-settings.ts";
import { readSecret16, secretFileOf } from "./settings/secret.ts";

const options = {
  ...placeOptions,
  json: { type: "boolean", default: false },
} as const;
const usageOptions = [placeUsage, "  --json            facts as JSON"].join("\n");

const run = promisify(execFile);

export const doctorCommand: Command = {
  summary:
    "Examines this host: settings, the agent itself, secret, clock, name service, central and its certificate, ports, descriptors, kernel settings, disk, the systemd unit, rollouts, and the encoder of pictures. Says what to do about what it finds.",
  usage: `accel-agent doctor [options]\n\n${usageOptions}\n\nIt changes nothing, and can be given before the first start and while the agent runs. Give it as root: other users do not see all. It asks central outside the restrictions of the unit; what the running agent says of its own link follows. Exit status: 0 if nothing failed, 1 otherwise, 2 bad usage. \`accel-agent check --deep\` is the same.`,
  async run(context) {
    const { values } = readArgs(context.args, options);
    await examineHost({ config: configOf(values), json: values.json }, context);
  },
};

/** Prints the findings. Throws HOST_NOT_FIT if a check failed. */
export async function examineHost(
  { config, json }: { readonly config: string; readonly json: boolean },
  { out, colour, stop }: CommandContext,
): Promise<void> {
  goUnitsWay(config);
  const findings = await examine(config, hostOf(config, stop), () => new Date());
  out(json ? `${JSON.stringify(findings, null, 2)}\n` : findingLines(findings, colour));
  const failed = findings.filter(({ state }) => state === "failed");
  if (failed.length > 0)
    throw new AccelError(
      "HOST_NOT_FIT",
      `${failed.length} of ${findings.length} checks failed: ${[...new Set(failed.map(({ check }) => check))].join(", ")}`,
    );
}

export const netcheckCommand: Command = {
  summary:
    "Asks central and each origin once, and shows how long name, connection, TLS and answer take.",
  usage: `accel-agent netcheck [options]\n\n${usageOptions}\n\nThe running agent asks the origins itself, from within the restrictions of its unit; without one only central is asked. This command itself asks central, outside of them; what the agent says of its own link stands beside that. Exit status: 0 if all answered, 1 otherwise, 2 bad usage or settings.`,
  async run(context) {
    const { values } = readArgs(context.args, options);
    const config = configOf(values);
    goUnitsWay(config);
    const { settings, broken } = loadUsableSettings(config);
    if (broken !== undefined)
      process.stderr.write(`accel-agent: ${broken.fault.message}\n  ${broken.fault.hint}\n`);
    const central = await askCentral(settings);
    const agent = agentOf(config, context.stop);
    const asked = await agent.ask("netcheck").catch((error: unknown) => error);
    const origins = asked instanceof Error ? undefined : (asked as TimedOrigins);
    const seen = await howItIs(agent);
    const link = seen.kind === "answers" ? seen.link : undefined;
    context.out(
      values.json
        ? `${JSON.stringify({ central, link: link ?? null, origins: origins ?? null }, null, 2)}\n`
        : netcheckText({ central, link, origins }, asked),
    );
    if (isSilent(asked)) throw asked;
    const failed = [central, ...(origins?.origins ?? [])].filter(({ error }) => error !== null);
    if (failed.length > 0)
      throw new AccelError(
        "HOST_NOT_FIT",
        `${failed.length} did not answer: ${failed.map(({ url }) => url).join(", ")}`,
        { hint: "The lines above say why; `accel-agent doctor` says what to do about central." },
      );
    if (link?.state === "disconnected")
      throw new AccelError("HOST_NOT_FIT", "central answers, and the agent is not connected to it");
  },
};

/** From here on central is asked through the proxy of the unit, where the shell names none. */
function goUnitsWay(config: string): void {
  const place = placeOfConfig(agentProgram, config);
  if (place !== undefined) takeEnvironment(place.environment);
}

type Net = {
  readonly central: TimedAnswer;
  readonly link: LinkSeen | undefined;
  readonly origins: TimedOrigins | undefined;
};

/** `asked` is why there are no origins. */
function netcheckText({ central, link, origins }: Net, asked: unknown): string {
  return [
    "central, asked by this command, outside the restrictions of the unit\n",
    // A central without an authority of its own has 404 here: below 500, which status it is says nothing.
    answerText(central, "answers"),
    link === undefined
      ? ""
      : `  the agent itself, from within its unit: ${link.state}${link.error === undefined ? "" : `: ${link.error}`}\n`,
    "origins, asked by the agent from within its unit\n",
    origins === undefined
      ? `  ${unaskedText(asked)}: they are not asked\n`
      : origins.origins.length === 0
        ? "  no site in force has one\n"
        : origins.origins
            .map((one) => `${answerText(one)}    of ${one.hosts.join(", ")}\n`)
            .join(""),
    origins !== undefined && origins.not_asked > 0
      ? `  ${origins.not_asked} more were not asked\n`
      : "",
  ].join("");
}

/** Writes why the agent asked no origins. */
function unaskedText(error: unknown): string {
  if (isSilent(error)) return "the agent hangs: it accepts connections, and does not answer";
  if (isDenied(error)) return "this user may not ask the agent";
  return codeOf(error) === "CONTROL_UNREACHABLE" ? "the agent does not run" : messageOf(error);
}

const isSilent = (error: unknown): boolean => codeOf(error) === "CONTROL_SILENT";

/** Whether the agent could not be asked because of who asks. */
const isDenied = (error: unknown): boolean =>
  error instanceof Error && ["EACCES", "EPERM"].includes(systemCode(error.cause) ?? "");

function answerText(answer: TimedAnswer, answered = String(answer.status)): string {
  const { url, proxy, error, addresses } = answer;
  const said = error === null ? answered : `FAILED at ${error.step}: ${error.text}`;
  const steps = [
    ["name", answer.dns_ms],
    ["connection", answer.connect_ms],
    ["TLS", answer.tls_ms],
    ["answer", answer.answer_ms],
  ] as const;
  const times = steps.flatMap(([name, ms]) => (ms === null ? [] : [`${name} ${ms} ms`]));
  const from = addresses.length === 0 ? "" : ` (${addresses.join(", ")})`;
  const through = proxy === null ? "" : ` through ${proxy}`;
  return `  ${url}${through}${from}: ${said}\n    ${times.join(", ") || "nothing was reached"}\n`;
}

export const diagnosticsCommand: Command = {
  summary:
    "Writes one archive with what is needed to find out what is wrong with this host. No secret is in it.",
  usage: `accel-agent diagnostics [--out FILE] [options]\n\n  --out FILE        the archive (default ./accel-agent-diagnostics-HOST-TIME.tar.gz)\n${placeUsage}\n\nIt has settings, status, metrics, the doctor's findings, the end of the journal and facts of the system. Secrets are taken out by value and by form. Host names, paths and addresses of visitors that the log has stay in it: read it before you send it to strangers.`,
  async run(context) {
    const only = { ...placeOptions, out: { type: "string" } } as const;
    const { values } = readArgs(context.args, only);
    const config = configOf(values);
    goUnitsWay(config); // Its password is a secret, too.
    const name = `accel-agent-diagnostics-${hostname()}-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
    const path = resolve(values.out ?? `${name}.tar.gz`);
    const redact = redaction(secretsOfHost(config));
    const agent = agentOf(config, context.stop);
    const collected = await collect(piecesOf(config, agent, context), redact);
    await writeArchive(path, { name, collected });
    context.out(`${path}: ${collected.length} files\n`);
    if (agent.silence !== undefined)
      context.out(`Without what the agent says itself: ${agent.silence.message}\n`);
  },
};

/** Writes the archive, whole or not at all. Throws DISK_FAILED where a disk has no room, else FILE_UNUSABLE. */
async function writeArchive(
  path: string,
  { name, collected }: { readonly name: string; readonly collected: readonly CollectedText[] },
): Promise<void> {
  const part = `${path}.part`;
  let at = tmpdir();
  let staged: string | undefined;
  try {
    staged = mkdtempSync(join(at, "accel-diagnostics-"));
    mkdirSync(join(staged, name));
    for (const piece of collected)
      writeFileSync(join(staged, name, piece.name), piece.text, { mode: 0o600 });
    at = path;
    writeFileSync(part, "", { mode: 0o600 });
    chmodSync(part, 0o600);
    await run("tar", ["-czf", part, "-C", staged, name]);
    renameSync(part, path);
  } catch (error) {
    rmSync(part, { force: true });
    const text = messageOf(error);
    if (["ENOSPC", "EDQUOT"].includes(systemCode(error) ?? "") || /no space left/i.test(text))
      throw new AccelError("DISK_FAILED", `there is no room for the archive at ${at}`, {
        cause: error,
        hint: "Make room, or name a file on another disk: --out FILE. TMPDIR names the directory in which its pieces are gathered.",
      });
    throw new AccelError("FILE_UNUSABLE", `${at} cannot be written: ${text}`);
  } finally {
    if (staged !== undefined) rmSync(staged, { recursive: true, force: true });
  }
}

/** Every secret of this host that can be read; settings that are not valid are no reason to collect nothing. */
function secretsOfHost(config: string): readonly string[] {
  const { value: named } = peekAnyway(config, "secret16_file");
  const file = secretFileOf(named ?? "/etc/accel-agent/secret16");
  const known = [...secretsOf(anyStateDirOf(config)), ...secretsOfProxies()];
  try {
    return [readSecret16(file), ...known];
  } catch {
    return known;
  }
}

/** The passwords of proxies in the environment, as they stand there and as they are meant. */
function secretsOfProxies(): readonly string[] {
  return ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"].flatMap((name) => {
    const { password = "" } = URL.parse(process.env[name] ?? "") ?? {};
    return password === "" ? [] : [password, decodeURIComponent(password)];
  });
}

function piecesOf(
  config: string,
  agent: AskedAgent,
  { version, stop }: CommandContext,
): readonly Piece[] {
  const { unit } = agentAt(config);
  const asked = (command: string) => async (): Promise<string> =>
    `${JSON.stringify(await agent.ask(command), null, 2)}\n`;
  const measured = (path: string) => async (): Promise<string> => {
    if (agent.silence !== undefined) throw agent.silence;
    return metricsOf(config, path);
  };
  const said =
    (program: string, ...args: readonly string[]) =>
    async (): Promise<string> =>
      (await run(program, args, { maxBuffer: 2 ** 26 })).stdout;
  const file = (path: string) => (): string => readFileSync(path, "utf8");
  const findings = async (): Promise<string> =>
    findingLines(await examine(config, hostOf(config, stop, agent), () => new Date()), false);
  return [
    { name: "version.txt", read: () => `accel-agent ${version}, Node ${process.version}\n` },
    { name: "doctor.txt", read: findings },
    { name: "settings.yaml", read: file(config) },
    { name: "status.json", read: asked("status") },
    { name: "netcheck.json", read: asked("netcheck") },
    { name: "viewsets.json", read: asked("viewset-list") },
    { name: "cache.json", read: asked("cache-stats") },
    { name: "logs-backlog.json", read: asked("logs-backlog") },
    { name: "bots.json", read: asked("bots-list") },
    { name: "metrics.txt", read: measured("/metrics") },
    { name: "metrics-deployment.txt", read: measured("/metrics/deployment") },
    { name: "journal.txt", read: said("journalctl", "-u", unit, "-n", "5000", "--no-pager") },
    { name: "unit.txt", read: said("systemctl", "cat", unit) },
    { name: "unit-properties.txt", read: said("systemctl", "show", unit) },
    { name: "disk.txt", read: said("df", "-hT") },
    { name: "sockets.txt", read: () => file("/proc/net/sockstat")() },
    { name: "memory.txt", read: file("/proc/meminfo") },
    { name: "os-release.txt", read: file("/etc/os-release") },
    { name: "resolv.conf", read: file("/etc/resolv.conf") },
    {
      name: "system.txt",
      read: () => `${osVersion()} ${release()}, up for ${Math.round(uptime())} s\n`,
    },
  ];
}

async function metricsOf(config: string, path: string): Promise<string> {
  const { settings } = loadUsableSettings(config);
  const { host, port } = settings["metrics.listen"];
  const name = ["0.0.0.0", "::", "[::]"].includes(host) ? "127.0.0.1" : host;
  const answer = await fetch(`http://${listenText({ host: name, port })}${path}`, {
    signal: AbortSignal.timeout(10_000),
  });
  return answer.text();
}

/** It asks origins, too. */
const examinedMs = 120_000;
/** An agent that serves says in less than a second how it is. */
const statusMs = 15_000;

const anyStateDirOf = (config: string): string =>
  stateDirOf(config) ?? placeOf(agentProgram).stateDir;

/** The agent that runs with these settings, as far as it can be asked. */
type AskedAgent = {
  /** Throws CONTROL_UNREACHABLE, and CONTROL_SILENT: then nobody waits for it again. */
  ask(command: string, withinMs?: number): Promise<unknown>;
  /** Undefined: it has answered so far, or was not there. */
  readonly silence: AccelError | undefined;
};

function agentOf(config: string, stop: AbortSignal): AskedAgent {
  const socket = join(anyStateDirOf(config), "control.sock");
  let silence: AccelError | undefined;
  return {
    async ask(command, withinMs = examinedMs) {
      if (silence !== undefined) throw silence;
      try {
        return await askControl(socket, command, { stop, withinMs });
      } catch (error) {
        if (error instanceof AccelError && isSilent(error)) silence = error;
        throw error;
      }
    },
    get silence() {
      return silence;
    },
  };
}

/** Asks the agent how it is; why that cannot be known is an answer, too. */
async function howItIs(agent: AskedAgent): Promise<AgentSeen> {
  try {
    return agentSeen(await agent.ask("status", statusMs));
  } catch (error) {
    if (!(error instanceof AccelError)) throw error;
    if (isSilent(error)) return { kind: "hangs", reason: error.message };
    return { kind: isDenied(error) ? "denied" : "absent" };
  }
}

/** Settings that no unit has are looked at beside the plain one. */
const agentAt = (config: string): UnitPlace =>
  placeOfConfig(agentProgram, config) ?? placeOf(agentProgram);

/** At idle priority a host that is busy may have no time for it. */
const encoderStartMs = 20_000;

/** This host, for the checks. */
export function hostOf(config: string, stop: AbortSignal, agent = agentOf(config, stop)): Host {
  const place = agentAt(config);
  const { unit } = place;
  let seen: Promise<AgentSeen> | undefined;
  return {
    config,
    place,
    uid: process.getuid?.() ?? 0,
    read: (path) => {
      try {
        return readFileSync(path, "utf8");
      } catch {
        return undefined;
      }
    },
    unit: async () => {
      try {
        const asked = ["show", unit, "-p", unitProperties.join(",")];
        const [shown, files] = await Promise.all([
          run("systemctl", asked),
          // It fails where there are no files, of which the properties tell.
          run("systemctl", ["cat", unit]).catch(() => ({ stdout: "" })),
        ]);
        // `show` leaves out credentials; the unit's files have them.
        const credentials = files.stdout.match(/^LoadCredential=.*$/gm) ?? [];
        const named = credentials.map((line) => line.slice("LoadCredential=".length)).join(" ");
        return propertiesOf(`${shown.stdout}\nLoadCredential=${named}`);
      } catch {
        return undefined;
      }
    },
    others: () => othersOf(config),
    installer: (stateDir) => {
      const places = installerPlaces(stateDir);
      return places === undefined ? undefined : new HostInstaller(places);
    },
    encoder: async (settings) => {
      // Without it there is nothing to start, which at idle priority may take its time.
      if (!hasLibrary()) return { kind: "absent", reason: "sharp is not installed" };
      await using encoder = openEncoder(settings, encoderStartMs);
      return await encoder.open(); // It is ended when this is known, not before.
    },
    agent: () => (seen ??= howItIs(agent)),
  };
}

/** Settings that are not valid start nothing. */
function othersOf(config: string): ReturnType<Host["others"]> {
  const plain = placeOf(agentProgram).config;
  if (placeOfConfig(agentProgram, config) === undefined) return [];
  return [plain, ...globSync(join(dirname(plain), "*", basename(plain))).toSorted()]
    .filter((path) => path !== config && placeOfConfig(agentProgram, path) !== undefined)
    .flatMap((path) => {
      try {
        return [{ config: path, settings: loadKnownSettings(agentFields, path).settings }];
      } catch {
        return [];
      }
    });
}

function propertiesOf(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split("\n").flatMap((line) => {
      const at = line.indexOf("=");
      return at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
}
