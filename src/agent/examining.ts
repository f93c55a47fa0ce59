// `accel-agent doctor`, `netcheck` and `diagnostics`: commands that look at this host, beside the agent or without one.

import { execFile } from "node:child_process";
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname, release, tmpdir, uptime, version as osVersion } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { callControl } from "../base/control-socket.ts";
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
import { loadKnownSettings, peekSetting } from "../base/settings-file.ts";
import { AccelError, messageOf, systemCode } from "../core/faults.ts";
import { askCentral } from "./doctor/central.ts";
import { collect, redaction, secretsOf, type Piece } from "./doctor/diagnostics.ts";
import { examine } from "./doctor/examine.ts";
import { findingLines, type Host } from "./doctor/finding.ts";
import type { TimedOrigins } from "./doctor/origins.ts";
import type { TimedAnswer } from "./doctor/timed-head.ts";
import { unitProperties } from "./doctor/unit.ts";
import { agentFields } from "./settings/fields.ts";
import { readSecret16, secretFileOf } from "./settings/secret.ts";

const options = {
  ...placeOptions,
  json: { type: "boolean", default: false },
} as const;
const usageOptions = [placeUsage, "  --json            facts as JSON"].join("\n");

const run = promisify(execFile);

export const doctorCommand: Command = {
  summary:
    "Examines this host: settings, secret, clock, name service, central and its certificate, ports, descriptors, kernel settings, disk, and the systemd unit. Says what to do about what it finds.",
  usage: `accel-agent doctor [options]\n\n${usageOptions}\n\nIt changes nothing, and can be given before the first start and while the agent runs. Give it as root: other users do not see all. Exit status: 0 if nothing failed, 1 otherwise. \`accel-agent check --deep\` is the same.`,
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
  usage: `accel-agent netcheck [options]\n\n${usageOptions}\n\nThe running agent asks the origins itself, from within its sandbox; without one only central is asked. Exit status: 0 if all answered, 1 otherwise.`,
  async run(context) {
    const { values } = readArgs(context.args, options);
    const config = configOf(values);
    goUnitsWay(config);
    const { settings } = loadKnownSettings(agentFields, config);
    const central = await askCentral(settings);
    const asked = await askAgent(config, "netcheck", context.stop).catch((error: unknown) => error);
    const origins = asked instanceof Error ? undefined : (asked as TimedOrigins);
    context.out(
      values.json
        ? `${JSON.stringify({ central, origins: origins ?? null }, null, 2)}\n`
        : netcheckText(central, origins, asked),
    );
    const failed = [central, ...(origins?.origins ?? [])].filter(({ error }) => error !== null);
    if (failed.length > 0)
      throw new AccelError(
        "HOST_NOT_FIT",
        `${failed.length} did not answer: ${failed.map(({ url }) => url).join(", ")}`,
      );
  },
};

/** From here on central is asked through the proxy of the unit, where the shell names none. */
function goUnitsWay(config: string): void {
  const place = placeOfConfig(agentProgram, config);
  if (place !== undefined) takeEnvironment(place.environment);
}

/** `asked` is why there are no origins. */
function netcheckText(
  central: TimedAnswer,
  origins: TimedOrigins | undefined,
  asked: unknown,
): string {
  return [
    "central\n",
    // A central without an authority of its own has 404 here: below 500, which status it is says nothing.
    answerText(central, "answers"),
    "origins\n",
    origins === undefined
      ? `  ${isDenied(asked) ? "this user may not ask the agent" : "the agent does not run"}: they are not asked\n`
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
  usage: `accel-agent diagnostics [--out FILE] [--config FILE]\n\n  --out FILE        the archive (default ./accel-agent-diagnostics-HOST-TIME.tar.gz)\n${placeUsage}\n\nIt has settings, status, metrics, the doctor's findings, the end of the journal and facts of the system. Secrets are taken out by value and by form. Host names, paths and addresses of visitors that the log has stay in it: read it before you send it to strangers.`,
  async run(context) {
    const only = { ...placeOptions, out: { type: "string" } } as const;
    const { values } = readArgs(context.args, only);
    const config = configOf(values);
    goUnitsWay(config); // Its password is a secret, too.
    const name = `accel-agent-diagnostics-${hostname()}-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
    const path = resolve(values.out ?? `${name}.tar.gz`);
    const redact = redaction(secretsOfHost(config));
    const collected = await collect(piecesOf(config, context), redact);
    const staged = mkdtempSync(join(tmpdir(), "accel-diagnostics-"));
    try {
      mkdirSync(join(staged, name));
      for (const piece of collected)
        writeFileSync(join(staged, name, piece.name), piece.text, { mode: 0o600 });
      writeFileSync(path, "", { mode: 0o600 });
      chmodSync(path, 0o600);
      await run("tar", ["-czf", path, "-C", staged, name]);
    } catch (error) {
      throw new AccelError("FILE_UNUSABLE", `${path} cannot be written: ${messageOf(error)}`);
    } finally {
      rmSync(staged, { recursive: true, force: true });
    }
    context.out(`${path}: ${collected.length} files\n`);
  },
};

/** Every secret of this host that can be read; settings that are not valid are no reason to collect nothing. */
function secretsOfHost(config: string): readonly string[] {
  const stateDir = peekText(config, "state_dir") ?? "/var/lib/accel-agent";
  const file = secretFileOf(peekText(config, "secret16_file") ?? "/etc/accel-agent/secret16");
  const known = [...secretsOf(stateDir), ...secretsOfProxies()];
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

function peekText(config: string, key: string): string | undefined {
  try {
    return peekSetting(config, key);
  } catch {
    return undefined;
  }
}

function piecesOf(config: string, { version, stop }: CommandContext): readonly Piece[] {
  const { unit } = agentAt(config);
  const asked = (command: string) => async (): Promise<string> =>
    `${JSON.stringify(await askAgent(config, command, stop), null, 2)}\n`;
  const said =
    (program: string, ...args: readonly string[]) =>
    async (): Promise<string> =>
      (await run(program, args, { maxBuffer: 2 ** 26 })).stdout;
  const file = (path: string) => (): string => readFileSync(path, "utf8");
  const findings = async (): Promise<string> =>
    findingLines(await examine(config, hostOf(config, stop), () => new Date()), false);
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
    { name: "metrics.txt", read: async () => metricsOf(config, "/metrics") },
    { name: "metrics-deployment.txt", read: async () => metricsOf(config, "/metrics/deployment") },
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
  const { settings } = loadKnownSettings(agentFields, config);
  const { host, port } = settings["metrics.listen"];
  const name = ["0.0.0.0", "::", "[::]"].includes(host) ? "127.0.0.1" : host;
  const answer = await fetch(`http://${listenText({ host: name, port })}${path}`, {
    signal: AbortSignal.timeout(10_000),
  });
  return answer.text();
}

/** Asks the agent that runs with these settings. Throws CONTROL_UNREACHABLE. */
async function askAgent(config: string, command: string, stop: AbortSignal): Promise<unknown> {
  const stateDir = peekText(config, "state_dir") ?? "/var/lib/accel-agent";
  for await (const answer of callControl(join(stateDir, "control.sock"), command, {}, stop))
    return answer;
  return null;
}

/** Settings that no unit has are looked at beside the plain one. */
const agentAt = (config: string): UnitPlace =>
  placeOfConfig(agentProgram, config) ?? placeOf(agentProgram);

/** This host, for the checks. */
export function hostOf(config: string, stop: AbortSignal): Host {
  const place = agentAt(config);
  const { unit } = place;
  return {
    config,
    place,
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
          run("systemctl", ["cat", unit]),
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
    isRunning: async () => {
      try {
        await askAgent(config, "status", stop);
        return true;
      } catch {
        return false;
      }
    },
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
